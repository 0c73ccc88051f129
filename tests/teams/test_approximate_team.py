"""AssistedSVC on rows of many features: a tolerance makes it use the approximate objective."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import deferlearn.teams.machine as machine
from deferlearn import AssistedSVC, load, save
from deferlearn.objective import ApproximateSVMObjective, SVMObjective

COMMON: dict[str, Any] = {
    "budget": 10,
    "alpha": 1e-3,
    "submodularity_ratio": 0.1,
    "cv": None,
    "random_state": 0,
}


@pytest.fixture
def text(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, np.ndarray]:
    """A small problem that counts as large."""
    monkeypatch.setattr(machine, "MOST_FREE", 50)
    rng = np.random.default_rng(0)
    X = sp.random_array((150, 200), density=0.05, format="csr", rng=rng)
    y = np.where(X @ rng.normal(size=200) + 0.2 * rng.normal(size=150) > 0, 1, 0)
    return X, y


def test_nearly_the_exact_team(text: Any, tmp_path: Any) -> None:
    X, y = text
    near = AssistedSVC(tol=0.01, **COMMON).fit(X, y)
    exact = AssistedSVC(**COMMON).fit(X, y)
    assert isinstance(near._objective, ApproximateSVMObjective)
    assert 0.0 < near.selection_.gap < 1e-4
    assert exact.selection_.gap == 0.0
    assert near.selection_.slack <= 0.01 + 1e-9
    assert near.selection_.value == pytest.approx(exact.selection_.value, rel=0.02)
    rest = SVMObjective(X, np.where(y > 0, 1.0, -1.0), COMMON["alpha"])
    for k in near.deferred_indices_:
        rest.remove(int(k))
    np.testing.assert_allclose(near.coef_[0], rest.coef, atol=1e-6 * np.abs(rest.coef).max())
    assert near.intercept_[0] == pytest.approx(rest.intercept, abs=1e-6)
    again = np.asarray(near.dual_coef_ @ near.support_vectors_).ravel()
    np.testing.assert_allclose(again, near.coef_[0], atol=1e-9)
    with pytest.raises(ValueError, match="tol=0"):
        near.certify()
    save(near, tmp_path / "team")
    assert load(tmp_path / "team").selection_.gap == near.selection_.gap


def test_folds_work_too(text: Any) -> None:
    X, y = text
    team = AssistedSVC(tol=0.05, **COMMON | {"cv": 3}).fit(X, y)
    assert team.defer(X).shape == (150,)


@pytest.mark.parametrize(
    "options",
    [
        {"tol": 0.0},
        {"tol": 0.05, "kernel": "rbf"},
        {"tol": 0.05, "margin": "hard", "alpha": 1.0},
    ],
)
def test_otherwise_exact(text: Any, options: dict[str, Any]) -> None:
    X, y = text
    rows = X.toarray() if "kernel" in options else X
    team = AssistedSVC(**COMMON | {"budget": 2} | options).fit(rows, y)
    assert isinstance(team._objective, SVMObjective)
