"""Months at a desk whose cases and experts drift: refits against a frozen model and against naive refits.

The scenario was fixed, with these numbers, before it was run; seeds begin at 23110.

- *The desk.* Thirty cases arrive per day, 600 per month. Experts have time for six per day, which is the
  model's budget of a fifth. Of the other cases 5% are audited, about one per day. The first model is fitted
  on a table of 600 cases that experts answered completely. Then six months follow.
- *The cases.* Four numbers of normal distribution. The truth is the side of a plane through the origin,
  with a noise of 0.4 standard deviations, so that no machine is wrong in less than 12%. *Drifting cases*:
  the plane turns in the first two numbers by 10 degrees per month (the "rotating hyperplane" of Hulten,
  Spencer and Domingos, 2001).
- *The experts* know the truth, up to errors: 3% on one side of a plane in the other two numbers and 25% on
  the other side. *Drifting experts*: this plane turns by 30 degrees per month, so that after six
  months they are good where they were bad, as if other people had come.
- *Truth* becomes known by the end of the month, of all cases, or only of those that experts read (deferred
  or audited).

At the end of each month the next model is fitted on the cases of the last two months (`--newest 1200`),
the fewest that leave 200 to learn from if truth is known of the cases that were read only. The ways differ
in nothing else than this:

- *frozen*: never; the first model stays;
- *naive*: on the cases that experts answered, as if they were a random sample of all cases, and put to work
  at once;
- *naive, checked*: on the older three quarters of these cases; put to work if it is better on the newest
  quarter of them, as if they were a random sample of all cases;
- *refit*: as `deferlearn desk refit` does it, with recorded probabilities; put to work if its report
  recommends it, which it does if fewer errors than those of the active model are estimated with a
  confidence of 80%.

Each way works at a desk of its own, with the same cases, coins and answers. Printed is the team's error
from the second month on, with 95% intervals over 20 runs, and the differences between refit and the other
ways, paired by run, for each kind of drift and of truth. Without any drift refits cannot win: they should
not hurt. Run it with::

    python benchmarks/desk_learning.py
"""

import argparse
import warnings
from dataclasses import fields
from time import perf_counter, process_time
from typing import Any

import numpy as np

from deferlearn.desk.learning.refitting import compare_on, fit_records, last_to_learn_from
from deferlearn.desk.monitoring.records import Records
from deferlearn.evaluation.intervals import t_interval
from deferlearn.tables import TableDecider, fit_table, select_cases

WAYS = ("frozen", "naive", "naive, checked", "refit")
LABELS = np.array(["ill", "well"], dtype=object)
NAMES = [f"x{i}" for i in range(4)]
SEED, ALPHA = 23110, 0.05
CASES, DAY, BUDGET, AUDITS, KEPT_MONTHS, HELD_OUT = 600, 30, 0.2, 0.05, 2, 0.25
NOISE, GOOD, BAD = 0.4, 0.03, 0.25
# Degrees per month by which the planes of the truth and of the experts' skill turn.
DRIFTS = {
    "cases and experts": (10.0, 30.0),
    "cases": (10.0, 0.0),
    "experts": (0.0, 30.0),
    "nothing": (0.0, 0.0),
}
TRUTHS = {"all": "of all cases", "read": "only of the cases that experts read"}


def draw(luck: np.random.Generator, month: int, drift: str) -> tuple[Any, Any, Any]:
    """Cases, their truth, and what an expert would answer."""
    X = luck.normal(size=(CASES, len(NAMES)))
    turn, other = (np.deg2rad(month * degrees) for degrees in DRIFTS[drift])
    side = np.cos(turn) * X[:, 0] + np.sin(turn) * X[:, 1] + NOISE * luck.normal(size=CASES)
    skill = np.cos(other) * X[:, 2] + np.sin(other) * X[:, 3]
    y = (side > 0).astype(int)
    errs = luck.random(CASES) < np.where(skill > 0, GOOD, BAD)
    return {name: X[:, k] for k, name in enumerate(NAMES)}, LABELS[y], LABELS[y ^ errs]


def within_limit(wanted: Any) -> Any:
    """The cases that experts have time for, day by day."""
    days = np.arange(len(wanted)) // DAY
    taken = np.cumsum(wanted)
    before = np.concatenate([[0], taken])[np.searchsorted(days, days)]
    return wanted & (taken - before <= BUDGET * DAY)


def work(
    decider: TableDecider, arrived: tuple[Any, Any, Any], coins: Any, known: str, first: int
) -> Records:
    """The records of a month, with numbers from `first` on."""
    columns, truth, said = arrived
    decided = decider.decide(columns)
    n, deferred = len(truth), within_limit(np.asarray(decided.deferred, dtype=bool))
    audited = ~deferred & (coins < AUDITS)
    read = deferred | audited
    machine = decided.machine_answer.astype(object)
    rows, unknown = np.flatnonzero(read), np.full(n, np.nan)
    return Records(
        number=first + np.arange(n),
        received_at=first + np.arange(n),
        model_id=np.ones(n, dtype=int),
        content=[
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ],
        deferred=deferred,
        audited=audited,
        unusual=decided.unusual != "",
        probability=np.where(deferred, 0.0, AUDITS),
        machine_answer=machine,
        answer=np.where(deferred, said, machine),
        truth=truth if known == "all" else np.where(read, truth, None),
        expected_machine=1 - decided.probabilities.max(axis=1),
        expected_expert=unknown,
        by_expert=deferred,
        open=np.zeros(n, dtype=bool),
        answered_at=first + np.arange(n),
        row=rows,
        expert=np.full(len(rows), "expert", dtype=object),
        value=said[rows],
        kind=np.where(deferred[rows], "reading", "audit").astype(object),
        expected=unknown[rows],
    )


