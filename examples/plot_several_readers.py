"""
Several readers and missing answers
===================================

Three readers looked at the cases, and some of them skipped cases. The human loss of a case is the mean
over the readers who read it. A case that no reader read gets the mean loss of its class.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import scale

from deferlearn import AssistedSVC
from deferlearn.datasets import load_breast_cancer
from deferlearn.humans import SkilledHuman

data = load_breast_cancer()
rows = np.random.RandomState(0).permutation(len(data.target))[:300]
X, y = scale(data.data[rows]), data.target[rows]

# %%
# There is a good reader, a mediocre one, and one who guesses. The first two skip some of the cases.

rng = np.random.RandomState(1)
readers = {"Ann": (0.03, 0.5), "Bob": (0.15, 0.3), "Cy": (0.5, 0.0)}  # error, share skipped
answers = np.full((len(y), len(readers)), np.nan)
for column, (error, skipped) in enumerate(readers.values()):
    said = SkilledHuman(error).labels(X, y, random_state=rng)
    read = rng.uniform(size=len(y)) >= skipped
    answers[read, column] = said[read]
print(answers[:5])

# %%
# Each panel has the same cases with other readers. The budget is used up each time, on cases with a large
# loss of the machine and a small loss of the humans. The less reliable the readers are, the more of the
# cases that are hard for the machine stay with it.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
panels = {"Ann": [0], "Ann and Bob": [0, 1], "all three": [0, 1, 2]}
for ax, (name, columns) in zip(axes, panels.items(), strict=True):
    with warnings.catch_warnings():
        # Cases without an answer get the average of their class, and fit warns how many there are.
        warnings.simplefilter("ignore", UserWarning)
        team = AssistedSVC(budget=0.3, alpha=0.1, cv=3, random_state=0)
        team.fit(X, y, human_labels=answers[:, columns])
    for mask, colour, label in [
        (~team.deferred_, "0.75", "kept"),
        (team.deferred_, "#D55E00", "deferred"),
    ]:
        jitter = np.random.RandomState(0).uniform(-0.03, 0.03, mask.sum())
        hinge = np.maximum(0.0, 1.0 - y[mask] * team.decision_function(X[mask]))
        ax.scatter(team.human_loss_[mask] + jitter, hinge, s=9, color=colour, label=label)
    ax.set(title=f"{name}: {team.deferred_.sum()} deferred", xlabel="human loss")
axes[0].set_ylabel("machine's hinge loss")
axes[0].legend(fontsize=8)
