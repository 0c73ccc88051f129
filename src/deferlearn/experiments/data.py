"""Training and test part of one split or draw, with the human's losses and answers."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from deferlearn import datasets
from deferlearn._utils.types import Array, Bools, Labels
from deferlearn.humans import (
    DirichletHuman,
    UniformHuman,
    labels_from_scores,
    loss_from_scores,
)

TEST_SHARE = 0.4
# As `datasets.published_split` does it.
PARTS, TEST_PARTS = 10, 4

# The readers behind the appendix's label of a human error. The first one answers.
N_READERS = 4

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
    train_answers : ndarray of shape (n_train,)
        The human's answers to the training samples, -1 or +1.
    readers_differ : ndarray of bool of shape (n_train,)
        The appendix's label of a human error: whether two pairs of readers give different answers.
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
    train_answers: Labels
    readers_differ: Bools
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
    human, luck = UniformHuman(spread), stream(seed, 3)
    scores = human.scores(y, random_state=stream(seed, 1))
    # Three more readers like the first, who answers; only predicted-error triage learns from them.
    others = [human.scores(y, random_state=luck) for _ in range(N_READERS - 1)]
    train, test = _first_rows(n_samples) if published else random_rows(y, seed)
    answers = labels_from_scores(scores)
    return Split(
        X_train=X[train],
        y_train=y[train],
        X_test=X[test],
        y_test=y[test],
        loss=loss_from_scores(scores, y)[train],
        train_answers=answers[train],
        readers_differ=pairs_differ(np.column_stack([scores, *others]), 0.0)[train],
        answers=answers[test],
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
        Whether to take the published split and the doctors of the authors' result files; otherwise a
        random stratified split and new doctors with the parameters of the paper's appendix.
    uniform_weight : float, default=0
        How often the doctors guess; stored doctors never do, so other weights need new doctors.

    Returns
    -------
    split : Split
    """
    data = retina(name)
    y = data.target
    train, test = datasets.published_split(data) if published else random_rows(y, seed)
    humans: dict[str, Any]
    if published and uniform_weight == 0.0:
        run = published_run(name)
        humans = {
            "loss": run.human_loss_train,
            "train_answers": run.human_labels_train,
            # The result files lack this label; that of Aptos is of another draw.
            "readers_differ": data.human_prob[train] > 0,
            "answers": run.human_labels_test,
        }
    else:
        doctors = getattr(DirichletHuman, name)(n_readers=N_READERS, uniform_weight=uniform_weight)
        drawn = doctors.draw(data.grades, random_state=stream(seed, 1))
        answers = labels_from_scores(drawn.scores[:, 0])
        humans = {
            "loss": drawn.expected_losses[train, 0],
            "train_answers": answers[train],
            "readers_differ": pairs_differ(drawn.answers, data.threshold)[train],
            "answers": answers[test],
        }
    return Split(
        X_train=data.data[train],
        y_train=y[train],
        X_test=data.data[test],
        y_test=y[test],
        kernel=LINEAR_KERNEL,
        **humans,
    )


@cache
def retina(name: str) -> Bunch:
    """One of the medical data sets, read once per process."""
    return getattr(datasets, f"fetch_{name}")()


@cache
def published_run(name: str) -> Bunch:
    """What the authors' program stored for a data set, read once per process."""
    return datasets.published_run(name)


def pairs_differ(readings: Array, threshold: float) -> Bools:
    """Whether two pairs of four readers, each averaged and thresholded, give different answers.

    Parameters
    ----------
    readings : ndarray of shape (n_samples, 4)
        Grades or scores; the first two readers are one pair.
    threshold : float
        What a mean must exceed for the class +1.

    Returns
    -------
    differ : ndarray of bool of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.experiments.data import pairs_differ
    >>> pairs_differ(np.array([[0, 3, 1, 1], [0, 3, 1, 3]]), 1.4)
    array([ True, False])
    """
    first, second = readings[:, :2].mean(axis=1), readings[:, 2:].mean(axis=1)
    return np.asarray((first > threshold) != (second > threshold))


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
