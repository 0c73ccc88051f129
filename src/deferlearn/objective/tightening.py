r"""Upper bounds of many gains at once, by the responses of the samples near the margin.

The dual of A \ k, restricted to a set E near the margin, is ``min 1/2 x'Qx + q_k'x`` subject to
``0 <= x <= u`` and ``y'x = r_k``. Its matrix is the same for every candidate: one factorisation serves
the steps of ADMM on a matrix with one row per candidate. Whatever ADMM has reached is then made exactly
feasible, so that its dual value is a certified lower bound of F(A \ k).
"""

from typing import NamedTuple

import numpy as np

from deferlearn._utils.compiling import Kernel, compiled, internal, summing
from deferlearn._utils.types import Array
from deferlearn.objective.arrays import (
    FreeSet,
    Near,
    Numbers,
    Point,
    Responses,
    Samples,
    Snapshot,
)
from deferlearn.objective.state import SUM_ROUNDING

# Over-relaxed ADMM (Boyd et al. 2011, section 3.4.3): steps before each look at the bounds, and relaxation.
ADMM_STEPS = (3, 6, 12, 14)
RELAXATION = 1.6
# So few candidates are cheaper to solve exactly than to bound more tightly.
FEW = 4


class Margin(NamedTuple):
    """The samples near the margin in one state."""

    y: Array
    a: Array
    image: Array  # (Qa)_i
    upper: Array  # zero if the sample is not kept
    root: Array
    offset: bool


class Leaving(NamedTuple):
    """A candidate; ``outer`` is its dual variable if it is not near the margin, else zero."""

    outer: float
    diagonal: float
    image: float
    root: float
    mu: float


class Direction(NamedTuple):
    """How the free samples near the margin take over one unit of ``y.a``, and the image of that."""

    change: Array
    image: Array


def _tighten(ks, floor, mu, near, snapshot, out):
    """Upper bounds of the gains of ks, tightened until they are below their floor or few are not.

    There is a row for the response of every sample.
    """
    known = carry(ks, ks, mu, near, snapshot)
    n = 0
    for c in range(len(ks)):
        out[c] = known[c]
        n += known[c] >= floor[c]
    if n == 0 or n <= FEW < len(ks):
        return
    at = np.empty(n, dtype=np.int64)
    n = 0
    for c in range(len(ks)):
        if known[c] >= floor[c]:
            at[n] = c
            n += 1
    few = np.int64(FEW)  # `respond` would be compiled again for the constant
    bounds = respond(ks[at], ks[at], floor[at], mu[at], known[at], few, near, snapshot)
    for i in range(n):
        out[at[i]] = bounds[i]


@internal
def _near_margin(near, snapshot):
    samples, numbers = snapshot.samples, snapshot.numbers
    labels, uppers, roots = samples.y, samples.upper, samples.root
    a_all, G, kept = snapshot.point.a, snapshot.point.G, snapshot.kept
    beta, mu_now = numbers.beta, numbers.mu
    e = len(near)
    y, a, images = np.empty(e), np.empty(e), np.empty(e)
    upper, root = np.empty(e), np.empty(e)
    for i in range(e):
        k = near[i]
        y[i], a[i], root[i] = labels[k], a_all[k], roots[k]
        images[i] = G[k] - labels[k] * beta + mu_now
        upper[i] = uppers[k] if kept[k] else 0.0
    return Margin(y, a, images, upper, root, samples.offset)


@internal
def _leaving(k, mu, near, snapshot):
    samples, a, G = snapshot.samples, snapshot.point.a, snapshot.point.G
    outer = a[k] if near.position[k] < 0 else 0.0
    image = G[k] - samples.y[k] * snapshot.numbers.beta + snapshot.numbers.mu
    return Leaving(outer, samples.diagonal[k], image, samples.root[k], mu)


@internal
def carry(ks, slot, mu, near, snapshot):
    """Upper bounds of the gains of ks by the responses that they had in the last state."""
    responses = near.responses
    change, image, duals = responses.change, responses.image, responses.dual
    rows, age = responses.rows, responses.age
    G, value = snapshot.point.G, snapshot.numbers.value
    margin = _near_margin(near.ks, snapshot)
    n, e = len(ks), len(near.ks)
    direction = _direction(near, margin, snapshot.free)
    out = np.empty(n)
    for c in range(n):
        s, k = slot[c], ks[c]
        if age[s] < 0:  # looked at for the first time
            for i in range(e):
                change[s, i], image[s, i] = 0.0, 0.0
                duals[s, i] = -G[near.ks[i]] / near.penalty
                if responses.whole:
                    rows[s, i] = responses.Q_all[k, near.ks[i]]
            age[s] = 0
        leaving = _leaving(k, mu[c], near, snapshot)
        owed = snapshot.samples.y[k] * leaving.outer
        good = _carry_over(change[s], image[s], near.Q, margin, near.position[k], owed, direction)
        age[s] += 1
        out[c] = value
        if good:
            bound = _upper_bound(
                change[s], image[s], rows[s], margin, leaving, snapshot.numbers, 1.0 + age[s]
            )
            out[c] = min(value, bound)
    return out


