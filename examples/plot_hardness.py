"""
Why the best set is hard to find
================================

To find the best samples to defer is NP-hard. This example shows why on a dozen cases: to solve our
problem, one would have to solve systems of equations that cannot all hold.
"""

# %%
# Given are linear equations :math:`a_i \cdot w = r_i` that contradict each other. How many of them can
# hold at once? With many unknowns, no method is known that is much better than trying all sets: the
# problem (*maximum feasible subsystem*) is NP-hard. With two unknowns, each equation is a line, and the
# question is in which point most lines meet.

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

from deferlearn.objective import Objective
from deferlearn.selection import distorted_greedy

rng = np.random.default_rng(3)
angles = np.concatenate([np.linspace(0.2, 2.9, 5), np.linspace(0.3, 3.1, 7)])
a = np.column_stack([np.cos(angles), np.sin(angles)])
meeting, near = np.array([2.0, 1.2]), np.array([-1.6, 2.0])
r = np.concatenate([a[:5] @ meeting, a[5:] @ near + rng.normal(scale=0.25, size=7)])

# %%
# Every equation becomes a case: with any label y of -1 or +1, its features are :math:`x_i = y_i a_i /
# r_i`. Take the squared loss :math:`(1 - y_i\, w \cdot x_i)^2`, no regularisation, and a human who is
# always right. The loss of a case is 0 if and only if its equation holds. So the best set of n cases
# has loss 0 if and only if all but n equations can hold together: whoever solves our problem quickly
# solves the other one, too.

y = np.where(rng.random(12) < 0.5, 1, -1)
X = y[:, None] * a / r[:, None]
n = 7


def loss(kept):
    """The machine's least squared loss on these cases."""
    kept = list(kept)
    w, *_ = np.linalg.lstsq(y[kept, None] * X[kept], np.ones(len(kept)))
    return ((1 - y[kept] * (X[kept] @ w)) ** 2).sum(), w


best = min(combinations(range(12), 12 - n), key=lambda kept: loss(kept)[0])
print("best cases for the machine:", best)
print(f"their loss: {loss(best)[0]:.6f}")

# %%
# Greedy needs no more than the gain of each case. Squared losses have it in closed form, so an
# objective for the algorithms of this library takes a few lines.


class SquaredObjective(Objective):
    """F is the least squared loss of the kept cases."""

    def __init__(self, kept):
        self._kept = np.array(kept)

    @property
    def kept(self):
        return self._kept

    @property
    def value(self):
        return loss(np.flatnonzero(self._kept))[0]

    def gain(self, k):
        rest = self._kept.copy()
        rest[k] = False
        return max(0.0, self.value - loss(np.flatnonzero(rest))[0])

    def gain_bounds(self, ks):
        gains = self.gains(ks)
        return gains, gains

    def remove(self, k):
        self._kept[k] = False

    def copy(self):
        return SquaredObjective(self._kept)


result = distorted_greedy(SquaredObjective([True] * 12), np.zeros(12), n)
greedy = tuple(np.delete(np.arange(12), result.order).tolist())
print("greedy keeps:", greedy)
print(f"their loss: {loss(greedy)[0]:.6f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, kept, title in [(axes[0], best, "best of all sets"), (axes[1], greedy, "greedy")]:
    for i, (direction, right) in enumerate(zip(a, r, strict=True)):
        foot, along = direction * right, np.array([-direction[1], direction[0]])
        ends = foot + np.outer([-9, 9], along)
        shown = {"color": "#0072B2", "linewidth": 1.8} if i in kept else {"color": "0.8"}
        ax.plot(*ends.T, **shown)
    value, w = loss(kept)
    ax.plot(*w, "o", color="#D55E00", markersize=8)
    ax.set(xlim=(-5, 5), ylim=(-2, 5), xlabel="$w_1$", title=f"{title}: loss {value:.4f}")
axes[0].set_ylabel("$w_2$")
axes[0].plot([], [], color="#0072B2", label="kept by the machine")
axes[0].plot([], [], color="0.8", label="deferred")
axes[0].plot([], [], "o", color="#D55E00", label="the machine")
axes[0].legend(fontsize=8, loc="lower left")

# %%
# Each line is a case, and a machine is a point. Five lines meet in one point, which is the best
# machine, with loss 0. The other seven only come close to another point. They are more, so they attract
# the machine of least squares at the start, and greedy gives up the lines that meet.
#
# Here, all sets can be tried: there are 792. With 240 cases and a third of them deferred there are more
# than :math:`10^{60}`. That is why the library has a greedy algorithm with a guarantee, and
# certificates that say how far from the best a selection can be at most.
#
# The paper's own proof starts from robust least squares, with at least as many features as cases, and
# independent ones. All equations can then hold at once, and nothing is hard. The argument above does
# without that assumption. On maximum feasible subsystems: E. Amaldi, V. Kann: The complexity and
# approximability of finding maximum feasible subsystems of linear relations. Theoretical Computer
# Science 147, 1995.
