"""
A product that cannot be retrained, and an expert
=================================================

Sometimes the machine is a product: all that you see is what it says. Here it is a published network
that stages sleep. The expert is a real one. Which epochs should the expert look at, if there is time
for one in twenty, or one in ten?
"""

# %%
# An epoch is half a minute of sleep, and the question is whether it is REM sleep. The truth is the
# majority of four other experts. We use what the network says of an epoch and of two epochs before and
# after it, from 24 nights to learn and 24 other nights to test.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from deferlearn import AdvantageTriage
from deferlearn.datasets import load_sleep
from deferlearn.metrics import team_error

data = load_sleep(expert=2)
columns = [i for i, name in enumerate(data.feature_names) if name.startswith("Tsinalis")]
nights = np.random.RandomState(0).permutation(80)
read = ~np.isnan(data.human_labels)
train = np.flatnonzero(read & np.isin(data.groups, nights[:24]))[::15]
test = np.flatnonzero(read & np.isin(data.groups, nights[24:48]))[::4]
X, X_new = data.data[train][:, columns], data.data[test][:, columns]
y, y_new = data.target[train], data.target[test]
expert, expert_new = data.human_labels[train].astype(int), data.human_labels[test].astype(int)

# %%
# The product says "REM" or not. Its score is how many of the five epochs it calls REM, the middle one
# twice: rough, but any number will do. The team calibrates it, and learns where product and expert err.
# The second machine is one that we train ourselves, and the third has no expert.

weights = np.array([1, 1, 2, 1, 1])
rem = [i for i, c in enumerate(columns) if "_REM_" in data.feature_names[c]]
score, score_new = X[:, rem] @ weights, X_new[:, rem] @ weights

budgets = [0.0, 0.05, 0.1]
errors = {"product and expert": [], "our forest and expert": []}
for budget in budgets:
    product = AdvantageTriage(budget=budget, random_state=0)
    product.fit(X, y, human_labels=expert, machine_scores=score)
    together = product.predict_assisted(X_new, expert_new, machine_scores=score_new)
    errors["product and expert"].append(team_error(y_new, together))
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    own = AdvantageTriage(budget=budget, machine=forest, random_state=0)
    own.fit(X, y, human_labels=expert)
    errors["our forest and expert"].append(
        team_error(y_new, own.predict_assisted(X_new, expert_new))
    )
alone = team_error(y_new, SVC().fit(X, y).predict(X_new))

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, values), colour in zip(errors.items(), ["#D55E00", "#0072B2"], strict=True):
    ax.plot(budgets, values, "o-", color=colour, label=name)
ax.axhline(alone, color="0.4", linestyle="--", label="SVC() without help")
ax.axhline(
    team_error(y_new, expert_new), color="0.7", linestyle=":", label="expert reads everything"
)
ax.set(
    xlabel="share of epochs that the expert may read",
    ylabel="error on other nights",
    ylim=(0, None),
)
ax.set_xticks(budgets, [f"{budget:.0%}" for budget in budgets])
ax.legend(fontsize=8)

# %%
for name, values in errors.items():
    print(
        f"{name}: "
        + ", ".join(f"{error:.3f} at {b:.0%}" for b, error in zip(budgets, values, strict=True))
    )
print(f"SVC() without help: {alone:.3f}")
print(f"the expert alone: {team_error(y_new, expert_new):.3f}")

# %%
# The product need not be opened. The expert reads one epoch in ten, and a third of the product's errors
# are gone. A forest that we train on the same columns is not better than the product's calibrated
# score. All this is one expert, one network and one split; :doc:`the results </results>` have all
# experts, all networks and 20 splits.
