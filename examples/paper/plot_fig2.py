"""
Figure 2: which samples the algorithm defers
============================================

The paper's two synthetic data sets at two budgets. As more samples go to the human, fewer of those
that stay lie inside the machine's margin. This draw was chosen because each of its machines has a
boundary.
"""

import matplotlib.pyplot as plt
import numpy as np

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear, make_quadratic
from deferlearn.humans import UniformHuman
from deferlearn.plot import DeferralBoundaryDisplay

quadratic = {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 0.0}
cases = [("linear", make_linear, {}), ("quadratic", make_quadratic, quadratic)]
figure, axes = plt.subplots(2, 2, figsize=(8, 8), layout="constrained")
for row, (name, make, kernel) in zip(axes, cases, strict=True):
    X, y = make(240, random_state=0)
    scores = UniformHuman(0.2).scores(y, random_state=0)
    for ax, budget in zip(row, (0.12, 0.3), strict=True):
        team = AssistedSVC(budget=budget, alpha=1.0, cv=None, **kernel)
        team.fit(X, y, human_scores=scores)
        inside = np.abs(team.decision_function(X[~team.deferred_])) <= 1.0 + 1e-6
        DeferralBoundaryDisplay.from_estimator(team, X, y, ax=ax, legend=False)
        ax.set_title(f"{name}, n/|V| = {budget:g}\n{inside.sum()} kept inside the margin")
labelled = {}
for ax in axes.flat:
    handles, labels = ax.get_legend_handles_labels()
    labelled |= dict(zip(labels, handles, strict=True))
figure.legend(labelled.values(), labelled.keys(), loc="outside lower center", ncols=3)

# %%
# Filled samples are deferred. The solid line is the boundary, and broken lines are the margins.
