"""The data on which tuned teams are compared: with doctors, radiologists, and experts by region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.model_selection import GroupShuffleSplit
from sklearn.preprocessing import StandardScaler

from deferlearn import datasets
from deferlearn.experiments.data import (
    LINEAR_KERNEL,
    QUADRATIC_KERNEL,
    TEST_SHARE,
    _random_rows,
    _stream,
    retina,
)
from deferlearn.humans import DirichletHuman, UniformHuman, labels_from_scores

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

RETINA = ("messidor", "stare", "aptos")
REAL_READERS: dict[str, Any] = {"lidc-majority": "majority", "lidc-decided": "decided"}
BY_REGION = {
    "breast-cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits_parity,
}
SYNTHETIC = {"linear": datasets.make_linear, "quadratic": datasets.make_quadratic}
NAMES = (*RETINA, *REAL_READERS, *BY_REGION, *SYNTHETIC)

# Errors of the experts by region: where the first principal component is positive, and elsewhere.
GOOD_ERROR, POOR_ERROR = 0.05, 0.35
SYNTHETIC_SAMPLES = 400
SYNTHETIC_ERROR = 0.2
READERS = 4


@dataclass(frozen=True)
class TeamSplit:
    """Training and test part: features, labels and the human's answers (-1, +1), groups, kernel."""

    X_train: Floats
    y_train: Labels
    human_train: Labels
    groups_train: NDArray[Any] | None
    X_test: Floats
    y_test: Labels
    human_test: Labels
    kernel: dict[str, Any]


def team_split(name: str, seed: int) -> TeamSplit:
    """A random split of 60% to 40%, with the answers of one human to all cases.

    Features are standardised by the training part where data sets have units of all kinds; the
    paper's own data stay as they are. Splits of the nodules keep patients together, and the four
    readers take turns as the human.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    seed : int
        Of the split, the draw and the human.

    Returns
    -------
    split : TeamSplit

    Examples
    --------
    >>> from deferlearn.experiments.team_data import team_split
    >>> split = team_split("digits", 0)
    >>> split.X_train.shape, float((split.human_train != split.y_train).mean().round(1))
    ((1078, 64), 0.2)
    """
    if name not in NAMES:
        raise ValueError(f"no data are named {name!r}; there are {', '.join(NAMES)}")
    groups = None
    kernel = QUADRATIC_KERNEL if name == "quadratic" else LINEAR_KERNEL
    luck = _stream(seed, 1)
    if name in RETINA:
        data = retina(name)
        X, y = data.data, data.target
        drawn = getattr(DirichletHuman, name)().draw(data.grades, random_state=luck)
        answers = labels_from_scores(drawn.scores[:, 0])
    elif name in REAL_READERS:
        data = datasets.load_lidc(reader=seed % READERS, labels=REAL_READERS[name])
        X, y, answers, groups = data.data, data.target, data.human_labels, data.groups
    elif name in BY_REGION:
        X, y = BY_REGION[name](return_X_y=True)
        answers = _answers_by_region(X, y, luck)
    else:
        X, y = SYNTHETIC[name](SYNTHETIC_SAMPLES, random_state=_stream(seed, 0))
        scores = UniformHuman(SYNTHETIC_ERROR).scores(y, random_state=luck)
        answers = labels_from_scores(scores)
    train, test = _rows(y, groups, seed)
    X = np.asarray(X, dtype=np.float64)
    if name in REAL_READERS or name in BY_REGION:
        X = StandardScaler().fit(X[train]).transform(X)
    return TeamSplit(
        X[train],
        y[train],
        np.asarray(answers)[train],
        None if groups is None else np.asarray(groups)[train],
        X[test],
        y[test],
        np.asarray(answers)[test],
        kernel,
    )


def _answers_by_region(X: Floats, y: Labels, luck: np.random.RandomState) -> Labels:
    """An expert who errs more on one side of the first principal component."""
    component = PCA(1, random_state=0).fit_transform(StandardScaler().fit_transform(X))[:, 0]
    error = np.where(component > 0, GOOD_ERROR, POOR_ERROR)
    return np.where(luck.uniform(size=len(y)) < error, -y, y)


def _rows(y: Labels, groups: Any, seed: int) -> tuple[Any, Any]:
    if groups is None:
        return _random_rows(y, seed)
    splitter = GroupShuffleSplit(1, test_size=TEST_SHARE, random_state=_stream(seed, 2))
    train, test = next(splitter.split(y, y, groups))
    return np.sort(train), np.sort(test)
