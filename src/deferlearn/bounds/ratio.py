r"""Lower bounds on the submodularity ratio of g, the paper's and sharper ones.

All of them divide a lower bound on one gain by an upper bound on what many removals gain together.

*One gain.* F is a minimum of functions linear in the samples' weights, so deferring j from the kept
set A gains at least :math:`u_j (\alpha |w_A|^2 + h_j)`, with h the hinge loss. With offset, either both
classes have a sample outside the margin, which forces :math:`|w_A| \ge 2 / D` with D the largest distance
between the classes; or one class, of kept weight T, has all its dual variables at their bound, and
then :math:`|w_A| \ge T \Delta_{1/T} / (2 \alpha m_A)`. After n removals T is at least
``s = V_min - n``. Without offset, a sample alone already costs
:math:`\min_w \alpha |w|^2 + h_j \ge \min\{\alpha / \kappa^2, 1/2\}`.

*Many together.* The optimum of what remains, ``(w', b')``, is feasible for A: the gain of L is at most
:math:`\sum_L u_i (\alpha |w'|^2 + h_i)`. Strong duality gives :math:`2 \alpha m |w'|^2 \le \sum a \le m`,
and some sample lies on the margin, so :math:`h_i \le 2 + \text{diameter} |w'|` (without offset
:math:`1 + \kappa |w'|`). It is also at most F(V), because F does not grow when samples leave; a single
removal has ratio 1, so there L has two samples or more.
"""

from dataclasses import dataclass, replace

import numpy as np

from deferlearn._utils.types import Array
from deferlearn._utils.words import counted
from deferlearn.bounds._view import View, parts_of
from deferlearn.bounds.hulls import HullPath
from deferlearn.kernels import WHOLE_GRAM_LIMIT
from deferlearn.objective import SumObjective, SVMObjective
from deferlearn.selection.greedy import check_budget

# A ratio below this multiplies g(OPT) by less than a thousandth: true, and of no use.
USELESS = 1e-3
# Bounds are rounded down by this, so that floating point cannot push them over the true ratio.
ROUND_DOWN = 1.0 - 1e-9


@dataclass(frozen=True)
class RatioBound:
    """One lower bound on the submodularity ratio.

    Attributes
    ----------
    name : str
        Which theorem or argument gives it.
    value : float
        The bound; 0 if nothing is claimed.
    holds : bool
        Whether its condition is met.
    condition : str
        The condition in plain words, with the numbers at hand.
    """

    name: str
    value: float
    holds: bool
    condition: str


@dataclass(frozen=True)
class SubmodularityBound:
    r"""Lower bounds on the submodularity ratio for selections of at most n samples.

    Attributes
    ----------
    n : int
        The budget.
    paper : RatioBound
        The paper's theorem for this kind of SVM.
    stronger : tuple of RatioBound
        Sharper bounds, see `deferlearn.bounds.ratio`.
    best : float
        The largest bound whose condition holds; 0 if there is none.
    vacuous : bool
        Whether `best` is zero or too small to guarantee anything of use.
    words : str
        What it means.
    largest_n : int or None
        The largest budget for which a positive bound is known. With offset and equal weights, this is the
        paper's :math:`V_{\min} - s^*`: a class must keep enough samples for reduced hulls that do not
        meet. Bounds without a condition allow every n. None if no budget has a bound, not even 0.
    """

    n: int
    paper: RatioBound
    stronger: tuple[RatioBound, ...]
    best: float
    vacuous: bool
    words: str
    largest_n: int | None


def submodularity_bound(objective: SVMObjective | SumObjective, n: int) -> SubmodularityBound:
    r"""How close g is to submodular, at least, while no more than n samples are deferred.

    The ratio is the largest :math:`\gamma \le 1` with :math:`\sum_{j \in L} [g(S + j) - g(S)] \ge \gamma
    [g(S \cup L) - g(S)]` for all S of at most n samples and all L disjoint from S. Over *all* S it
    can be zero, which is why every bound for an SVM with offset has a condition on n.

    Parameters
    ----------
    objective : SVMObjective or SumObjective
        In its initial state. The ratio of a sum is at least the smallest ratio of its parts.
    n : int
        The budget: how many samples may be deferred.

    Returns
    -------
    SubmodularityBound

    Notes
    -----
    The paper's theorems are for unit weights. The stronger bounds hold for any weights: with n removals
    a class keeps at least its weight less its n largest weights, which takes the place of ``V_min - n``.

    Examples
    --------
    >>> from deferlearn.bounds import submodularity_bound
    >>> from deferlearn.objective import SumObjective, SVMObjective
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [-1, -1, 1, 1]
    >>> bound = submodularity_bound(SVMObjective(X, y, alpha=1.0, fit_intercept=False), n=2)
    >>> round(bound.paper.value, 4), round(bound.best, 4)
    (0.0208, 0.25)

    With offset, the bounds end where a class may keep too few samples:

    >>> submodularity_bound(SVMObjective(X, y, alpha=1.0), n=2).largest_n
    1
    """
    if isinstance(objective, SumObjective) and len(objective.parts) > 1:
        return _least([submodularity_bound(part, n) for part in objective.parts])
    objective = parts_of(objective)[0]
    view = View.of(objective)
    n = check_budget(objective, n)
    if view.value == 0 or view.n_samples == 1:
        return _nothing_to_bound(view, n)
    largest: int | None = view.n_samples
    if view.problem.hard:
        paper, stronger = _hard(view)
    elif view.problem.offset:
        path = HullPath(view)
        paper, stronger = _with_offset(view, path, n)
        largest = _largest_budget(view, path)
    else:
        paper, stronger = _without_offset(view)
    best = max((b.value for b in (paper, *stronger) if b.holds), default=0.0)
    words = _words(best, n, largest, (*stronger, paper))
    return SubmodularityBound(n, paper, stronger, best, best < USELESS, words, largest)