@internal
def respond(ks, slot, floor, mu, known, few, near, snapshot):
    """The bounds that are known, tightened by ADMM until they are below their floor or few are not."""
    position, Q, inverse, penalty = near.position, near.Q, near.inverse, near.penalty
    inverse_sums, shift, responses = near.inverse_sums, near.shift, near.responses
    change, image, duals = responses.change, responses.image, responses.dual
    labels = snapshot.samples.y
    margin = _near_margin(near.ks, snapshot)
    y, a, upper = margin.y, margin.a, margin.upper
    e = len(near.ks)
    out = known.copy()
    left = len(ks)
    active = np.arange(left)

    # What does not depend on the candidate comes first.
    owed = 0.0
    linear = margin.image.copy()
    for j in range(e):
        owed += y[j] * a[j]
        for i in range(e):
            linear[i] -= a[j] * Q[j, i]
    fixed = np.zeros(e)
    for j in range(e):
        for i in range(e):
            fixed[i] -= linear[j] * inverse[j, i]
    z, dual, constant = np.empty((left, e)), np.empty((left, e)), np.empty((left, e))
    x, target = np.empty((left, e)), np.empty((left, e))
    for r in range(left):
        for i in range(e):
            target[r, i] = responses.rows[slot[r], i]
    np.dot(target, inverse, x)  # how all respond to one unit of each candidate
    for r in range(left):
        c = active[r]
        s, k = slot[c], ks[c]
        outer = _leaving(k, mu[c], near, snapshot).outer
        goal = owed + labels[k] * outer
        for i in range(e):
            z[r, i] = min(max(a[i] + change[s, i], 0.0), upper[i])
            dual[r, i] = duals[s, i]
            constant[r, i] = goal * shift[i] + fixed[i] + outer * x[r, i] + mu[c] * inverse_sums[i]
    for steps in ADMM_STEPS:
        for _ in range(steps):
            for r in range(left):
                for i in range(e):
                    target[r, i] = penalty * (z[r, i] - dual[r, i])
            np.dot(target[:left], inverse, x[:left])
            for r in range(left):
                own = position[ks[active[r]]]
                for i in range(e):
                    w = RELAXATION * (x[r, i] + constant[r, i])
                    w += (1.0 - RELAXATION) * z[r, i] + dual[r, i]
                    z[r, i] = min(max(w, 0.0), upper[i])
                    dual[r, i] = w - z[r, i]
                if own >= 0:
                    dual[r, own] += z[r, own]
                    z[r, own] = 0.0
        # The points made feasible (in target), and their images (in x).
        for r in range(left):
            k = ks[active[r]]
            outer = _leaving(k, mu[active[r]], near, snapshot).outer
            if not _feasible(z[r], margin, position[k], owed + labels[k] * outer, target[r]):
                for i in range(e):
                    target[r, i] = np.nan
        np.dot(target[:left], Q, x[:left])
        going = 0
        for r in range(left):
            c = active[r]
            s, k = slot[c], ks[c]
            leaving = _leaving(k, mu[c], near, snapshot)
            bound = _upper_bound(
                target[r], x[r], responses.rows[s], margin, leaving, snapshot.numbers, 1.0
            )
            if bound < out[c]:  # never true of NaN
                out[c] = bound
                for i in range(e):
                    change[s, i], image[s, i] = target[r, i], x[r, i]
                responses.age[s] = 0
            for i in range(e):
                duals[s, i] = dual[r, i]
            if out[c] >= floor[c]:
                if going < r:
                    for i in range(e):
                        z[going, i], dual[going, i] = z[r, i], dual[r, i]
                        constant[going, i] = constant[r, i]
                    active[going] = c
                going += 1
        left = going
        if left <= few:
            break
    return out


@internal
def _direction(near, margin, free):
    Q, y, members, R = near.Q, margin.y, free.members, free.R
    e = len(y)
    direction, image = np.zeros(e), np.zeros(e)
    if not margin.offset or len(members) == 0:
        return Direction(direction, image)
    size = 0.0
    for j in range(len(members)):
        i = near.position[members[j]]
        if i >= 0:
            direction[i] = R[0, 1 + j]
            size += y[i] * R[0, 1 + j]
    if not size > 0.1:  # all of them together make up one; a few that cancel do not
        direction[:] = 0.0
        return Direction(direction, image)
    for j in range(e):
        direction[j] /= size
        if direction[j] != 0.0:
            for i in range(e):
                image[i] += direction[j] * Q[j, i]
    return Direction(direction, image)


