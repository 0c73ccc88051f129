"""Intervals of the desk's numbers over simulated weeks: how often they hold.

Printed is, over 1,000 simulated weeks each (--runs), in how many the 95% interval covers what is true:

- of the machine's error, for several numbers of audits and machines (the number of audits is random, as at
  the desk);
- of all other numbers of the overview, over weeks of 1,000 cases of which 60% have a known truth.

Run it with::

    python benchmarks/monitoring.py
"""

import argparse
from time import perf_counter, process_time

import numpy as np
from scipy import stats
from support.weeks import NOW, TRUE, simulated_week

from deferlearn.desk.monitoring.columns import column_shifts
from deferlearn.desk.monitoring.errors import machine_error
from deferlearn.desk.monitoring.overview import figures_of
from deferlearn.desk.monitoring.workload import load
from deferlearn.tables.guard import learn_guard

# Cases per week, probabilities of an audit, the machine's error at each, and their shares of the cases.
WEEKS = {
    "8 audits, 5% wrong": (400, [0.02], [0.05], [1.0]),
    "16 audits, 2% wrong": (800, [0.02], [0.02], [1.0]),
    "16 audits, 5% wrong": (800, [0.02], [0.05], [1.0]),
    "16 audits, 20% wrong": (800, [0.02], [0.2], [1.0]),
    "80 audits, 5% wrong": (800, [0.1], [0.05], [1.0]),
    "share raised from 2% to 10%, 60 audits": (1000, [0.02, 0.1], [0.05, 0.05], [0.5, 0.5]),
    "the same, 240 audits": (4000, [0.02, 0.1], [0.05, 0.05], [0.5, 0.5]),
    "the same, 120, errors fall from 10% to 2%": (2000, [0.02, 0.1], [0.1, 0.02], [0.5, 0.5]),
    "the same, 120, errors rise from 2% to 10%": (2000, [0.02, 0.1], [0.02, 0.1], [0.5, 0.5]),
    "shares of 2%, 5% and 20%, 258 audits": (3000, [0.02, 0.05, 0.2], [0.05] * 3, [0.3, 0.4, 0.3]),
    "six shares, 255 audits": (3000, [0.02, 0.03, 0.05, 0.08, 0.13, 0.2], [0.05] * 6, [1 / 6] * 6),
    "six shares, 85 audits": (1000, [0.02, 0.03, 0.05, 0.08, 0.13, 0.2], [0.05] * 6, [1 / 6] * 6),
}


def coverage(name: str, luck: np.random.Generator) -> tuple[bool, float]:
    """Whether the interval of one week covers, and its width."""
    n, probabilities, errors, mix = WEEKS[name]
    kind = luck.choice(len(mix), n, p=mix)
    chance = np.array(probabilities)[kind]
    wrong = luck.random(n) < np.array(errors)[kind]
    found = machine_error(wrong, luck.random(n) < chance, chance).interval
    if not np.isfinite(found.mean):
        return True, 1.0
    return bool(found.low <= np.dot(errors, mix) <= found.high), found.high - found.low


def week(luck: np.random.Generator) -> dict[str, tuple[bool, float]]:
    """Whether the interval of each number of one week covers, and its width."""
    figures, _ = figures_of(simulated_week(luck), 0.2, NOW)
    found = {f"{one.name}, {one.about}".strip(", "): one.interval for one in figures}
    found["load per day"] = load(
        "Ann", int(luck.poisson(7 * TRUE["load per day"])), 7, None
    ).interval
    guard = learn_guard(["x"], {}, luck.normal(size=(500, 1)))
    found["shift of a column"] = column_shifts(guard, luck.normal(0.5, size=(300, 1)))[0].interval
    truth = {**TRUE, "shift of a column": 2 * stats.norm.cdf(0.25) - 1}
    return {
        name: (truth[name] >= one.low and truth[name] <= one.high, one.high - one.low)
        for name, one in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, cpu, luck = perf_counter(), process_time(), np.random.default_rng(options.seed)
    print(f"Audits: share of {options.runs:,} weeks in which the 95% interval covers; mean width")
    for name in WEEKS:
        covers, width = np.mean([coverage(name, luck) for _ in range(options.runs)], axis=0)
        print(f"  {name:45} {covers:6.1%} {width:6.3f}", flush=True)
    print(f"\nAll numbers: the same over {options.runs:,} weeks of 1,000 cases")
    weeks = [week(luck) for _ in range(options.runs)]
    for name in weeks[0]:
        covers, width = np.mean([one[name] for one in weeks], axis=0)
        print(f"  {name:45} {covers:6.1%} {width:6.3g}")
    spent = perf_counter() - started, process_time() - cpu
    print(f"\n{spent[0]:.0f} s, of which {spent[1]:.0f} s of the processor")


if __name__ == "__main__":
    main()
