"""Bad input is a ValueError that says what and where, and leaves the state as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from deferlearn.objective import SVMObjective

RNG = np.random.default_rng(7)
X = RNG.normal(size=(6, 2))
Y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
K = X @ X.T


def changed(array: np.ndarray, where: Any, value: float) -> np.ndarray:
    out = np.array(array, dtype=float)
    out[where] = value
    return out


def all_of(words: list[str]) -> str:
    """A pattern for a message that holds all of the words, in any order and case."""
    return "(?is)" + "".join(f"(?=.*(?:{word}))" for word in words)


def build(X_: Any = X, y: Any = Y, **params: Any) -> SVMObjective:
    return SVMObjective(X_, y, **params)


# What is wrong, how to provoke it, and words that the message must hold: what it is, and where.
# Columns and rows are chosen so that their numbers appear in no other part of a sensible message.
BAD: list[tuple[str, Callable[[], Any], list[str]]] = [
    ("nan in X", lambda: build(changed(X, (4, 1), np.nan)), [r"\bX\b", r"nan", r"\b4\b"]),
    ("infinite X", lambda: build(changed(X, (4, 1), np.inf)), [r"\bX\b", r"inf", r"\b4\b"]),
    (
        "nan in sparse X",
        lambda: build(sp.csr_array(changed(X, (4, 1), np.nan))),
        [r"\bX\b", r"nan", r"\b4\b"],
    ),
    ("nan in y", lambda: build(y=changed(Y, 4, np.nan)), [r"\by\b", r"nan", r"\b4\b"]),
    ("labels 0 and 1", lambda: build(y=(Y + 1) / 2), [r"\by\b", r"\b0", r"\b1\b"]),
    ("one odd label", lambda: build(y=changed(Y, 4, 3.0)), [r"\by\b", r"\b3", r"\b4\b"]),
    ("labels as text", lambda: build(y=np.array(["a", "b"] * 3)), [r"\by\b"]),
    ("lengths", lambda: build(y=Y[:5]), [r"\b6\b", r"\b5\b"]),
    ("X one-dimensional", lambda: build(X[:, 0]), [r"\bX\b", r"dimension|2-?d|shape"]),
    ("no samples", lambda: build(X[:0], Y[:0]), [r"\bX\b|sample|empty"]),
    ("alpha zero", lambda: build(alpha=0.0), [r"alpha", r"\b0"]),
    ("alpha negative", lambda: build(alpha=-2.5), [r"alpha", r"-2\.5"]),
    ("alpha nan", lambda: build(alpha=np.nan), [r"alpha", r"nan"]),
    ("alpha infinite", lambda: build(alpha=np.inf), [r"alpha", r"inf"]),
    ("weights length", lambda: build(weights=np.ones(5)), [r"weights", r"\b5\b", r"\b6\b"]),
    ("weight zero", lambda: build(weights=changed(np.ones(6), 4, 0.0)), [r"weights", r"\b4\b"]),
    ("weight negative", lambda: build(weights=changed(np.ones(6), 4, -1)), [r"weights", r"\b4\b"]),
    ("weight nan", lambda: build(weights=changed(np.ones(6), 4, np.nan)), [r"weights", r"\b4\b"]),
    ("kernel", lambda: build(kernel="sigmoidal"), [r"kernel", r"sigmoidal"]),
    ("margin", lambda: build(margin="medium"), [r"margin", r"medium"]),
    ("hard with rbf", lambda: build(kernel="rbf", margin="hard"), [r"hard", r"linear"]),
    (
        "not separable",
        lambda: build(np.vstack([X, X[:1]]), np.append(Y, -Y[0]), margin="hard"),
        [r"separable"],
    ),
    (
        "not separable through the origin",
        lambda: build(np.array([[1.0], [2.0]]), Y[:2], margin="hard", fit_intercept=False),
        [r"separable", r"origin|offset|intercept"],
    ),
    (
        "precomputed not square",
        lambda: build(K[:, :5], kernel="precomputed"),
        [r"square", r"\b6\b", r"\b5\b"],
    ),
    (
        "precomputed not symmetric",
        lambda: build(changed(K, (4, 2), 9.0), kernel="precomputed"),
        [r"symmetric", r"\b4\b", r"\b2\b"],
    ),
    (
        "precomputed indefinite",
        lambda: build(K - 5 * np.eye(6), kernel="precomputed"),
        [r"definite", r"-\d"],
    ),
    (
        "precomputed indefinite with a good diagonal",
        lambda: build(changed(changed(np.eye(6), (4, 2), 2.0), (2, 4), 2.0), kernel="precomputed"),
        [r"definite", r"-\s?1"],
    ),
    (
        "precomputed nan",
        lambda: build(changed(changed(K, (4, 2), np.nan), (2, 4), np.nan), kernel="precomputed"),
        [r"nan", r"\b[24]\b"],
    ),
    (
        "callable of wrong shape",
        lambda: build(kernel=lambda A, B: np.ones((3, 3))),
        [r"kernel", r"\b3\b", r"\b6\b"],
    ),
]


@pytest.mark.parametrize(("provoke", "words"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_is_named(provoke: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match=all_of(words)):
        provoke()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_class_alone_is_allowed(sign: float, kernel: str) -> None:
    objective = build(y=np.full(6, sign), kernel=kernel)
    assert objective.value == 0.0
    assert objective.intercept * sign >= 1.0
    assert (np.asarray(objective.decision_function(X)) * sign > 0).all()


@pytest.mark.parametrize("label", [int, np.int8, np.float32, list])
def test_other_types_of_the_same_labels(label: Any) -> None:
    y = Y.astype(int).tolist() if label is list else Y.astype(label)
    assert build(y=y).value == build().value


@pytest.mark.parametrize("k", [2, 6, -1, 10**9], ids=["removed", "end", "negative", "far"])
@pytest.mark.parametrize("call", ["remove", "gain", "gains", "gain_bounds"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_bad_index_leaves_the_state_alone(k: int, call: str, kernel: str) -> None:
    objective = build(alpha=0.1, kernel=kernel)
    objective.remove(2)
    before = (objective.value, objective.intercept, objective.kept.copy(), objective.dual.copy())
    method: Callable[[Any], Any] = getattr(objective, call)
    with pytest.raises(ValueError, match=all_of([rf"{k}\b", "removed|range|exist"])):
        method([0, k] if call in ("gains", "gain_bounds") else k)
    assert (objective.value, objective.intercept) == before[:2]
    np.testing.assert_array_equal(objective.kept, before[2])
    np.testing.assert_array_equal(objective.dual, before[3])
    # It still works, and as if nothing had happened.
    twin = build(alpha=0.1, kernel=kernel)
    twin.remove(2)
    twin.remove(0)
    objective.remove(0)
    assert objective.value == twin.value


def test_arrays_of_the_caller_are_left_alone() -> None:
    X_, y_, u = X.copy(), Y.copy(), np.linspace(1, 2, 6)
    given = u.copy()
    objective = build(X_, y_, weights=u)
    value = objective.value
    objective.remove(0)
    np.testing.assert_array_equal(X_, X)
    np.testing.assert_array_equal(y_, Y)
    np.testing.assert_array_equal(u, given)
    # Nor does a later change of them reach into the objective.
    other = build(X_, y_, weights=u)
    y_[:], u[:] = 1.0, 9.0
    other.remove(0)
    assert other.value == objective.value
    assert value == build(weights=given).value


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (np.ones((3, 5)), [r"\b5\b", r"\b2\b"]),
        (changed(np.ones((3, 2)), (1, 0), np.nan), [r"nan"]),
    ],
    ids=["features", "nan"],
)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_bad_new_rows(new: np.ndarray, words: list[str], kernel: str) -> None:
    objective = build(kernel=kernel)
    with pytest.raises(ValueError, match=all_of(words)):
        objective.decision_function(new)


# What slipped through once: numbers that are none, or that floats cannot carry.
GOOD_X = np.arange(24.0).reshape(12, 2) % 7
GOOD_Y = np.array([1.0, -1.0] * 6)


def corrupt_sparse() -> sp.csr_array:
    X = sp.csr_array(GOOD_X)
    X.indices[0] = 99
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": GOOD_X + 1j}, "X must hold real numbers"),
        ({"X": GOOD_X.astype("datetime64[D]")}, "X must hold real numbers"),
        ({"X": np.ma.masked_less(GOOD_X, 2)}, "X has masked entries"),
        ({"X": [[10**400, 1]] * 12}, "X must hold real numbers"),
        ({"X": GOOD_X[:, :0]}, "X has no columns"),
        ({"X": GOOD_X * 1e-170}, "largest entry of X is"),
        ({"X": GOOD_X * 1e160}, "largest entry of X is"),
        ({"X": corrupt_sparse()}, "ind"),
        ({"alpha": 10**400}, "alpha="),
        ({"alpha": 1e160}, "cannot be set against"),
        ({"weights": ["a"] * 12}, "weights must hold real numbers"),
        ({"weights": np.r_[1e13, np.ones(11)]}, "weights run from 1 to 1e"),
        ({"weights": np.full(12, 1e300)}, "cannot be set against"),
        ({"fit_intercept": "False"}, "fit_intercept='False'"),
        ({"kernel": np.array([1, 2])}, "is not known"),
        ({"kernel": "rbf", "gamma": np.array([1.0, 2.0])}, "gamma="),
        ({"kernel": "poly", "degree": 0}, "degree=0"),
        ({"kernel": "poly", "coef0": "a"}, "coef0='a'"),
    ],
    ids=str,
)
def test_numbers_that_are_none(change: dict[str, Any], message: str) -> None:
    arguments = {"X": GOOD_X, "y": GOOD_Y, "alpha": 0.1} | change
    with pytest.raises(ValueError, match=message):
        SVMObjective(**arguments)


def test_unequal_weights_up_to_the_limit() -> None:
    """The gain of a sample that carries nearly all weight, where mu falls by many orders."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.where(rng.random(12) < 0.5, -1.0, 1.0)
    weights = np.ones(12)
    weights[3] = 1e12
    objective = SVMObjective(X, y, alpha=0.1, weights=weights)
    rest = np.arange(12) != 3
    fresh = SVMObjective(X[rest], y[rest], alpha=0.1)
    after = objective.copy()
    after.remove(3)
    assert after.value == pytest.approx(fresh.value, rel=1e-9)
    gain = objective.gain(3)
    assert gain == pytest.approx(objective.value - fresh.value, abs=1e-9 * objective.value)


def test_a_kernel_may_not_change_its_argument() -> None:
    def spoils(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        K = A @ B.T
        A *= 0
        return K

    with pytest.raises(ValueError, match="read-only"):
        SVMObjective(GOOD_X, GOOD_Y, kernel=spoils)
