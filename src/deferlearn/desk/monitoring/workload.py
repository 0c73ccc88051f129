"""How much work there is: the share deferred, unusual cases, load per expert, waiting times."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from deferlearn.desk.monitoring.figures import Figure, between, cases, in_unit, percent
from deferlearn.evaluation.intervals import CONFIDENCE, NOTHING, Interval, share_interval


def share_deferred(deferred: ArrayLike, budget: float | None) -> Figure:
    """The share of cases that experts get, against the budget.

    Parameters
    ----------
    deferred : array-like of bool of shape (n_cases,)
        Whether each case was deferred.
    budget : float or None
        The share that the model was fitted for, if it is known.

    Returns
    -------
    Figure
    """
    figure = _share("share deferred", deferred)
    if not figure.known:
        return figure
    words = f"Experts get {percent(figure.interval.mean)} of {cases(figure.count)}"
    if budget is None:
        words += f" (95% interval of the long run: {between(figure.interval)})."
    else:
        words += f"; the budget is {percent(budget)}. " + _against(figure.interval, budget)
    return Figure(figure.name, figure.interval, figure.count, words, expected=budget)


def share_unusual(unusual: ArrayLike, usual_share: float) -> Figure:
    """The share of cases that are unlike the training cases.

    Parameters
    ----------
    unusual : array-like of bool of shape (n_cases,)
        Whether each case is.
    usual_share : float
        The most that is to be expected of cases like those of training.

    Returns
    -------
    Figure
    """
    figure = _share("share of unusual cases", unusual)
    if not figure.known:
        return figure
    words = (
        f"{percent(figure.interval.mean)} of {cases(figure.count)} are unlike the training cases (95% "
        f"interval: {between(figure.interval)}); of cases like those of training it would be at most about "
        f"{percent(usual_share)}."
    )
    return Figure(figure.name, figure.interval, figure.count, words, expected=usual_share)


def load(name: str, taken: int, days: int, daily_limit: int | None) -> Figure:
    """How many readings an expert was given per day, against the expert's limit.

    Parameters
    ----------
    name : str
        The expert.
    taken : int
        Readings in all days together.
    days : int
        The number of days, today included.
    daily_limit : int or None
        The most per day; None if there is no limit.

    Returns
    -------
    Figure
        The interval is that of the mean of a Poisson distribution: what such days give in the long run.
    """
    per_day = taken / days
    low = stats.chi2.ppf((1 - CONFIDENCE) / 2, 2 * taken) / 2 if taken else 0.0
    high = stats.chi2.ppf((1 + CONFIDENCE) / 2, 2 * taken + 2) / 2
    interval = Interval(per_day, float(low) / days, float(high) / days)
    words = f"{name} was given {per_day:.3g} readings {'today' if days == 1 else 'per day'}"
    if daily_limit is None:
        words += ", and has no limit."
    elif daily_limit:
        words += f", {percent(per_day / daily_limit)} of the limit of {daily_limit}."
    else:
        words += ", and takes none at present."
    expected = None if daily_limit is None else float(daily_limit)
    return Figure("load", interval, taken, words, name, expected)


def waiting(seconds: ArrayLike, open_: ArrayLike, share: float = 0.5) -> Figure:
    """How long deferred cases wait for their answer: the time within which a share of them is answered.

    Cases that still wait count with the time they have waited so far (Kaplan and Meier); without them,
    the worst waits would be missing.

    Parameters
    ----------
    seconds : array-like of shape (n_cases,)
        From arrival to the answer, or until now.
    open_ : array-like of bool of shape (n_cases,)
        Whether the case still waits.
    share : float, default=0.5
        The share of the cases: 0.5 for the median.

    Returns
    -------
    Figure
        In seconds. An end of the interval is infinite if too many cases still wait.
    """
    times, still = np.asarray(seconds, dtype=np.float64), np.asarray(open_, dtype=bool)
    name = f"time within which {share:.0%} are answered"
    n, n_open = len(times), int(still.sum())
    if not n:
        return Figure(name, NOTHING, 0, "No case was deferred.")
    censored = stats.CensoredData.right_censored(times, still)
    curve = stats.ecdf(censored).sf
    left = curve.probabilities
    with warnings.catch_warnings():
        # Where all or no cases are left, the formula has no value.
        warnings.simplefilter("ignore", RuntimeWarning)
        ends = curve.confidence_interval(CONFIDENCE, method="log-log")
        below, above = (np.array(end.probabilities) for end in (ends.low, ends.high))
    # Before the first answer all cases are left; after the last one the bounds are not defined.
    sure = left >= 1
    below = np.where(sure, 1.0, np.where(np.isnan(below), 0.0, below))
    above = np.where(sure, 1.0, np.where(np.isnan(above), 1.0, above))
    points = curve.quantiles
    value, low, high = (_first(points, line, 1 - share) for line in (left, below, above))
    words = f"{share:.0%} of the deferred cases are answered within {_duration(value)}"
    if not np.isfinite(value):
        words = f"Fewer than {share:.0%} of the deferred cases are answered so far"
    if np.isfinite(low):
        words += f" (95% interval: {_duration(low)} to {_duration(high)})"
    words += f", by {cases(n)}"
    words += f", of which {n_open} still wait." if n_open else "."
    return Figure(name, Interval(value, low, high), n, words)


def _share(name: str, happened: ArrayLike) -> Figure:
    found = np.asarray(happened, dtype=bool)
    n, hits = len(found), int(found.sum())
    if not n:
        return Figure(name, NOTHING, 0, "No case has arrived.")
    low, high = share_interval(hits, n, method="wilson")
    return Figure(name, Interval(hits / n, low, high), n, "")


def _against(interval: Interval, budget: float) -> str:
    inside = f"95% interval of the long run: {between(interval)}."
    if interval.low > budget:
        return f"It is above the budget, by more than chance ({inside[:-1]})."
    if interval.high < budget:
        return f"It is below the budget, by more than chance ({inside[:-1]})."
    return f"The difference may be chance ({inside[:-1]})."


def _first(points: np.ndarray, line: np.ndarray, level: float) -> float:
    """When a falling line first reaches a level; infinite if it never does."""
    reached = line <= level + 1e-12
    return float(points[reached.argmax()]) if reached.any() else float("inf")


def _duration(seconds: float) -> str:
    return " ".join(in_unit(seconds)) if np.isfinite(seconds) else "no known time"
