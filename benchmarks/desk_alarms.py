"""Alarms over simulated desks: how often they are false, and how fast they find a change.

Printed are, over 1,000 simulated desks each (--runs):

- the share of desks without any change that get a false alarm within 2,000 cases, at most 1% by design;
- for a column multiplied by 1,000, a doubled human error, slow drifts and others, the share of
  desks that have found them after so many cases, and the number of cases within which 95% have.

--picture draws the latter as curves. Run it with::

    python benchmarks/desk_alarms.py --picture docs/_static/desk_alarms.png
"""

import argparse
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

from deferlearn.desk.monitoring.evidence import first_alarm, log_capital
from deferlearn.desk.monitoring.watches import (
    RATE,
    column_bets,
    column_rate,
    deferral_bets,
    error_bets,
    unusual_bets,
)
from deferlearn.tables.guard import Guard, learn_guard

# The numbers of cases until the alarms of so many desks.
Simulation = Callable[[np.random.Generator, int], Any]

CHECKPOINTS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
# The change happens after so many cases. There are so many columns, and so many experts.
BEFORE, COLUMNS, EXPERTS = 500, 10, 5
# So many desks are simulated at a time.
AT_A_TIME = 100


def training(luck: np.random.Generator) -> Guard:
    """Ten columns, of which five are skewed."""
    return learn_guard([f"x{i}" for i in range(COLUMNS)], {}, cases(luck, 500))


