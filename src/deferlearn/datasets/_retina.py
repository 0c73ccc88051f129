"""The paper's real data: features of retina images, a doctor's grades, simulated readers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from deferlearn._utils.checks import check_flag
from deferlearn.datasets._bunch import Form, deliver
from deferlearn.datasets._files import Folder, RemoteFile, get_data_home, read_verified
from deferlearn.datasets._pickles import read_arrays
from deferlearn.datasets._retina_bunch import Retina, graded_bunch, two_class_bunch
from deferlearn.humans import ConfusedHuman
from deferlearn.humans.uniform import Seed

# The simulated expert for grades errs in so many of the cases, mostly by one grade. A quadratic kappa of
# 0.8 to 0.9 follows; the paper's doctors, who were made for two classes, have 0.5 to 0.7 as graders.
GRADING_ERROR = 0.25

# Not 0.4 * n rounded: the authors take a tenth of the rows, rounded down, four times.
PUBLISHED_PARTS, PUBLISHED_TEST_PARTS = 10, 4


_MESSIDOR = Retina(
    title="Messidor",
    file=RemoteFile(
        "data_dict_Messidor.pkl",
        "30702e4d753d6e8440fdb7d8cdb7e66285153070b5bd9df1e4b80708708337cf",
    ),
    grades=(0, 1, 2, 3),
    threshold=1.5,
    alpha=0.03,
    note="400 images of eyes, grades 0 to 3 of retinopathy; features by VGG16.",
    draws="\nThe human draws are those behind the paper's figure.",
)
_STARE = Retina(
    title="Stare",
    file=RemoteFile(
        "data_dict_Stare.pkl",
        "90c0240f4c1019b274607ebc054f4da069b511ad4c21616fc3e36d3056070cac",
    ),
    grades=(0.2, 0.4, 0.6, 0.8, 1.0),
    threshold=0.5,
    alpha=0.5,
    note="373 images of retinas, five grades of hemorrhage, stored as 0.2, 0.4, ..., 1.0;\n"
    "features by ResNet, in single precision.",
    draws=" The human draws are those behind the paper's figure.",
)
_APTOS = Retina(
    title="Aptos",
    file=RemoteFile(
        "data_dict_Aptos.pkl",
        "17f689f5adc84d929e6ceebcc3ff38566803ed302132ea11897f7e9108ba6070",
    ),
    grades=(0, 1, 2, 3, 4),
    threshold=1.8,
    alpha=0.6,
    note="705 images of retinas, grades 0 to 4 of diabetic retinopathy; features by VGG16.\n"
    "Four rows are duplicates, and one is an outlier (squared norm 56,596; the median is 343).",
    draws="\nThe human draws are NOT those behind the paper's figure, which\nare in `published_run`.",
)


def fetch_messidor(
    *,
    grades: bool = False,
    human: ConfusedHuman | None = None,
    random_state: Seed = 0,
    data_home: Folder = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Fetch Messidor: 400 eye images graded for retinopathy, with simulated readers.

    Parameters
    ----------
    grades : bool, default=False
        False: the paper's two classes. True: the target is the grade, 0 to 3, and
        the human is a simulated expert who answers grades.
    human : ConfusedHuman or None, default=None
        The expert for ``grades=True``. None means one who errs with probability 0.25, mostly by one grade.
    random_state : int, RandomState or None, default=0
        Seed of that expert's answers. The answers for two classes are stored in the file.
    data_home : path-like or None, default=None
        Folder of the data files; see `get_data_home` for what None means.
    download_if_missing : bool, default=True
        Whether a file that is not in the folder is downloaded into it; otherwise it is an error.
    return_X_y : bool, default=False
        Whether to return just ``(data, target)``.
    return_X_y_human : bool, default=False
        Whether to return just ``(data, target, human_labels)``.
    as_frame : bool, default=False
        Whether to return pandas objects; `frame` then holds all columns.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        With `data` of shape (400, 50), `target` (-1 or +1), `grades`, `human_loss`, `human_scores`,
        `human_labels` (-1 or +1), `human_prob`, `groups`, `alpha` (0.03), `threshold`,
        `feature_names`, `target_names`, `frame` and `DESCR`, which explains them. With
        ``grades=True``, `target` and `human_labels` are grades from 0 to 3, and `human_error` and
        `human` take the place of `human_loss`, `human_scores`, `human_prob` and `threshold`.
    tuple
        Instead, if `return_X_y` or `return_X_y_human`.

    Examples
    --------
    >>> from deferlearn.datasets import fetch_messidor
    >>> eyes = fetch_messidor()  # doctest: +SKIP
    >>> eyes.data.shape, eyes.alpha  # doctest: +SKIP
    ((400, 50), 0.03)
    """
    form = Form(return_X_y, return_X_y_human, as_frame)
    expert = _expert(_MESSIDOR, grades, human)
    return _fetch(_MESSIDOR, expert, random_state, data_home, download_if_missing, form)


