"""`deferlearn desk demo`: a desk at work, with simulated readers, for those who want to see one."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from deferlearn.cli._errors import FAILURE, fail
from deferlearn.cli._options import option
from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import told

COMMAND = "desk demo"


def demo(
    folder: Annotated[
        Path | None,
        option(
            "Empty folder in which the desk stays. Default: a temporary folder that is removed at the end."
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option(help="Open the supervisor's page, if there is a browser.")
    ] = True,
    speed: Annotated[
        float, option("How many times as fast time runs. Default: 100.", min=1, max=1000)
    ] = 100.0,
    minutes: Annotated[
        float | None,
        option(
            "End by itself after so many minutes of the laboratory; 100 of them take a minute. Default: "
            "Ctrl-C ends it.",
            min=1,
        ),
    ] = None,
) -> None:
    """Show a desk at work: nights of sleep, which six networks and five readers stage.

    Nights and answers are real; the readers are simulated, and answer as the experts of the data did.
    In its first minutes come cases, decisions, answers, audits, truths, alarms and a new model. Nothing
    is downloaded.
    """
    with told(COMMAND):
        from deferlearn.desk.demo.making import DemoError
        from deferlearn.desk.demo.story import Choices, run

        # Its server must not outlive it, however it is stopped.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            run(Choices(folder, browser, speed, minutes), say)
        except DemoError as error:
            fail(COMMAND, str(error), FAILURE)
        except KeyboardInterrupt:
            say("The demonstration has ended.")
