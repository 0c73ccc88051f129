"""
Tuning for the team
===================

The machine that is best alone need not be the best member of a team. `AssistedSVCCV` chooses machine
and policy by the error of the team on held-out cases.
"""

import matplotlib.pyplot as plt
import numpy as np

from deferlearn import AssistedSVCCV
from deferlearn.datasets import make_linear
from deferlearn.humans import UniformHuman, labels_from_scores

X, y = make_linear(200, random_state=0)
expert = labels_from_scores(UniformHuman(0.2).scores(y, random_state=0))
search = AssistedSVCCV(
    budget=0.3,
    alphas=[0.01, 0.1, 1.0],
    policies=["uncertainty", "advantage", "margin", "forest", "automation"],
    n_refined=3,
    cv=4,
    random_state=0,
).fit(X, y, human_labels=expert)
print(search.best_params_)

# %%
# Every candidate that was tried is in ``cv_results_``. Bars show the error of the team; "automation"
# defers no cases.

results = search.cv_results_
names = list(dict.fromkeys(results["param_policy"].tolist()))
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for shift, alpha in enumerate(sorted(set(results["param_alpha"].tolist()))):
    heights = []
    for name in names:
        rows = (results["param_policy"] == name) & (results["param_alpha"] == alpha)
        heights.append(-results["mean_test_score"][rows][0] if rows.any() else np.nan)
    ax.bar(np.arange(len(names)) + 0.27 * (shift - 1), heights, 0.25, label=f"alpha = {alpha:g}")
ax.set_xticks(range(len(names)), names)
ax.set(ylabel="error of the team on held-out cases")
ax.legend(fontsize=8)

# %%
# The best of many scores is a little optimistic, so judge the winner on new cases.

X_new, y_new = make_linear(2000, random_state=1)
expert_new = labels_from_scores(UniformHuman(0.2).scores(y_new, random_state=1))
print(f"on held-out cases: {-search.best_score_:.3f}")
print(f"on new cases: {1 - search.score_assisted(X_new, y_new, expert_new):.3f}")