def fetch_stare(
    *,
    grades: bool = False,
    human: ConfusedHuman | None = None,
    random_state: Seed = 0,
    data_home: Folder = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Fetch Stare: 373 retina images graded for hemorrhage, with simulated readers.

    Parameters
    ----------
    grades : bool, default=False
        False: the paper's two classes. True: the target is the grade, 0 to 4, for what the file stores as
        0.2, 0.4, ..., 1.0, and the human is a simulated expert who answers grades.
    human : ConfusedHuman or None, default=None
        The expert for ``grades=True``. None means one who errs with probability 0.25, mostly by one grade.
    random_state : int, RandomState or None, default=0
        Seed of that expert's answers. The answers for two classes are stored in the file.
    data_home : path-like or None, default=None
        Folder of the data files; see `get_data_home` for what None means.
    download_if_missing : bool, default=True
        Whether a file that is not in the folder is downloaded into it; otherwise it is an error.
    return_X_y : bool, default=False
        Whether to return just ``(data, target)``.
    return_X_y_human : bool, default=False
        Whether to return just ``(data, target, human_labels)``.
    as_frame : bool, default=False
        Whether to return pandas objects; `frame` then holds all columns.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        With `data` of shape (373, 50), `target` (-1 or +1), `grades`, `human_loss`, `human_scores`,
        `human_labels` (-1 or +1), `human_prob`, `groups`, `alpha` (0.5), `threshold`,
        `feature_names`, `target_names`, `frame` and `DESCR`, which explains them. With
        ``grades=True``, `target` and `human_labels` are grades from 0 to 4, and `human_error` and
        `human` take the place of `human_loss`, `human_scores`, `human_prob` and `threshold`.
    tuple
        Instead, if `return_X_y` or `return_X_y_human`.

    Examples
    --------
    >>> from deferlearn.datasets import fetch_stare
    >>> eyes = fetch_stare()  # doctest: +SKIP
    >>> eyes.data.shape, eyes.alpha  # doctest: +SKIP
    ((373, 50), 0.5)
    """
    form = Form(return_X_y, return_X_y_human, as_frame)
    expert = _expert(_STARE, grades, human)
    return _fetch(_STARE, expert, random_state, data_home, download_if_missing, form)


def fetch_aptos(
    *,
    grades: bool = False,
    human: ConfusedHuman | None = None,
    random_state: Seed = 0,
    data_home: Folder = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Fetch Aptos: 705 retina images graded for retinopathy, with simulated readers.

    Parameters
    ----------
    grades : bool, default=False
        False: the paper's two classes. True: the target is the grade, 0 to 4, and
        the human is a simulated expert who answers grades.
    human : ConfusedHuman or None, default=None
        The expert for ``grades=True``. None means one who errs with probability 0.25, mostly by one grade.
    random_state : int, RandomState or None, default=0
        Seed of that expert's answers. The answers for two classes are stored in the file.
    data_home : path-like or None, default=None
        Folder of the data files; see `get_data_home` for what None means.
    download_if_missing : bool, default=True
        Whether a file that is not in the folder is downloaded into it; otherwise it is an error.
    return_X_y : bool, default=False
        Whether to return just ``(data, target)``.
    return_X_y_human : bool, default=False
        Whether to return just ``(data, target, human_labels)``.
    as_frame : bool, default=False
        Whether to return pandas objects; `frame` then holds all columns.

    Returns
    -------
    bunch : `~sklearn.utils.Bunch`
        With `data` of shape (705, 50), `target` (-1 or +1), `grades`, `human_loss`, `human_scores`,
        `human_labels` (-1 or +1), `human_prob`, `groups`, `alpha` (0.6), `threshold`,
        `feature_names`, `target_names`, `frame` and `DESCR`, which explains them. With
        ``grades=True``, `target` and `human_labels` are grades from 0 to 4, and `human_error` and
        `human` take the place of `human_loss`, `human_scores`, `human_prob` and `threshold`.
    tuple
        Instead, if `return_X_y` or `return_X_y_human`.

    Examples
    --------
    >>> from deferlearn.datasets import fetch_aptos
    >>> eyes = fetch_aptos()  # doctest: +SKIP
    >>> eyes.data.shape, eyes.alpha  # doctest: +SKIP
    ((705, 50), 0.6)
    """
    form = Form(return_X_y, return_X_y_human, as_frame)
    expert = _expert(_APTOS, grades, human)
    return _fetch(_APTOS, expert, random_state, data_home, download_if_missing, form)


def published_split(bunch: Bunch) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split used for the paper's figures: the first rows test, the rest train.

    The first ``4 * (n // 10)`` rows are the test part: 160 of Messidor, 148 of Stare, 280 of Aptos.

    Parameters
    ----------
    bunch : `~sklearn.utils.Bunch`
        What `fetch_messidor`, `fetch_stare` or `fetch_aptos` returned.

    Returns
    -------
    train, test : ndarray of int
        Row numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from deferlearn.datasets import published_split
    >>> train, test = published_split(Bunch(target=np.ones(25)))
    >>> test, len(train)
    (array([0, 1, 2, 3, 4, 5, 6, 7]), 17)
    """
    n_samples = len(bunch.target)
    n_test = PUBLISHED_TEST_PARTS * (n_samples // PUBLISHED_PARTS)
    return np.arange(n_test, n_samples), np.arange(n_test)


def _expert(source: Retina, grades: bool, human: ConfusedHuman | None) -> ConfusedHuman | None:
    """Who answers grades; None if the two classes are wanted, whose answers are in the file."""
    if not check_flag("grades", grades):
        if human is not None:
            raise ValueError(
                "human= is only for grades=True: the answers for two classes are stored in the file"
            )
        return None
    places = list(range(len(source.grades)))
    if human is None:
        return ConfusedHuman.off_by_one(GRADING_ERROR, places)
    if not isinstance(human, ConfusedHuman):
        raise TypeError(f"human must be a deferlearn.humans.ConfusedHuman or None, got {human!r}")
    if sorted(human.classes, key=repr) != places:
        raise ValueError(
            f"the grades of {source.title} are {places}, but those of the expert are {human.classes}"
        )
    return human


def _fetch(
    source: Retina,
    expert: ConfusedHuman | None,
    random_state: Seed,
    data_home: Folder,
    download_if_missing: bool,
    form: Form,
) -> Any:
    folder = get_data_home(data_home)
    content = read_verified(source.file, folder, download_if_missing=download_if_missing)
    record = read_arrays(content)
    if expert is None:
        return deliver(two_class_bunch(source, record), form)
    return deliver(graded_bunch(source, record, expert, random_state), form)
