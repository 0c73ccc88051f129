"""What happens in the demonstration, and when, told in plain words."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import environ
from pathlib import Path
from typing import NamedTuple

from deferlearn.desk.demo.client import Client
from deferlearn.desk.demo.clock import Clock
from deferlearn.desk.demo.laboratory import Laboratory
from deferlearn.desk.demo.making import SUPERVISOR, DemoError, Place, free_port
from deferlearn.desk.demo.nights import Nights

Say = Callable[[str], None]
# Minutes of the laboratory at which something happens: at 100 times the speed, 100 of them take a minute.
CARELESS_AT, BROKEN_AT, AWAY_AT, REFIT_AT, END_AT = 40.0, 90.0, 130.0, 140.0, 200.0
CARELESS, AWAY = "reader_2", "reader_5"
# Minutes between two lines about what has happened so far.
PROGRESS_EVERY = 25.0
# The desk listens here if nothing else does.
PORT = 8470
# Enough to learn from in a few seconds.
TRAINING_CASES = 1000
# Seconds between two looks at the alarms.
LOOK = 1.0


class Choices(NamedTuple):
    """What the user chose.

    Attributes
    ----------
    folder : Path or None
        Where the desk is kept; None: in a temporary folder, which is removed at the end.
    open_browser : bool
        Whether the supervisor's page is opened.
    speed : float
        Seconds of the laboratory per second.
    minutes : float or None
        After so many minutes of the laboratory the demonstration ends by itself; None: when it is stopped.
    training_cases : int
        How many cases the first model learns from.
    """

    folder: Path | None = None
    open_browser: bool = True
    speed: float = 100.0
    minutes: float | None = None
    training_cases: int = TRAINING_CASES


def run(choices: Choices, say: Say) -> None:
    """Make a desk, serve it, and let the laboratory work with it until it is stopped.

    Parameters
    ----------
    choices : Choices
        What the user chose.
    say : callable
        Gets each line for the user.

    Raises
    ------
    DemoError
        If something failed.
    """
    started = time.monotonic()
    with _folder(choices.folder) as folder:
        place = Place(folder, free_port(PORT))
        say(
            "This is a sleep laboratory with six beds. Every 30 seconds of a night are an epoch, which "
            "needs a stage of sleep. Six published networks vote on it, and where they are likely to be "
            "wrong, one of five readers decides. Nights, votes and the readers' answers are real; their "
            f"order and their times are not. Time runs {choices.speed:g} times as fast."
        )
        n_cases = choices.training_cases
        say(f"Learning from {n_cases} epochs what the networks and each reader are good at ...")
        nights = Nights()
        place.fit(nights, n_cases)
        place.make(nights)
        with place.served():
            _welcome(place, choices, say, time.monotonic() - started)
            clock = Clock(choices.speed)
            laboratory = Laboratory(Client(place.port, place.key), clock, nights, place.experts)
            laboratory.start()
            try:
                _play(place, laboratory, choices, say)
            except KeyboardInterrupt:
                pass  # the usual end
            finally:
                say("Stopping the desk ...")
                laboratory.stop()
                laboratory.client.close()
        if laboratory.failure is not None:
            raise DemoError(f"the demonstration ended: {laboratory.failure}")
        if choices.folder is not None:
            say(f"The desk stays in {folder}: `cd {folder}`, then `deferlearn desk serve`.")


def _welcome(place: Place, choices: Choices, say: Say, seconds: float) -> None:
    link = place.link(SUPERVISOR)
    opened = choices.open_browser and _has_browser() and webbrowser.open(link)
    say(f"The desk is at {place.address}, {seconds:.0f} seconds after the start. Ctrl-C stops it.")
    if opened:
        say(
            "Your browser shows the supervisor's page. Another link that signs a supervisor in, once:"
        )
        link = place.link(SUPERVISOR)
    else:
        say("This link opens the supervisor's page, once:")
    say(f"  {link}")
    say("To sign in as an expert, open this link in another browser or a private window:")
    say(f"  {place.link(AWAY)}")


def _play(place: Place, laboratory: Laboratory, choices: Choices, say: Say) -> None:
    """Let things happen when it is time, and tell about them, until the end."""
    clock = laboratory.clock
    refitting = threading.Thread(target=_refit, args=(place, say))
    end = float("inf") if choices.minutes is None else choices.minutes
    told: set[int] = set()
    progress = PROGRESS_EVERY
    events: list[tuple[float, Callable[[], None]]] = [
        (CARELESS_AT, lambda: _careless(laboratory, say)),
        (BROKEN_AT, lambda: _broken(laboratory, say)),
        (AWAY_AT, lambda: _away(laboratory, say)),
        (REFIT_AT, refitting.start),
        (END_AT, lambda: _end(say)),
    ]
    try:
        while laboratory.minutes < end and not clock.stopped.is_set():
            while events and laboratory.minutes >= events[0][0]:
                events.pop(0)[1]()
            if laboratory.minutes >= progress and progress <= END_AT:
                _progress(laboratory, say)
                progress += PROGRESS_EVERY
            _alarms(laboratory, say, told)
            clock.stopped.wait(LOOK)
    finally:
        clock.stopped.set()
        if refitting.is_alive():
            say("Waiting for the next model ...")
            refitting.join()


def _careless(laboratory: Laboratory, say: Say) -> None:
    laboratory.careless.add(CARELESS)
    say(
        f"From now on {CARELESS} is careless, and names a stage at random. The desk is not told; when the "
        "truth of these cases arrives, it should raise an alarm."
    )


def _broken(laboratory: Laboratory, say: Say) -> None:
    laboratory.network_broken = True
    say(
        "From now on one of the six networks is broken, and says Wake of every epoch. The desk should "
        "notice that cases are no longer like those of training."
    )


def _away(laboratory: Laboratory, say: Say) -> None:
    laboratory.away.add(AWAY)
    say(
        f"{AWAY} has gone home, so this reader's cases wait: you can answer them by the link for an "
        "expert. (The experts saw the recording. It is not in the data: you see what the machine sees.)"
    )


def _refit(place: Place, say: Say) -> None:
    say("Running `deferlearn desk refit`: the next model, from the cases whose truth is known ...")
    try:
        printed = place.command("desk", "refit", "--name", "after the change")
    except DemoError as error:
        say(str(error))
        return
    say(" ".join(printed.split()))
    say("It decides nothing yet: look at it on the page Models, and activate it there.")


def _end(say: Say) -> None:
    say(
        "You have seen it all: decisions, readings, audits, truth, alarms, and the next model. The "
        "laboratory works on for the rest of its day. Ctrl-C stops it."
    )


def _progress(laboratory: Laboratory, say: Say) -> None:
    counts = laboratory.counts
    say(
        f"After {laboratory.minutes:.0f} minutes of the laboratory: {counts.cases:,} cases have "
        f"arrived. The machine has answered {counts.cases - counts.deferred:,} of them at once, and "
        f"{counts.audited:,} of these are audited. Readers have given {counts.answers:,} answers. The "
        f"truth of {counts.truths:,} cases is known."
    )


def _alarms(laboratory: Laboratory, say: Say, told: set[int]) -> None:
    for alarm in reversed(laboratory.client.send("GET", "/api/v1/alarms")):
        if alarm["id"] not in told:
            told.add(alarm["id"])
            say(f"Alarm: {alarm['sentence']}")


@contextmanager
def _folder(wanted: Path | None) -> Iterator[Path]:
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
        if any(wanted.iterdir()):
            raise DemoError(f"the folder {wanted} is not empty; name another one by --folder")
        yield wanted.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="deferlearn-desk-") as folder:
        yield Path(folder)


def _has_browser() -> bool:
    """Whether there is a window to open: a browser of the terminal would hide what is printed there."""
    if sys.platform in ("darwin", "win32"):
        return True
    if not any(name in environ for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True