def _least(found: list[SubmodularityBound]) -> SubmodularityBound:
    """What holds of a sum: the least bound of its parts."""
    at = min(range(len(found)), key=lambda k: found[k].best)
    weakest = found[at]
    words = (
        f"The machine is a sum of {len(found)} two-class machines. Its submodularity ratio is at least "
        f"the smallest of theirs, that of machine {at}. {weakest.words}"
    )
    paper = min((bound.paper for bound in found), key=lambda bound: bound.value)
    limits = [bound.largest_n for bound in found if bound.largest_n is not None]
    largest = min(limits) if len(limits) == len(found) else None
    return replace(weakest, paper=paper, words=words, largest_n=largest)


def _claim(name: str, value: float, holds: bool, condition: str) -> RatioBound:
    value = min(1.0, float(value)) * ROUND_DOWN if holds and value > 0 else 0.0
    return RatioBound(name, value, holds, condition)


def _nothing_to_bound(view: View, n: int) -> SubmodularityBound:
    why = "F(V) = 0, so g is zero" if view.value == 0 else "there is a single sample"
    bound = RatioBound("trivial", 1.0, True, why)
    words = f"The ratio is 1, as for a submodular function: {why}."
    return SubmodularityBound(n, bound, (), 1.0, False, words, view.n_samples)


def _words(best: float, n: int, largest: int | None, bounds: tuple[RatioBound, ...]) -> str:
    if best == 0:
        why = next((b.condition for b in bounds if not b.holds), "")
        text = (
            "No positive bound on the submodularity ratio is known here, so no guarantee against the "
            f"best selection follows from the theory ({why or 'the classes overlap too much'})."
        )
        return text if not largest else f"{text} There is one for budgets of up to {largest}."
    most = f"{counted(n, 'sample')} {'is' if n == 1 else 'are'} deferred"
    start = f"While at most {most}, the submodularity ratio is at least {best:.3g}"
    if best < USELESS:
        return start + ", which is true but vacuous: the guarantee it implies is close to nothing."
    return start + "."


def _hard(view: View) -> tuple[RatioBound, tuple[RatioBound, ...]]:
    two = float(np.sort(view.problem.weight)[:2].sum())
    paper = _paper(view, "hard margin (Proposition)", 1.0 / view.n_samples, True, "always")
    return paper, (_claim("hard margin, two or more removals", two / view.total, True, "always"),)


def _without_offset(view: View) -> tuple[RatioBound, tuple[RatioBound, ...]]:
    alpha, kappa = view.problem.alpha, view.radius
    eta = 2.0 + kappa / np.sqrt(alpha)
    gain = min(_inverse((eta - 2.0) ** 2), 0.5)
    single = np.minimum(
        2.0 * alpha * _inverse_array(view.problem.root**2), 1.0
    )  # best dual variable
    least = float((single - single**2 * view.problem.root**2 / (4.0 * alpha)).min())
    two = float(np.sort(view.problem.weight)[:2].sum())
    together = 1.5 + kappa / np.sqrt(2.0 * alpha)
    paper = _paper(view, "soft margin without offset", gain / (eta + eta**2 / 2), True, "always")
    return paper, (
        _claim("gains one by one", gain / eta, True, "always"),
        _claim("gains one by one, sharper norm", least / together, True, "always"),
        _claim("at most F(V) together", two * least / view.value, True, "always"),
    )  # fmt: skip


