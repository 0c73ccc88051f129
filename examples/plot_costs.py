"""
Costs of errors and of human time
=================================

To miss a malignant tumour is worse than a false alarm, and an expert's time is not free. Both are
parameters: ``class_weight`` is the cost of an error on each class, no matter who errs, and
``deferral_cost`` is the cost of human time per deferred case, in units of one error.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from deferlearn import AssistedSVC
from deferlearn.datasets import load_breast_cancer
from deferlearn.metrics import team_sensitivity, team_specificity

data = load_breast_cancer()
X, X_new, y, y_new, expert, expert_new = train_test_split(
    scale(data.data[:, :4]), data.target, data.human_labels, test_size=0.5, random_state=0
)

# %%
# The cost of a missed case
# -------------------------
# The larger the weight of the malignant cases, the fewer of them the team misses.

weights = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
sensitivity, specificity = [], []
for weight in weights:
    team = AssistedSVC(
        budget=0.15, alpha=0.05, class_weight={1: weight, -1: 1.0}, cv=3, random_state=0
    ).fit(X, y, human_labels=expert)
    answers = team.predict_assisted(X_new, expert_new)
    sensitivity.append(team_sensitivity(y_new, answers))
    specificity.append(team_specificity(y_new, answers))

# %%
# The cost of human time
# ----------------------
# A budget is the most that may be deferred. If human time has a cost, the selection stops earlier.

costs = np.linspace(0.0, 1.0, 9)
deferred = []
for cost in costs:
    team = AssistedSVC(budget=0.3, alpha=0.05, deferral_cost=cost, cv=None, random_state=0)
    team.fit(X, y, human_labels=expert)
    deferred.append(team.deferred_.mean())

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
left.plot(weights, sensitivity, "o-", color="#D55E00", label="sensitivity")
left.plot(weights, specificity, "s--", color="#0072B2", label="specificity")
left.set(xscale="log", xlabel="cost of a missed case", title="on new cases")
left.set_xticks(weights, [f"{weight:g}" for weight in weights])
left.minorticks_off()
left.legend(fontsize=8)
right.plot(costs, deferred, "o-", color="#009E73")
right.axhline(0.3, color="0.6", linestyle=":", label="budget")
right.set(xlabel="deferral_cost", ylabel="share deferred in training", ylim=(0, 0.33))
right.legend(fontsize=8)
