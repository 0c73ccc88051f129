"""How often each expert errs: estimates that lean on all experts, with intervals, and words for them.

On each class the error rates of the experts are taken as draws from one beta distribution. Its mean and
its spread are not known either: all values on a grid count, by how likely they make the answers. So an
expert with few answers is close to the average of all, and one with thousands is close to the own rate;
where experts hardly differ, even many answers are drawn towards the average.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from deferlearn._utils.types import Array

# The grid of the population: mean rates, and strengths as numbers of answers, from 1 up to equal experts.
MEANS = np.concatenate([[0.002, 0.005], np.linspace(0.01, 0.99, 50)])
STRENGTHS = np.geomspace(1.0, 3000.0, 28)
# How much a strength of s counts before any answer: s to the power of minus this.
PRIOR = 1.0
DRAWS = 4000
LEVEL = 0.95
# With fewer answers, nothing is said of an expert but that little is known.
MIN_ANSWERS = 20

BETTER, WORSE, ALIKE, UNKNOWN = (
    "errs less often than the others",
    "errs more often than the others",
    "no clear difference from the others",
    "too few answers to tell",
)


@dataclass(frozen=True)
class Skills:
    """How often experts err, by class and over all, with intervals that hold in 95% of the cases.

    Attributes
    ----------
    experts : tuple of str
        Their names.
    classes : ndarray of shape (n_classes,)
        The true classes.
    answers : ndarray of int of shape (n_experts, n_classes)
        How many cases of each class each expert has answered.
    error_by_class, low_by_class, high_by_class : ndarray of shape (n_experts, n_classes)
        The error rate on each class, and the ends of its interval.
    error, low, high : ndarray of shape (n_experts,)
        The error rate on cases with the mix of classes of all samples: experts who got harder cases are
        not blamed for it.
    verdict : tuple of str
        In words, whether the error rate differs from that of the others; it allows for the number of
        experts that are compared.
    """

    experts: tuple[str, ...]
    classes: NDArray[Any]
    answers: NDArray[np.int64]
    error_by_class: Array
    low_by_class: Array
    high_by_class: Array
    error: Array
    low: Array
    high: Array
    verdict: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """A row per expert, for a table; experts in the order in which they were given."""
        return [
            {
                "expert": name,
                "answers": int(self.answers[e].sum()),
                "error": float(self.error[e]),
                "low": float(self.low[e]),
                "high": float(self.high[e]),
                "verdict": self.verdict[e],
            }
            for e, name in enumerate(self.experts)
        ]


def estimate_skills(
    wrong: Array,
    answered: NDArray[np.int64],
    mix: Array,
    experts: tuple[str, ...],
    classes: NDArray[Any],
) -> Skills:
    """Estimate how often each expert errs, from counts by expert and class.

    Parameters
    ----------
    wrong, answered : ndarray of shape (n_experts, n_classes)
        Wrong answers, and all answers.
    mix : ndarray of shape (n_classes,)
        The share of each class among the cases for which error rates are stated.
    experts : tuple of str
        Names.
    classes : ndarray of shape (n_classes,)
        Labels.

    Returns
    -------
    Skills

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.experts.skills import estimate_skills
    >>> wrong, answered = np.array([[10], [40], [0]]), np.array([[400], [400], [5]])
    >>> skills = estimate_skills(wrong, answered, np.ones(1), ("Ann", "Bob", "Cem"), np.array([1]))
    >>> skills.error.round(2)
    array([0.03, 0.1 , 0.06])
    >>> skills.verdict[2]
    'too few answers to tell'
    """
    n_experts, n_classes = wrong.shape
    luck = np.random.default_rng(0)
    draws = np.empty((DRAWS, n_experts, n_classes))
    for k in range(n_classes):
        draws[:, :, k] = _draw_rates(wrong[:, k], answered[:, k], luck)
    tail = (1 - LEVEL) / 2
    low_by_class, high_by_class = np.quantile(draws, (tail, 1 - tail), axis=0)
    overall = draws @ mix
    low, high = np.quantile(overall, (tail, 1 - tail), axis=0)
    means = np.column_stack([shrunk_rates(wrong[:, k], answered[:, k]) for k in range(n_classes)])
    verdict = _verdicts(overall, answered.sum(axis=1))
    return Skills(
        experts,
        classes,
        answered.astype(np.int64),
        means,
        low_by_class,
        high_by_class,
        means @ mix,
        low,
        high,
        verdict,
    )


def shrunk_rates(wrong: Array, answered: NDArray[Any], prior: float = PRIOR) -> Array:
    """The expected error rate of each expert on one class, drawn towards the average of all experts."""
    a, b, weight = _population(wrong, answered, prior)
    means = (a[:, None] + wrong) / ((a + b)[:, None] + answered)
    return np.asarray(weight @ means)


def _population(
    wrong: Array, answered: NDArray[Any], prior: float = PRIOR
) -> tuple[Array, Array, Array]:
    """The beta distributions that experts may come from, and how likely each is after these answers."""
    mean, strength = np.meshgrid(MEANS, STRENGTHS, indexing="ij")
    a, b = (mean * strength).ravel(), ((1 - mean) * strength).ravel()
    right = answered - wrong
    each = betaln(a[:, None] + wrong, b[:, None] + right) - betaln(a, b)[:, None]
    log_weight = each.sum(axis=1) - prior * np.log(strength.ravel())
    weight = np.exp(log_weight - log_weight.max())
    return a, b, weight / weight.sum()


def _draw_rates(wrong: Array, answered: NDArray[Any], luck: np.random.Generator) -> Array:
    """Error rates of the experts on one class, as likely as the answers make them: (DRAWS, n_experts)."""
    a, b, weight = _population(wrong, answered)
    # Evenly spaced places in the distribution of the population: less noise than random ones.
    places = np.searchsorted(np.cumsum(weight), (np.arange(DRAWS) + 0.5) / DRAWS)
    places = np.minimum(places, len(weight) - 1)
    luck.shuffle(places)
    return luck.beta(a[places, None] + wrong, b[places, None] + answered - wrong)


def _verdicts(overall: Array, answers: NDArray[np.int64]) -> tuple[str, ...]:
    n = overall.shape[1]
    if n == 1:
        return (ALIKE if answers[0] >= MIN_ANSWERS else UNKNOWN,)
    others = (overall.sum(axis=1, keepdims=True) - overall) / (n - 1)
    more = (overall > others).mean(axis=0)
    # As many comparisons as experts: each has its share of the errors that are allowed.
    sure = 1 - (1 - LEVEL) / 2 / n
    words = []
    for share, count in zip(more, answers, strict=True):
        if count < MIN_ANSWERS:
            words.append(UNKNOWN)
        else:
            words.append(WORSE if share > sure else BETTER if 1 - share > sure else ALIKE)
    return tuple(words)
