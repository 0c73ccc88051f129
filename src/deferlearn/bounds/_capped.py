r"""A lower bound of ``F(V \ S) + c(S)`` from a convex SVM with capped losses.

For a machine (w, b) with hinge losses ``h_i``, the best S of at most n samples costs, for every
:math:`\tau \ge 0`,

.. math::

    \min_{|S| \le n} \sum_{i \notin S} u_i h_i + c(S) \ge \sum_i \min\{u_i h_i, c_i + \tau\} - n \tau .

Where the machine is known to satisfy :math:`y_i f(x_i) \ge -B_i`, a capped hinge is at least
:math:`\theta_i h_i` with :math:`\theta_i = \min\{u_i, (c_i + \tau) / (1 + B_i)\}`: the cost is at least that of an SVM with
box :math:`\theta`, which the engine solves, less :math:`n \tau`. The bound is concave in :math:`\tau`. For a hard
margin a kept sample costs nothing or too much, so :math:`\theta_i` needs no cap.

Only machines that beat the incumbent matter, and that SVM is strongly convex: they lie in a ball
around its solution, which gives better ``B_i``, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deferlearn.bounds._view import View
from deferlearn.kernels import Array
from deferlearn.objective.state import State

# Ranges of |S| that are bounded one by one: mu depends on the size, and a range takes its worst.
RANGES = 8
# Rounds of tightening the machines' limits, and evaluations of tau in each.
ROUNDS = 12
TAU_STEPS = 12
# A round that lowers no limit by this share is the last.
PROGRESS = 1e-2
# Room for rounding in limits that were derived from verified solutions.
SAFETY = 1e-7


@dataclass
class _Cap:
    """Machines with ``y_i f(x_i) >= -limit_i``; sizes up to `size`."""

    view: View
    loss: Array
    size: int
    left: float  # least kept weight
    limit: Array

    def evaluate(self, tau: float, start: State | None) -> tuple[float, float, State]:
        """The bound, its slope in tau, and the SVM behind it."""
        view, weight = self.view, self.view.problem.weight
        steep = 1.0 + self.limit
        uncut = steep <= 0  # never inside the margin: its hinge is zero
        ratio = (self.loss + tau) / np.where(uncut, 1.0, steep)
        box = np.where(uncut, weight, ratio if view.problem.hard else np.minimum(weight, ratio))
        mu = 2.0 * view.problem.alpha * self.left
        if box.max() <= 0:
            # All losses and tau are zero: nothing is charged, and any tau raises the bound.
            return 0.0, np.inf, start if start is not None else view.solve(weight, mu)
        state = view.solve(box, mu, start)
        hinge = np.maximum(0.0, 1.0 - self.margins(state)[0])
        moving = ~uncut & ((box < weight) | view.problem.hard)
        slope = float((hinge[moving] / steep[moving]).sum()) - self.size
        return state.value - self.size * tau, slope, state

    def margins(self, state: State) -> tuple[Array, Array]:
        """``y_i f(x_i)`` and ``w.phi_i`` of every sample, deferred or not."""
        image = self.view.image(state.a) / state.mu
        return image + self.view.y * state.beta / state.mu, self.view.y * image

    def best(self) -> tuple[float, State]:
        """The largest bound over tau, by bisection on its slope."""
        value, slope, state = self.evaluate(0.0, None)
        best = (value, state)
        low, high = 0.0, float(max(1e-3, (self.view.problem.weight * (1.0 + self.limit)).max()))
        for _ in range(TAU_STEPS):
            if slope <= 0 and low == 0.0 and value == best[0]:
                if high == low:
                    break
                if slope <= 0 and state is best[1] and low == 0.0:
                    break
            tau = (low + high) / 2 if high < 4.0 * max(low, 1e-3) else np.sqrt(max(low, 1e-3) * high)
            value, slope, state = self.evaluate(tau, state)
            if value > best[0]:
                best = (value, state)
            low, high = (tau, high) if slope > 0 else (low, tau)
        return best


def capped_hinge_bound(view: View, loss: Array, n: int, incumbent: float) -> float:
    """The least over all sizes up to n of the best bound for that size."""
    edges = np.unique(np.linspace(0, n, min(n, RANGES) + 1).round().astype(int))
    return min(_for_sizes_up_to(view, loss, int(size), incumbent) for size in edges)


def _for_sizes_up_to(view: View, loss: Array, size: int, incumbent: float) -> float:
    problem = view.problem
    left = view.total - float(np.sort(problem.weight)[::-1][:size].sum())
    worst = view.value - incumbent  # a better machine costs no more
    if left <= 0:
        return 0.0
    norm = np.sqrt(worst / (problem.alpha * left))
    if not problem.hard:
        norm = min(norm, np.sqrt(0.5 / problem.alpha))  # strong duality: 2 alpha m |w|^2 <= m
    cap = _Cap(view, loss, size, left, _first_limit(view, norm))
    best = 0.0
    for _ in range(ROUNDS):
        value, state = cap.best()
        best = max(best, value)
        if best >= worst:
            return worst
        limit = np.minimum(cap.limit, _limit_in_ball(cap, state, value, worst))
        done = (cap.limit - limit).max() <= PROGRESS * (1.0 + np.abs(cap.limit).max())
        cap.limit = limit
        if done:
            break
    return best


def _first_limit(view: View, norm: float) -> Array:
    """Limits from the norm of w alone; with offset some kept sample lies on the margin."""
    root = view.problem.root
    if not view.problem.offset:
        return norm * root
    K = view.signed_gram() * np.outer(view.y, view.y)
    farthest = np.sqrt(np.maximum(root[:, None] ** 2 + root**2 - 2.0 * K, 0.0) + 1e-14).max(axis=1)
    return 1.0 + norm * farthest


def _limit_in_ball(cap: _Cap, state: State, value: float, worst: float) -> Array:
    """Limits for the machines whose bound is at most `worst`, by strong convexity."""
    view, y, root = cap.view, cap.view.y, cap.view.problem.root
    slack = worst - value + SAFETY * max(1.0, worst)
    spread = np.sqrt(slack / (view.problem.alpha * cap.left)) * root
    score = cap.margins(state)[1]
    low, high = score - spread, score + spread
    if not view.problem.offset:
        return -np.where(y > 0, low, -high) + SAFETY
    b_low, b_high = _offsets(cap, low, high)
    return -np.where(y > 0, low + b_low, -(high + b_high)) + SAFETY


def _offsets(cap: _Cap, low: Array, high: Array) -> tuple[float, float]:
    """Offsets that can be optimal when ``w.phi_i`` is between low_i and high_i.

    Some sample is on the margin. And moving b must not help: the weight of a class inside its margin
    is at most that of the other one, within it or on it, which n removals can only lower so much.
    """
    y = cap.view.y
    b_low, b_high = float((y - high).min()), float((y - low).max())
    if cap.view.problem.hard:
        return b_low, b_high
    return max(b_low, -_highest(cap, -y, -high)), min(b_high, _highest(cap, y, low))


def _highest(cap: _Cap, y: Array, low: Array) -> float:
    """The largest b at which not surely too many negatives are inside the margin."""
    weight = cap.view.problem.weight
    gone = float(np.sort(weight[y < 0])[::-1][: cap.size].sum())
    # Going up, a negative enters at -1 - low, a positive may leave at 1 - low.
    at = np.concatenate([-1.0 - low[y < 0], 1.0 - low[y > 0]])
    change = np.concatenate([weight[y < 0], weight[y > 0]])
    order = np.argsort(at)
    excess = np.cumsum(change[order]) - float(weight[y > 0].sum()) - gone
    too_high = np.flatnonzero(excess > 1e-9 * float(weight.sum()))
    return float(at[order][too_high[0]]) if len(too_high) else np.inf
