"""runtime: seconds per round of both algorithms on the medical data."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import PUBLISHED_RATIO, Config
from deferlearn.experiments.data import retina, split_of
from deferlearn.experiments.experiment import Tables, jobs_of
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.selecting import ALGORITHMS, Selecting, objective_of
from deferlearn.experiments.stats import paired, summary
from deferlearn.teams.parameters import count_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "seconds per round of both algorithms"
COST = 0.15
ALONE = True
BUDGET = 0.2
# Seconds per iteration in the paper's appendix, on another machine (2.2 GHz Core i7, Python 2.7).
PAPER = {
    "distorted": {"messidor": 6.91, "stare": 1.26, "aptos": 10.79},
    "stochastic": {"messidor": 0.98, "stare": 0.30, "aptos": 0.97},
}


def jobs(config: Config) -> list[Job]:
    """One job per data set and split."""
    return jobs_of(
        "runtime",
        {"dataset": config.datasets, "seed": config.seeds},
        protocol=config.protocol,
        submodularity_ratio=PUBLISHED_RATIO,
        epsilon=config.epsilon,
        budget=BUDGET,
    )


def work(p: dict[str, Any]) -> list[Row]:
    """Each algorithm once, at the authors' lambda, after a first round that may include compilation."""
    split, alpha = split_of(p), float(retina(p["dataset"]).alpha)
    how = Selecting(p["submodularity_ratio"], epsilon=p["epsilon"], seed=p["seed"])
    n = count_of(p["budget"], len(split.y_train))
    rows = []
    for algorithm in ALGORITHMS:
        how.select(algorithm, objective_of(split, alpha), split.loss, 1)
        objective = objective_of(split, alpha)
        start = perf_counter()
        result = how.select(algorithm, objective, split.loss, n)
        seconds = perf_counter() - start
        rows.append(
            {
                "method": algorithm,
                "alpha": alpha,
                "n": n,
                "n_deferred": len(result.order),
                "n_exact": result.n_exact,
                "seconds": seconds,
                "seconds_per_round": seconds / n,
                "paper_seconds_per_round": PAPER[algorithm][p["dataset"]],
            }
        )
    return rows


def tables(rows: pd.DataFrame) -> Tables:
    """Seconds per round, beside the paper's; and stochastic minus distorted, split by split."""
    means = summary(rows, ["dataset", "method", "paper_seconds_per_round"], ["seconds_per_round"])
    lines = []
    for dataset, group in rows.groupby("dataset", sort=False):
        slow, fast = (group[group["method"] == method] for method in ALGORITHMS)
        line = {"dataset": dataset, "method": "stochastic", "minus": "distorted"}
        lines.append({**line, **paired(fast, slow, ["seconds_per_round"])})
    return {"": means, "differences": pd.DataFrame(lines)}


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Our times and the paper's, on a logarithmic scale."""
    means = tables(rows)[""]
    figure, axes = style.figure_of(3.6)
    ax, entries = axes[0][0], []
    for shift, method in zip((-0.12, 0.12), ALGORITHMS, strict=True):
        name, colour, marker, _ = style.METHODS[method]
        for column, face, who in [
            ("seconds_per_round", colour, "here"),
            ("paper_seconds_per_round", "none", "paper"),
        ]:
            look: Any = {"color": colour, "marker": marker, "markerfacecolor": face}
            look |= {"markersize": 9, "linestyle": ""}
            entries.append((f"{name.removesuffix(' greedy')}, {who}", look))
            for place, dataset in enumerate(config.datasets):
                mine = means[(means["dataset"] == dataset) & (means["method"] == method)]
                ax.plot(place + shift, mine[column].iloc[0], **look)
    ax.set_yscale("log")
    ax.set_yticks([1e-3, 1e-2, 1e-1, 1.0, 10.0], ["1 ms", "10 ms", "100 ms", "1 s", "10 s"])
    ax.minorticks_off()
    ax.set_xticks(range(len(config.datasets)), [style.DATASETS[d] for d in config.datasets])
    ax.set(ylabel="time per round", xlim=(-0.5, len(config.datasets) - 0.5))
    ax.grid(axis="y", color="0.9")
    style.legend(figure, entries)
    return figure
