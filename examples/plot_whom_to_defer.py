"""
What the selection does to the machine
======================================

No line separates these two classes: one lies on both sides of the other. A linear machine alone cannot
fit both sides. If it may hand over a part of the samples to a human, it fits the rest.
"""

# %%
# These are the paper's synthetic data and its simulated human, whose scores are sometimes a little on the
# wrong side. A human's score has the same loss as the same score of the machine: the hinge loss.

from deferlearn.datasets import make_linear
from deferlearn.humans import UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.plot import SelectionDisplay
from deferlearn.selection import distorted_greedy

X, y = make_linear(240, random_state=0)
human_loss = UniformHuman(spread=0.2).losses(y, random_state=0)
machine = SVMObjective(X, y, alpha=1.0)
result = distorted_greedy(machine, human_loss, n=72, submodularity_ratio=0.01)

SelectionDisplay.from_result(machine, X, y, result).plot()

# %%
# Filled markers are deferred. Alone, the machine's line cuts through the middle class. Without one
# arm of the outer class, which goes to the human, a line fits the rest. (In about half of such draws
# even then no line is worth its regularisation, and the machine gives the same answer everywhere. This
# draw was chosen because its machine has a boundary.)

# %%
# How the loss falls
# ------------------
# Each round defers one sample, so its loss is the human's and no longer the machine's. The total falls
# as long as the gain exceeds the human's loss.

import matplotlib.pyplot as plt
import numpy as np

rounds = np.arange(len(result.order) + 1)
machine_pays = machine.value - np.concatenate([[0.0], np.cumsum(result.gains)])
human_pays = np.concatenate([[0.0], np.cumsum(human_loss[result.order])])
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.stackplot(
    rounds,
    machine_pays,
    human_pays,
    labels=["machine", "human"],
    colors=["#0072B2", "#D55E00"],
    alpha=0.8,
)
ax.set(xlabel="samples deferred", ylabel="loss", xlim=(0, rounds[-1]))
ax.legend()
print(f"loss of the machine alone {machine.value:.1f}, of both {machine.value - result.value:.1f}")
