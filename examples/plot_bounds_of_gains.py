"""
Exact choices from cheap bounds
===============================

To find the best sample to defer, one could solve a support vector machine for each candidate. The
engine solves only a few, because certified bounds show that the others cannot be the best.
"""

import matplotlib.pyplot as plt
import numpy as np

from deferlearn.datasets import make_shifted
from deferlearn.objective import SVMObjective
from deferlearn.selection import distorted_greedy

X, y = make_shifted(300, 20, random_state=0)
machine = SVMObjective(X, y, alpha=0.005)
samples = np.arange(len(y))
lower, upper = machine.gain_bounds(samples)
gains = machine.gains(samples)

# A whole selection, to see how many gains of each round are solved exactly.
result = distorted_greedy(machine, np.full(len(y), 0.2), n=60, submodularity_ratio=0.1)

order = np.argsort(gains)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.5), layout="constrained")
left.vlines(samples, lower[order], upper[order], color="#0072B2", linewidth=1.2, label="bounds")
left.plot(samples, gains[order], ".", color="#D55E00", markersize=3, label="exact gain")
left.set(xlabel="candidates, by their gain", ylabel="gain", title="before the first round")
left.legend(fontsize=8)
print(
    f"bounds hold for all samples: {bool(((lower <= gains + 1e-9) & (gains <= upper + 1e-9)).all())}"
)
print(f"mean width {np.mean(upper - lower):.4f}, gains from {gains.min():.3f} to {gains.max():.3f}")

right.plot([step.n_candidates for step in result.iterations], color="0.6", label="candidates")
right.plot([step.n_exact for step in result.iterations], color="#D55E00", label="solved exactly")
right.set(xlabel="round", yscale="log", title="a selection of 60")
right.legend(fontsize=8)
print(f"{result.n_exact} gains solved, {result.n_screened} candidates ruled out by bounds")
