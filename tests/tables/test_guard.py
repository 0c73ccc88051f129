"""The guard: what is unlike training is found, and what is like training is left alone."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from deferlearn.tables.guard import learn_guard


def guard_of(codes, **categories):
    names = [f"x{i}" for i in range(codes.shape[1] - len(categories))]
    return learn_guard([*names, *categories], categories, codes)


def drawn(name, rng, n):
    """Clean cases of very different kinds."""
    if name == "breast cancer":
        return rng.permutation(load_breast_cancer().data)[:n]
    if name == "digits":
        return rng.permutation(load_digits().data)[:n]
    shape = (n, 20)
    return {
        "normal": lambda: rng.normal(size=shape),
        "lognormal": lambda: np.exp(1.5 * rng.normal(size=shape)),
        "heavy tails": lambda: rng.standard_t(3, size=shape),
        "rare counts": lambda: rng.poisson(0.1, size=shape).astype(float),
        "mostly zero": lambda: (rng.random(shape) < 0.05) * rng.exponential(size=shape),
        "rare gaps": lambda: np.where(rng.random(shape) < 0.002, np.nan, rng.normal(size=shape)),
    }[name]()


KINDS = [
    "breast cancer",
    "digits",
    "normal",
    "lognormal",
    "heavy tails",
    "rare counts",
    "mostly zero",
    "rare gaps",
]


@pytest.mark.parametrize("kind", KINDS)
def test_clean_cases_are_usual(kind):
    """Fewer than 1% of clean cases are unusual, over draws of the training cases."""
    alarms, cases = 0, 0
    for seed in range(8):
        codes = drawn(kind, np.random.default_rng(seed), 569)
        known, new = codes[:400], codes[400:]
        alarms += guard_of(known).strange(new).any(axis=1).sum()
        cases += len(new)
    assert alarms / cases < 0.01


def test_clean_categories_are_usual():
    """Categories that keep coming (Zipf) are no alarm; those of a fixed list that change are."""
    rng = np.random.default_rng(0)
    open_list = np.minimum(rng.zipf(1.5, 1400), 300) - 1.0
    fixed = rng.integers(0, 4, 1400).astype(float)
    codes = np.column_stack([open_list, fixed])
    known, new = codes[:400], codes[400:].copy()
    new[~np.isin(new[:, 0], known[:, 0]), 0] = -1.0
    labels = [str(i) for i in range(300)]
    guard = guard_of(known, many=labels, few=list("abcd"))
    assert (new[:, 0] == -1).mean() > 0.03
    assert guard.strange(new).any(axis=1).mean() < 0.01
    new[:, 1] = -1.0
    assert guard.strange(new).any(axis=1).all()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mean radius", lambda x: 1000 * x),
        ("mean radius", lambda x: x / 1000),
        ("mean radius", lambda x: -x),
        ("worst area", lambda x: 0 * x),
        ("worst area", lambda x: np.nan * x),
        ("mean concavity", lambda x: 1000 * x + 1),
    ],
)
def test_changed_columns_are_found_with_value_and_range(name, change):
    data = load_breast_cancer()
    names = data.feature_names.tolist()
    guard = learn_guard(names, {}, data.data[:400])
    new, place = data.data[400:].copy(), names.index(name)
    new[:, place] = change(new[:, place])
    strange = guard.strange(new)
    assert strange[:, place].all()
    reason = guard.reasons(new[:1], strange[:1])[0]
    value = new[0, place]
    said = "is missing (never in training)" if np.isnan(value) else f"is {value:.6g} ("
    assert f"{name!r} {said}" in reason
    if not np.isnan(value):
        column = data.data[:400, place]
        assert f"{column.min():.6g} to {column.max():.6g} in training" in reason


def test_one_case_is_judged_as_among_others_and_quickly():
    codes = np.random.default_rng(0).normal(size=(500, 40))
    guard = guard_of(codes)
    new = codes[:50] * np.linspace(1, 20, 50)[:, None]
    together = guard.strange(new)
    assert together.any()
    assert not together.all()
    np.testing.assert_array_equal(together, np.vstack([guard.strange(row[None]) for row in new]))


def test_columns_without_numbers_or_spread():
    codes = np.array([[np.nan, 5.0, 0.3]] * 6)
    guard = guard_of(codes)
    new = np.array([[1e9, 5.0, 0.1 + 0.2], [np.nan, 6.0, 0.3]])
    assert guard.strange(new).tolist() == [[False] * 3, [False, True, False]]
    huge = guard_of(np.array([[1e-99], [1e99], [1.0], [2.0]]))
    assert not huge.strange(np.array([[1e50]])).any()


def test_a_gap_counts_only_where_gaps_are_rare():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(300, 4))
    gap = np.full((1, 4), np.nan)
    assert guard_of(codes).strange(gap).all()
    codes[5, 0] = codes[7, 1] = np.nan  # two first gaps in 300 cases: there will be others
    assert not guard_of(codes).strange(gap).any()
    codes[:30, :2] = np.nan  # columns with gaps say nothing about those without
    assert guard_of(codes).strange(gap).tolist() == [[False, False, True, True]]
