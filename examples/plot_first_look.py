"""
Machine, human and both together
================================

A machine looks at measurements of breast tumours. So does an expert, who is good at tumours with
large cell nuclei and poor at the others. Neither is better everywhere, so the question is who should
take which case.
"""

# %%
# The tumours are real (scikit-learn ships them). The expert is simulated and errs on 1% of the cases
# with a large mean radius and on 20% of the others.

from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from deferlearn import AssistedSVC, make_assisted_pipeline
from deferlearn.datasets import load_breast_cancer

data = load_breast_cancer()
X, X_new, y, y_new, expert, expert_new = train_test_split(
    data.data, data.target, data.human_labels, test_size=0.4, random_state=0
)
team = make_assisted_pipeline(StandardScaler(), AssistedSVC(budget=0.2, alpha=0.1, random_state=0))
team.fit(X, y, assistedsvc__human_labels=expert)

# %%
# For new cases, `defer` says which ones the human takes, and `predict_assisted` gives the team's answers.

deferred = team.defer(X_new)
together = team.predict_assisted(X_new, expert_new)
errors = {
    "machine alone": (team.predict(X_new) != y_new).mean(),
    "human alone": (expert_new != y_new).mean(),
    "team": (together != y_new).mean(),
}
print(f"the human takes {deferred.mean():.0%} of the new cases")
for who, error in errors.items():
    print(f"{who}: {error:.3f}")

# %%
# Who errs where? The machine would err mostly on the cases that it hands over.

import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(
    1, 2, figsize=(8, 3.6), layout="constrained", width_ratios=[1, 1.4]
)
left.bar(list(errors), list(errors.values()), color=["#0072B2", "#D55E00", "#009E73"])
left.set(ylabel="share of wrong answers", title="on 228 new cases")
left.tick_params(axis="x", labelsize=8)

margin = team.decision_function(X_new)
radius = X_new[:, list(data.feature_names).index("mean radius")]
wrong = team.predict(X_new) != y_new
right.scatter(radius[~deferred], margin[~deferred], s=14, color="0.7", label="machine's cases")
right.scatter(radius[deferred], margin[deferred], s=18, color="#D55E00", label="human's cases")
right.scatter(
    radius[wrong],
    margin[wrong],
    s=70,
    facecolors="none",
    edgecolors="0.1",
    label="machine would err",
)
right.axhline(0, color="0.3", linewidth=1)
right.set(xlabel="mean radius", ylabel="machine's decision function", title="who takes which case")
right.legend(fontsize=8)

# %%
# One split shows little. :ref:`sphx_glr_auto_examples_plot_choose_budget.py` measures over many splits.
