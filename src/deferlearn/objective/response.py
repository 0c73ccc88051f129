r"""How the samples near the margin respond when a candidate leaves, for all candidates at once.

The dual of A \ k, restricted to a set E near the margin, is ``min 1/2 x'Qx + q_k'x`` subject to
``0 <= x <= u`` and ``y'x = r_k``. Its matrix is the same for every candidate: one factorisation serves
the steps of ADMM on a matrix with one row a candidate. Whatever ADMM has reached is then made exactly
feasible, so that its dual value is a certified lower bound of F(A \ k).

A response, the change of the dual variables that k's leaving calls for, hardly differs from one state
to the next. It is kept with its image under Q: in a new state its dual value costs one sum over E, and
one more for each sample that it would push out of its box. Most candidates are dismissed by that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from deferlearn._utils.compiling import compiled, internal, summing
from deferlearn._utils.threads import side_by_side
from deferlearn.kernels.gram import Array, Index
from deferlearn.objective.cholesky import inverse_of_factor
from deferlearn.objective.state import ROUNDING, State, WorkingSet

# Over-relaxed ADMM (Boyd et al. 2011, section 3.4.3): steps before each look at the bounds,
# relaxation, and the penalty relative to the mean diagonal of Q.
STEPS = (3, 6, 12, 14)
# So few candidates are cheaper to solve exactly than to bound more tightly.
FEW = 3
# Beyond this share of free samples outside of it, a new near set is due.
STALE = 0.25
RELAXATION = 1.6
PENALTY = 0.1
# Candidates at once: bounds the memory of the matrices.
CHUNK = 512


class Response:
    """The restricted dual around one state, for any number of candidates; can move on with the state.

    The matrices depend on the near samples alone, not on the state: after a removal they still serve.
    """

    def __init__(self, state: State, ws: WorkingSet, near: Index) -> None:
        problem = state.problem
        self.near = near
        # All of Q where it is at hand.
        self.whole, self.Q_all = ws.whole, ws.Q if ws.whole else np.empty((0, 0))
        local = ws.position[near]
        self.Q = np.ascontiguousarray(ws.Q[np.ix_(local, local)])
        self.position = np.full(len(problem.y), -1)
        self.position[near] = np.arange(len(near))
        self.penalty = PENALTY * max(float(np.mean(np.diag(self.Q))), 1e-12)
        regular = self.Q.copy()
        regular[np.diag_indices(len(near))] += self.penalty
        self.inverse = _inverse(regular)
        self.shift = np.zeros(len(near))
        if problem.offset:  # the equality takes out one direction
            self.shift = self.inverse @ problem.y[near]
            scale = float(problem.y[near] @ self.shift)
            self.inverse -= np.outer(self.shift, self.shift) / scale
            self.shift /= scale
        self.inverse_sums = self.inverse.sum(axis=0)
        # For each candidate its response, the response's image, ADMM's dual and its rows of Q; kept for
        # the next state, for as many candidates as the memory allows.
        n = len(problem.y)
        self.most = n if self.whole else min(n, problem.gram.kept_entries // len(near))
        self.slot = np.arange(n) if self.whole else np.full(n, -1)
        self._used = 0
        # Free samples for which there was no room.
        self._left_out = int(np.count_nonzero(self.position[state.members] < 0))
        if not self.whole:
            problem.gram.keep_columns(near)
        self._allot(self.most if self.whole else self.most + CHUNK)

    def _allot(self, count: int) -> None:
        # Memory that nobody writes to costs nothing.
        shape = (count, len(self.near))
        self.change, self.image, self.dual = np.empty(shape), np.empty(shape), np.empty(shape)
        self.rows = np.empty(shape)
        self.age = np.full(count, -1)  # states since the image was computed afresh; -1: unknown

    def _reserve(self, ks: Index) -> Index:
        """The places of ks, new ones where there is room; -1 where there is none."""
        new = ks[self.slot[ks] < 0][: self.most - self._used]
        self.slot[new] = np.arange(self._used, self._used + len(new))
        self._used += len(new)
        return self.slot[ks]

    def serves(self, state: State) -> bool:
        """Whether another state's margin is near enough."""
        outside = np.count_nonzero(self.position[state.members] < 0) - self._left_out
        return bool(outside <= STALE * len(state.members))

    def take_over(self, old: Response, state: State) -> None:
        """Begin with the responses of another near set, as far as it was the same."""
        known = np.flatnonzero(state.kept & (old.slot >= 0))
        known = known[old.age[old.slot[known]] >= 0]
        known = known[self._reserve(known) >= 0]
        here = np.flatnonzero(old.position[self.near] >= 0)
        there = old.position[self.near[here]]
        # One matrix after the other, so that there is never more than a set of them.
        del old.image, old.rows
        for ks in chunks(known):
            change = np.zeros((len(ks), len(self.near)))
            change[:, here] = old.change[old.slot[ks]][:, there]
            self.change[self.slot[ks]] = change
        del old.change
        for ks in chunks(known):
            dual = np.tile(-state.G[self.near] / self.penalty, (len(ks), 1))
            dual[:, here] = old.dual[old.slot[ks]][:, there]
            self.dual[self.slot[ks]] = dual
        del old.dual
        for ks in chunks(known):
            slot = self.slot[ks]
            self.image[slot] = self.change[slot] @ self.Q
            self.rows[slot] = self._rows(state, ks)
        self.age[self.slot[known]] = 0

    def bounds(self, state: State, ks: Index, floor: Array, n_jobs: int = 1) -> Array:
        """Upper bounds of the gains of ks, tightened until they are below their floor."""
        slot = self._reserve(ks)
        out = np.empty(len(ks))
        at = np.flatnonzero(slot >= 0)
        out[at] = self._tighten(state, ks[at], slot[at], floor[at], n_jobs)
        for part in chunks(np.flatnonzero(slot < 0)):  # no room: they are forgotten at once
            scratch = self.most + np.arange(len(part))
            self.age[scratch] = -1
            out[part] = self._tighten(state, ks[part], scratch, floor[part], n_jobs)
        return out

    def _tighten(self, state: State, ks: Index, slot: Index, floor: Array, n_jobs: int) -> Array:
        """Whatever n_jobs is, the same parts are worked on in the same way: so are the bounds the same."""
        mu = state.mu_without(ks)
        shared = self.arrays, state.problem.arrays, state.arrays, state.numbers
        if not self.whole:
            for part in chunks(np.flatnonzero(self.age[slot] < 0)):
                self.rows[slot[part]] = self._rows(state, ks[part])

        def first(part: Index) -> Array:
            return carry(ks[part], slot[part], mu[part], *shared)

        out = np.concatenate(
            [np.empty(0), *side_by_side(first, chunks(np.arange(len(ks))), n_jobs)]
        )
        active = np.flatnonzero(out >= floor)
        if len(active) <= FEW < len(ks):
            return out
        parts = chunks(active)
        few = FEW if len(parts) == 1 and len(ks) > FEW else 0

        def then(part: Index) -> Array:
            return respond(ks[part], slot[part], floor[part], mu[part], out[part], few, *shared)

        for part, bounds in zip(parts, side_by_side(then, parts, n_jobs), strict=True):
            out[part] = bounds
        return out

    def _rows(self, state: State, ks: Index) -> Array:
        if self.whole:
            return self.Q_all[np.ix_(ks, self.near)]
        return state.problem.gram.block(ks, self.near)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What compiled code is given: matrices over the near samples, and the kept responses."""
        return (
            self.near, self.position, self.Q, self.inverse, self.inverse_sums, self.shift,
            self.penalty, self.Q_all, self.whole, self.change, self.image, self.dual, self.rows, self.age,
        )  # fmt: skip


def _inverse(matrix: Array) -> Array:
    """Inverse of a positive definite matrix; by Cholesky, three times cheaper than by LU."""
    factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
    if failed:  # a kernel that is indefinite by rounding
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return inverse_of_factor(factor)


def chunks(index: Index) -> list[Index]:
    """Parts of a size that bounds the memory of the matrices."""
    return [index[start : start + CHUNK] for start in range(0, len(index), CHUNK)]


@compiled
def tighten(ks, slot, floor, mu, response, samples, state, numbers):
    """Upper bounds of the gains of ks, tightened until they are below their floor or few are not.

    ``slot`` says where each candidate's response is kept; the tuples are those that `Response`, `Problem`
    and `State` offer.
    """
    out = carry(ks, slot, mu, response, samples, state, numbers)
    active = np.flatnonzero(out >= floor)
    if len(active) == 0 or len(active) <= FEW < len(ks):
        return out
    few = FEW if len(ks) > FEW else 0
    out[active] = respond(
        ks[active], slot[active], floor[active], mu[active], out[active], few,
        response, samples, state, numbers,
    )  # fmt: skip
    return out


@internal
def _near_margin(near, samples, state, numbers):
    """Label, dual variable, image, upper bound and length of the samples near the margin."""
    labels, _, uppers, roots, _, _, _, _ = samples
    a_all, _, G, _, kept, _, _ = state
    beta, mu_now = numbers[0], numbers[1]
    e = len(near)
    y, a, images = np.empty(e), np.empty(e), np.empty(e)
    upper, root = np.empty(e), np.empty(e)
    for i in range(e):
        k = near[i]
        y[i], a[i], root[i] = labels[k], a_all[k], roots[k]
        images[i] = G[k] - labels[k] * beta + mu_now
        upper[i] = uppers[k] if kept[k] else 0.0
    return y, a, images, upper, root


@compiled
def carry(ks, slot, mu, response, samples, state, numbers):
    """Upper bounds of the gains of ks by the responses that they had in the last state."""
    (
        near, position, Q, _, _, _, penalty, Q_all, whole, change, image, duals, rows, age,
    ) = response  # fmt: skip
    labels, _, _, roots, diagonal, _, offset, _ = samples
    a_all, _, G, _, _, members, R = state
    beta, mu_now, total, quadratic, present, value, _, _, _ = numbers
    y, a, images, upper, root = _near_margin(near, samples, state, numbers)
    n, e = len(ks), len(near)
    direction, direction_image = _direction(Q, y, position, members, R, offset)
    out = np.empty(n)
    for c in range(n):
        s, k = slot[c], ks[c]
        if age[s] < 0:  # looked at for the first time
            for i in range(e):
                change[s, i], image[s, i] = 0.0, 0.0
                duals[s, i] = -G[near[i]] / penalty
                if whole:
                    rows[s, i] = Q_all[k, near[i]]
            age[s] = 0
        outer = a_all[k] if position[k] < 0 else 0.0
        good = _carry_over(
            change[s], image[s], Q, y, a, upper, position[k], labels[k] * outer,
            direction, direction_image, offset,
        )  # fmt: skip
        age[s] += 1
        out[c] = value
        if good:
            bound = _upper_bound(
                change[s], image[s], rows[s], images, root, outer, diagonal[k],
                G[k] - labels[k] * beta + mu_now, roots[k], mu[c],
                quadratic, present, total, value, 1.0 + age[s],
            )  # fmt: skip
            out[c] = min(value, bound)
    return out


@compiled
def respond(ks, slot, floor, mu, known, few, response, samples, state, numbers):
    """The bounds that are known, tightened by ADMM until they are below their floor or few are not."""
    (
        near, position, Q, inverse, inverse_sums, shift, penalty, _, _, change, image, duals, rows, age,
    ) = response  # fmt: skip
    labels, _, _, roots, diagonal, _, offset, _ = samples
    a_all, _, G, _, _, _, _ = state
    beta, mu_now, total, quadratic, present, value, _, _, _ = numbers
    y, a, images, upper, root = _near_margin(near, samples, state, numbers)
    e = len(near)
    out = known.copy()
    left = len(ks)
    active = np.arange(left)

    # What does not depend on the candidate comes first.
    owed = 0.0
    linear = images.copy()
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
            target[r, i] = rows[slot[r], i]
    np.dot(target, inverse, x)  # how all respond to one unit of each candidate
    for r in range(left):
        c = active[r]
        s, k = slot[c], ks[c]
        outer = a_all[k] if position[k] < 0 else 0.0
        goal = owed + labels[k] * outer
        for i in range(e):
            z[r, i] = min(max(a[i] + change[s, i], 0.0), upper[i])
            dual[r, i] = duals[s, i]
            constant[r, i] = goal * shift[i] + fixed[i] + outer * x[r, i] + mu[c] * inverse_sums[i]
    for steps in STEPS:
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
            outer = a_all[k] if position[k] < 0 else 0.0
            good = _feasible(z[r], y, a, upper, position[k], owed + labels[k] * outer, offset,
                             target[r])  # fmt: skip
            if not good:
                for i in range(e):
                    target[r, i] = np.nan
        np.dot(target[:left], Q, x[:left])
        going = 0
        for r in range(left):
            c = active[r]
            s, k = slot[c], ks[c]
            outer = a_all[k] if position[k] < 0 else 0.0
            bound = _upper_bound(
                target[r], x[r], rows[s], images, root, outer, diagonal[k],
                G[k] - labels[k] * beta + mu_now, roots[k], mu[c],
                quadratic, present, total, value, 1.0,
            )  # fmt: skip
            if bound < out[c]:  # never true of NaN
                out[c] = bound
                for i in range(e):
                    change[s, i], image[s, i] = target[r, i], x[r, i]
                age[s] = 0
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
def _direction(Q, y, position, members, R, offset):
    """How the free samples near the margin take over one unit of ``y.a``, and the image of that."""
    e = len(y)
    direction, image = np.zeros(e), np.zeros(e)
    if not offset or len(members) == 0:
        return direction, image
    size = 0.0
    for j in range(len(members)):
        i = position[members[j]]
        if i >= 0:
            direction[i] = R[0, 1 + j]
            size += y[i] * R[0, 1 + j]
    if not size > 0.1:  # all of them together make up one; a few that cancel do not
        direction[:] = 0.0
        return direction, image
    for j in range(e):
        direction[j] /= size
        if direction[j] != 0.0:
            for i in range(e):
                image[i] += direction[j] * Q[j, i]
    return direction, image


@summing
def _carry_over(change, image, Q, y, a, upper, own, owed, direction, direction_image, offset):
    """Make the response of an earlier state feasible in this one; False if that did not work."""
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
        if not offset or abs(excess) <= 1e-14 * size:
            return True
        if attempt == 0:
            for i in range(e):
                change[i] -= excess * direction[i]
                image[i] -= excess * direction_image[i]
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
def _feasible(z, y, a, upper, own, goal, offset, change):
    r"""From a point in the box to a change of the dual variables that is feasible for A \ k.

    With an offset the point is shifted along y, clipped to its box, until ``y.a`` meets its goal;
    their sum is piecewise linear and monotone in the shift: Newton steps, kept inside a bracket. Says
    whether it got there.
    """
    e = len(z)
    shift = 0.0
    good = not offset
    if offset:
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
def _upper_bound(
    change, image, row, images, root, outer, diagonal, own_image, own_root, mu,
    quadratic, present, total, value, roundings,
):  # fmt: skip
    """F minus the dual value after a feasible change, less rounding; ``outer``: a_k if not near."""
    added, length = -outer, own_root * outer
    square = outer * outer * diagonal - 2.0 * outer * own_image
    for i in range(len(change)):
        d = change[i]
        added += d
        length += root[i] * abs(d)
        square += d * (image[i] - 2.0 * row[i] * outer + 2.0 * images[i])
    rounding = ROUNDING * roundings
    square += quadratic + rounding * (quadratic + 2.0 * present * length + length * length)
    return value - (total + added - square / (2.0 * mu))
