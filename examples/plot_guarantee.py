"""
How far from the best can a selection be?
=========================================

With a dozen samples, every set can be tried. So we can compare what greedy finds, the best set, the
upper bound that the certificate proves without trying any sets, and what the theorem guarantees.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

from deferlearn.bounds import certificate
from deferlearn.datasets import make_linear
from deferlearn.humans import UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.selection import submodularity_sweep

X, y = make_linear(12, random_state=4)
human_loss = UniformHuman(spread=0.4).losses(y, random_state=1)
n = 3


def best_of_all(machine):
    """Try every set of at most n samples."""
    best = 0.0
    for size in range(1, n + 1):
        for chosen in combinations(range(len(y)), size):
            state = machine.copy()
            for k in chosen:
                state.remove(k)
            best = max(best, machine.value - state.value - human_loss[list(chosen)].sum())
    return best


alphas = np.logspace(-3, 1, 7)
rows = []
for alpha in alphas:
    machine = SVMObjective(X, y, alpha=alpha, fit_intercept=False)
    result = submodularity_sweep(machine, human_loss, n)
    report = certificate(machine, result, human_loss)
    floor = report.share * report.optimum.value if report.guaranteed else 0.0
    rows.append([result.value, best_of_all(machine), report.optimum.value, floor])
greedy, best, upper, floor = np.array(rows).T

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.fill_between(
    alphas, greedy, upper, color="0.9", label="where the best must be, by the certificate"
)
ax.plot(alphas, upper, color="0.5", linestyle="--", label="certified upper bound")
ax.plot(
    alphas, best, "o", color="#D55E00", markersize=9, fillstyle="none", label="best of all sets"
)
ax.plot(alphas, greedy, ".", color="#0072B2", markersize=8, label="greedy, with the sweep")
ax.set(xscale="log", xlabel="alpha", ylabel="g(S) - c(S)")
ax.legend(fontsize=8)

# %%
# Greedy is very good here, and much better than the theorem guarantees:

for alpha, g, b, u in zip(alphas, greedy, best, upper, strict=True):
    print(f"alpha = {alpha:7.3f}: greedy {g:.3f}, best {b:.3f}, upper bound {u:.3f}")
print()
print(report.summary())

# %%
# The theorem's guarantee rests on a lower bound of the submodularity ratio, which is tiny on most
# data. The certified upper bound always holds, and says how much better another set could be at most.
