"""`deferlearn demo`: does a human's help pay? With real radiologists, and with a simulated expert."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from deferlearn import __version__
from deferlearn.cli import _demo_report, _study
from deferlearn.cli._errors import FAILURE, fail, reported
from deferlearn.cli._study import EVERYONE, HUMAN, MACHINE, SHOWN, TEAM, TRIAGE, Estimate, Findings
from deferlearn.cli._tables import MAX_SEED, check_paths, made_folder

if TYPE_CHECKING:
    from deferlearn.report import CaseReport

NAME = "demo"
SEED = 0
# For the picture; for tables; for the verdict of the report.
NEEDED = ("matplotlib", "pyarrow", "pandas", "jinja2")

# Three panels that stay readable when the picture is printed half as wide.
FIGURE_SIZE, FONT_SIZE, DPI = (11.0, 4.8), 12.5, 150

COMPARED = {"team - machine": (TEAM, MACHINE), "team - triage": (TEAM, TRIAGE)}
NOTE = (
    "Errors on test cases: mean over random splits with 40% test cases [95% interval over splits]; "
    "differences are paired, split by split. Splits of one data set share cases, so intervals are "
    "narrower than those of new data would be. Parameters are the same on all splits; data and "
    "policies were picked, after trials on other splits, to show both outcomes."
)


def demo(
    out: Annotated[
        Path,
        typer.Option(help="Folder for the picture and the report; made if it does not exist."),
    ] = Path("results"),
    seed: Annotated[
        int,
        typer.Option(min=0, max=MAX_SEED, help="Seed of the splits and of the simulated expert."),
    ] = SEED,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show where assistance pays: machine, human and team, with real and with simulated experts.

    Tables on the screen, a picture (demo.png), and the report of a model (demo.html), as
    `deferlearn fit` and `deferlearn report` make them from your own table.
    """
    # Before the work, so that what cannot be used costs nobody any time.
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        fail(NAME, f"this needs {', '.join(missing)}: pip install 'deferlearn[cli]'", FAILURE)
    start = perf_counter()
    picture, page = out / "demo.png", out / "demo.html"
    with reported(NAME), made_folder(out):
        # Imported here: it brings the compiled engine, which `--help` need not wait for.
        from deferlearn.tables.writing import StagedFiles

        check_paths([picture, page], [])
        results, report = _measure(seed, shlex.join(["deferlearn", NAME, "--seed", str(seed)]))
        with StagedFiles() as files:
            files.open(picture).write(_draw(results))
            files.open(page).write(report.to_html().encode("utf-8"))
    told = Told(results, report, seed, perf_counter() - start, picture, page)
    if as_json:
        typer.echo(json.dumps(_as_dict(told), indent=2, allow_nan=False))
    else:
        _print(told)


@dataclass(frozen=True)
class Told:
    """All that is said at the end.

    Attributes
    ----------
    results : list of Findings
        Of the settings.
    report : CaseReport
        Of the model.
    seed : int
        Of it all.
    seconds : float
        How long it took.
    picture, page : Path
        Where the files are.
    """

    results: list[Findings]
    report: CaseReport
    seed: int
    seconds: float
    picture: Path
    page: Path


def _measure(seed: int, command: str, n_jobs: int | None = -1) -> tuple[list[Findings], CaseReport]:
    """All settings one after the other, then the report; what is going on is said on stderr."""
    console = Console(stderr=True)
    count = len(_study.SETTINGS) + 1
    results = []
    with console.status("") as status:

        def say(text: str) -> None:
            status.update(text)
            if not console.is_terminal:  # a status line is shown on terminals only
                console.print(text, highlight=False, soft_wrap=True)

        say("Compiling the engine: some seconds, in a first run only")
        _study.compile_engine()
        for number, setting in enumerate(_study.SETTINGS, start=1):
            say(f"{number} of {count}: {setting.title}, {setting.n_splits} splits")
            results.append(_study.study(setting, seed, n_jobs))
        say(f"{count} of {count}: {_demo_report.TITLE}")
        report = _demo_report.measured_report(seed, n_jobs, command)
    return results, report


