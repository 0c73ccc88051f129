"""The human as `fit` is given them: labels, scores or losses, checked once and passed along."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Index
from deferlearn.humans.answers import (
    as_array,
    check_answers,
    fill_gaps,
    find_missing,
    match,
    numbers_with_gaps,
)
from deferlearn.humans.averages import average_answers
from deferlearn.humans.coding import Codes, Coding, codes_among
from deferlearn.humans.losses import loss_from_labels, loss_from_scores

# The hinge loss of an answer at h = 0: an answer that costs more is wrong.
LOSS_UNDECIDED = 1.0


class NoHumanWarning(UserWarning):
    """`fit` was given no human, who is then taken to be always right.

    Examples
    --------
    >>> import warnings
    >>> from deferlearn import AssistedSVC
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.humans import NoHumanWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NoHumanWarning)  # it is meant so
    ...     team = AssistedSVC(budget=0.2, random_state=0).fit(*make_linear(60, random_state=0))
    """


@dataclass(frozen=True)
class Human:
    """What is known of the human on each sample.

    Attributes
    ----------
    loss : ndarray of shape (n_samples,)
        The hinge loss of the answers: 0 right, 2 wrong, in between for scores; with more than two
        classes, `Coding.hinge_per_error` times what the answer costs. A sample that was not read has the
        average loss of its class.
    answer_loss : ndarray of shape (n_samples,)
        The same, where of a score only the side counts, as it does for a team.
    scores : ndarray of shape (n_samples, n_readers)
        Each reader's answer as a score, NaN where there is none. Labels are scores of -1 and +1; a loss
        shows only whether the answer was right. With more than two classes, the code of each answer.
    given : dict
        What the user gave, by its name in `fit`; empty if the human is taken to be always right.
    notes, gap_notes : tuple of str
        What the user should know about the answers, and about samples without an answer.
    """

    loss: Array
    answer_loss: Array
    scores: Array
    given: dict[str, NDArray[Any]]
    notes: tuple[str, ...] = ()
    gap_notes: tuple[str, ...] = ()

    def part(self, rows: Index) -> Self:
        """The human on some of the samples."""
        return replace(
            self,
            loss=self.loss[rows],
            answer_loss=self.answer_loss[rows],
            scores=self.scores[rows],
            given={name: values[rows] for name, values in self.given.items()},
        )

    def warn(self, *, gaps: bool = True, stacklevel: int = 2) -> None:
        """Warn of what the user should know; without ``gaps``, not of samples without an answer."""
        if not self.given:
            warnings.warn(
                "No human was given to fit, so humans are taken to be always right: give human_labels, "
                "human_scores or human_loss. Note that score, cross_val_score and GridSearchCV judge the "
                "machine alone; score_assisted judges the team.",
                NoHumanWarning,
                stacklevel=stacklevel + 1,
            )
        for note in self.notes + (self.gap_notes if gaps else ()):
            warnings.warn(note, UserWarning, stacklevel=stacklevel + 1)


def read_human(
    codes: Codes,
    coding: Coding,
    *,
    human_loss: Any = None,
    human_scores: Any = None,
    human_labels: Any = None,
) -> Human:
    """Check whichever of the three was given; with none of them, the human is always right.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        The places of the true labels among the classes.
    coding : Coding
        The classes, and what mistakes cost.
    human_loss, human_scores, human_labels : array-like or None
        As in `deferlearn.AssistedSVC.fit`.

    Returns
    -------
    Human
    """
    asked = {"human_loss": human_loss, "human_scores": human_scores, "human_labels": human_labels}
    given = {name: value for name, value in asked.items() if value is not None}
    if len(given) > 1:
        raise ValueError(
            f"{' and '.join(given)} were given; they describe the same human, so give one of them."
        )
    y = codes if coding.several else coding.signs(codes)[:, 0].astype(np.int64)
    if not given:
        nothing = np.zeros(len(y))
        return Human(nothing, nothing, y[:, None].astype(np.float64), {})
    ((name, value),) = given.items()
    if callable(value):
        raise ValueError(
            f"{name} is a function, but fit needs to know the human on every sample: give an array. "
            "A function is for predict_assisted, which asks it about the deferred cases."
        )
    table = as_array(value)
    check_length(table, name, len(y), "y has")
    with warnings.catch_warnings(record=True) as gaps:
        warnings.simplefilter("always")
        if coding.several:
            readers = {"human_loss": _from_class_loss, "human_scores": _no_scores}
            human = readers.get(name, _from_class_labels)(table, codes, coding)
        else:
            two = {"human_loss": _from_loss, "human_scores": _from_scores}
            human = two.get(name, _from_labels)(table, y, coding.classes)
    if name == "human_loss":  # what it costs, whatever the class weighs by a cost matrix
        each = coding.weights[codes]
        human = replace(human, loss=human.loss / each, answer_loss=human.answer_loss / each)
    for caught in gaps:
        if caught.category is not UserWarning:  # of another package, and none of our notes
            warnings.warn_explicit(caught.message, caught.category, caught.filename, caught.lineno)
    notes = tuple(str(caught.message) for caught in gaps if caught.category is UserWarning)
    return replace(human, given={name: table}, gap_notes=notes)


def _from_class_labels(table: NDArray[Any], codes: Codes, coding: Coding) -> Human:
    answers = check_answers(table, "human_labels")
    given = ~find_missing(answers)
    filled = np.array(answers, dtype=object)
    filled[~given] = coding.classes.tolist()[0]  # any class: what is not given is not counted
    said = codes_among(filled if not given.all() else answers, coding.classes, "human_labels")
    losses = coding.hinge_per_error * coding.costs[codes[:, None], said]
    loss = average_answers(losses, given, codes, coding.classes.tolist(), 0.0)
    notes = _copied(table, coding.classes[codes], "human_labels")
    return Human(loss, loss, np.where(given, said, np.nan), {}, notes)


def _from_class_loss(table: NDArray[Any], codes: Codes, coding: Coding) -> Human:
    loss = _checked_loss(table)
    read = ~np.isnan(loss)
    full = average_answers(loss[:, None], read[:, None], codes, coding.classes.tolist(), 0.0)
    # A loss does not tell the answer; it is taken as right if it costs less than half an error.
    right = read & (loss < coding.hinge_per_error / 2)
    wrong = np.where(codes > 0, codes - 1, codes + 1)
    said = np.where(read, np.where(right, codes, wrong), np.nan)
    return Human(full, full, said[:, None], {})


def _no_scores(table: NDArray[Any], codes: Codes, coding: Coding) -> Human:
    raise ValueError(
        f"human_scores are for two classes, but y has {len(coding.classes)}: give human_labels or "
        "human_loss."
    )


def _from_loss(table: NDArray[Any], y: NDArray[np.int64], classes: NDArray[Any]) -> Human:
    loss = _checked_loss(table)
    read = ~np.isnan(loss)
    scores = np.where(loss > LOSS_UNDECIDED, -1.0, 1.0) * y.astype(np.float64)
    scores[~read] = np.nan
    full = average_answers(loss[:, None], read[:, None], (y + 1) // 2, classes.tolist(), 0.0)
    return Human(full, full, scores[:, None], {})


def _checked_loss(table: NDArray[Any]) -> Array:
    """Losses, one per sample, NaN where none is known."""
    if table.ndim != 1:
        raise ValueError(
            f"human_loss must hold one number per sample, got the shape {table.shape}: average the "
            "readers' losses first, or give human_labels or human_scores."
        )
    loss = numbers_with_gaps(table, "human_loss")
    read = ~np.isnan(loss)
    bad = np.flatnonzero(read & ~((loss >= 0) & (loss < np.inf)))
    if len(bad):
        raise ValueError(
            f"human_loss must be finite and not negative, got {loss[bad[0]]:g} at row {bad[0]}."
        )
    return loss


def _from_scores(table: NDArray[Any], y: NDArray[np.int64], classes: NDArray[Any]) -> Human:
    loss = loss_from_scores(table, y)
    scores = fill_gaps(check_answers(table, "human_scores"))
    sides = np.where(np.isnan(scores), np.nan, np.where(scores >= 0, 1.0, -1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the same gaps as those of the scores
        answer_loss = loss_from_scores(sides, y)
    notes = (*_strange_scores(scores, y, classes), *_copied(table, y, "human_scores"))
    return Human(loss, answer_loss, scores, {}, notes)


def _from_labels(table: NDArray[Any], y: NDArray[np.int64], classes: NDArray[Any]) -> Human:
    truth = classes[(y + 1) // 2]
    answers = check_answers(table, "human_labels")
    given = ~find_missing(answers)
    scores = np.full(answers.shape, np.nan)
    pair = (classes[0], classes[1])
    # First of all, since an error names what the user gave.
    said = np.array(answers, dtype=object)
    said[~given] = pair[0]
    second = match(said if not given.all() else np.asarray(answers), pair, "human_labels")
    scores[given] = np.where(second, 1.0, -1.0)[given]
    loss = loss_from_labels(table, truth, classes=classes)
    return Human(loss, loss, scores, {}, _copied(table, truth, "human_labels"))


def _copied(table: NDArray[Any], truth: NDArray[Any], name: str) -> tuple[str, ...]:
    """A note if no answer is ever wrong, or none of one reader who answered every case."""
    answers = check_answers(table, name)
    given = ~find_missing(answers)
    right = np.zeros(answers.shape, dtype=bool)
    right[given] = answers[given] == np.broadcast_to(truth[:, None], answers.shape)[given]
    always = np.flatnonzero(right.all(axis=0))
    everywhere = bool(right[given].all())
    if not len(always) and not everywhere:
        return ()
    which = "" if everywhere else f" of reader {always[0]}"
    return (
        f"{name}{which} equals y everywhere: does y come from that very reader? Then it says "
        "nothing about how often the human errs.",
    )


def _strange_scores(scores: Array, y: NDArray[np.int64], classes: NDArray[Any]) -> tuple[str, ...]:
    """A note on scores that seem to mean something else: probabilities, or the other class."""
    given = ~np.isnan(scores)
    sides = np.sign(np.where(given, scores, 0.0)).reshape(len(y), -1) * y[:, None]
    negative, positive = classes.tolist()
    signs = f"positive scores stand for {positive!r}, negative ones for {negative!r}"
    if np.sum(sides < 0) > np.sum(sides > 0):
        return (
            f"human_scores are on the wrong side of 0 more often than on the right one: {signs}.",
        )
    if given.any() and scores[given].min() >= 0 and len(np.unique(y)) > 1:
        return (
            f"No human score is negative: {signs}. Probabilities p of {positive!r} become scores by "
            "2 * p - 1.",
        )
    return ()


def check_length(table: NDArray[Any], name: str, n: int, against: str) -> None:
    """Refuse answers whose number of rows is not n."""
    if table.ndim == 0 or len(table) != n:
        size = "no rows" if table.ndim == 0 else f"{len(table)} rows"
        raise ValueError(f"{name} has {size}, but {against} {n}: give one row per sample.")


def warn_if_reordered(X: Any, *, stacklevel: int = 2, **answers: Any) -> None:
    """Warn of pandas' answers whose index holds the same names as that of X in another order.

    Positions count, as everywhere in scikit-learn, so such answers would go to the wrong cases.
    """
    cases = _pandas_index(X)
    for name, values in answers.items():
        index = _pandas_index(values)
        if cases is None or index is None or len(cases) != len(index) or cases.equals(index):
            continue
        if set(cases) == set(index):
            warnings.warn(
                f"{name} has the index of X in another order. Rows are matched by position, not by "
                f"index: give {name}.loc[X.index] if the index shows which case an answer belongs to, "
                f"or {name}.to_numpy() if the position does.",
                UserWarning,
                stacklevel=stacklevel + 1,
            )


def _pandas_index(values: Any) -> Any:
    """The index of a Series or DataFrame, None for all else: a list has an `index`, too."""
    index = getattr(values, "index", None)
    return index if hasattr(index, "equals") else None