def cases(luck: np.random.Generator, n: int) -> Any:
    return np.column_stack(
        [luck.lognormal(size=(n, COLUMNS // 2)), luck.normal(size=(n, COLUMNS // 2))]
    )


def column(change: Callable[[Any, Any], Any]) -> Simulation:
    """When a change of the last column raises an alarm."""

    def simulate(luck: np.random.Generator, runs: int) -> Any:
        def one() -> Any:
            guard, codes = training(luck), cases(luck, BEFORE + max(CHECKPOINTS))[:, -1]
            codes = change(codes, np.maximum(np.arange(len(codes)) - BEFORE, 0))
            bets = column_bets(guard, COLUMNS - 1, codes)
            return first_alarm(log_capital(bets)[1], column_rate(guard))

        return np.array([one() for _ in range(runs)])

    return simulate


def any_column(luck: np.random.Generator, runs: int) -> Any:
    """When any of ten columns that do not change raises an alarm."""

    def one() -> float:
        guard, codes = training(luck), cases(luck, max(CHECKPOINTS))
        found = [
            first_alarm(log_capital(column_bets(guard, k, codes[:, k]))[1], column_rate(guard))
            for k in range(COLUMNS)
        ]
        return float(min(found))

    return np.array([one() for _ in range(runs)])


def unusual(factor: float) -> Simulation:
    """When unusual cases raise an alarm, if one column is multiplied."""

    def simulate(luck: np.random.Generator, runs: int) -> Any:
        def one() -> Any:
            guard, codes = training(luck), cases(luck, BEFORE + max(CHECKPOINTS))
            codes[BEFORE:, 0] *= factor
            return guard.strange(codes).any(axis=1)

        happened = np.stack([one() for _ in range(runs)], axis=1)
        return first_alarm(log_capital(unusual_bets(happened))[1], RATE)

    return simulate


def errors(mean: float, change: Callable[[Any, Any], Any], rate: float = RATE) -> Simulation:
    """When an error that changes raises an alarm; expected errors differ from case to case."""

    def simulate(luck: np.random.Generator, runs: int) -> Any:
        expected = luck.beta(2, 2 / mean - 2, (BEFORE + max(CHECKPOINTS), runs))
        after = np.maximum(np.arange(len(expected)) - BEFORE, 0)[:, None]
        wrong = luck.random(expected.shape) < change(expected, after)
        return first_alarm(log_capital(error_bets(wrong, expected))[1], rate)

    return simulate


def deferrals(share: float) -> Simulation:
    """When the share deferred raises an alarm, with a budget of 20%."""

    def simulate(luck: np.random.Generator, runs: int) -> Any:
        n = BEFORE + max(CHECKPOINTS)
        chance = np.where(np.arange(n) < BEFORE, 0.2, share)[:, None]
        bets = deferral_bets(luck.random((n, runs)) < chance, 0.2)
        return first_alarm(log_capital(bets)[1], RATE)

    return simulate


def alarms(simulate: Simulation, luck: np.random.Generator, runs: int) -> Any:
    """The numbers of cases until an alarm, in parts that fit into the memory."""
    sizes = [min(AT_A_TIME, runs - start) for start in range(0, runs, AT_A_TIME)]
    return np.concatenate([simulate(luck, size) for size in sizes])


def same(values: Any, after: Any) -> Any:
    return values


def doubled(values: Any, after: Any) -> Any:
    return np.where(after > 0, 2 * values, values)


NOTHING: dict[str, Simulation] = {
    "machine or expert as expected, 10% wrong": errors(0.1, same),
    "at the limit: 12.5% wrong, 10% expected": errors(0.1, lambda e, t: np.minimum(1.25 * e, 1)),
    "ten columns": any_column,
    "unusual cases": unusual(1.0),
    "share deferred, at the budget": deferrals(0.2),
    "share deferred, at the limit": deferrals(0.25),
}
# With the word for the picture, or none.
CHANGES: dict[str, tuple[Simulation, str]] = {
    "column times 1,000: unusual cases": (unusual(1000.0), "column times 1,000"),
    "column times 1,000: shift": (column(lambda x, t: np.where(t > 0, 1000 * x, x)), ""),
    "column moved by one deviation": (column(lambda x, t: np.where(t > 0, x + 1, x)), ""),
    "column drifts by a deviation per 500 cases": (
        column(lambda x, t: x + t / 500),
        "column drifts by a deviation per 500 cases",
    ),
    "human error doubled, 5% expected": (errors(0.05, doubled, RATE / EXPERTS), ""),
    "human error doubled, 10% expected": (
        errors(0.1, doubled, RATE / EXPERTS),
        "human error doubled from 10%",
    ),
    "human error doubled, 20% expected": (
        errors(0.2, doubled, RATE / EXPERTS),
        "human error doubled from 20%",
    ),
    "machine's error doubled, 10% expected": (errors(0.1, doubled), ""),
    "machine's error drifts, 10 to 30% in 1,000": (
        errors(0.1, lambda e, t: e * (1 + np.minimum(t / 500, 2))),
        "machine's error drifts from 10% to 30% in 1,000 cases",
    ),
    "share deferred 35% instead of 20%": (deferrals(0.35), "share deferred 35% instead of 20%"),
}


def draw_curves(found: dict[str, Any], path: str) -> None:
    """The share of desks that have found a change, by the number of cases since then."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    grid = np.geomspace(1, max(CHECKPOINTS), 400)
    for word, times in found.items():
        axes.plot(grid, [np.mean((times > 0) & (times <= n)) for n in grid], label=word)
    axes.set_xscale("log")
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axes.set_xlabel("cases since the change (of errors: cases of known truth)")
    axes.set_yticks(np.arange(0, 1.1, 0.25), [f"{share:.0%}" for share in np.arange(0, 1.1, 0.25)])
    axes.set_ylabel("desks with an alarm")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)


def false_alarms(runs: int, seed: int) -> None:
    print(f"Nothing has changed: share of {runs:,} desks with a false alarm (at most {RATE:.0%})")
    for name, simulate in NOTHING.items():
        times = alarms(simulate, np.random.default_rng([seed, *name.encode()]), runs)
        print(f"  {name:45} {np.isfinite(times).mean():6.1%}", flush=True)


def found_alarms(runs: int, seed: int, picture: str | None) -> None:
    print(
        f"\nChanged after {BEFORE} cases: share of {runs:,} desks that have found it, by further cases, "
        "and the number of cases within which half and 95% of the desks have"
    )
    print(" " * 48 + "".join(f"{n:>6}" for n in CHECKPOINTS) + "    half     95%")
    curves = {}
    for name, (simulate, word) in CHANGES.items():
        times = alarms(simulate, np.random.default_rng([seed, *name.encode()]), runs) - BEFORE
        shares = "".join(f"{np.mean((times > 0) & (times <= n)):6.0%}" for n in CHECKPOINTS)
        half, most = np.quantile(times, [0.5, 0.95], method="inverted_cdf")
        print(f"  {name:46}{shares} {half:7.0f} {most:7.0f}", flush=True)
        if word:
            curves[word] = times
    if picture:
        draw_curves(curves, picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=["false", "found"], help="only one of both tables")
    parser.add_argument("--picture", help="write the curves of what is found how fast to this file")
    options = parser.parse_args()
    started, cpu = perf_counter(), process_time()
    if options.only != "found":
        false_alarms(options.runs, options.seed)
    if options.only != "false":
        found_alarms(options.runs, options.seed, options.picture)
    spent = perf_counter() - started, process_time() - cpu
    print(f"\n{spent[0]:.0f} s, of which {spent[1]:.0f} s of the processor")


if __name__ == "__main__":
    main()
