"""What stands for an objective's data, so that a checkpoint of other data is told apart."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from deferlearn.objective import SVMObjective


def digest(*arrays: Any) -> str:
    """Sixty-four characters that stand for types, shapes and contents of arrays.

    Examples
    --------
    >>> from deferlearn._fingerprint import digest
    >>> digest([1, 2]) == digest([1, 2]), digest([1, 2]) == digest([2, 1])
    (True, False)
    """
    total = hashlib.sha256()
    for array in arrays:
        content = np.ascontiguousarray(array)
        total.update(f"{content.dtype.str} {content.shape} ".encode())
        if content.size:
            total.update(content.data)
    return total.hexdigest()


def fingerprint(objective: Any) -> dict[str, Any]:
    """Numbers, words and digests that tell an objective from others, each under its name.

    Of an objective that is no `SVMObjective`, the labels if it has any, and what its own method
    ``fingerprint()`` returns if it has one: a dict of the same kind.

    Examples
    --------
    >>> from deferlearn._fingerprint import fingerprint
    >>> from deferlearn.objective import SVMObjective
    >>> X, y = [[-1.0], [1.0], [2.0]], [-1, 1, 1]
    >>> one, other = (fingerprint(SVMObjective(X, y, alpha=a)) for a in (0.1, 0.2))
    >>> [name for name in one if one[name] != other[name]]
    ['alpha']
    """
    found: dict[str, Any] = {}
    if hasattr(objective, "labels"):
        found["labels"] = digest(objective.labels)
    if isinstance(objective, SVMObjective):
        found |= _of_svm(objective)
    if callable(own := getattr(objective, "fingerprint", None)):
        found |= own()
    return found


def _of_svm(objective: SVMObjective) -> dict[str, Any]:
    X, problem, kernel = objective._X, objective._problem, objective._kernel
    parts = (X.indptr, X.indices, X.data) if sp.issparse(X) else (X,)
    by_name = isinstance(kernel, str)
    found = {
        "X": digest(*parts),
        "weights": digest(problem.weight),
        "alpha": problem.alpha * problem.gram.unit,
        "fit_intercept": problem.offset,
        "margin": "hard" if problem.hard else "soft",
        "kernel": kernel if by_name else getattr(kernel, "__qualname__", type(kernel).__qualname__),
    }
    if by_name and kernel in ("poly", "rbf"):
        found["gamma"] = objective._gamma
    if by_name and kernel == "poly":
        found |= {"degree": float(objective._degree), "coef0": float(objective._coef0)}
    return found
