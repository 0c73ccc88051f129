"""What the files of retina images hold, as a question of two classes or of grades."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from deferlearn._utils.types import Array, Labels
from deferlearn.datasets._bunch import rows_as_groups
from deferlearn.datasets._files import RemoteFile
from deferlearn.datasets._pickles import Record
from deferlearn.humans import ConfusedHuman
from deferlearn.humans.uniform import Seed

# Under this key the files store the human draws.
HUMAN_KEY = "1"

# A stored 0.6000000000000001 is the grade 0.6.
SAME_GRADE = 1e-9


@dataclass(frozen=True)
class Retina:
    """What is known about one data set beyond its file."""

    title: str
    file: RemoteFile
    grades: tuple[float, ...]  # as stored, from the lowest to the highest
    threshold: float  # grades above it make the class +1
    alpha: float  # lambda in the authors' program; the paper gives no number
    note: str
    draws: str  # what is known of the answers for two classes, after the note


_RETINA_DESCR = """\
{title}: retina images, as used in "Classification Under Human Assistance"

{note}

data          the first 50 principal components of the network's features, which the authors'
              program standardised before; the paper does not say so
grades        the doctor's grade, as stored
target        {target}
groups        equal rows are one group, so that a split cannot part them; the patients, whose two
              eyes may both be there, are not known
alpha         {alpha}, the regularisation (lambda) in the authors' program; the paper gives no number

{humans}
The files come from the authors' public repository on GitHub,
Networks-Learning/classification-under-assistance. It states no licence for them.
"""

_TWO_CLASSES = """\
The authors simulated the humans: several readers, each with probabilities of answering each grade.
Stored is one draw of them:

human_labels  the first reader's answer, -1 or +1
human_loss    the first reader's expected hinge loss; it is neither the loss of `human_labels` nor
              that of `human_scores`, which are draws
human_scores  h in [-1, 1]; judging by its values, the mean score of the first reader and another
human_prob    called Pr_H in the file, but it is no probability: 1 where the two readers behind
              `human_scores` disagree about the class, otherwise 0; the label of a human error in
              the paper's predicted-error triage, whose appendix speaks of two pairs of readers
threshold     {threshold}: grades above it are of the class +1
"""

_GRADES = """\
The file holds answers for two classes only. So the human is simulated by this package, from the
true grade alone:

human_labels  the expert's answer, a grade; one draw
human_error   the probability of error; unless another expert was given, it is 0.25 for every grade,
              and most errors are one grade off
human         the expert, a ConfusedHuman
"""


def two_class_bunch(source: Retina, record: Record) -> Bunch:
    """The paper's two classes, and the answers that the file holds."""
    data, grades = _cases(source, record)
    loss, scores, labels, prob = (
        _numbers(source, record, key, HUMAN_KEY, n_rows=len(data))
        for key in ("c", "h", "y_h", "Pr_H")
    )
    bunch = _bunch(
        source,
        data,
        np.where(grades > source.threshold, 1, -1),
        grades,
        human_loss=loss,
        human_scores=scores,
        human_labels=labels.astype(np.int64),
        human_prob=prob,
    )
    bunch.target_names = ["lower grade", "higher grade"]
    bunch.threshold = source.threshold
    rule = f"+1 if the grade exceeds {source.threshold}, otherwise -1"
    humans = _TWO_CLASSES.format(threshold=source.threshold)
    bunch.DESCR = _describe(source, source.note + source.draws, rule, humans)
    return bunch


def graded_bunch(source: Retina, record: Record, expert: ConfusedHuman, seed: Seed) -> Bunch:
    """Grades as whole numbers from 0, since classifiers take fractions for measurements."""
    data, grades = _cases(source, record)
    away = np.abs(grades[:, None] - source.grades)
    if away.min(axis=1).max() > SAME_GRADE:
        raise ValueError(
            f"{source.file.name} holds grades other than {list(source.grades)} at ['Y']"
        )
    target = away.argmin(axis=1).astype(np.int64)
    bunch = _bunch(
        source,
        data,
        target,
        grades,
        human_labels=expert.labels(target, seed).astype(np.int64),
        human_error=expert.error_probability(target),
    )
    bunch.human = expert
    bunch.target_names = [f"grade {grade:g}" for grade in source.grades]
    rule = f"the grade as a whole number, 0 to {len(source.grades) - 1}"
    bunch.DESCR = _describe(source, source.note, rule, _GRADES)
    return bunch


def _cases(source: Retina, record: Record) -> tuple[Array, Array]:
    data = _numbers(source, record, "X")
    return data, _numbers(source, record, "Y", n_rows=len(data))


def _bunch(source: Retina, data: Array, target: Labels, grades: Array, **humans: Labels) -> Bunch:
    return Bunch(
        data=data,
        target=target,
        grades=grades,
        **humans,
        groups=rows_as_groups(data),
        feature_names=[f"pca{k}" for k in range(data.shape[1])],
        alpha=source.alpha,
    )


def _describe(source: Retina, note: str, target: str, humans: str) -> str:
    return _RETINA_DESCR.format(
        title=source.title, note=note, target=target, humans=humans, alpha=source.alpha
    )


def _numbers(source: Retina, record: Record, *keys: str, n_rows: int | None = None) -> Array:
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
