"""New cases as a whole: what happened to a column is named, and clean tables get no note."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from deferlearn.tables.guard import learn_guard
from deferlearn.tables.shifts import CaseSample, shift_notes

DATA = load_breast_cancer()
NAMES = DATA.feature_names.tolist()
ROWS = np.random.default_rng(0).permutation(len(DATA.data))


@pytest.fixture(scope="module")
def guard():
    return learn_guard(NAMES, {}, DATA.data[ROWS[:400]])


@pytest.fixture
def new():
    return DATA.data[ROWS[400:]].copy()


def test_clean_tables_get_no_note():
    """The rate of false alarms is 1 in 1000 tables."""
    noted = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(DATA.data))
        guard = learn_guard(NAMES, {}, DATA.data[rows[:300]])
        for size in (1, 5, 40, 200):
            noted += bool(shift_notes(guard, DATA.data[rows[300 : 300 + size]]))
    assert noted <= 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: 1.8 * x, "multiplied by about 1.77"),
        (lambda x: x / 100, "multiplied by about 0.01"),
        (lambda x: -x, "as if its sign were changed"),
        (lambda x: 0 * x + 15, "'mean radius' is 15 in every case"),
        (lambda x: np.nan * x, "'mean radius' is empty in 100% of the cases, and was in 0%"),
        (lambda x: 0.1 * x + 20, "'mean radius' is unlike training: its median is"),
    ],
)
def test_what_happened_to_a_column_is_named(guard, new, change, says):
    new[:, 0] = change(new[:, 0])
    (note,) = shift_notes(guard, new)
    assert says in note


def test_values_within_the_range_are_found_too(guard, new):
    """No case is unusual by itself, and yet the column is another one."""
    new[:, 0] = np.sort(new[:, 0]) * 0.6 + 5.5
    new = new[new[:, 0] < 14]
    assert not guard.strange(new)[:, 0].any()
    assert any("'mean radius'" in note for note in shift_notes(guard, new))


def test_swapped_columns_are_named_together(guard, new):
    one, other = NAMES.index("mean texture"), NAMES.index("mean perimeter")
    new[:, [one, other]] = new[:, [other, one]]
    notes = shift_notes(guard, new)
    assert notes == ["Columns 'mean texture' and 'mean perimeter' look as if they were swapped."]


def test_categories_whose_shares_have_changed():
    rng = np.random.default_rng(0)
    codes = rng.choice(3, size=(500, 1), p=[0.5, 0.3, 0.2]).astype(float)
    guard = learn_guard(["site"], {"site": ["Bonn", "Oslo", "Rome"]}, codes)
    assert shift_notes(guard, codes[:200]) == []
    changed = np.where(codes == 0, 2.0, codes)
    (note,) = shift_notes(guard, changed)
    assert "'site' is " in note
    (note,) = shift_notes(guard, np.ones((100, 1)))
    assert note == "Column 'site' is Oslo in every case; in training it had many values."


def test_the_sample_is_of_all_rows():
    sample = CaseSample(max_cells=2000)
    for start in range(0, 10_000, 500):
        sample.add(np.arange(start, start + 500, dtype=float)[:, None])
    kept = np.sort(sample.codes[:, 0])
    assert len(np.unique(kept)) == 2000
    # Five standard deviations of the mean of a sample.
    assert abs(kept.mean() - 5000) < 5 * 2887 / np.sqrt(2000)


def test_factors_are_written_out(guard, new):
    new[:, 0] *= 1000
    (note,) = shift_notes(guard, new)
    assert "multiplied by about 1,000: its median is 1" in note
