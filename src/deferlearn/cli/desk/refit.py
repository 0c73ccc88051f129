"""`deferlearn desk refit`: the next model, from the cases of the desk."""

from typing import Annotated

import typer

from deferlearn._utils.words import counted
from deferlearn.cli._options import option
from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened, who

COMMAND = "desk refit"


def refit(
    name: Annotated[str, option("What people call the new model. Default: refit.")] = "refit",
    newest: Annotated[
        int,
        option(
            "Use only so many of the newest cases, such as those since a change. Default: 200000.",
            min=1,
        ),
    ] = 200_000,
    held_out: Annotated[
        float,
        typer.Option(
            min=0.05,
            max=0.9,
            show_default=False,
            help="The newest part of the cases of known truth, on which the new model is compared with the "
            "active one. Default: 0.25.",
        ),
    ] = 0.25,
    seed: Annotated[int, option("Random seed. Default: 0.")] = 0,
    n_jobs: Annotated[
        int | None, option("Number of fits that run at the same time. Default: 1.")
    ] = None,
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Fit the next model on the desk's cases of known truth, and compare it with the active one.

    Which cases experts read depended on the model, so the fit fills in what is not known of the others, and
    leaves out cases that are no longer like the newest ones. Both models are compared on the newest cases,
    which neither has seen, and the command says whether to activate the new one. It is
    stored as a candidate: nothing changes until a supervisor activates it.
    """
    with opened(COMMAND, config, database) as desk:
        from deferlearn.desk.desk import Desk
        from deferlearn.desk.learning.refitting import refit as fit_next

        found = fit_next(
            Desk(desk.database),
            actor=who(),
            name=name,
            newest=newest,
            held_out=held_out,
            seed=seed,
            n_jobs=n_jobs,
        )
    report = found.report
    say(
        f"Model {found.model_id} ({name}) is stored as a candidate. It was fitted on "
        f"{counted(report['cases'], 'case')} of known truth, of which experts read "
        f"{report['read_by_experts']:,}, {report['audited']:,} of them as audits."
    )
    if report["left_out"]:
        say(
            f"The fit left out {counted(report['left_out'], 'older case')}, no longer like the newest ones."
        )
    say(f"{found.comparison.sentence} {found.comparison.advice}")
    for note in report["notes"]:
        say(f"Note: {note}")
