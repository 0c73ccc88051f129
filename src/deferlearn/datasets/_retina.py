"""The paper's real data: features of retina images, a doctor's grades, simulated readers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from deferlearn._utils.types import Array
from deferlearn.datasets._bunch import Form, deliver, rows_as_groups
from deferlearn.datasets._files import Folder, RemoteFile, get_data_home, read_verified
from deferlearn.datasets._pickles import Record, read_arrays

# Under this key the files store the human draws.
HUMAN_KEY = "1"

# Not 0.4 * n rounded: the authors take a tenth of the rows, rounded down, four times.
PUBLISHED_PARTS, PUBLISHED_TEST_PARTS = 10, 4


@dataclass(frozen=True)
class _Retina:
    """What is known about one data set beyond its file."""

    title: str
    file: RemoteFile
    threshold: float  # grades above it make the class +1
    alpha: float  # the paper's lambda for this data set
    note: str


_MESSIDOR = _Retina(
    title="Messidor",
    file=RemoteFile(
        "data_dict_Messidor.pkl",
        "30702e4d753d6e8440fdb7d8cdb7e66285153070b5bd9df1e4b80708708337cf",
    ),
    threshold=1.5,
    alpha=0.03,
    note="400 images of eyes, grades 0 to 3 of retinopathy; features by VGG16.\n"
    "The human draws are those behind the paper's figure.",
)
_STARE = _Retina(
    title="Stare",
    file=RemoteFile(
        "data_dict_Stare.pkl",
        "90c0240f4c1019b274607ebc054f4da069b511ad4c21616fc3e36d3056070cac",
    ),
    threshold=0.5,
    alpha=0.5,
    note="373 images of retinas, five grades of hemorrhage, stored as 0.2, 0.4, ..., 1.0;\n"
    "features by ResNet, in single precision. The human draws are those behind the paper's figure.",
)
_APTOS = _Retina(
    title="Aptos",
    file=RemoteFile(
        "data_dict_Aptos.pkl",
        "17f689f5adc84d929e6ceebcc3ff38566803ed302132ea11897f7e9108ba6070",
    ),
    threshold=1.8,
    alpha=0.6,
    note="705 images of retinas, grades 0 to 4 of diabetic retinopathy; features by VGG16.\n"
    "Four rows are duplicates, and one is an outlier (squared norm 56,596; the median is 343).\n"
    "The human draws are NOT those behind the paper's figure, so numbers can differ from it.",
)

_RETINA_DESCR = """\
{title}: retina images, as used in "Classification Under Human Assistance"

{note}

data          the features' first 50 principal components
grades        the doctor's grade, as stored
target        +1 if the grade exceeds {threshold}, otherwise -1
groups        equal rows are one group, so that a split cannot part them; the patients, whose two
              eyes may both be there, are not known
alpha         {alpha}, the regularisation (lambda) that the paper uses here

The authors simulated the humans: several readers, each with probabilities of answering each grade.
Stored is one draw of them:

human_labels  the first reader's answer, -1 or +1
human_loss    the first reader's expected hinge loss; it is neither the loss of `human_labels` nor
              that of `human_scores`, which are draws
human_scores  h in [-1, 1]; judging by its values, the mean score of the first reader and another
human_prob    called Pr_H in the file, but it is no probability: 1 where the two readers behind
              `human_scores` disagree about the class, otherwise 0

The files come from the authors' public repository on GitHub,
Networks-Learning/classification-under-assistance. It states no licence for them.
"""


def fetch_messidor(
    *,
    data_home: Folder = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Fetch Messidor: 400 eye images graded for retinopathy, with simulated readers.

    Parameters
    ----------
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
        `human_labels` (-1 or +1), `human_prob`, `groups`, `alpha` (0.03), `feature_names`,
        `target_names`, `frame` and `DESCR`, which explains them.
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
    return _fetch(_MESSIDOR, data_home, download_if_missing, form)


def fetch_stare(
    *,
    data_home: Folder = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Fetch Stare: 373 retina images graded for hemorrhage, with simulated readers.

    Parameters
    ----------
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
        `human_labels` (-1 or +1), `human_prob`, `groups`, `alpha` (0.5), `feature_names`,
        `target_names`, `frame` and `DESCR`, which explains them.
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
    return _fetch(_STARE, data_home, download_if_missing, form)


def fetch_aptos(
    *,
    data_home: Folder = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    return_X_y_human: bool = False,
    as_frame: bool = False,
) -> Any:
    """Fetch Aptos: 705 retina images graded for retinopathy, with simulated readers.

    Parameters
    ----------
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
        `human_labels` (-1 or +1), `human_prob`, `groups`, `alpha` (0.6), `feature_names`,
        `target_names`, `frame` and `DESCR`, which explains them.
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
    return _fetch(_APTOS, data_home, download_if_missing, form)


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


def _fetch(source: _Retina, data_home: Folder, download_if_missing: bool, form: Form) -> Any:
    folder = get_data_home(data_home)
    content = read_verified(source.file, folder, download_if_missing=download_if_missing)
    return deliver(_to_bunch(source, read_arrays(content)), form)


def _to_bunch(source: _Retina, record: Record) -> Bunch:
    data = _numbers(source, record, "X")
    grades = _numbers(source, record, "Y", n_rows=len(data))
    loss, scores, labels, prob = (
        _numbers(source, record, key, HUMAN_KEY, n_rows=len(data))
        for key in ("c", "h", "y_h", "Pr_H")
    )
    return Bunch(
        data=data,
        target=np.where(grades > source.threshold, 1, -1),
        grades=grades,
        human_loss=loss,
        human_scores=scores,
        human_labels=labels.astype(np.int64),
        human_prob=prob,
        groups=rows_as_groups(data),
        feature_names=[f"pca{k}" for k in range(data.shape[1])],
        target_names=["lower grade", "higher grade"],
        alpha=source.alpha,
        DESCR=_RETINA_DESCR.format(
            title=source.title, note=source.note, threshold=source.threshold, alpha=source.alpha
        ),
    )


def _numbers(source: _Retina, record: Record, *keys: str, n_rows: int | None = None) -> Array:
    """One field of a file as finite numbers: a matrix, or a vector of `n_rows`."""
    field: Any = record
    for key in keys:
        field = field.get(key) if isinstance(field, dict) else None
    right_shape = isinstance(field, np.ndarray) and (
        field.ndim == 2 if n_rows is None else field.shape == (n_rows,)
    )
    if not (right_shape and field.dtype.kind in "iuf" and np.isfinite(field).all()):
        where = "".join(f"[{key!r}]" for key in keys)
        raise ValueError(
            f"{source.file.name} lacks a finite numeric array of the right shape at {where}"
        )
    return field.astype(np.float64)