def together(months: list[Records]) -> Records:
    """The records of several months as one."""
    starts = np.cumsum([0, *(len(one) for one in months[:-1])])
    values: dict[str, Any] = {
        field.name: np.concatenate([getattr(one, field.name) for one in months])
        for field in fields(Records)
        if field.name != "content"
    }
    values["row"] = np.concatenate(
        [one.row + start for one, start in zip(months, starts, strict=True)]
    )
    return Records(content=[row for one in months for row in one.content], **values)


def as_if_at_random(records: Records, rows: Any, seed: int) -> TableDecider:
    """A model of some cases that experts answered, taken for a random sample of all cases."""
    contents = [records.content[row] for row in rows.tolist()]
    columns: dict[str, Any] = {name: [one[name] for one in contents] for name in NAMES}
    columns |= {"truth": records.truth[rows], "expert": records.first_answer[rows]}
    chosen = select_cases(columns, "truth", humans=["expert"])
    return fit_table(chosen, budget=BUDGET, alpha=ALPHA, seed=seed).decider()


def errors_there(decider: TableDecider, records: Records, rows: Any) -> float:
    """The team's error on some cases that experts answered."""
    contents = [records.content[row] for row in rows.tolist()]
    decided = decider.decide({name: np.array([one[name] for one in contents]) for name in NAMES})
    final = np.where(decided.deferred, records.first_answer[rows], decided.machine_answer)
    return float(np.mean(final != records.truth[rows]))


def next_model(
    way: str, records: Records, active: TableDecider, seen: int, seed: int
) -> tuple[TableDecider, int]:
    """The model of the next month, and the last case that it has learned from."""
    if way == "refit":
        last = last_to_learn_from(records, HELD_OUT, seen)
        fitted = fit_records(records, records.number <= last, active.card_, seed=seed)
        candidate = fitted.model.decider()
        found = compare_on(records, records.number > last, candidate, active)
        return (candidate, last) if found.recommended else (active, seen)
    answered = np.unique(records.row)
    if way == "naive":
        return as_if_at_random(records, answered, seed), 0
    older, newer = np.split(answered, [int(len(answered) * (1 - HELD_OUT))])
    candidate = as_if_at_random(records, older, seed)
    better = errors_there(candidate, records, newer) < errors_there(active, records, newer)
    return (candidate if better else active), 0


def run(seed: int, months: int, drift: str, known: str) -> tuple[Any, Any, Any]:
    """The team's error and the share deferred, by way and month; how often each way has a new model."""
    luck = np.random.default_rng(seed)
    columns, truth, said = draw(luck, 0, drift)
    columns |= {"truth": truth, "expert": said}
    first = select_cases(columns, "truth", humans=["expert"])
    start = fit_table(first, budget=BUDGET, alpha=ALPHA, seed=seed).decider()
    at_work, seen = dict.fromkeys(WAYS, start), dict.fromkeys(WAYS, 0)
    past: dict[str, list[Records]] = {way: [] for way in WAYS}
    error, share = np.zeros((2, len(WAYS), months))
    changes = np.zeros(len(WAYS))
    for month in range(months):
        arrived = draw(luck, month + 1, drift)
        coins = luck.random(CASES)
        for k, way in enumerate(WAYS):
            records = work(at_work[way], arrived, coins, known, 1 + month * CASES)
            error[k, month] = np.mean(records.answer != arrived[1])
            share[k, month] = records.deferred.mean()
            past[way].append(records)
            if way == "frozen" or month == months - 1:
                continue
            recent, active = together(past[way][-KEPT_MONTHS:]), at_work[way]
            at_work[way], seen[way] = next_model(way, recent, active, seen[way], seed)
            changes[k] += at_work[way] is not active
    return error, share, changes


def show(drift: str, known: str, found: list[Any]) -> None:
    errors, shares, changes = (np.array(part) for part in zip(*found, strict=True))
    print(f"\nDrift of {drift}; truth becomes known {TRUTHS[known]}")
    means = errors[:, :, 1:].mean(axis=2)
    for k, way in enumerate(WAYS):
        mean, low, high = t_interval(means[:, k])
        months = " ".join(f"{one:5.1%}" for one in errors[:, k].mean(axis=0))
        line = f"  {way:15}{mean:6.2%} ({low:.2%} to {high:.2%}), deferred {shares[:, k, 1:].mean():4.0%}, "
        print(f"{line}{changes[:, k].mean():.1f} new models; by month {months}")
    for k, way in enumerate(WAYS[:-1]):
        mean, low, high = t_interval(means[:, -1] - means[:, k])
        print(f"  refit minus {way}: {mean:+.2%} ({low:+.2%} to {high:+.2%})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--months", type=int, default=6)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--drift", choices=DRIFTS, help="only this drift; without it all of them")
    parser.add_argument("--truth", choices=TRUTHS, help="only this truth; without it both")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    started, cpu = perf_counter(), process_time()
    for known in [options.truth] if options.truth else TRUTHS:
        for drift in [options.drift] if options.drift else DRIFTS:
            seeds = range(options.seed, options.seed + options.runs)
            show(drift, known, [run(seed, options.months, drift, known) for seed in seeds])
    print(
        f"\n{perf_counter() - started:.0f} s, of which {process_time() - cpu:.0f} s of the processor"
    )


if __name__ == "__main__":
    main()
