"""Tables of mixed units: a fit ends soon, with a verified optimum, or names the columns to rescale."""

import time

import numpy as np
import pytest

from deferlearn import AssistedSVC
from deferlearn.kernels import LinearGram
from deferlearn.objective import NumericalError, SVMObjective, solver
from deferlearn.selection import distorted_greedy

# Seconds of processor time that a fit may take, whatever the units of up to 500 rows.
LONGEST = 20.0


def mixed_units(seed, most_rows):
    """Columns of any scale with any offset, some of them flags, and labels that depend on all of them."""
    rng = np.random.RandomState(seed)
    n, d = rng.randint(100, most_rows + 1), rng.randint(2, 7)
    Z = rng.normal(size=(n, d))
    flags = rng.rand(d) < 0.3
    Z[:, flags] = Z[:, flags] > 0
    y = np.where(Z.sum(axis=1) - Z.sum(axis=1).mean() + rng.normal(size=n) > 0, 1, -1)
    scale = 10.0 ** rng.uniform(-9, 9, size=d)
    offset = scale * 10.0 ** rng.uniform(-2, 3, size=d) * (rng.rand(d) < 0.5)
    return Z * scale + offset, y, 10.0 ** rng.uniform(-4, 1)


@pytest.fixture(scope="module", autouse=True)
def compiled_code():
    """Compilation is not what is measured."""
    X, y, alpha = mixed_units(2, 120)  # it takes all of the code
    AssistedSVC(alpha=alpha, random_state=0).fit(X, y)


def clock_and_flag(n, seed):
    rng = np.random.RandomState(seed)
    flag = (rng.rand(n) < 0.5).astype(float)
    clock = 1.7e9 + 1e7 * rng.rand(n)
    y = np.where(flag + (clock - 1.705e9) / 1e7 + 0.5 * rng.normal(size=n) > 0.5, 1, -1)
    return np.column_stack([clock, flag]), y


@pytest.mark.parametrize(
    ("seed", "most_rows"),
    [(seed, 120) for seed in range(6)]
    + [pytest.param(seed, 500, marks=pytest.mark.slow) for seed in range(100, 160)],
)
def test_fits_end_soon_or_name_the_columns(seed, most_rows):
    X, y, alpha = mixed_units(seed, most_rows)
    start = time.process_time()
    try:
        objective = SVMObjective(X, y, alpha=alpha)
        team = AssistedSVC(alpha=alpha, random_state=0).fit(X, y)
    except NumericalError as error:
        assert "Column" in str(error)  # noqa: PT017
        assert "rescale them" in str(error)  # noqa: PT017
    else:
        assert objective.optimality_residual() < 1e-9
        # The machine in plain floats has the value that was found: F, and nothing below it.
        w, b = objective.coef, objective.intercept
        decisions = (X - X.mean(axis=0)) @ w + (b + X.mean(axis=0) @ w)
        primal = alpha * len(y) * float(w @ w) + np.maximum(0.0, 1.0 - y * decisions).sum()
        assert primal == pytest.approx(objective.value, rel=1e-5, abs=1e-5)
        assert set(team.predict(X)) <= {-1, 1}
    assert time.process_time() - start < LONGEST


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("n", [120, pytest.param(500, marks=pytest.mark.slow)])
def test_a_clock_beside_a_flag_is_ordinary(n, alpha):
    X, y = clock_and_flag(n, 0)
    start = time.process_time()
    AssistedSVC(alpha=alpha, random_state=0).fit(X, y)
    assert time.process_time() - start < LONGEST
    # A column in larger units costs less of |w|^2, and F falls: here by next to nothing.
    value = SVMObjective(X, y, alpha=alpha).value
    kiloseconds = SVMObjective((X - X.min(axis=0)) / [1e3, 1.0], y, alpha=alpha).value
    assert kiloseconds - 1e-4 < value <= kiloseconds + 1e-9


def test_removals_beside_a_clock_are_exact():
    X, y = clock_and_flag(100, 1)
    objective = SVMObjective(X, y, alpha=0.01)
    ks = np.flatnonzero(objective.dual > 0)[::8]
    gains = objective.gains(ks)
    for k, gain in zip(ks, gains, strict=True):
        without = SVMObjective(np.delete(X, k, axis=0), np.delete(y, k), alpha=0.01).value
        assert gain == pytest.approx(objective.value - without, abs=1e-8)
    lower, upper = objective.gain_bounds(ks)
    assert (lower <= gains + 1e-9).all()
    assert (gains <= upper + 1e-9).all()


def test_what_a_path_rounds_is_taken_back_without_another_path(monkeypatch):
    """Columns a hundred times apart lie between what floats hold easily and what needs twice the digits."""
    X, y = clock_and_flag(200, 1)
    objective = SVMObjective(X / [1e5, 1.0], y, alpha=1e-3)
    approached, approach = [], solver._approach

    def counted(*args):
        approached.append(1)
        return approach(*args)

    monkeypatch.setattr(solver, "_approach", counted)
    distorted_greedy(objective, np.zeros(len(y)), 40)
    assert len(approached) < 40


def test_the_matrix_of_twice_the_digits_is_made_once(monkeypatch):
    X, y = clock_and_flag(120, 1)
    made, make = [], LinearGram.block_pair

    def counted(self, rows, columns):
        made.append(len(rows) == len(columns) == self.n)
        return make(self, rows, columns)

    monkeypatch.setattr(LinearGram, "block_pair", counted)
    objective = SVMObjective(X, y, alpha=0.01)
    distorted_greedy(objective, np.zeros(len(y)), 24)
    assert sum(made) == 1
