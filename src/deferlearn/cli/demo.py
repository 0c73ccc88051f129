"""`deferlearn demo`: whether assistance pays, with real radiologists and with a simulated expert."""

from __future__ import annotations

import io
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from deferlearn import __version__
from deferlearn.cli import _demo_report, _study
from deferlearn.cli import _options as shared
from deferlearn.cli._errors import reported, require
from deferlearn.cli._files import check_paths, command_line, made_folder
from deferlearn.cli._screen import print_json, say, status
from deferlearn.cli._study import EVERYONE, HUMAN, MACHINE, SHOWN, TEAM, TRIAGE, Estimate, Findings

if TYPE_CHECKING:
    from rich.table import Table

    from deferlearn.report import CaseReport

NAME = "demo"

# Three panels that stay readable when the picture is printed at half its width.
FIGURE_SIZE, FONT_SIZE, DPI = (11.0, 4.8), 12.5, 150

COMPARED = {"team - machine": (TEAM, MACHINE), "team - triage": (TEAM, TRIAGE)}
NOTE = (
    "Errors on test cases: mean over random splits with 40% test cases [95% interval over splits]; "
    "differences are paired by split. Splits of one data set share cases, so intervals are narrower than "
    "those of new data would be. Parameters are the same on all splits; data and policies were chosen, "
    "after trials on other splits, to show both outcomes."
)


def demo(
    context: typer.Context,
    *,
    out: shared.OutFolder = Path("results"),
    seed: shared.Seed = 0,
    as_json: shared.AsJson = False,
) -> None:
    """Show where assistance pays: machine, human and team, with real and with simulated experts.

    Prints tables, and writes a picture (demo.png) and the report of a model (demo.html), as
    `deferlearn fit` and `deferlearn report` make them from your own table.
    """
    require(NAME, "matplotlib", "pyarrow", "pandas", "jinja2")
    start = perf_counter()
    picture, page = out / "demo.png", out / "demo.html"
    with reported(NAME), made_folder(out):
        # Imported here because it loads the compiled engine, which `--help` does not need.
        from deferlearn.tables.writing import StagedFiles

        check_paths([picture, page], [])
        results, report = _measure(seed, command_line(context, spelled=("seed",)))
        with StagedFiles() as files:
            files.open(picture).write(_draw(results))
            files.open(page).write(report.to_html().encode("utf-8"))
    seconds = perf_counter() - start
    if as_json:
        print_json(
            {
                **_as_dict(results, seed),
                "seconds": seconds,
                "picture": str(picture),
                "report": str(page),
                "report_numbers": report.to_dict(),
            }
        )
    else:
        _print(results)
        say(*what_to_look_at(report, picture, page), f"Seed {seed}, {seconds:.0f} s.")


def _measure(seed: int, command: str, n_jobs: int | None = -1) -> tuple[list[Findings], CaseReport]:
    """Measure all settings one after the other, then the report."""
    count = len(_study.SETTINGS) + 1
    results = []
    with status("Compiling the engine: some seconds, in the first run only"):
        _study.compile_engine()
    for number, setting in enumerate(_study.SETTINGS, start=1):
        with status(f"{number} of {count}: {setting.title}, {setting.n_splits} splits"):
            results.append(_study.study(setting, seed, n_jobs))
    with status(f"{count} of {count}: {_demo_report.TITLE}"):
        return results, _demo_report.measured_report(seed, n_jobs, command)


def _print(results: list[Findings]) -> None:
    from rich.console import Console

    console = Console()
    for findings in results:
        console.print(_table(findings))
        console.print(_study.verdict(findings) + "\n", highlight=False, markup=False)
    console.print(f"{conclusion(results)}\n\n{NOTE}\n", highlight=False, markup=False)


def what_to_look_at(report: CaseReport, picture: Path, page: Path) -> list[str]:
    """Where the files are, and what to see in tables, picture and report.

    Parameters
    ----------
    report : CaseReport
        The report of the model.
    picture, page : Path
        The files.

    Returns
    -------
    lines : list of str
    """
    cases = report.numbers["cases"]
    return [
        "What to look at:",
        "- Tables: 'team - machine'. If it is below 0 with its whole interval, the human's help pays; "
        "above 0 it harms.",
        f"- Picture: {picture}. Where the curve falls, more cases for the human mean fewer errors.",
        f"- Report: {page}, for any browser. A model that finds REM sleep, fitted on some nights and "
        f"evaluated on {cases['rows']} epochs of others. Does it pay to ask the expert? "
        f"{report.numbers['effect']['headline']} See who errs where, and the list of cases, those for the "
        "human first.",
        "- Your own table: deferlearn fit --help, then deferlearn report --help.",
    ]


def _table(findings: Findings) -> Table:
    from rich.table import Table

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
    values = (estimate.mean, estimate.lower, estimate.upper)
    mean, lower, upper = (f"{value:{sign}.3f}" for value in values)
    # A bracket opens rich's markup unless it is escaped.
    return f"{mean} \\[{lower}, {upper}]"


def conclusion(results: list[Findings]) -> str:
    """Where the team beats the machine alone, and where it does not."""
    lines = ["Does assistance pay, according to these intervals?"]
    said = {-1: "yes", 0: "no clear difference", 1: "no, the machine alone errs less"}
    for findings in results:
        signs = {findings.difference(TEAM, MACHINE, budget).sign for budget in SHOWN}
        answer = said[signs.pop()] if len(signs) == 1 else "it depends on the budget"
        lines.append(f"- {findings.setting.title}: {answer}.")
    return "\n".join(lines)


def _as_dict(results: list[Findings], seed: int) -> dict[str, Any]:
    """What `--json` prints about the settings."""
    return {
        "deferlearn": __version__,
        "seed": seed,
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

    # A figure without pyplot needs no screen and leaves no global state.
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
            ax.set_xlabel("share of cases that the human takes")
            ax.set_ylabel("")
            ax.set_ylim(bottom=0)
        axes[0].set_ylabel("error on test cases")
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=len(handles[0]), frameon=False)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DPI)
    return content.getvalue()
