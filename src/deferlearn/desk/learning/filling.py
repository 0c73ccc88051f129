r"""What is not known of a case is filled in: its truth, and what an expert would have answered.

Experts read the cases that the model deferred, and a random part of the others: the audits. A model that
is fitted on these cases alone learns mostly from hard cases. Weights by the inverse of their probability
help little: if 5% of the cases are audited, a few dozen cases count twenty times as much as all others.
But whether a case was read depended on its fields and on chance, not on its truth. Given the
fields, those of known truth are therefore like the others ("missing at random", Rubin, 1976), and the
probability of each label, and of an error of the expert, can be learned from them. The model is then
fitted on *all* cases, with draws from these probabilities where nothing is known (an imputation). Every
step of the fit (classes, thresholds, budgets) sees the mixture that arrives at the desk.

The probabilities are those of a logistic regression on the features or on a Gaussian kernel of them (by
Nyström's approximation), whichever has the smaller loss on cases that it has not seen. If the
regression were right everywhere, weights would only cost accuracy. If it is not, a fit without weights
suits the cases that were read, and not the others. The weight of a case is the square root of the inverse
of its probability, which lies between both (Shimodaira, 2000).

How far back cases are like those of today is found in the same way: the probabilities are learned from
all cases, from the newer half, the newer quarter and so on, and each is judged by its loss on the newest
ones. The longest window stays unless a shorter one is better by more than chance (in the spirit of
Klinkenberg and Joachims, 2000). Per case, the loss of probabilities tells much more than a count of
errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from deferlearn._utils.types import Array, Bools, Index

Labels = NDArray[np.object_]

# Points of the kernel, and folds in which both ways to learn probabilities are compared.
POINTS, FOLDS = 100, 5
# No case has a larger weight than one that becomes known with this probability.
LEAST_CHANCE = 1e-3
# Probabilities are never taken for certain: a single surprise would decide otherwise.
LEAST = 0.01
# The newest part of the cases to learn from, by which windows are judged, and the fewest in a window.
NEWEST, LEAST_WINDOW = 0.25, 50
# How many standard errors the loss of a shorter window must be smaller.
CLEARLY = 1.0


@dataclass(frozen=True)
class Chances:
    """Probabilities of labels by features.

    Parameters
    ----------
    model : classifier or None
        None if only one label has been seen.
    labels : ndarray of str
        The labels, in the order of the columns of `of`.
    """

    model: Any
    labels: NDArray[Any]

    def of(self, features: Array) -> Array:
        """The probability of each label.

        Parameters
        ----------
        features : ndarray of shape (n_cases, n_features)
            Cases.

        Returns
        -------
        probabilities : ndarray of shape (n_cases, n_labels)
        """
        if self.model is None:
            return np.ones((len(features), 1))
        return np.asarray(self.model.predict_proba(features))

    def losses(self, features: Array, labels: NDArray[Any]) -> Array:
        """The logarithmic loss of each case."""
        own = (labels[:, None] == self.labels) * self.of(features)
        return np.asarray(-np.log(np.clip(own.sum(axis=1), LEAST, 1.0)))


def straight(n_cases: int) -> Any:
    """A logistic regression."""
    return make_pipeline(LogisticRegression(max_iter=1000))


def curved(n_cases: int) -> Any:
    """A logistic regression on a Gaussian kernel."""
    kernel = Nystroem(n_components=min(POINTS, n_cases), random_state=0)
    return make_pipeline(kernel, LogisticRegression(max_iter=1000))


def learn_chances(make: Any, features: Array, labels: NDArray[Any], chance: Array) -> Chances:
    """Learn probabilities of labels.

    Parameters
    ----------
    make : callable
        `straight` or `curved`.
    features : ndarray of shape (n_cases, n_features)
        Cases.
    labels : ndarray of shape (n_cases,)
        Their labels.
    chance : ndarray of shape (n_cases,)
        The probability with which the label of each became known.

    Returns
    -------
    Chances
    """
    seen = np.unique(labels)
    if len(seen) < 2:
        return Chances(None, seen)
    model = make(len(labels))
    weights = 1.0 / np.sqrt(np.maximum(chance, LEAST_CHANCE))
    *_, (last, _) = model.steps
    model.fit(features, labels, **{f"{last}__sample_weight": weights / weights.mean()})
    return Chances(model, seen)


def better_way(features: Array, labels: NDArray[Any], chance: Array) -> Any:
    """The one of `straight` and `curved` that has the smaller loss on cases it has not seen."""
    n = len(labels)
    if n < 2 * FOLDS or len(np.unique(labels)) < 2:
        return straight
    total = {straight: 0.0, curved: 0.0}
    for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(features):
        for make in total:
            chances = learn_chances(make, features[train], labels[train], chance[train])
            loss = chances.losses(features[test], labels[test])
            total[make] += float(loss @ (1.0 / np.maximum(chance[test], LEAST_CHANCE)))
    return min(total, key=lambda make: total[make])


@dataclass(frozen=True)
class Known:
    """Cases in the order of their arrival, with what is known of them.

    Parameters
    ----------
    features : ndarray of shape (n_cases, n_features)
        All cases.
    truth, answer : ndarray of object of shape (n_cases,)
        The truth, and the answer of an expert; None where it is not known.
    truth_chance, both_chance : ndarray of shape (n_cases,)
        The probability that the truth becomes known, and that both become known.
    """

    features: Array
    truth: Labels
    answer: Labels
    truth_chance: Array
    both_chance: Array

    def after(self, start: int) -> Known:
        """These cases without the first ones."""
        return Known(
            self.features[start:],
            self.truth[start:],
            self.answer[start:],
            self.truth_chance[start:],
            self.both_chance[start:],
        )

    @property
    def has_truth(self) -> Bools:
        """Where the truth is known."""
        return _given(self.truth)

    @property
    def has_both(self) -> Bools:
        """Where the truth and an answer are known."""
        return self.has_truth & _given(self.answer)

    def labels(self, rows: Any) -> NDArray[Any]:
        """The truth of cases of which it is known."""
        return self.truth[rows].astype(str)

    def mistakes(self, rows: Any) -> NDArray[Any]:
        """Whether answers are wrong, of cases of which both are known."""
        return self.labels(rows) != self.answer[rows].astype(str)

    def with_truth(self, rows: Any, truth: NDArray[Any], classes: NDArray[Any]) -> Array:
        """Features to which the truth is added: an expert may be good at some classes only."""
        return np.hstack([self.features[rows], truth[:, None] == classes[1:]])

    def truth_by_features(self, rows: Index, way: Any = None) -> Chances:
        """Probabilities of the truth, learned from these cases."""
        given = self.features[rows], self.labels(rows), self.truth_chance[rows]
        return learn_chances(way or better_way(*given), *given)

    def mistakes_by_features(self, rows: Index, classes: NDArray[Any], way: Any = None) -> Chances:
        """Probabilities that an answer is wrong, learned from these cases."""
        told = self.with_truth(rows, self.labels(rows), classes)
        given = told, self.mistakes(rows), self.both_chance[rows]
        return learn_chances(way or better_way(*given), *given)


def like_the_newest(known: Known) -> int:
    """The first of the cases from which on they are like the newest ones.

    Parameters
    ----------
    known : Known
        The cases to learn from.

    Returns
    -------
    first : int
        Its position; 0 unless a later one is clearly better.
    """
    rows = np.flatnonzero(known.has_truth)
    n = len(rows)
    later = rows[n - int(NEWEST * n) :]
    earlier = rows[: n - len(later)]
    starts = [0]
    while len(earlier) // 2 ** len(starts) >= LEAST_WINDOW:
        starts.append(int(earlier[-(len(earlier) // 2 ** len(starts))]))
    if len(starts) == 1:
        return 0
    losses = _losses_on(known, later, earlier, starts)
    best = min(range(len(starts)), key=lambda k: float(losses[k].sum()))
    for k in range(best):
        excess = losses[k] - losses[best]
        error = float(excess.std(ddof=1)) * np.sqrt(len(excess))
        if float(excess.sum()) <= CLEARLY * error:
            return starts[k]
    return starts[best]


def _losses_on(known: Known, later: Index, earlier: Index, starts: list[int]) -> list[Array]:
    """The loss of each later case, of probabilities learned from each start on."""
    classes = np.unique(known.labels(earlier))
    read = known.has_both
    way = better_way(known.features[earlier], known.labels(earlier), known.truth_chance[earlier])
    with_answers = later[read[later]]
    expert = earlier[read[earlier]]
    seen = known.with_truth(with_answers, known.labels(with_answers), classes)
    losses = []
    for start in starts:
        rows = earlier[earlier >= start]
        chances = known.truth_by_features(rows, way)
        loss = chances.losses(known.features[later], known.labels(later))
        rows = expert[expert >= start]
        if len(rows) and len(with_answers):
            errors = known.mistakes_by_features(rows, classes, straight)
            loss[read[later]] += errors.losses(seen, known.mistakes(with_answers))
        else:  # this window knows nothing of experts, and is judged by the same cases nevertheless
            loss[read[later]] += np.log(2.0)
        losses.append(loss)
    return losses


def fill(known: Known, luck: np.random.Generator) -> tuple[Labels, Labels]:
    """Truths and answers of all cases: those that are known, and draws.

    Parameters
    ----------
    known : Known
        Cases. The truth of some must be known, and an answer to one of these.
    luck : Generator
        Random numbers.

    Returns
    -------
    truth, answer : ndarray of object of shape (n_cases,)
    """
    rows, read = np.flatnonzero(known.has_truth), np.flatnonzero(known.has_both)
    truth, answer = known.truth.copy(), known.answer.copy()
    classes, mistakes = np.unique(known.labels(rows)), known.mistakes(read)
    errors = known.mistakes_by_features(read, classes)
    unknown, unread = np.flatnonzero(~known.has_truth), np.flatnonzero(~_given(answer))
    if len(unknown):
        chances = known.truth_by_features(rows).of(known.features[unknown])
        for place, label in enumerate(classes):
            chances[:, place] *= _chance_of_answers(known, errors, unknown, label, classes)
        truth[unknown] = classes[_drawn(chances, luck)]
    if len(unread):
        asked = known.with_truth(unread, truth[unread].astype(str), classes)
        errs = errors.labels[_drawn(errors.of(asked), luck)].astype(bool)
        answer[unread] = truth[unread]
        answer[unread[errs]] = _mistaken(known, read[mistakes], truth[unread[errs]], luck)
    return truth, answer


def _chance_of_answers(
    known: Known, errors: Chances, rows: Index, label: str, classes: NDArray[Any]
) -> Array:
    """The probability of the answers that were given to cases, if this is their truth; 1 without one."""
    truth = np.full(len(rows), label)
    mistake = errors.of(known.with_truth(rows, truth, classes)) @ errors.labels.astype(float)
    mistake = np.clip(mistake, LEAST, 1 - LEAST)
    said = known.answer[rows]
    right = np.array([one == label for one in said], dtype=bool)
    found = np.where(right, 1 - mistake, mistake / max(len(classes) - 1, 1))
    return np.where(_given(said), found, 1.0)


def _mistaken(known: Known, wrong: Index, truth: Labels, luck: np.random.Generator) -> Labels:
    """Wrong answers to cases of these truths, as they were given to others of the same truth."""
    own, said = known.labels(wrong), known.answer[wrong]
    found = np.empty(len(truth), dtype=object)
    for label in np.unique(truth.astype(str)).tolist():
        takers = np.flatnonzero(truth.astype(str) == label)
        donors = np.flatnonzero(own == label)
        if not len(donors):  # nobody was wrong there so far
            donors = np.flatnonzero(said.astype(str) != label)
        found[takers] = said[luck.choice(donors, len(takers))] if len(donors) else label
    return found


def _drawn(chances: Array, luck: np.random.Generator) -> Index:
    """One column per row, by the odds of the row."""
    ends = chances.cumsum(axis=1)
    return np.asarray((luck.random((len(ends), 1)) * ends[:, -1:] > ends).sum(axis=1))


def _given(values: Labels) -> Bools:
    return np.array([one is not None for one in values], dtype=bool)
