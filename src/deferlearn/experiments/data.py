"""Training and test part of one split or draw, with the human's losses and answers."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from deferlearn import datasets
from deferlearn._utils.types import Array, Labels
from deferlearn.humans import (
    DirichletHuman,
    UniformHuman,
    labels_from_scores,
    loss_from_scores,
)

TEST_SHARE = 0.4
# As `datasets.published_split` does it.
PARTS, TEST_PARTS = 10, 4

SYNTHETIC = ("linear", "quadratic")
RETINA = ("messidor", "stare", "aptos")

# The kernel machine of the paper's synthetic data, (<x, x'> / 2)^2.
QUADRATIC_KERNEL: dict[str, Any] = {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 0.0}
LINEAR_KERNEL: dict[str, Any] = {"kernel": "linear"}
# The paper's lambda for its synthetic data.
SYNTHETIC_ALPHA = 1.0


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split, ready to be fitted and judged.

    Attributes
    ----------
    X_train, y_train, X_test, y_test : ndarray
        Features and labels (-1, +1).
    loss : ndarray of shape (n_train,)
        The human loss c(x, y) of the training samples.
    scores : ndarray of shape (n_train,) or (n_train, n_readers)
        The humans' scores of the training samples, for baselines that learn their errors.
    answers : ndarray of shape (n_test,)
        The human's answers to the test cases, -1 or +1.
    kernel : dict
        Kernel of the machine.
    """

    X_train: Array
    y_train: Labels
    X_test: Array
    y_test: Labels
    loss: Array
    scores: Array
    answers: Labels
    kernel: dict[str, Any]


def split_of(parameters: dict[str, Any]) -> Split:
    """The split for the parameters of a job.

    Parameters
    ----------
    parameters : dict
        `dataset`, `seed` and `protocol`; of synthetic data also `n_samples` and `spread`; of medical
        data `human_weight`, if doctors guess.

    Returns
    -------
    split : Split

    Examples
    --------
    >>> from deferlearn.experiments.data import split_of
    >>> split = split_of(
    ...     {"dataset": "linear", "seed": 0, "protocol": "published", "n_samples": 40, "spread": 0.2}
    ... )
    >>> len(split.y_train), len(split.y_test)
    (24, 16)
    """
    p = parameters
    published = p["protocol"] == "published"
    if p["dataset"] in RETINA:
        weight = p.get("human_weight", 0.0)
        return retina_split(p["dataset"], p["seed"], published=published, uniform_weight=weight)
    return synthetic_split(
        p["dataset"], p["n_samples"], p["spread"], p["seed"], published=published
    )


def synthetic_split(
    kind: str, n_samples: int, spread: float, seed: int, *, published: bool = False
) -> Split:
    """A draw of the paper's synthetic data and of its uniform human.

    The same seed gives the same samples and the same random numbers of the human at every spread.

    Parameters
    ----------
    kind : {"linear", "quadratic"}
        Which data; they come with their kernel.
    n_samples : int
        Training and test samples together.
    spread : float
        The human's probability of error.
    seed : int
        Seed of the draw.
    published : bool, default=False
        Whether the first rows are the test part; otherwise the split is random and stratified.

    Returns
    -------
    split : Split

    Examples
    --------
    >>> from deferlearn.experiments.data import synthetic_split
    >>> split = synthetic_split("linear", 400, spread=0.2, seed=0)
    >>> split.X_train.shape, split.X_test.shape
    ((240, 2), (160, 2))
    """
    make = {"linear": datasets.make_linear, "quadratic": datasets.make_quadratic}[kind]
    kernel = LINEAR_KERNEL if kind == "linear" else QUADRATIC_KERNEL
    X, y = make(n_samples, random_state=stream(seed, 0))
    scores = UniformHuman(spread).scores(y, random_state=stream(seed, 1))
    train, test = _first_rows(n_samples) if published else random_rows(y, seed)
    return Split(
        X_train=X[train],
        y_train=y[train],
        X_test=X[test],
        y_test=y[test],
        loss=loss_from_scores(scores, y)[train],
        scores=scores[train],
        answers=labels_from_scores(scores)[test],
        kernel=kernel,
    )


def retina_split(
    name: str, seed: int, *, published: bool = False, uniform_weight: float = 0.0
) -> Split:
    """A split of one of the medical data sets, with doctors.

    Parameters
    ----------
    name : {"messidor", "stare", "aptos"}
        Which data.
    seed : int
        Seed of the split and of the doctors.
    published : bool, default=False
        Whether to take the published split and the stored doctors; otherwise a random stratified
        split and new doctors with the parameters of the paper's appendix.
    uniform_weight : float, default=0
        How often the doctors guess; stored doctors never do, so other weights need new doctors.

    Returns
    -------
    split : Split
    """
    data = retina(name)
    y = data.target
    train, test = datasets.published_split(data) if published else random_rows(y, seed)
    if published and uniform_weight == 0.0:
        loss, scores, answers = data.human_loss, data.human_labels, data.human_labels
    else:
        doctors = getattr(DirichletHuman, name)(uniform_weight=uniform_weight)
        drawn = doctors.draw(data.grades, random_state=stream(seed, 1))
        loss, scores = drawn.expected_losses[:, 0], drawn.scores
        answers = labels_from_scores(scores[:, 0])
    return Split(
        X_train=data.data[train],
        y_train=y[train],
        X_test=data.data[test],
        y_test=y[test],
        loss=loss[train],
        scores=np.asarray(scores[train], dtype=np.float64),
        answers=np.asarray(answers[test], dtype=np.int64),
        kernel=LINEAR_KERNEL,
    )


@cache
def retina(name: str) -> Bunch:
    """One of the medical data sets, read once per process."""
    return getattr(datasets, f"fetch_{name}")()


def random_rows(y: Labels, seed: int) -> tuple[Any, Any]:
    """Rows of the training and the test part of a random stratified split."""
    rows = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, stratify=y, random_state=stream(seed, 2)
    )
    return np.sort(rows[0]), np.sort(rows[1])


def _first_rows(n: int) -> tuple[Any, Any]:
    n_test = TEST_PARTS * (n // PARTS)
    return np.arange(n_test, n), np.arange(n_test)


def stream(seed: int, purpose: int) -> np.random.RandomState:
    """Independent random numbers for each purpose of a seed."""
    sequence = np.random.SeedSequence([seed, purpose])
    return np.random.RandomState(np.random.MT19937(sequence))
