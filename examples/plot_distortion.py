"""
What the distortion does
========================

Plain greedy takes the sample that pays most *now*. In early rounds that can be a sample with a large
gain and a large human loss, although cheaper samples could bring as much a little later. Distorted
greedy gives gains a smaller weight in early rounds, and counts human losses in full. So it starts with
samples on which the human is good.
"""

# %%
# The weight of a gain in round i is :math:`(1 - \gamma/n)^{n-1-i}`. With :math:`\gamma` near 0 it is
# near 1 throughout, and distorted greedy is plain greedy.

import matplotlib.pyplot as plt
import numpy as np

from deferlearn.datasets import make_shifted
from deferlearn.objective import SVMObjective
from deferlearn.selection import distorted_greedy

X, y = make_shifted(200, 10, random_state=0)
machine = SVMObjective(X, y, alpha=0.01)
# On three of four cases, what is hard for the machine is hard for this human, too.
hinge = np.maximum(0.0, 1.0 - y * machine.decision_function(X))
human_loss = np.where(np.arange(len(y)) % 4, 0.8 * hinge, 0.1)
n = 60
runs = {
    ratio: distorted_greedy(machine, human_loss, n, submodularity_ratio=ratio)
    for ratio in (0.001, 0.3, 1.0)
}

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for ratio, run in runs.items():
    rounds = [step.index for step in run.iterations]
    axes[0].plot(rounds, [step.omega for step in run.iterations], label=f"$\\gamma$ = {ratio:g}")
    axes[1].plot(np.cumsum(human_loss[run.order]), label=f"$\\gamma$ = {ratio:g}")
    axes[2].plot(np.cumsum(run.gains - human_loss[run.order]), label=f"$\\gamma$ = {ratio:g}")
axes[0].set(xlabel="round", title="weight of a gain", ylim=(0, 1.05))
axes[1].set(xlabel="samples deferred", title="human losses so far")
axes[2].set(xlabel="samples deferred", title="gain minus human loss so far")
axes[0].legend(fontsize=8)

for ratio, run in runs.items():
    print(f"gamma = {ratio:5g}: {len(run.order)} of {n} deferred, g - c = {run.value:.2f}")

# %%
# A round may defer no sample: if the weighted gain is smaller than the human's loss, the sample is left
# for later, when the weight has grown. The right :math:`\gamma` is not known, so `AssistedSVC` tries a
# sequence of values and keeps the best set (``submodularity_ratio="sweep"``).

from deferlearn.selection import submodularity_sweep

best = submodularity_sweep(machine, human_loss, n, delta=0.1)
print(f"the sweep: g - c = {best.value:.2f}, found with gamma = {best.submodularity_ratio:.3f}")
