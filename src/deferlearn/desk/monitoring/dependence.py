"""Whether machine and experts err on the same cases: then neither can correct the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.types import Array
from deferlearn.desk.monitoring.figures import Figure, between, cases, percent
from deferlearn.desk.monitoring.shares import sampled_share, stands_for
from deferlearn.evaluation.intervals import CONFIDENCE, NOTHING, Interval, t_quantile


def both_wrong(
    machine: ArrayLike, expert: ArrayLike, probability: ArrayLike, confidence: float = CONFIDENCE
) -> tuple[Figure, Interval]:
    """How often machine and expert are both wrong, against what independence would give.

    Parameters
    ----------
    machine, expert : array-like of shape (n_cases,)
        For each case: 1 wrong, 0 right, NaN not known, such as because no expert read it.
    probability : array-like of shape (n_cases,)
        The probability that an expert reads the case: 1 if it was deferred, else that of an audit. Cases
        of which both are known stand for all with the same probability. Cases that no expert could
        have read are left out.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    figure : Figure
        The share of cases in which both are wrong; what independence would give is `expected`.
    excess : Interval
        The share minus what independence would give.
    """
    name = "both wrong"
    chance = np.asarray(probability, dtype=np.float64)
    own, theirs = (np.asarray(errors, dtype=np.float64)[chance > 0] for errors in (machine, expert))
    chance = chance[chance > 0]
    seen = ~np.isnan(own) & ~np.isnan(theirs)
    n = int(seen.sum())
    if n < 2:
        sentence = "Nothing is known yet: there are fewer than two cases that machine and experts answered."
        return Figure(name, NOTHING, n, sentence), NOTHING
    share, _ = sampled_share(np.where(seen, own * theirs, np.nan), chance, confidence)
    weight = stands_for(chance, seen)[seen] / len(chance)
    own, theirs = own[seen], theirs[seen]
    one, other = float(weight @ own), float(weight @ theirs)
    product = one * other
    excess = _interval((own - one) * (theirs - other), weight, confidence)
    sentence = (
        f"Machine and experts are both wrong in {percent(share.mean)} of the cases (95% interval: "
        f"{between(share)}); independent errors would give {percent(product)}, by {cases(n)} that both "
        "answered."
    )
    if excess.low > 0:
        sentence += (
            " They tend to err on the same cases, so experts correct less than they seem to."
        )
    elif excess.high < 0:
        sentence += (
            " They tend to err on different cases, so experts correct more than they seem to."
        )
    else:
        sentence += " The difference may be chance."
    return Figure(name, share, n, sentence, expected=product), excess


def _interval(values: Array, weight: Array, confidence: float) -> Interval:
    """The weighted mean, with an interval that has one imagined case at either end.

    The imagined cases weigh as much as the average case, so that a mean without any spread has an interval
    too. The degrees of freedom are those of the effective number of cases.
    """
    mean = float(weight @ values)
    effective = float(1.0 / (weight**2).sum())
    freedom = max(int(effective) - 1, 1)
    spread = float((weight**2 * (values - mean) ** 2).sum())
    imagined = 2 * (1.0 / (effective + 2)) ** 2 * 0.25
    half = t_quantile(confidence, freedom) * float(np.sqrt(spread + imagined))
    return Interval(mean, mean - half, mean + half)