@summing
def _carry_over(change, image, Q, margin, own, owed, direction):
    """Make the response of an earlier state feasible in this one; False if that did not work."""
    y, a, upper = margin.y, margin.a, margin.upper
    e = len(a)
    moved = np.empty(e)
    for attempt in range(2):
        excess, size = -owed, abs(owed)
        for i in range(e):
            w = min(max(a[i] + change[i], 0.0), upper[i]) - a[i]
            moved[i] = w - change[i]
            change[i] = w
            excess += y[i] * w
            size += a[i]
        if own >= 0:
            excess -= y[own] * (change[own] + a[own])
            moved[own] -= change[own] + a[own]
            change[own] = -a[own]
        for i in range(e):
            # Adding a and taking it away again leaves a rounding, which the bound allows for.
            if abs(moved[i]) > 4e-16 * (a[i] + abs(change[i])):
                for j in range(e):
                    image[j] += moved[i] * Q[i, j]
        if not margin.offset or abs(excess) <= 1e-14 * size:
            return True
        if attempt == 0:
            for i in range(e):
                change[i] -= excess * direction.change[i]
                image[i] -= excess * direction.image[i]
    # Only little is owed now: those with the most room take it.
    for _ in range(8):
        best, most = -1, 0.0
        for i in range(e):
            v = a[i] + change[i]
            room = v if y[i] * excess > 0.0 else upper[i] - v
            if room > most and i != own:
                best, most = i, room
        if best < 0:
            return False
        d = -y[best] * min(most, abs(excess)) * np.sign(excess)
        change[best] += d
        for j in range(e):
            image[j] += d * Q[best, j]
        excess += y[best] * d
        if abs(excess) <= 1e-14 * size:
            return True
    return False


@summing
def _feasible(z, margin, own, goal, change):
    r"""From a point in the box to a change of the dual variables that is feasible for A \ k.

    With an offset the point is shifted along y, clipped to its box, until ``y.a`` meets its goal;
    their sum is piecewise linear and monotone in the shift: Newton steps, kept inside a bracket. Says
    whether it got there.
    """
    y, a, upper = margin.y, margin.a, margin.upper
    e = len(z)
    shift = 0.0
    good = not margin.offset
    if margin.offset:
        size = 0.0
        for i in range(e):
            size += abs(z[i])
        low, high = -np.inf, np.inf
        for _ in range(60):
            excess, moving = -goal, 0
            for i in range(e):
                v = min(max(z[i] - y[i] * shift, 0.0), upper[i])
                if i != own:
                    excess += y[i] * v
                    moving += 0.0 < v < upper[i]
            if abs(excess) <= 1e-14 * size:
                good = True
                break
            if excess > 0.0:
                low = shift
            else:
                high = shift
            trial = shift + excess / max(moving, 1)
            if not low < trial < high:  # where a side is still open, no step passes it
                trial = (low + high) / 2
            if trial == shift or not np.isfinite(trial):
                break
            shift = trial
    for i in range(e):
        change[i] = min(max(z[i] - y[i] * shift, 0.0), upper[i]) - a[i]
    if own >= 0:
        change[own] = -a[own]
    return good


@summing
def _upper_bound(change, image, row, margin, leaving, numbers, roundings):
    """F minus the dual value after a feasible change, less rounding."""
    images, root, outer = margin.image, margin.root, leaving.outer
    quadratic, total = numbers.quadratic, numbers.total
    added, length = -outer, leaving.root * outer
    square = outer * outer * leaving.diagonal - 2.0 * outer * leaving.image
    for i in range(len(change)):
        d = change[i]
        added += d
        length += root[i] * abs(d)
        square += d * (image[i] - 2.0 * row[i] * outer + 2.0 * images[i])
    rounding = SUM_ROUNDING * roundings
    square += quadratic + rounding * (quadratic + 2.0 * numbers.present * length + length * length)
    return numbers.value - (total + added - square / (2.0 * leaving.mu))


@compiled
def carry_all(ks, slot, mu, near, snapshot, out):
    """`carry` for callers in Python."""
    out[:] = carry(ks, slot, mu, near, snapshot)


@compiled
def respond_all(ks, slot, floor, mu, known, few, near, snapshot, out):
    """`respond` for callers in Python."""
    out[:] = respond(ks, slot, floor, mu, known, few, near, snapshot)


def _example():
    numbers, matrix = np.zeros(1), np.zeros((1, 1))
    index = np.zeros(1, dtype=np.int64)
    responses = Responses(matrix, matrix, matrix, matrix, index, matrix, True)
    near = Near(index, index, matrix, matrix, numbers, numbers, 0.0, responses)
    samples = Samples(numbers, numbers, numbers, numbers, numbers, 0.0, True, False)
    point = Point(numbers, numbers, numbers, np.zeros(1, dtype=np.int8))
    kept = np.zeros(1, dtype=np.bool_)
    snapshot = Snapshot(samples, point, kept, FreeSet(index, matrix), Numbers(*[0.0] * 9))
    return (index, numbers, numbers, near, snapshot, numbers), None


TIGHTEN = Kernel(_tighten, _example)
