"""
Where the theorem must end
==========================

The guarantee of the greedy algorithm rests on the submodularity ratio: how much of a joint gain the
single gains add up to, at least. There are data on which the ratio is 0, so that single gains say
nothing. Here are six samples that show it, and how a limit on the budget excludes such cases.
"""

# %%
# Four samples of the one class are at 0, 0, 0 and 2, two of the other at 0 and -2. Defer the sample at
# -2, and look at the positive samples one by one, and all together.

from functools import cache
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

from deferlearn.bounds import submodularity_bound
from deferlearn.objective import SVMObjective

x = np.array([0.0, 0.0, 0.0, 2.0, 0.0, -2.0])
y = np.array([1, 1, 1, 1, -1, -1])
machine = SVMObjective(x[:, None], y, alpha=1.0)
positives = np.flatnonzero(y > 0)


@cache
def value_without(samples):
    """F after this set of samples has left; there are only 64 of them."""
    state = machine.copy()
    for k in samples:
        state.remove(k)
    return state.value


def gains(deferred, candidates):
    """Gains of the candidates one by one, and of all of them together."""
    start = value_without(frozenset(deferred))
    single = [start - value_without(frozenset([*deferred, k])) for k in candidates]
    return np.array(single), start - value_without(frozenset([*deferred, *candidates]))


single, together = gains([5], positives)
print("one by one:", single.round(6) + 0.0)
print("together:  ", round(together, 6))

# %%
# Without the sample at -2, a lone negative sample sits among the positive ones. The machine gives it up
# and answers "positive" everywhere, and it does so as well if one positive sample leaves: each of them
# gains nothing. If all of them leave, the lone sample is right, and the whole loss is gone.
#
# With so few samples we can compute the ratio: the smallest quotient over all sets S of at most n
# deferred samples, and all sets L of others.


def ratio(n):
    """The submodularity ratio by its definition."""
    least = 1.0
    for size in range(n + 1):
        for deferred in combinations(range(6), size):
            others = [k for k in range(6) if k not in deferred]
            single, _ = gains(deferred, others)
            for many in range(1, len(others) + 1):
                for chosen in combinations(range(len(others)), many):
                    together = gains(deferred, [others[i] for i in chosen])[1]
                    if together > 1e-9:
                        least = min(least, single[list(chosen)].sum() / together)
    return max(least, 0.0)


budgets = [0, 1, 2]
ratios = [ratio(n) for n in budgets]
bounds = [submodularity_bound(machine, n) for n in budgets]

figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
height = np.array([0.0, 1.0, 2.0, 0.0, -1.0, 0.0])
for label, colour, name in [(1, "#0072B2", "positive"), (-1, "#D55E00", "negative")]:
    left.scatter(x[y == label], height[y == label], s=90, color=colour, label=name)
left.scatter(-2, 0, s=330, facecolors="none", edgecolors="0.4", label="deferred first")
left.set(
    xlim=(-3, 3), ylim=(-2, 3.6), yticks=[], xlabel="x", title="six samples (equal x: stacked)"
)
left.legend(fontsize=8, loc="upper left", ncols=3, columnspacing=0.8, handletextpad=0.2)
right.plot(budgets, ratios, "o-", color="0.2", label="ratio, by its definition")
right.plot(
    budgets, [bound.best for bound in bounds], "x", color="#D55E00", label="what can be proved"
)
right.axvline(bounds[0].largest_n, color="0.7", linestyle=":", label="largest budget with a bound")
right.set(xticks=budgets, xlabel="at most n samples deferred", title="submodularity ratio")
right.legend(fontsize=8)

for n, true, bound in zip(budgets, ratios, bounds, strict=True):
    print(f"n = {n}: ratio {true:.4f}, at least {bound.best:.4f} proved")

# %%
# The theorem allows :math:`n \le V_{\min} - s^*`, where :math:`s^*` is how many samples a class must
# keep, so that its reduced hull does not meet that of the other class. Here both samples of the smaller
# class are needed, so the theorem allows n = 0 only. It could not allow more, because at n = 1 the
# ratio is 0.

print("largest n:", bounds[1].largest_n)
print(bounds[1].words)
