"""`deferlearn demo`: which samples of the paper's linear example are most worth deferring."""

from __future__ import annotations

import io
from pathlib import Path
from time import perf_counter
from typing import Annotated, NoReturn

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from deferlearn._atomic import write_atomically
from deferlearn.datasets import make_linear
from deferlearn.plot import GainDisplay
from deferlearn.plot.gains import CONSTANT

N_SAMPLES = 400
ALPHA = 1.0
N_SHOWN = 10

# In many draws of these data the best linear machine answers alike everywhere (w = 0), and then
# every sample of the smaller class has the same gain. Here there is something to see.
SEED = 1

# numpy's generator takes no larger seed.
MAX_SEED = 2**32 - 1


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the picture; made if it does not exist.")
    ] = Path("results"),
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the data.")] = SEED,
) -> None:
    """Show which samples of the paper's linear example are most worth deferring."""
    console = Console()
    # Before the work, so that a folder that cannot be used costs nobody any time.
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _fail(f"cannot use the folder {out}: {error.strerror}; choose another with --out")

    # Imported here: it brings the compiled engine, which `--help` need not wait for.
    from deferlearn.objective import SVMObjective

    X, y = make_linear(N_SAMPLES, random_state=seed)
    start = perf_counter()
    objective = SVMObjective(X, y, alpha=ALPHA, kernel="linear")
    gains = objective.gains(range(len(y)))
    seconds = perf_counter() - start
    value = float(objective.value)
    decision = objective.decision_function(X)
    machine_loss = np.maximum(0.0, 1.0 - y * decision)

    console.print(_table(X, y, machine_loss, gains))
    best = int(np.argmax(gains))
    console.print(
        f"F = {value:.4f}: the linear SVM's objective on all {len(y)} samples, alpha = {ALPHA:g}.\n"
        f"All {len(y)} gains, exact, took {seconds:.2f} s (a first run also compiles).\n"
        f"Sample {best} is worth most: giving it to a human lowers F by {gains[best]:.4f}. "
        "That pays if the human's own loss on it is smaller.",
        highlight=False,
    )
    if np.ptp(decision) < CONSTANT:
        console.print(
            "In this draw no line helps: the best machine answers alike everywhere, and every "
            "sample of the smaller class has the same gain. Another --seed may show more.",
            highlight=False,
        )

    picture = out / "demo.png"
    try:
        write_atomically(picture, _draw(GainDisplay.from_objective(objective, X, y, gains=gains)))
    except OSError as error:
        _fail(f"cannot write {picture}: {error.strerror}; choose another folder with --out")
    # `soft_wrap`: a path broken over two lines cannot be copied.
    console.print(f"Picture: {picture}", highlight=False, markup=False, soft_wrap=True)


def _table(
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    machine_loss: NDArray[np.float64],
    gains: NDArray[np.float64],
) -> Table:
    table = Table(title=f"The {N_SHOWN} samples most worth deferring")
    for heading in ("sample", "label", "features", "machine's hinge loss", "exact gain"):
        table.add_column(heading, justify="right")
    for k in np.argsort(-gains, kind="stable")[:N_SHOWN]:
        table.add_row(
            str(k),
            f"{y[k]:+d}",
            f"{X[k, 0]:.2f}, {X[k, 1]:.2f}",
            f"{machine_loss[k]:.4f}",
            f"{gains[k]:.4f}",
        )
    return table


def _draw(display: GainDisplay) -> bytes:
    # A figure without pyplot: it needs no screen and leaves no global state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.5), layout="constrained")
    axes = display.plot(ax=figure.add_subplot()).ax_
    axes.set_title(f"What deferring each sample is worth (linear SVM, alpha = {ALPHA:g})")
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()


def _fail(message: str) -> NoReturn:
    typer.echo(f"deferlearn demo: {message}", err=True)
    raise typer.Exit(code=1)
