"""
Who takes a new case? Policies compared
=======================================

In training, the selection knows the truth and the human's losses. For a new case neither is known,
so a *policy* learns from the choice in training. What it can learn depends on what it sees.

This is one draw, chosen because it shows the effect well; ``deferlearn reproduce fig3`` measures twenty.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear
from deferlearn.humans import UniformHuman, labels_from_scores

X, y = make_linear(240, random_state=0)
X_new, y_new = make_linear(1000, random_state=4)
scores = UniformHuman(0.2).scores(y, random_state=0)
answers = labels_from_scores(UniformHuman(0.2).scores(y_new, random_state=1))

# %%
# "margin" sees only how sure the machine is; "mlp" and a forest see where a case lies. The arm of the
# outer class that the machine has given up is far from its boundary: there the machine is sure, and
# wrong. "margin" learns to defer the cases of which the machine is most sure, and so it also defers
# some of the other arm. Uncertainty triage would never find these cases.

policies = {
    "margin": "margin",
    "mlp": "mlp",
    "forest": RandomForestClassifier(100, min_samples_leaf=5),
}
figure, axes = plt.subplots(1, 3, figsize=(9, 3.5), layout="constrained", sharey=True)
for ax, (name, policy) in zip(axes, policies.items(), strict=True):
    team = AssistedSVC(budget=0.3, policy=policy, cv=3, random_state=0)
    team.fit(X, y, human_scores=scores)
    taken = team.defer(X_new)
    error = 1.0 - team.score_assisted(X_new, y_new, answers)
    for label, marker in [(-1, "o"), (1, "s")]:
        part = y_new == label
        for mask, colour in [(part & ~taken, "0.75"), (part & taken, "#D55E00")]:
            ax.scatter(*X_new[mask].T, s=7, marker=marker, color=colour)
    low, high = X_new.min(axis=0), X_new.max(axis=0)
    xx, yy = np.meshgrid(np.linspace(low[0], high[0], 100), np.linspace(low[1], high[1], 100))
    decision = team.decision_function(np.column_stack([xx.ravel(), yy.ravel()]))
    ax.contour(xx, yy, decision.reshape(xx.shape), [0.0], colors="0.1")
    ax.set(title=f"{name}: {taken.mean():.0%} to the human,\nteam errs {error:.3f}", aspect="equal")

# %%
# Orange cases go to the human, and the line is the machine's boundary. `AssistedSVCCV` chooses the
# policy by the team's error on held-out cases.
