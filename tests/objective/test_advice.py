"""Numbers that are too unequal for floats: what is said names the column or the parameter to change."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from deferlearn import AssistedSVC
from deferlearn.objective import NumericalError, SVMObjective
from deferlearn.objective.advice import unequal_columns
from deferlearn.tables import TableEncoder
from deferlearn.teams.machine import MachineSettings, machine_of
from deferlearn.teams.selector import Selector

RNG = np.random.RandomState(0)
Z = RNG.normal(size=(60, 2))
Y = np.where(Z[:, 0] + 0.3 * RNG.normal(size=60) > 0, 1, -1)
HUMAN = np.where(np.arange(60) % 9, Y, -Y)


def unix_time_and_flag(n, seed):
    rng = np.random.RandomState(seed)
    flag = (rng.rand(n) < 0.5).astype(float)
    y = np.where(flag + 0.5 * rng.normal(size=n) > 0.5, 1, -1)
    return np.column_stack([1.7e9 + 1e7 * rng.rand(n), flag]), y


@pytest.mark.parametrize("alpha", [1.0, 0.01, 1e-4])
def test_many_rows_with_a_clock_beside_a_flag_are_refused_at_once(alpha, monkeypatch):
    def selected(*args, **options):
        raise AssertionError("it was refused only after a selection had begun")

    X, y = unix_time_and_flag(600, 0)
    monkeypatch.setattr(Selector, "run", selected)
    with pytest.raises(NumericalError, match=r"Column 0 of X spreads over .*column 1 over 0\.5"):
        AssistedSVC(alpha=alpha, random_state=0).fit(X, y)


def test_a_scaled_clock_is_ordinary():
    X, y = unix_time_and_flag(400, 0)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert SVMObjective(scaled, y, alpha=0.01).slow_columns == ""


def test_tables_are_scaled_so_that_a_clock_beside_a_flag_is_ordinary():
    X, y = unix_time_and_flag(2000, 0)
    features = TableEncoder().fit_transform({"clock": X[:, 0], "flag": X[:, 1].astype(int)})
    objective = SVMObjective(features, y, alpha=0.01)
    assert objective.slow_columns == ""
    assert objective.counters.n_precise == 0
    assert objective.optimality_residual() < 1e-10


def test_few_samples_are_solved_all_the_same():
    X, y = unix_time_and_flag(60, 1)
    objective = SVMObjective(X, y)
    assert objective.slow_columns == ""
    assert objective.optimality_residual() < 1e-8


def test_unequal_columns_are_named():
    X = Z * [1.0, 1e-5]
    ratio, words = unequal_columns(SVMObjective(X, Y).problem.gram)
    expected = np.abs(X[:, 0]).max() / np.abs(X[:, 1]).max()
    assert ratio == pytest.approx(expected)
    assert words.startswith("Column 0 of X spreads over")
    assert unequal_columns(SVMObjective(sp.csr_array(X), Y).problem.gram)[0] == pytest.approx(
        expected
    )
    assert unequal_columns(SVMObjective(Z, Y).problem.gram)[1] == ""
    assert unequal_columns(SVMObjective(Z[:, :1], Y).problem.gram) == (1.0, "")
    assert unequal_columns(SVMObjective(Z, Y, kernel="rbf").problem.gram) == (1.0, "")


def ignoring_numbers(**options):
    """A fit whose warning counts, whether or not an optimum is found."""
    try:
        SVMObjective(options.pop("X", Z), Y, **options)
    except NumericalError as error:
        assert "times alpha" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"X": 1e4 * Z, "kernel": "poly", "gamma": 1.0}, "Rescale the columns.*column 0 is the"),
        ({"kernel": "poly", "degree": 50}, "degree=50 makes it so large"),
        ({"kernel": "poly", "coef0": 1e6}, r"coef0=1e\+06 makes it so large"),
        ({"kernel": "rbf", "alpha": 1e-11}, "Raise alpha"),
        ({"kernel": lambda A, B: 1e12 * A @ B.T}, "Let the kernel give smaller values"),
    ],
    ids=["columns", "degree", "coef0", "alpha", "callable"],
)
def test_kernel_values_far_above_alpha_bring_a_warning(options, cause):
    with pytest.warns(UserWarning, match=rf"times alpha\. From 1e\+10 on.*{cause}"):
        ignoring_numbers(**options)


@pytest.mark.filterwarnings("ignore:The largest value of kernel")
@pytest.mark.parametrize(
    ("options", "cause"),
    [({"degree": 50}, "degree=50 makes"), ({"coef0": -1e10}, r"coef0=-1e\+10 makes")],
)
def test_an_error_names_the_parameter_that_is_its_cause(options, cause):
    with pytest.raises(NumericalError, match=cause) as refused:
        AssistedSVC(kernel="poly", **options).fit(Z, Y, human_labels=HUMAN)
    assert "olumn" not in str(refused.value)


def test_ordinary_kernels_bring_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVMObjective(Z, Y, kernel="poly", alpha=1e-6)
        SVMObjective(Z, Y, kernel="rbf", alpha=1e-9)


@pytest.mark.filterwarnings("ignore:The largest value of kernel")
@pytest.mark.parametrize("size", [1e6, 1e7, 1e8, 1.7e9])
def test_a_machine_is_the_optimum_or_is_refused(size):
    """Far from the origin a polynomial kernel leaves nothing of the coefficients but rounding."""
    X, weights = size + 1e5 * Z, np.ones(60)
    try:
        objective = SVMObjective(X, Y, kernel="poly")
        settings = MachineSettings(1.0, "poly", 3, objective._gamma, 0.0, True, "soft")
        machine = machine_of(objective, X, Y.astype(float), weights, settings)
    except NumericalError as error:
        assert size > 1e7
        assert "escale the columns" in str(error)  # noqa: PT017
    else:
        loss = np.maximum(0.0, 1.0 - Y * machine.decision_function(X)).sum()
        assert loss <= objective.value * (1 + 1e-3)


@pytest.mark.filterwarnings("ignore:The largest value of kernel")
def test_a_machine_that_is_not_its_optimum_is_refused():
    """Far from the origin: either no optimum is found, or the machine is it, or it is refused."""
    refused = []
    for seed in range(1, 9):
        rng = np.random.RandomState(seed)
        Z = rng.normal(size=(60, 2))
        y = np.where(Z[:, 0] + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0)
        X = 1.7e9 + 1e5 * Z
        try:
            objective = SVMObjective(X, y, kernel="poly")  # then F is known, to the last digits
        except NumericalError:
            continue
        settings = MachineSettings(1.0, "poly", 3, objective._gamma, 0.0, True, "soft")
        try:
            machine = machine_of(objective, X, y, np.ones(60), settings)
        except NumericalError as error:
            refused.append(str(error))
        else:
            hinge = np.maximum(0.0, 1.0 - y * machine.decision_function(X)).sum()
            assert hinge <= 1.01 * objective.value
    assert refused
    assert all(re.search(r"is not the optimum.*StandardScaler", said) for said in refused)


@pytest.mark.parametrize("make", [SVMObjective, lambda X, y: AssistedSVC().fit(X, y)])
def test_whole_numbers_beyond_floats_are_refused(make):
    X = np.uint64(2**64 - 1) - RNG.randint(0, 1000, size=(60, 2)).astype(np.uint64)
    with pytest.raises(
        ValueError, match=r"X has whole numbers up to 184467.*Subtract the smallest"
    ):
        make(X, Y)