def _with_offset(view: View, path: HullPath, n: int) -> tuple[RatioBound, tuple[RatioBound, ...]]:
    alpha, kappa = view.problem.alpha, view.radius
    eta = 2.0 + kappa / np.sqrt(alpha)
    paper = _paper_with_offset(view, path, n, eta)
    least, shares = _kept_weight(view, n)
    smaller = min(view.class_counts)
    if view.unit_weights:
        condition = f"n <= V_min - 1: {n} against {smaller} - 1"
    else:
        condition = (
            f"{n} removals must leave weight in both classes; they leave {max(least, 0.0):.3g}"
        )
    if least <= 0:
        return paper, (_claim("gains one by one", 0.0, False, condition),)
    distance = path.distance(least).lower
    if distance == 0:
        why = f"after {counted(n, 'removal')} the reduced hulls of the classes may still meet"
        return paper, (_claim("gains one by one", 0.0, False, why),)
    diameter, across = view.diameters()
    inside = (distance * least / view.total) ** 2 / (4.0 * alpha)
    numerator = min(inside, _inverse((eta - 2.0) ** 2))
    sharper = min((distance * shares) ** 2 / (4.0 * alpha), 4.0 * alpha * _inverse(across**2))
    two = float(np.sort(view.problem.weight)[:2].sum())
    together = 2.5 + diameter / np.sqrt(2.0 * alpha)
    return paper, (
        _claim("gains one by one", numerator / (2.0 * eta - 1.0), True, condition),
        _claim("at most 2 V_min together", numerator * two / (2.0 * path.largest), True, condition),
        _claim("gains one by one, sharper norm", sharper / together, True, condition),
        _claim("at most F(V) together", sharper * two / view.value, True, condition),
    )


def _largest_budget(view: View, path: HullPath) -> int | None:
    """The most removals after which the reduced hulls of what a class keeps at least are apart."""
    smaller = min(view.class_counts)

    def apart(kept: int) -> bool:
        least, _ = _kept_weight(view, smaller - kept)
        return least > 0 and path.distance(least).lower > 0

    if not apart(smaller):
        return None
    # So it is with most kernels, and the paper's bound asks for this distance, too.
    if not view.linear and apart(1):
        return smaller - 1
    too_few, enough = 0, smaller
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if apart(middle):
            enough = middle
        else:
            too_few = middle
    return smaller - enough


def _kept_weight(view: View, n: int) -> tuple[float, float]:
    """Least weight that n removals leave in a class, and least share of all that is left."""
    least, share = np.inf, np.inf
    for label in (-1.0, 1.0):
        weight = np.sort(view.problem.weight[view.y == label])[::-1]
        kept, gone = float(weight[n:].sum()), float(weight[:n].sum())
        least = min(least, kept)
        share = min(share, kept / max(view.total - gone, 1e-300))
    return float(least), float(share)


def _paper(view: View, name: str, value: float, holds: bool, condition: str) -> RatioBound:
    if not view.unit_weights:
        return _claim(name, 0.0, False, "the paper's theorems are for equal weights")
    return _claim(name, value, holds, condition)


def _paper_with_offset(view: View, path: HullPath, n: int, eta: float) -> RatioBound:
    size, smaller = view.n_samples, min(view.class_counts)
    name = f"soft margin with offset, {'linear' if view.linear else 'kernel'}"
    if not view.unit_weights:
        return _paper(view, name, 0.0, False, "")
    unit = (
        path.largest / smaller
    )  # equal weights other than one: hulls know weights, s counts samples
    many = (
        eta + eta**2 / 2 * (0.5 + np.sqrt(0.25 + 4 * size * (eta - 1) / eta**2)) + (eta - 1) * size
    )
    if view.linear:
        s, found = path.separating(unit)
        if found is None:
            return _paper(
                view, name, 0.0, False, "some reduced hulls must be apart; all of them meet"
            )
        overlap = (found.lower * s / size) ** 2
        holds, condition = n <= smaller - s, f"n <= V_min - s*: {n} against {smaller} - {s}"
    else:
        sigma = (smaller - n) / size
        zeta = path.distance(unit).lower ** 2 if sigma > 0 else 0.0
        overlap = zeta * sigma**2
        holds = n <= smaller - 1 and _full_rank(view)
        condition = f"n < V_min ({n} against {smaller}) and a kernel matrix of full rank"
    numerator = min(overlap / (4.0 * view.problem.alpha), _inverse((eta - 2.0) ** 2))
    return _paper(view, name, numerator / many, holds, condition)


def _full_rank(view: View) -> bool:
    if view.n_samples > WHOLE_GRAM_LIMIT:
        return False  # too large to tell, so nothing is claimed
    eigenvalues = np.linalg.eigvalsh(view.signed_gram())
    noise = view.n_samples * np.finfo(float).eps * eigenvalues[-1]
    return bool(eigenvalues[0] > noise)


def _inverse(x: float) -> float:
    return 1.0 / x if x > 0 else np.inf


def _inverse_array(x: Array) -> Array:
    return np.divide(1.0, x, out=np.full_like(x, np.inf), where=x > 0)
