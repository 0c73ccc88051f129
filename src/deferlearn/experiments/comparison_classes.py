"""Data with more than two classes, or with grades, for the comparison of tuned teams."""

import numpy as np
from sklearn.preprocessing import StandardScaler

from deferlearn import datasets
from deferlearn.experiments.comparison_data import SLEEP_EXPERTS, ComparisonSplit, sleep_split
from deferlearn.experiments.data import LINEAR_KERNEL, RETINA, random_rows, stream

TEN_DIGITS = "ten-digits"
# Sleep stages with one of five experts, and the retina's grades with a grader who is off by one at times.
STAGES = tuple(f"stages-{expert}" for expert in range(1, SLEEP_EXPERTS + 1))
GRADED = tuple(f"{name}-grades" for name in RETINA)
CLASS_NAMES = (TEN_DIGITS, *STAGES, *GRADED)


def class_split(name: str, seed: int) -> ComparisonSplit:
    """A random split of data with several classes, with the answers of one human; of sleep, nights.

    Parameters
    ----------
    name : str
        One of `CLASS_NAMES`.
    seed : int
        Seed of the split, and of a simulated human.

    Returns
    -------
    split : ComparisonSplit
    """
    if name in STAGES:
        return sleep_split(int(name[-1]), "stages", seed)
    luck = stream(seed, 1)
    if name == TEN_DIGITS:
        data = datasets.load_digits(random_state=luck)
        X, y, classes = data.data, data.target, "auto"
    else:
        fetch = getattr(datasets, f"fetch_{name.removesuffix('-grades')}")
        data = fetch(grades=True, random_state=luck)
        X, y, classes = data.data, data.target, "grades"
    train, test = random_rows(y, seed)
    X = np.asarray(X, dtype=np.float64)
    if name == TEN_DIGITS:
        X = StandardScaler().fit(X[train]).transform(X)
    answers = np.asarray(data.human_labels)
    return ComparisonSplit(
        X_train=X[train],
        y_train=y[train],
        human_train=answers[train],
        groups_train=None,
        X_test=X[test],
        y_test=y[test],
        human_test=answers[test],
        kernel=LINEAR_KERNEL,
        classes=classes,
    )
