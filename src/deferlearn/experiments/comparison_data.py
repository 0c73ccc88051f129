"""The data for the comparison of tuned teams: with real experts, simulated doctors, experts by region."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.model_selection import GroupShuffleSplit
from sklearn.preprocessing import StandardScaler

from deferlearn import datasets
from deferlearn._utils.types import Array, Labels
from deferlearn.experiments.data import (
    LINEAR_KERNEL,
    QUADRATIC_KERNEL,
    RETINA,
    TEST_SHARE,
    random_rows,
    retina,
    stream,
)
from deferlearn.humans import DirichletHuman, UniformHuman, labels_from_scores
from deferlearn.humans.answers import find_missing

REAL_READERS: dict[str, Any] = {"lidc-majority": "majority", "lidc-decided": "decided"}
BY_REGION = {
    "breast-cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits_parity,
}
SYNTHETIC = {"linear": datasets.make_linear, "quadratic": datasets.make_quadratic}
SLEEP = "sleep"
NAMES = (*RETINA, *REAL_READERS, *BY_REGION, *SYNTHETIC, SLEEP)

# Error rates of the experts by region: where the first principal component is positive, and elsewhere.
GOOD_ERROR, POOR_ERROR = 0.05, 0.35
SYNTHETIC_SAMPLES = 400
SYNTHETIC_ERROR = 0.2
READERS = 4
# Of the 80 nights; and every which epoch of them: about 1,500 to train and 5,700 to test.
SLEEP_NIGHTS = 24
SLEEP_STEP_TRAIN, SLEEP_STEP_TEST = 15, 4
SLEEP_EXPERTS = 5


@dataclass(frozen=True, kw_only=True)
class ComparisonSplit:
    """Training and test part: features, labels and the human's answers, groups, kernel.

    ``classes`` is the parameter of that name of teams: whether the labels are grades.
    """

    X_train: Array
    y_train: Labels
    human_train: Labels
    groups_train: NDArray[Any] | None
    X_test: Array
    y_test: Labels
    human_test: Labels
    kernel: dict[str, Any]
    classes: Any = "auto"


def comparison_split(name: str, seed: int) -> ComparisonSplit:
    """A random split of 60% to 40%, with the answers of one human to all cases; of sleep, nights.

    The features of data sets with different units are standardised by the training part; the paper's
    own data stay as they are. Splits of the nodules keep patients together, and the four readers take
    turns as the human.

    For "sleep", REM against the rest, 24 nights are for training and 24 others for testing, of which
    every 15th and every 4th epoch is taken, among those that are no tie and have an answer. The five
    experts take turns. The features are 0 or 1, and stay so.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    seed : int
        Seed of the split, the draw and the human.

    Returns
    -------
    split : ComparisonSplit

    Examples
    --------
    >>> from deferlearn.experiments.comparison_data import comparison_split
    >>> split = comparison_split("digits", 0)
    >>> split.X_train.shape, float((split.human_train != split.y_train).mean().round(1))
    ((1078, 64), 0.2)
    """
    if name not in NAMES:
        raise ValueError(f"no data set is named {name!r}; there are {', '.join(NAMES)}")
    if name == SLEEP:
        return sleep_split(1 + seed % SLEEP_EXPERTS, "rem", seed)
    groups = None
    kernel = QUADRATIC_KERNEL if name == "quadratic" else LINEAR_KERNEL
    luck = stream(seed, 1)
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
        X, y = SYNTHETIC[name](SYNTHETIC_SAMPLES, random_state=stream(seed, 0))
        scores = UniformHuman(SYNTHETIC_ERROR).scores(y, random_state=luck)
        answers = labels_from_scores(scores)
    train, test = _rows(y, groups, seed)
    X = np.asarray(X, dtype=np.float64)
    if name in REAL_READERS or name in BY_REGION:
        X = StandardScaler().fit(X[train]).transform(X)
    answers = np.asarray(answers)
    return ComparisonSplit(
        X_train=X[train],
        y_train=y[train],
        human_train=answers[train],
        groups_train=None if groups is None else np.asarray(groups)[train],
        X_test=X[test],
        y_test=y[test],
        human_test=answers[test],
        kernel=kernel,
    )


def sleep_split(expert: int, classes: Any, seed: int) -> ComparisonSplit:
    """Nights to train and other nights to test, thinned out, of the epochs that an expert has staged."""
    data = datasets.load_sleep(expert=expert, classes=classes)
    nights = stream(seed, 2).permutation(np.unique(data.groups))
    answered = ~find_missing(data.human_labels)

    def epochs_of(chosen: Any, step: int) -> Any:
        return np.flatnonzero(answered & np.isin(data.groups, chosen))[::step]

    train = epochs_of(nights[:SLEEP_NIGHTS], SLEEP_STEP_TRAIN)
    test = epochs_of(nights[SLEEP_NIGHTS : 2 * SLEEP_NIGHTS], SLEEP_STEP_TEST)

    def answers_to(rows: Any) -> Any:
        return np.array(data.human_labels[rows].tolist()).astype(data.target.dtype)

    return ComparisonSplit(
        X_train=data.data[train],
        y_train=data.target[train],
        human_train=answers_to(train),
        groups_train=data.groups[train],
        X_test=data.data[test],
        y_test=data.target[test],
        human_test=answers_to(test),
        kernel=LINEAR_KERNEL,
    )


def _answers_by_region(X: Array, y: Labels, luck: np.random.RandomState) -> Labels:
    """An expert who errs more on one side of the first principal component."""
    component = PCA(1, random_state=0).fit_transform(StandardScaler().fit_transform(X))[:, 0]
    error = np.where(component > 0, GOOD_ERROR, POOR_ERROR)
    return np.where(luck.uniform(size=len(y)) < error, -y, y)


def _rows(y: Labels, groups: Any, seed: int) -> tuple[Any, Any]:
    if groups is None:
        return random_rows(y, seed)
    splitter = GroupShuffleSplit(1, test_size=TEST_SHARE, random_state=stream(seed, 2))
    train, test = next(splitter.split(y, y, groups))
    return np.sort(train), np.sort(test)
