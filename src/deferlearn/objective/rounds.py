r"""Round after round of a greedy selection in one compiled call.

In a round the candidate with the largest score ``omega * gain - cost`` is found, provably, and removed.
On a few thousand samples, what lies between the parts of a round would take longer than the parts. So the
state moves on inside this call, as long as nothing unusual happens.

Only the samples of an *arena* move. Where it does not hold every sample, the others stay at their bounds:
a round counts only if their conditions hold at its end and none of them can have a better score, by
how far the machine can have moved since the arena was made (Cauchy and Schwarz).

Upper bounds: an offset requires ``y.a = 0``, so a sample cannot simply leave. The free samples make up for
it, in one way for positive and in another way for negative samples (`Relief`). This gives a dual point
without sample k in closed form. The point does not depend on where k lies, so the bound is not tight: the
smaller alpha is, the more candidates are left for `tightening`, and in the end for paths.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from deferlearn._utils.compiling import compiled, internal
from deferlearn._utils.types import Array, Bools, Index
from deferlearn.objective.arrays import (
    Candidates,
    FreeSet,
    Near,
    Numbers,
    Outsiders,
    Point,
    Responses,
    Samples,
    Snapshot,
    Start,
    Working,
)
from deferlearn.objective.path import DONE, FOLLOW, OUT, STEP_ROUNDING, Drift
from deferlearn.objective.removal import REMOVE, End, copy_start
from deferlearn.objective.state import SUM_ROUNDING
from deferlearn.objective.tightening import FEW, TIGHTEN

# Why the rounds ended.
ALL_DONE = 0
STALE = 1  # bounds must be tighter, and the samples that respond are no longer near the margin
OUTSIDE = 2  # a sample outside of the arena matters
UNUSUAL = 3  # the caller has to make this round in another way

# Scores this close to the best, relative, may be ties for the caller: they are solved too.
CLOSE = 1e-8
# At most this many exact solutions in one round: for more, the caller has better means.
MOST_SOLVED = 1000
# Bound samples that paths look at: a multiple of the free ones, and at least this many.
INNER, LEAST_INNER = 1, 96
# If more than this share of the free samples is outside of the near set, a new one is chosen.
STALE_SHARE = 0.25
# The relative imbalance of a relief above which it is more than rounding.
BALANCED = 1e-14
# Rounding of a product of two lengths, relative, with room to spare.
PRODUCT_ROUNDING = 1e-12


class Arena(NamedTuple):
    """The samples that may move, what each costs, and which of them may be removed."""

    Q: Array
    rows: Array  # of X, signed, for the linear kernel; no columns if they are not at hand
    samples: Samples
    names: Index  # their numbers among all samples
    cost: Array
    allowed: Bools
    kept: Bools


class Inner(NamedTuple):
    """The samples of the arena that the paths of a round look at, and their places among these."""

    ids: Index
    place: Index  # of each sample of the arena; -1 if it is not among them
    working: Working


class Bystanders(NamedTuple):
    """The kept samples outside of the arena, at their bounds.

    G is what it was when the arena was made or, where the rows are at hand, what it is now.
    """

    rows: Array
    y: Array
    root: Array
    diagonal: Array
    weight: Array
    a: Array
    G: Array
    cost: Array
    allowed: Bools


class Plan(NamedTuple):
    """For each round omega, and the smallest and largest omega for which its pick may be asked for."""

    omega: Array
    lowest: Array
    highest: Array
    drawn: Index  # one row of candidates per round; no columns: every sample that is allowed

    def after(self, count: int) -> "Plan":
        """What is left after some rounds."""
        return Plan(
            self.omega[count:], self.lowest[count:], self.highest[count:], self.drawn[count:]
        )


class Record(NamedTuple):
    """What happened in each round; the pick is the best for every omega from ``low`` to ``high``."""

    pick: Index
    gain: Array
    low: Array
    high: Array
    n_candidates: Index
    n_exact: Index
    value: Array  # of the state after the round


class Moving(NamedTuple):
    """The numbers of a state that moves."""

    p: int
    beta: float
    mu: float
    total: float
    quadratic: float
    length: float  # the sum of the lengths of the a_i's images
    weight: float  # of the kept samples
    negative: int  # how many are kept
    positive: int
    gap: float
    blur: float
    far: float  # at most how far mu w is from where it was when the arena was made


class Then(NamedTuple):
    """The state in which the G of the bystanders was computed, and how far the machine can be from it."""

    beta: float
    mu: float
    far: float  # before the round
    reach: float  # after it


class Terms(NamedTuple):
    """What counts as exact: the relative duality gap, the scores that tie, the most steps of a path."""

    gap: float
    tie: float
    unit: float  # what ties are relative to, if not to the score
    most_steps: int


class Stop(NamedTuple):
    """How many rounds were made, why they ended, where the state is, and the work that it took."""

    rounds: int
    why: int
    p: int
    beta: float
    n_paths: int
    n_steps: int


class Relief(NamedTuple):
    """How one unit of ``y.a`` is made up for: the change of a, in numbers, and its image under Q."""

    there: bool
    unit: float
    added: float
    cross: float  # a'Q change
    square: float
    length: float
    image: Array
    touched: Bools
    vector: Array  # the image in feature space, where the rows are at hand


@internal
def _relief(there, start, unit, arena, inner, by, most_steps, end_point, end_free, drift):
    """Let the free samples make up for ``unit`` of y.a."""
    e = len(arena.names)
    d_rows = arena.rows.shape[1]
    image, touched, vector = np.zeros(e), np.zeros(e, dtype=np.bool_), np.zeros(d_rows)
    if not there:
        return Relief(False, unit, 0.0, 0.0, 0.0, 0.0, image, touched, vector)
    # All free samples move together, in closed form; by a path if one of them would pass a bound.
    good, owed = start.p > 0, unit
    for i in range(len(inner.ids)):
        end_point.a[i] = start.point.a[i]
    for r in range(start.p):
        i = start.free.members[r]
        end_point.a[i] += unit * start.free.R[1 + r, 0]
        good &= 0.0 <= end_point.a[i] <= start.working.upper[i]
        owed -= start.working.y[i] * (end_point.a[i] - start.point.a[i])
    if not good or abs(owed) > BALANCED * abs(unit):
        copy_start(start, end_point, end_free)
        for i in range(len(drift.G)):
            drift.G[i] = 0.0
        moving = Drift(drift.G, drift.G_lo, unit, 0.0)
        end = by(start.working, end_point, start.beta, end_free, start.p, moving, most_steps)
        good = end.outcome == DONE
    y, root = start.working.y, start.working.root
    added, cross, length = 0.0, 0.0, 0.0
    for i in range(len(inner.ids)):
        d = end_point.a[i] - start.point.a[i]
        if d != 0.0:
            touched[inner.ids[i]] = True
            added += d
            cross += d * (start.point.G[i] - y[i] * start.beta + start.mu)
            length += abs(d) * root[i]
            row = arena.Q[inner.ids[i]]
            for j in range(e):
                image[j] += d * row[j]
            for j in range(d_rows):
                vector[j] += d * arena.rows[inner.ids[i], j]
    square = 0.0
    for i in range(len(inner.ids)):
        square += (end_point.a[i] - start.point.a[i]) * image[inner.ids[i]]
    return Relief(good, unit, added, cross, max(square, 0.0), length, image, touched, vector)


@internal
def _upper_bound(numbers, relief, a, root, diagonal, image, relieved, mu):
    """An upper bound of the gain of a sample that leaves while ``relief`` makes up for it; at most F."""
    share = a / abs(relief.unit) if a > 0.0 and relief.unit != 0.0 else 0.0
    total = numbers.total + share * relief.added - a
    square = numbers.quadratic + share * (2.0 * relief.cross + share * relief.square)
    square += a * (a * diagonal - 2.0 * (image + share * relieved))
    length = a * root + share * relief.length
    square += SUM_ROUNDING * (numbers.quadratic + length * (2.0 * numbers.present + length))
    return min(numbers.value, numbers.value - (total - square / (2.0 * mu)))


@internal
def _numbers(moving):
    value = moving.total - moving.quadratic / (2.0 * moving.mu)
    slack = SUM_ROUNDING * (moving.total + value) + moving.gap / moving.mu
    present = np.sqrt(max(moving.quadratic, 0.0)) + moving.length
    return Numbers(
        moving.beta, moving.mu, moving.total, moving.quadratic, present, value,
        moving.beta, moving.beta, slack,
    )  # fmt: skip


@internal
def _floor(gain, own_cost, unit, cost, omega):
    """The smallest gain with which a sample may have the largest score, or one that ties with it."""
    best = omega * gain - own_cost
    goal = best - CLOSE * max(unit, abs(best))
    return (goal + cost) / omega


@internal
def _narrow(low, high, gain, cost, bound, other_cost, unit):
    """The omegas from low to high for which this gain scores more than another of at most ``bound``."""
    ahead = gain - bound
    needed = cost - other_cost + CLOSE * max(unit, gain + cost)
    if ahead > 0.0:
        low = max(low, needed / ahead)
    elif needed > 0.0:
        low = np.inf
    elif ahead < 0.0:
        high = min(high, needed / ahead)
    return low, high


@internal
def _stale(near, members, p):
    """Whether too many free samples are not among those that respond."""
    missing = 0
    for i in range(p):
        missing += near.position[members[i]] < 0
    return len(near.ks) == 0 or missing > STALE_SHARE * p


@internal
def _room(e, free):
    point = Point(np.empty(e), np.zeros(e), np.empty(e), np.empty(e, dtype=np.int8))
    return point, FreeSet(np.empty_like(free.members), np.empty_like(free.R))


@internal
def _within(distance, reach):
    count = 0
    for i in range(len(distance)):
        count += distance[i] <= reach
    return count


@internal
def _choose_inner(arena, point, members, p, size):
    """The free samples and, of the others, about ``size`` that are closest to the margin."""
    samples = arena.samples
    e = len(arena.names)
    distance = np.empty(e)
    furthest = 0.0
    for i in range(e):
        distance[i] = abs(point.G[i]) / max(samples.root[i], 1e-3)
        if point.status[i] == OUT:
            distance[i] = np.inf
        else:
            furthest = max(furthest, distance[i])
    for i in range(p):
        distance[members[i]] = -1.0
    near, reach, furthest_yet = 0.0, furthest, furthest
    for _ in range(60):  # by halving: a little more or less is as good
        count = _within(distance, reach) - p
        if count <= size and (reach == furthest or count >= 0.8 * size):
            break
        if count > size:
            furthest_yet = reach
            reach = (near + reach) / 2.0
        else:
            near, reach = reach, (reach + furthest_yet) / 2.0
    w = _within(distance, reach)
    ids, place = np.empty(w, dtype=np.int64), np.full(e, -1)
    w = 0
    for i in range(e):
        if distance[i] <= reach:
            ids[w] = i
            place[i] = w
            w += 1
    Q = np.empty((w, w))
    y, upper, root = np.empty(w), np.empty(w), np.empty(w)
    for i in range(w):
        y[i], upper[i], root[i] = samples.y[ids[i]], samples.upper[ids[i]], samples.root[ids[i]]
        row = arena.Q[ids[i]]
        for j in range(w):
            Q[i, j] = row[ids[j]]
    return Inner(ids, place, Working(Q, y, upper, root, samples.offset))


@compiled
def advance(
    arena, bystanders, plan, point, free, moving, near, terms, record, by, remove, tighten
):  # fmt: skip
    """Make the rounds of a plan, as many as possible, and change the state in place.

    ``by``, ``remove`` and ``tighten`` are the addresses of `path.FOLLOW`, `removal.REMOVE` and
    `tightening.TIGHTEN`.
    """
    samples, cost, allowed, kept = arena.samples, arena.cost, arena.allowed, arena.kept
    y, weight, upper, root = samples.y, samples.weight, samples.upper, samples.root
    alpha, offset = samples.alpha, samples.offset
    a, G, status, members = point.a, point.G, point.status, free.members
    e = len(arena.names)
    lower, higher, floor = np.empty(e), np.empty(e), np.empty(e)
    mu_new, new_G = np.empty(e), np.empty(e)
    solved = np.zeros(e, dtype=np.bool_)
    everything = np.arange(e)
    beta_then, mu_then = moving.beta, moving.mu
    d_rows = arena.rows.shape[1]
    step, out_G = np.empty(d_rows), np.empty(len(bystanders.y))
    n_paths, n_steps, rounds = 0, 0, 0
    why, fresh, size = ALL_DONE, True, 0
    one, one_number = np.zeros(1, dtype=np.int64), np.zeros((8, 1))
    while rounds < len(plan.omega):
        # The inner set is chosen once for several rounds; after a failure it grows.
        if fresh:
            size = max(size, INNER * moving.p, LEAST_INNER)
            inner = _choose_inner(arena, point, members, moving.p, size)
            w = len(inner.ids)
            trial, trial_free = _room(w, free)
            found, found_free = _room(w, free)
            here, here_free = _room(w, free)
            column, no_column = np.zeros((1, w)), np.zeros((1, w))
            drift = Drift(np.empty(w), np.zeros(w), 0.0, 0.0)
            fresh = False
        w = len(inner.ids)
        for i in range(w):
            here.a[i], here.G[i] = a[inner.ids[i]], G[inner.ids[i]]
            here.status[i] = status[inner.ids[i]]
        for i in range(moving.p):
            here_free.members[i] = inner.place[members[i]]
        start = Start(
            inner.working, here, FreeSet(here_free.members, free.R), moving.p, moving.beta,
            moving.mu, moving.quadratic, moving.blur,
        )  # fmt: skip
        omega = plan.omega[rounds]
        numbers = _numbers(moving)
        value, slack = numbers.value, numbers.slack
        asked = everything if plan.drawn.shape[1] == 0 else plan.drawn[rounds]
        # Lower bounds, and the most promising candidate.
        at: Any = -1
        count, largest = 0, 0.0
        for k in asked:
            if not allowed[k]:
                continue
            count += 1
            solved[k] = False
            mu_new[k] = 2.0 * alpha * (moving.weight - weight[k])
            hinge = max(0.0, -G[k]) / moving.mu
            lower[k] = weight[k] * (alpha * moving.quadratic / moving.mu**2 + hinge)
            lower[k] = max(min(lower[k], value) - slack, 0.0)
            largest = max(largest, upper[k])
            if at < 0 or omega * lower[k] - cost[k] > omega * lower[at] - cost[at]:
                at = k
        # Removals that leave nothing, or with an offset one class, have no path.
        left = moving.negative + moving.positive
        if offset:
            left = min(moving.negative, moving.positive)
        if count == 0 or left <= 1:
            why = UNUSUAL
            break
        plus = _relief(
            offset, start, largest, arena, inner, by, terms.most_steps, trial, trial_free, drift
        )
        minus = _relief(
            offset, start, -largest, arena, inner, by, terms.most_steps, trial, trial_free, drift
        )
        # Not -1 alone: the number would be a type of its own, for which `_bound_others` is compiled again.
        best_at, best_gain, best_score, n_solved = np.int64(-1), 0.0, -np.inf, 0
        best_end = End(DONE, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        decided, small = False, False
        while True:
            one[0] = inner.place[at]
            if one[0] < 0:
                one_number[0, 0], one_number[2, 0] = samples.diagonal[at], a[at]
                one_number[4, 0], one_number[5, 0] = y[at], G[at]
                row = arena.Q[at]
                for i in range(w):
                    column[0, i] = row[inner.ids[i]]
            outside = Outsiders(
                one_number[0], one_number[1], one_number[2], one_number[3], one_number[4],
                one_number[5], column, no_column,
            )  # fmt: skip
            one_number[6, 0] = mu_new[at]
            candidate = Candidates(one, one, one_number[6], outside)
            end = remove(start, candidate, 0, terms.most_steps, by, trial, trial_free, drift)
            n_solved += 1
            n_steps += end.steps
            if end.outcome != DONE or end.gap > terms.gap * max(1.0, value) * mu_new[at]:
                small = True
                break
            solved[at] = True
            lower[at] = higher[at] = min(max(end.gain, 0.0), value)
            score = omega * lower[at] - cost[at]
            if decided or score > best_score:
                trial, found = found, trial
                trial_free, found_free = found_free, trial_free
                best_at, best_gain, best_score, best_end = at, lower[at], score, end
            if decided:
                break
            if best_score <= 0.0:
                why = UNUSUAL  # no pick; there may be one in later rounds, with a larger omega
                break
            if n_solved == 1:
                why = _bound_others(
                    asked, omega, plan.lowest[rounds], plan.highest[rounds], best_at, arena, point,
                    free, kept, moving, numbers, plus, minus, near, tighten, terms.unit, mu_new, solved,
                    lower, higher, floor,
                )  # fmt: skip
                if why != ALL_DONE:
                    break
            # The next to solve is the one with the largest upper score.
            at, most = -1, -np.inf
            for k in asked:
                if allowed[k] and not solved[k] and omega * higher[k] - cost[k] > most:
                    enough = _floor(best_gain, cost[best_at], terms.unit, cost[k], omega) - slack
                    if higher[k] >= enough:
                        at, most = k, omega * higher[k] - cost[k]
            if at < 0:  # of scores that tie the smallest index wins
                at = best_at
                tie = terms.tie * max(terms.unit, abs(best_score))
                for k in asked:
                    if allowed[k] and solved[k] and arena.names[k] < arena.names[at]:
                        score = omega * lower[k] - cost[k]
                        if score >= best_score - tie and score > 0.0:
                            at = k
                if at == best_at:
                    break
                decided = True
            elif n_solved >= MOST_SOLVED:
                why = UNUSUAL
                break
        n_paths += n_solved
        if why != ALL_DONE:
            break

        # The winner's end must be optimal for the samples of the arena that did not move, too.
        gap, blur = best_end.gap, best_end.blur
        if not small:
            shift = mu_new[best_at] - moving.mu
            for j in range(e):
                new_G[j] = G[j] + y[j] * (best_end.beta - moving.beta) - shift
            changed = 0.0
            for j in range(d_rows):
                step[j] = 0.0
            for i in range(w + 1):
                at = best_at
                d = -a[at] if inner.place[at] < 0 else 0.0
                if i < w:
                    at = inner.ids[i]
                    d = found.a[i] - here.a[i]
                if d != 0.0:
                    changed += abs(d) * root[at]
                    row = arena.Q[at]
                    for j in range(e):
                        new_G[j] += d * row[j]
                    for j in range(d_rows):
                        step[j] += d * arena.rows[at, j]
            longest = 0.0
            for j in range(e):
                longest = max(longest, root[j])
            blur += STEP_ROUNDING * changed * longest
            for j in range(e):
                if inner.place[j] < 0 and kept[j] and j != best_at:
                    if new_G[j] > 0.0:
                        gap += a[j] * new_G[j]
                    else:
                        gap -= (upper[j] - a[j]) * new_G[j]
                    gap += blur * max(a[j], upper[j] - a[j])
            small = gap > terms.gap * max(1.0, value) * mu_new[best_at]
        if small:
            # A set of all that may be in it does not grow, however many are asked for.
            if size >= e or size >= 2 * w:
                why = UNUSUAL
                break
            size, fresh = 2 * w, True
            continue

        # For which other omegas is it the best?
        low, high = cost[best_at] / best_gain * (1.0 + CLOSE), np.inf
        for k in asked:
            if allowed[k] and k != best_at:
                low, high = _narrow(
                    low, high, best_gain, cost[best_at], higher[k], cost[k], terms.unit
                )
        reach = moving.far + best_end.moved * (1.0 + PRODUCT_ROUNDING)
        if d_rows > 0:
            reach = blur
        then = Then(beta_then, mu_then, moving.far, reach)
        low, high, fits = _stand_by(
            bystanders, step, out_G, moving, numbers, plus, minus, best_end, mu_new[best_at], then,
            offset, alpha, omega, best_gain, cost[best_at], terms.unit, low, high,
        )  # fmt: skip
        if not fits:
            why = OUTSIDE
            break

        # The state moves on.
        length = moving.length
        if inner.place[best_at] < 0:
            length -= a[best_at] * root[best_at]
            a[best_at], status[best_at] = 0.0, OUT
        for i in range(w):
            j = inner.ids[i]
            length += (found.a[i] - a[j]) * root[j]
            a[j], status[j] = found.a[i], found.status[i]
        for j in range(e):
            G[j] = new_G[j]
        for i in range(w):
            G[inner.ids[i]] = found.G[i]
        for i in range(best_end.p):
            members[i] = inner.ids[found_free.members[i]]
        q = best_end.p + (1 if offset else 0)
        for i in range(q):
            for j in range(q):
                free.R[i, j] = found_free.R[i, j]
        allowed[best_at] = False
        kept[best_at] = False
        positive = 1 if y[best_at] > 0.0 else 0
        moving = Moving(
            best_end.p, best_end.beta, mu_new[best_at], moving.total + best_end.added,
            moving.quadratic + best_end.squared, length, moving.weight - weight[best_at],
            moving.negative - (1 - positive), moving.positive - positive, gap,
            blur, reach,
        )  # fmt: skip
        if d_rows > 0:
            beta_then, mu_then = moving.beta, moving.mu
            for i in range(len(out_G)):
                bystanders.G[i] = out_G[i]
        record.pick[rounds], record.gain[rounds] = best_at, best_gain
        record.low[rounds], record.high[rounds] = min(low, omega), max(high, omega)
        if not low <= omega <= high:
            record.low[rounds] = record.high[rounds] = omega
        # A tie that is decided is solved once more, to have its end.
        record.n_candidates[rounds] = count
        record.n_exact[rounds] = n_solved - 1 if decided else n_solved
        record.value[rounds] = _numbers(moving).value
        rounds += 1
    return rounds, why, moving.p, moving.beta, n_paths, n_steps


@internal
def _bound_others(
    asked, omega, lowest, highest, best_at, arena, point, free, kept, moving, numbers, plus, minus, near,
    tighten, unit, mu_new, solved, lower, higher, floor,
):  # fmt: skip
    """Upper bounds of the gains of all other candidates, tighter if the closed form leaves many."""
    samples, cost, allowed = arena.samples, arena.cost, arena.allowed
    y, root, diagonal = samples.y, samples.root, samples.diagonal
    value, slack, gain = numbers.value, numbers.slack, lower[best_at]
    n_open = 0
    for k in asked:
        if not allowed[k] or solved[k]:
            continue
        relief = plus if y[k] > 0.0 else minus
        a = point.a[k]
        higher[k] = value
        if a == 0.0 or not samples.offset or (relief.there and not relief.touched[k]):
            image = point.G[k] - y[k] * moving.beta + moving.mu
            bound = _upper_bound(
                numbers, relief, a, root[k], diagonal[k], image, relief.image[k], mu_new[k]
            )
            higher[k] = min(value, bound + slack)
        lower[k] = min(lower[k], higher[k])
        # Which scores can matter, for this omega or the outermost ones?
        own = _floor(gain, cost[best_at], unit, cost[k], omega) - slack
        if a == 0.0 and higher[k] >= own:
            return UNUSUAL  # such candidates share one path, which the caller follows
        floor[k] = min(own, _floor(gain, cost[best_at], unit, cost[k], lowest) - slack)
        floor[k] = min(floor[k], _floor(gain, cost[best_at], unit, cost[k], highest) - slack)
        if higher[k] >= floor[k] and a > 0.0:
            n_open += 1
    if n_open <= FEW:
        return ALL_DONE
    if _stale(near, free.members, moving.p):
        return STALE
    open_, bounds = np.empty(n_open, dtype=np.int64), np.empty(n_open)
    floors, mus = np.empty(n_open), np.empty(n_open)
    i = 0
    for k in asked:
        if allowed[k] and not solved[k] and higher[k] >= floor[k] and point.a[k] > 0.0:
            open_[i], floors[i], mus[i] = k, floor[k], mu_new[k]
            i += 1
    members = FreeSet(free.members[: moving.p], free.R)
    tighten(open_, floors, mus, near, Snapshot(samples, point, kept, members, numbers), bounds)
    for i in range(n_open):
        k = open_[i]
        higher[k] = min(higher[k], bounds[i] + slack)
        lower[k] = min(lower[k], higher[k])
    return ALL_DONE


@internal
def _stand_by(
    bystanders, step, out_G, moving, numbers, plus, minus, end, mu, then, offset, alpha, omega, gain,
    cost, unit, low, high,
):  # fmt: skip
    """Narrow the omegas, and say whether the samples outside stay, and none of them has a better score.

    ``out_G`` becomes their G at the end of the round, up to how far the machine can have moved it.
    """
    y, root, a, rows = bystanders.y, bystanders.root, bystanders.a, bystanders.rows
    for i in range(len(y)):
        G = bystanders.G[i] + y[i] * (end.beta - then.beta) - (mu - then.mu)
        for j in range(len(step)):
            G += rows[i, j] * step[j]
        out_G[i] = G
        if (G + root[i] * then.reach > 0.0) if a[i] > 0.0 else (G - root[i] * then.reach < 0.0):
            return low, high, False
        if not bystanders.allowed[i]:
            continue
        relief = plus if y[i] > 0.0 else minus
        bound = numbers.value
        if a[i] == 0.0 or relief.there or not offset:
            image = bystanders.G[i] - y[i] * then.beta + then.mu - root[i] * then.far
            mu_without = 2.0 * alpha * (moving.weight - bystanders.weight[i])
            relieved = -root[i] * np.sqrt(relief.square)
            if len(step) > 0 and a[i] > 0.0:
                relieved = 0.0
                for j in range(len(step)):
                    relieved += rows[i, j] * relief.vector[j]
            bound = numbers.slack + _upper_bound(
                numbers, relief, a[i], root[i], bystanders.diagonal[i], image, relieved, mu_without
            )
        if bound >= _floor(gain, cost, unit, bystanders.cost[i], omega):
            return low, high, False
        low, high = _narrow(low, high, gain, cost, bound, bystanders.cost[i], unit)
    return low, high, True


def compile_rounds() -> None:
    """Compile `advance` for the types with which `stage` calls it, without any data."""
    numbers, matrix = np.zeros(1), np.zeros((1, 1))
    index, mask = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.bool_)
    samples = Samples(numbers, numbers, numbers, numbers, numbers, 0.0, True, False)
    arena = Arena(matrix, matrix, samples, index, numbers, mask, mask)
    bystanders = Bystanders(
        matrix, numbers, numbers, numbers, numbers, numbers, numbers, numbers, mask
    )
    plan = Plan(numbers, numbers, numbers, index.reshape(1, 1))
    point = Point(numbers, numbers, numbers, np.zeros(1, dtype=np.int8))
    moving = Moving(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0, 0.0, 0.0)
    responses = Responses(matrix, matrix, matrix, matrix, index, matrix, True)
    near = Near(index, index, matrix, matrix, numbers, numbers, 0.0, responses)
    record = Record(index, numbers, numbers, numbers, index, index, numbers)
    arguments = (
        arena, bystanders, plan, point, FreeSet(index, matrix), moving, near, Terms(0.0, 0.0, 0.0, 0),
        record, FOLLOW.stand_in, REMOVE.stand_in, TIGHTEN.stand_in,
    )  # fmt: skip
    advance.compile(tuple(typeof(argument) for argument in arguments))
