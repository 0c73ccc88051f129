"""`deferlearn demo`: does a human's help pay? With real radiologists, and with a simulated expert."""

from __future__ import annotations

import io
import json
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from deferlearn import __version__
from deferlearn._atomic import write_atomically
from deferlearn.cli import _study
from deferlearn.cli._study import EVERYONE, HUMAN, MACHINE, SHOWN, TEAM, TRIAGE, Estimate, Findings

SEED = 0

# numpy's generator takes no larger seed.
MAX_SEED = 2**32 - 1

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
        Path, typer.Option(help="Folder for the picture; made if it does not exist.")
    ] = Path("results"),
    seed: Annotated[
        int,
        typer.Option(min=0, max=MAX_SEED, help="Seed of the splits and of the simulated expert."),
    ] = SEED,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show where assistance pays: machine, human and team, with real and with simulated experts."""
    # Before the work, so that what cannot be used costs nobody any time.
    if find_spec("matplotlib") is None:
        _fail("the picture needs matplotlib: pip install 'deferlearn[cli]'")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _fail(f"cannot use the folder {out}: {error.strerror}; choose another with --out")

    start = perf_counter()
    results = _measure(seed)
    picture = out / "demo.png"
    try:
        write_atomically(picture, _draw(results))
    except OSError as error:
        _fail(f"cannot write {picture}: {error.strerror}; choose another folder with --out")
    seconds = perf_counter() - start
    if as_json:
        typer.echo(json.dumps(_as_dict(results, seed, seconds, picture), indent=2))
    else:
        _print(results, seed, seconds, picture)


def _measure(seed: int, n_jobs: int | None = -1) -> list[Findings]:
    """All settings, one after the other; what is going on is said on stderr."""
    console = Console(stderr=True)
    count = len(_study.SETTINGS)
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
    return results


def _print(results: list[Findings], seed: int, seconds: float, picture: Path) -> None:
    console = Console()
    for findings in results:
        console.print(_table(findings))
        console.print(_study.verdict(findings) + "\n", highlight=False, markup=False)
    console.print(conclusion(results) + "\n", highlight=False, markup=False)
    console.print(NOTE, highlight=False, markup=False)
    # `soft_wrap`: a path broken over two lines cannot be copied.
    end = f"Seed {seed}, {seconds:.0f} s. Picture: {picture}"
    console.print(end, highlight=False, markup=False, soft_wrap=True)


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


def _as_dict(results: list[Findings], seed: int, seconds: float, picture: Path) -> dict[str, Any]:
    """What `--json` prints."""
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
        "seconds": seconds,
        "picture": str(picture),
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


def _fail(message: str) -> NoReturn:
    typer.echo(f"deferlearn demo: {message}", err=True)
    raise typer.Exit(code=1)
