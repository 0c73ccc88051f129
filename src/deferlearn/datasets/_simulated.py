"""Data of scikit-learn, with simulated experts whose skill depends on the case."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from deferlearn._utils.types import Array
from deferlearn.datasets._bunch import Form, deliver, rows_as_groups
from deferlearn.humans import SkilledHuman
from deferlearn.humans.uniform import Seed

_SIMULATED_DESCR = """\
{title}

{text}

data          the features, as scikit-learn has them: standardise them before use
target        {target}
groups        each row is its own group: it is not known whose the rows are
{human}
human_error   the probability of error

What follows is scikit-learn's description of the data themselves.

{source}
"""

_TWO_CLASSES = """\
human_labels  the expert's answers, one draw, -1 or +1
human_scores  the same, as the expert is always sure
human_loss    the expected loss, twice the probability of error"""

_MANY_CLASSES = """\
human_labels  the expert's answers, one draw"""


def load_breast_cancer(
    *,
    human: SkilledHuman | None = None,
    random_state: Seed = 0,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load scikit-learn's breast cancer data, with an expert who is good at large cell nuclei.

    A machine that errs little (a linear SVM about 0.02) meets an expert who errs more on average, but
    hardly ever where the machine errs most: good sharing gains something, and bad sharing loses much.

    Parameters
    ----------
    human : SkilledHuman or None, default=None
        Another expert, who sees `data`. The expert for None errs with probability 0.01 where the mean
        radius of the nuclei is above its median, and 0.2 elsewhere.
    random_state : int, RandomState or None, default=0
        Seed of the expert's answers.
    return_X_y : bool, default=False
        Whether to return just ``(data, target)``.
    return_X_y_human : bool, default=False
        Whether to return just ``(data, target, human_labels)``.
    as_frame : bool, default=False
        Whether to return pandas objects; `frame` then holds all columns.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        With `data` of shape (569, 30), `target` (+1 malignant, -1 benign), `human_labels`,
        `human_scores`, `human_loss`, `human_error`, `groups`, `human` (the expert),
        `feature_names`, `target_names`, `frame` and `DESCR`, which explains them.
    tuple
        Instead, if `return_X_y` or `return_X_y_human`.

    Examples
    --------
    >>> from deferlearn.datasets import load_breast_cancer
    >>> cancer = load_breast_cancer()
    >>> cancer.data.shape, float((cancer.human_labels != cancer.target).mean().round(2))
    ((569, 30), 0.12)
    """
    source = sklearn_datasets.load_breast_cancer()
    names = [str(name) for name in source.feature_names]
    if human is None:
        human = _good_above_median(
            source.data, np.array(names) == "mean radius", good=0.01, poor=0.2
        )
    bunch = _with_expert(source.data, np.where(source.target == 0, 1, -1), human, random_state)
    bunch.feature_names = names
    bunch.target_names = ["benign", "malignant"]
    bunch.DESCR = _SIMULATED_DESCR.format(
        title="Breast cancer, with a simulated expert",
        text="569 tumours, 30 measures of their cell nuclei. The expert, unless another one was given,\n"
        "errs with probability 0.01 where the mean radius is above its median, and 0.2 elsewhere.",
        target="+1 malignant, -1 benign",
        human=_TWO_CLASSES,
        source=source.DESCR,
    )
    return deliver(bunch, Form(return_X_y, return_X_y_human, as_frame))


def load_digits_parity(
    *,
    human: SkilledHuman | None = None,
    random_state: Seed = 0,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load scikit-learn's digits, even against odd, with an expert who needs enough ink.

    No line separates even from odd (a linear SVM errs about 0.10). The expert errs more on
    average, but hardly ever on digits drawn with much ink: machine and human know different things.

    Parameters
    ----------
    human : SkilledHuman or None, default=None
        Another expert, who sees `data`. The expert for None errs with probability 0.02 where the sum of the
        pixels is above its median, and 0.3 elsewhere.
    random_state : int, RandomState or None, default=0
        Seed of the expert's answers.
    return_X_y : bool, default=False
        Whether to return just ``(data, target)``.
    return_X_y_human : bool, default=False
        Whether to return just ``(data, target, human_labels)``.
    as_frame : bool, default=False
        Whether to return pandas objects; `frame` then holds all columns.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        With `data` of shape (1797, 64), `target` (+1 even, -1 odd), `digits` (0 to 9),
        `human_labels`, `human_scores`, `human_loss`, `human_error`, `groups`, `human` (the expert),
        `feature_names`, `target_names`, `frame` and `DESCR`, which explains them.
    tuple
        Instead, if `return_X_y` or `return_X_y_human`.

    Examples
    --------
    >>> from deferlearn.datasets import load_digits_parity
    >>> digits = load_digits_parity()
    >>> digits.data.shape, float((digits.human_labels != digits.target).mean().round(2))
    ((1797, 64), 0.15)
    """
    source = sklearn_datasets.load_digits()
    if human is None:
        human = _good_above_median(source.data, np.ones(source.data.shape[1]), good=0.02, poor=0.3)
    bunch = _with_expert(source.data, np.where(source.target % 2 == 0, 1, -1), human, random_state)
    bunch.digits = source.target
    bunch.feature_names = [str(name) for name in source.feature_names]
    bunch.target_names = ["odd", "even"]
    bunch.DESCR = _SIMULATED_DESCR.format(
        title="Handwritten digits, even against odd, with a simulated expert",
        text="1,797 images of 8 x 8 pixels. The expert, unless another one was given, errs with\n"
        "probability 0.02 where the sum of the pixels is above its median, and 0.3 elsewhere.",
        target="+1 even, -1 odd; `digits` holds the digit itself",
        human=_TWO_CLASSES,
        source=source.DESCR,
    )
    return deliver(bunch, Form(return_X_y, return_X_y_human, as_frame))


def load_digits(
    *,
    human: SkilledHuman | None = None,
    random_state: Seed = 0,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load scikit-learn's digits, ten classes, with an expert who is good at one half of the images.

    The machine rarely errs: the error of an SVM with an rbf kernel is about 0.04. The expert errs much more
    often, but in one half of the cases only a little more often, and on other digits than the machine. So
    it pays to defer the cases of that half of which the machine is not sure.

    Parameters
    ----------
    human : SkilledHuman or None, default=None
        Another expert, who sees `data`. The expert for None errs with probability 0.05 where the first
        principal component of `data` is positive, and 0.35 elsewhere. Wrong answers are any of the other
        nine digits, all equally probable.
    random_state : int, RandomState or None, default=0
        Seed of the expert's answers.
    return_X_y : bool, default=False
        Whether to return just ``(data, target)``.
    return_X_y_human : bool, default=False
        Whether to return just ``(data, target, human_labels)``.
    as_frame : bool, default=False
        Whether to return pandas objects; `frame` then holds all columns.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        With `data` of shape (1797, 64), `target` (0 to 9), `human_labels`, `human_error`, `groups`,
        `human` (the expert), `feature_names`, `target_names`, `frame` and `DESCR`, which explains them.
    tuple
        Instead, if `return_X_y` or `return_X_y_human`.

    Examples
    --------
    >>> from deferlearn.datasets import load_digits
    >>> digits = load_digits()
    >>> digits.data.shape, float((digits.human_labels != digits.target).mean().round(2))
    ((1797, 64), 0.2)
    """
    source = sklearn_datasets.load_digits()
    data, target = source.data, source.target.astype(np.int64)
    human = _check_expert(
        _good_along_first_component(data, good=0.05, poor=0.35) if human is None else human
    )
    bunch = Bunch(
        data=data,
        target=target,
        human_labels=human.labels(data, target, random_state),
        human_error=human.error_probability(data),
        groups=rows_as_groups(data),
        human=human,
        feature_names=[str(name) for name in source.feature_names],
        target_names=[str(name) for name in source.target_names],
        DESCR=_SIMULATED_DESCR.format(
            title="Handwritten digits, ten classes, with a simulated expert",
            text="1,797 images of 8 x 8 pixels. The expert, unless another one was given, errs with\n"
            "probability 0.05 where the first principal component is positive, and 0.35 elsewhere.\n"
            "Wrong answers are any of the other nine digits, all equally probable.",
            target="the digit, 0 to 9",
            human=_MANY_CLASSES,
            source=source.DESCR,
        ),
    )
    return deliver(bunch, Form(return_X_y, return_X_y_human, as_frame))


def _good_along_first_component(data: Array, *, good: float, poor: float) -> SkilledHuman:
    mean = data.mean(axis=0)
    direction = np.linalg.svd(data - mean, full_matrices=False)[2][0]
    # A component has no sign of its own: let its largest entry be positive.
    direction = direction * np.sign(direction[np.abs(direction).argmax()])
    return SkilledHuman.good_in_half_space(direction, float(mean @ direction), good=good, poor=poor)


def _good_above_median(
    data: Array, direction: NDArray[Any], *, good: float, poor: float
) -> SkilledHuman:
    vector = direction.astype(np.float64)
    return SkilledHuman.good_in_half_space(
        vector, float(np.median(data @ vector)), good=good, poor=poor
    )


def _with_expert(data: Array, target: NDArray[np.int64], human: SkilledHuman, seed: Seed) -> Bunch:
    scores = _check_expert(human).scores(data, target, random_state=seed)
    return Bunch(
        data=data,
        target=target,
        human_labels=np.where(scores > 0, 1, -1),
        human_scores=scores,
        human_loss=human.expected_losses(data, target),
        human_error=human.error_probability(data),
        groups=rows_as_groups(data),
        human=human,
    )


def _check_expert(human: Any) -> SkilledHuman:
    if not isinstance(human, SkilledHuman):
        raise TypeError(
            f"human must be a deferlearn.humans.SkilledHuman or None, got {human!r}: "
            "only such an expert looks at the features"
        )
    return human
