"""`deferlearn demo`: which samples of the paper's linear example a human should take."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from deferlearn import __version__
from deferlearn._atomic import write_atomically
from deferlearn.datasets import make_linear
from deferlearn.humans import UniformHuman, labels_from_scores, loss_from_scores
from deferlearn.plot import SelectionDisplay
from deferlearn.plot.selection import is_constant

if TYPE_CHECKING:
    from deferlearn.bounds import Certificate
    from deferlearn.selection import SelectionResult

# Section "Experiments on Synthetic Data" of the paper: |V|, lambda and Delta H.
N_SAMPLES = 400
ALPHA = 1.0
HUMAN_SPREAD = 0.2
# Share and ratio of the authors' published selections (on their real data).
BUDGET = N_SAMPLES // 5
RATIO = 0.01
N_SHOWN = 10

# In many draws of these data the best linear machine answers alike everywhere (w = 0), before and
# after the deferral. Here there is a boundary to see, and humans move it.
SEED = 1

# numpy's generator takes no larger seed.
MAX_SEED = 2**32 - 1

# Two panels that stay readable when the picture is printed half as wide.
FIGURE_SIZE, FONT_SIZE, DPI = (7.0, 4.9), 12.5, 200


@dataclass(frozen=True)
class Outcome:
    """All that the demo has to tell."""

    seed: int
    y: NDArray[np.int64]
    human_loss: NDArray[np.float64]
    result: SelectionResult
    certificate: Certificate
    display: SelectionDisplay
    machine_loss_after: float
    wrong: dict[str, int]
    alike: dict[str, bool]
    seconds: float


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the picture; made if it does not exist.")
    ] = Path("results"),
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="Seed of the data and of the human.")
    ] = SEED,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of tables, with every pick.")
    ] = False,
) -> None:
    """Choose which of 400 samples a human should take, and picture the machine before and after."""
    # Before the work, so that what cannot be used costs nobody any time.
    if find_spec("matplotlib") is None:
        _fail("the picture needs matplotlib: pip install 'deferlearn[cli]'")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _fail(f"cannot use the folder {out}: {error.strerror}; choose another with --out")

    outcome = _select(seed)
    picture = out / "demo.png"
    try:
        write_atomically(picture, _draw(outcome.display))
    except OSError as error:
        _fail(f"cannot write {picture}: {error.strerror}; choose another folder with --out")
    if as_json:
        typer.echo(json.dumps(_as_dict(outcome, picture), indent=2))
    else:
        _print(outcome, picture)


def _select(seed: int) -> Outcome:
    # Imported here: they bring the compiled engine, which `--help` need not wait for.
    from deferlearn.bounds import certificate
    from deferlearn.objective import SVMObjective
    from deferlearn.selection import distorted_greedy

    # One generator for both: the same seed twice would tie the human's luck to the labels.
    rng = np.random.RandomState(seed)
    X, y = make_linear(N_SAMPLES, random_state=rng)
    scores = UniformHuman(HUMAN_SPREAD).scores(y, random_state=rng)
    human_loss = loss_from_scores(scores, y)

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("engine (a first run compiles it)", total=None)
        start = perf_counter()
        before = SVMObjective(X, y, alpha=ALPHA, kernel="linear")
        progress.update(task, description="selection", total=BUDGET)
        result = distorted_greedy(
            before, human_loss, BUDGET, RATIO, callback=lambda _: progress.advance(task)
        )
        seconds = perf_counter() - start
        progress.reset(task, description="certificate", total=None)
        proof = certificate(before, result, human_loss)

    after = before.copy()
    for k in result.order:
        after.remove(int(k))
    kept = after.kept
    alone, machine = before.decision_function(X), after.decision_function(X)
    return Outcome(
        seed=seed,
        y=y,
        human_loss=human_loss,
        result=result,
        certificate=proof,
        display=SelectionDisplay.from_result(before, X, y, result),
        machine_loss_after=float(after.value),
        wrong={
            "machine_alone": int(np.sum(y * alone <= 0)),
            "machine_after": int(np.sum((y * machine)[kept] <= 0)),
            "human_after": int(np.sum((labels_from_scores(scores) != y)[~kept])),
        },
        alike={"before": is_constant(alone), "after": is_constant(machine)},
        seconds=seconds,
    )


def _print(outcome: Outcome, picture: Path) -> None:
    console = Console()
    console.print(_picks_table(outcome))
    console.print(_summary_table(outcome))
    text = ["How good is that?", outcome.certificate.summary()]
    if any(outcome.alike.values()):
        when = " and ".join(when for when, alike in outcome.alike.items() if alike)
        text.append(
            f"In this draw no line helps {when} the deferral: the best machine answers alike "
            f"everywhere. Another --seed may show more; the default is {SEED}."
        )
    console.print("\n".join(text), highlight=False, markup=False)
    # `soft_wrap`: a path broken over two lines cannot be copied.
    console.print(f"Picture: {picture}", highlight=False, markup=False, soft_wrap=True)


def _picks_table(outcome: Outcome) -> Table:
    result = outcome.result
    shown = min(N_SHOWN, len(result.order))
    table = Table(title=f"The first {shown} of {len(result.order)} samples deferred to the human")
    for heading in ("pick", "sample", "label", "exact gain", "human loss", "score"):
        table.add_column(heading, justify="right")
    for pick in _picks(outcome)[:N_SHOWN]:
        table.add_row(
            str(pick["pick"]),
            str(pick["sample"]),
            f"{pick['label']:+d}",
            f"{pick['gain']:.4f}",
            f"{pick['human_loss']:.4f}",
            f"{pick['score']:.4f}",
        )
    return table


def _summary_table(outcome: Outcome) -> Table:
    result, wrong = outcome.result, outcome.wrong
    human = _paid(outcome)
    n_deferred = len(result.order)
    n_kept = N_SAMPLES - n_deferred
    table = Table(show_header=False, title=f"Linear SVM, alpha = {ALPHA:g}, seed {outcome.seed}")
    table.add_column()
    table.add_column()
    table.add_row("machine alone: F(V)", f"{result.initial_value:.4f}")
    table.add_row(
        "machine + human, after",
        f"{outcome.machine_loss_after:.4f} + {human:.4f} = "
        f"{outcome.machine_loss_after + human:.4f}",
    )
    table.add_row("deferred", f"{n_deferred} of {N_SAMPLES}, budget {BUDGET}")
    table.add_row(
        "wrong answers, these samples",
        f"{wrong['machine_alone']} of {N_SAMPLES} alone; then {wrong['machine_after']} of {n_kept} "
        f"by the machine, {wrong['human_after']} of {n_deferred} by the human",
    )
    table.add_row(
        "gains", f"{result.n_exact} solved exactly, {result.n_screened} dismissed by bounds"
    )
    table.add_row("selection", f"{outcome.seconds:.2f} s (a first run also compiles)")
    return table


def _as_dict(outcome: Outcome, picture: Path) -> dict[str, Any]:
    """What `--json` prints."""
    result, proof = outcome.result, outcome.certificate
    return {
        "deferlearn": __version__,
        "seed": outcome.seed,
        "n_samples": N_SAMPLES,
        "alpha": ALPHA,
        "human_spread": HUMAN_SPREAD,
        "budget": BUDGET,
        "algorithm": result.algorithm,
        "submodularity_ratio": result.submodularity_ratio,
        "machine_loss_before": result.initial_value,
        "machine_loss_after": outcome.machine_loss_after,
        "human_loss_after": _paid(outcome),
        "value": result.value,
        "n_deferred": len(result.order),
        "n_exact": result.n_exact,
        "n_screened": result.n_screened,
        "wrong_answers": outcome.wrong,
        "machine_answers_alike": outcome.alike,
        "seconds": outcome.seconds,
        "certificate": {
            "guaranteed": proof.guaranteed,
            "factor": proof.factor,
            "ratio_bound": proof.ratio_bound.best,
            "upper_bound": proof.optimum.value,
            "gap": proof.gap,
            "relative_gap": proof.relative_gap,
            "summary": proof.summary(),
        },
        "picks": _picks(outcome),
        "picture": str(picture),
    }


def _picks(outcome: Outcome) -> list[dict[str, Any]]:
    result = outcome.result
    return [
        {
            "pick": position + 1,
            "sample": int(k),
            "label": int(outcome.y[k]),
            "gain": float(result.gains[position]),
            "human_loss": float(outcome.human_loss[k]),
            "score": float(result.scores[position]),
        }
        for position, k in enumerate(result.order)
    ]


def _paid(outcome: Outcome) -> float:
    """The human's loss on all deferred samples."""
    return float(outcome.human_loss[outcome.result.order].sum())


def _draw(display: SelectionDisplay) -> bytes:
    import matplotlib

    # A figure without pyplot: it needs no screen and leaves no global state.
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"font.size": FONT_SIZE, "axes.titlesize": FONT_SIZE}):
        figure = Figure(figsize=FIGURE_SIZE, layout="constrained")
        display.plot(axes=figure.subplots(1, 2, sharex=True, sharey=True))
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DPI)
    return content.getvalue()


def _fail(message: str) -> NoReturn:
    typer.echo(f"deferlearn demo: {message}", err=True)
    raise typer.Exit(code=1)
