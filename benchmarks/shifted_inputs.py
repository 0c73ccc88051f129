"""Something is wrong with the new cases: what the guard against cases unlike training makes of it.

Twenty-four kinds of corruption (units, gaps, swapped columns, new categories, a lost decimal comma) are
applied to the new cases of four tables: to one of the columns that matter most to the machine, or to all
columns. Printed for each: the share of the cases that are unusual, the share of the splits in which the
table as a whole gets a note, and the errors of the machine, of the team without the guard, with it (unusual
cases are deferred first, within the budget of 20%), and if all unusual cases are deferred
(`--exceed-budget`). Clean cases show the false alarms. Run it with::

    python benchmarks/shifted_inputs.py
"""

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from deferlearn.datasets import load_breast_cancer, load_digits_parity, load_lidc, load_sleep
from deferlearn.tables import Router, TabularTeam, fit_table, select_cases

Frame = pd.DataFrame
BUDGET = 0.2
STAGES = np.array(["Wake", "N1", "N2", "N3", "REM"])


def tables() -> dict[str, tuple[Frame, Any, Any]]:
    """Features, truth and an expert's answers of each data set; sleep is a table of categories."""
    found = {}
    for name, data in (
        ("breast cancer", load_breast_cancer()),
        ("LIDC", load_lidc()),
        ("digits", load_digits_parity()),
    ):
        names = data.get("feature_names", None)
        names = [f"x{i}" for i in range(data.data.shape[1])] if names is None else list(names)
        found[name] = (Frame(data.data, columns=names), data.target, data.human_labels)
    sleep = load_sleep(expert=5)
    rows = np.flatnonzero(~np.isnan(sleep.human_labels))[::60]
    votes = sleep.data[rows].reshape(len(rows), 5, 6, 5)  # epoch, network, stage
    columns = {}
    for place, network in enumerate(sleep.network_names):
        for step in (1, 2, 3):
            said = votes[:, step, place]
            label = np.where(said.any(axis=1), STAGES[said.argmax(axis=1)], "none")
            columns[f"{network} {step - 2:+d}"] = label
    found["sleep"] = (Frame(columns), sleep.target[rows], sleep.human_labels[rows])
    return found


def is_number(table: Frame, column: str) -> bool:
    return bool(pd.api.types.is_numeric_dtype(table[column]))


# -- corruptions: each takes the table, its two most important columns and a generator --------------


def scaled(factor: float) -> Callable[..., Frame]:
    def change(table: Frame, one: str, other: str, rng: Any) -> Frame:
        return table.assign(**{one: table[one] * factor})

    return change


def some_rows(change: Callable[..., Frame], share: float) -> Callable[..., Frame]:
    """The corruption in a share of the rows only."""

    def partly(table: Frame, one: str, other: str, rng: Any) -> Frame:
        hit = rng.random(len(table)) < share
        changed = change(table, one, other, rng)
        return changed.where(np.broadcast_to(hit[:, None], table.shape), table)

    return partly


def empty(table: Frame, one: str, other: str, rng: Any) -> Frame:
    return table.assign(**{one: None})


def empty_two(table: Frame, one: str, other: str, rng: Any) -> Frame:
    return table.assign(**{one: None, other: None})


def zero(table: Frame, one: str, other: str, rng: Any) -> Frame:
    return table.assign(**{one: 0.0})


def constant(table: Frame, one: str, other: str, rng: Any) -> Frame:
    return table.assign(**{one: table[one].iloc[0]})


def swapped(table: Frame, one: str, other: str, rng: Any) -> Frame:
    return table.assign(**{one: table[other], other: table[one]})


def shifted_by_one(table: Frame, one: str, other: str, rng: Any) -> Frame:
    """Every cell has moved to the next column."""
    return Frame(np.roll(table.to_numpy(), 1, axis=1), columns=table.columns, index=table.index)


def shuffled(table: Frame, one: str, other: str, rng: Any) -> Frame:
    """A column sorted without the others: its values belong to other cases."""
    return table.assign(**{one: rng.permutation(table[one].to_numpy())})


def lost_comma(table: Frame, one: str, other: str, rng: Any) -> Frame:
    """17,99 read as 1799."""
    return table.assign(**{one: [float(f"{v:.2f}".replace(".", "")) for v in table[one]]})


def truncated(table: Frame, one: str, other: str, rng: Any) -> Frame:
    """Only the digits before the point are left, in all columns."""
    return np.trunc(table)


def clipped(table: Frame, one: str, other: str, rng: Any) -> Frame:
    """A sensor that cannot show more than the lower quarter."""
    return table.assign(**{one: table[one].clip(upper=table[one].quantile(0.25))})


def offset(table: Frame, one: str, other: str, rng: Any) -> Frame:
    """Such as Kelvin for Celsius."""
    return table.assign(**{one: table[one] + 273.15})


def noisy(table: Frame, one: str, other: str, rng: Any) -> Frame:
    noise = rng.normal(0, 3 * table[one].std(), len(table))
    return table.assign(**{one: table[one] + noise})


def code_for_missing(table: Frame, one: str, other: str, rng: Any) -> Frame:
    """-999 in a tenth of the cells."""
    return table.mask(rng.random(table.shape) < 0.1, -999.0)


def new_category(table: Frame, one: str, other: str, rng: Any) -> Frame:
    return table.assign(**{one: "S" + table[one].astype(str)})


def one_new_category(table: Frame, one: str, other: str, rng: Any) -> Frame:
    return table.assign(**{one: table[one].replace("REM", "R")})