def _print(told: Told) -> None:
    console = Console()
    for findings in told.results:
        console.print(_table(findings))
        console.print(_study.verdict(findings) + "\n", highlight=False, markup=False)
    console.print(conclusion(told.results) + "\n", highlight=False, markup=False)
    console.print(NOTE + "\n", highlight=False, markup=False)
    # `soft_wrap`: a path broken over two lines cannot be copied.
    for line in what_to_look_at(told):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def what_to_look_at(told: Told) -> list[str]:
    """Where the files are, and what there is to see in tables, picture and report.

    Parameters
    ----------
    told : Told
        What was measured and written.

    Returns
    -------
    lines : list of str
    """
    numbers = told.report.numbers
    found = numbers["assistance"]
    verdict = f" Its verdict: {found['headline']}" if found else ""
    return [
        "What to look at:",
        "- Tables: 'team - machine'. Below 0, its interval too, the human's help pays; above 0 it harms.",
        f"- Picture: {told.picture}. Where the curve falls, more cases for the human mean fewer errors.",
        f"- Report: {told.page}, for any browser. A model fitted on some patients, judged on "
        f"{numbers['cases']['rows']} nodules of others.{verdict} See who errs where, and the list of "
        "cases, those for the human first.",
        "- Your own table: deferlearn fit --help, then deferlearn report --help.",
        f"Seed {told.seed}, {told.seconds:.0f} s.",
    ]


def _table(findings: Findings) -> Table:
    setting = findings.setting
    size = f"{findings.n_cases} cases, {setting.n_splits} splits"
    table = Table(title=f"{setting.title} ({size})", caption=setting.story)
    table.add_column("error of")
    for budget in SHOWN:
        table.add_column(f"budget {budget:.0%}", justify="right")
    for who in EVERYONE:
        name = "team (AssistedSVC)" if who == TEAM else who
        table.add_row(name, *(_text(findings.error(who, b)) for b in SHOWN))
    table.add_section()
    for name, (who, other) in COMPARED.items():
        table.add_row(name, *(_text(findings.difference(who, other, b), "+") for b in SHOWN))
    return table


def _text(estimate: Estimate, sign: str = "") -> str:
    parts = (f"{value:{sign}.3f}" for value in (estimate.mean, estimate.lower, estimate.upper))
    mean, lower, upper = parts
    # A bracket opens rich's markup unless it is escaped.
    return f"{mean} \\[{lower}, {upper}]"


def conclusion(results: list[Findings]) -> str:
    """Where the team beats the machine alone, and where it does not."""
    lines = ["Does assistance pay, as these intervals tell?"]
    for findings in results:
        signs = {findings.difference(TEAM, MACHINE, budget).sign for budget in SHOWN}
        if signs == {-1}:
            said = "yes"
        elif signs == {0}:
            said = "no difference to be seen"
        elif signs == {1}:
            said = "no, the machine alone errs less"
        else:
            said = "it depends on the budget"
        lines.append(f"- {findings.setting.title}: {said}.")
    return "\n".join(lines)


def _as_dict(told: Told) -> dict[str, Any]:
    """What `--json` prints."""
    results = told.results
    return {
        "deferlearn": __version__,
        "seed": told.seed,
        "alpha": _study.ALPHA,
        "submodularity_ratio": _study.RATIO,
        "settings": [
            {
                "name": findings.setting.name,
                "title": findings.setting.title,
                "simulated": findings.setting.simulated,
                "n_cases": findings.n_cases,
                "n_splits": findings.setting.n_splits,
                "policy": findings.setting.policy,
                "results": [_at_budget(findings, budget) for budget in _study.BUDGETS],
                "verdict": _study.verdict(findings),
                "seconds": findings.seconds,
            }
            for findings in results
        ],
        "conclusion": conclusion(results),
        "note": NOTE,
        "seconds": told.seconds,
        "picture": str(told.picture),
        "report": str(told.page),
        "report_numbers": told.report.to_dict(),
    }


def _at_budget(findings: Findings, budget: float) -> dict[str, Any]:
    errors = {who: vars(findings.error(who, budget)) for who in EVERYONE}
    differences = {
        name: vars(findings.difference(who, other, budget))
        for name, (who, other) in COMPARED.items()
    }
    return {"budget": budget, "error": errors, "difference": differences}


def _draw(results: list[Findings]) -> bytes:
    import matplotlib

    # A figure without pyplot: it needs no screen and leaves no global state.
    from matplotlib.figure import Figure

    from deferlearn.plot import AutomationCurveDisplay

    with matplotlib.rc_context({"font.size": FONT_SIZE, "axes.titlesize": FONT_SIZE}):
        figure = Figure(figsize=FIGURE_SIZE, layout="constrained")
        axes = figure.subplots(1, len(results), squeeze=False)[0]
        for ax, findings in zip(axes, results, strict=True):
            AutomationCurveDisplay.from_curve(
                {who: findings.curves[who] for who in (TEAM, TRIAGE)},
                human=findings.error(HUMAN, SHOWN[0]).mean,
                machine=findings.error(MACHINE, SHOWN[0]).mean,
                ax=ax,
                legend=False,
            )
            ax.set_title(findings.setting.title.replace(", ", ",\n"))
            ax.set_xlabel("share that the human takes")
            ax.set_ylabel("")
            ax.set_ylim(bottom=0)
        axes[0].set_ylabel("error on test cases")
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=len(handles[0]), frameon=False)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DPI)
    return content.getvalue()