def upper_case(table: Frame, one: str, other: str, rng: Any) -> Frame:
    return table.map(str.upper)


def permuted_categories(table: Frame, one: str, other: str, rng: Any) -> Frame:
    """The list of the categories is in another order than it was."""
    return table.replace(dict(zip(STAGES, np.roll(STAGES, 1), strict=True)))


NUMBERS = {
    "one column x 1000": scaled(1000.0),
    "one column / 1000": scaled(0.001),
    "one column x 10": scaled(10.0),
    "one column x 2.54": scaled(2.54),
    "one column x 1000 in 10% of the rows": some_rows(scaled(1000.0), 0.1),
    "one column + 273.15": offset,
    "sign changed": scaled(-1.0),
    "decimal comma lost": lost_comma,
    "digits after the point cut off": truncated,
    "values clipped": clipped,
    "noise of 3 standard deviations": noisy,
    "one column 0": zero,
    "-999 in 10% of the cells": code_for_missing,
}
ANY = {
    "one column empty": empty,
    "two columns empty": empty_two,
    "one column constant": constant,
    "two columns swapped": swapped,
    "columns moved by one": shifted_by_one,
    "one column shuffled": shuffled,
}
CATEGORIES = {
    "new categories in one column": new_category,
    "one category renamed": one_new_category,
    "upper case": upper_case,
    "categories in another order": permuted_categories,
    "new categories in 10% of the rows": some_rows(new_category, 0.1),
}


def important_columns(model: TabularTeam, table: Frame, truth: Any, rng: Any) -> list[str]:
    """The two columns whose values matter most to the machine: shuffled, they cost it most."""
    costs = {}
    for name in table.columns:
        changed = shuffled(table, name, name, rng)
        costs[name] = float(np.mean(model.predict(changed) != truth))
    return sorted(costs, key=lambda name: -costs[name])[:2]


def judged(model: TabularTeam, table: Frame, truth: Any, human: Any, **options: bool) -> dict:
    """The team's error, and what is said about the cases."""
    router = Router(model, budget=BUDGET, **options)
    ((_, routed),) = router.route(lambda: [table])
    machine = np.array(routed["machine_answer"].to_pylist())
    deferred = np.array(routed["deferred"])
    team = np.where(deferred, human, machine)
    return {
        "unusual": router.totals.unusual / len(table),
        "noted": bool(router.totals.shifts),
        "machine": float(np.mean(machine != truth)),
        "team": float(np.mean(team != truth)),
        "asked": float(deferred.mean()),
    }


def rows_of(name: str, data: tuple[Frame, Any, Any], seed: int, tuned: bool) -> list[dict]:
    """A split of one data set: one row per corruption, and one for clean cases."""
    table = data[0]
    truth, human = (np.asarray(labels).astype(int).astype(str) for labels in data[1:])
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(table))
    old, new = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    known = table.iloc[old].assign(truth=truth[old], expert=human[old])
    cases = select_cases(known, "truth", humans=["expert"])
    options = {} if tuned else {"alpha": 0.01}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit_table(cases, budget=BUDGET, seed=seed, **options)
    fresh = table.iloc[new].reset_index(drop=True)
    one, other = important_columns(model, fresh, truth[new], rng)
    changes = (NUMBERS if is_number(table, one) else CATEGORIES) | ANY
    rows = []
    for what, change in {"clean": lambda table, *_: table, **changes}.items():
        changed = change(fresh, one, other, np.random.default_rng(seed))
        known = model, changed, truth[new], human[new]
        without = judged(*known, defer_unusual=False)
        guarded, free = judged(*known), judged(*known, exceed_budget=True)
        more = {"unguarded": without["team"], "free": free["team"], "free_asked": free["asked"]}
        rows.append({"data": name, "corruption": what, **guarded, **more})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5, help="splits per table (default: 5)")
    parser.add_argument("--alpha", action="store_true", help="a fixed SVM instead of a search")
    options = parser.parse_args()
    found: list[dict] = []
    for name, data in tables().items():
        for seed in range(options.splits):
            start = perf_counter()
            found += rows_of(name, data, seed, tuned=not options.alpha)
            print(f"{name}, split {seed}: {perf_counter() - start:.0f} s", flush=True)
    frame = pd.DataFrame(found)
    clean = frame[frame.corruption == "clean"]
    print(
        f"\nClean cases that are unusual: {clean.unusual.mean():.2%}, at most {clean.unusual.max():.2%}"
    )
    show(frame, ["corruption"], "mean over the tables")
    show(frame, ["corruption", "data"], "each table")


def show(frame: Frame, keys: list[str], title: str) -> None:
    """Print means as a table in Markdown."""
    headings = [
        *keys,
        "unusual cases",
        "splits with a note",
        "machine",
        "team without guard",
        "team with guard",
        "team, all unusual cases deferred",
    ]
    print(f"\n{title}\n\n| {' | '.join(headings)} |\n|{'---|' * len(headings)}")
    numbers = frame.assign(noted=frame.noted.astype(float))
    for key, row in numbers.groupby(keys, sort=False).mean(numeric_only=True).iterrows():
        names = key if isinstance(key, tuple) else (key,)
        print(
            f"| {' | '.join(names)} | {row.unusual:.1%} | {row.noted:.0%} | {row.machine:.1%} "
            f"| {row.unguarded:.1%} | {row.team:.1%} | {row.free:.1%} (asks {row.free_asked:.0%}) |"
        )


if __name__ == "__main__":
    main()
