"""
Does assistance pay, and how much of it?
========================================

A budget is a decision about people's time. `deferlearn.assistance_report` measures the team at
several budgets on cases not seen, compares case by case with the machine alone, and says what is
shown and what is not.
"""

# %%
# Breast tumours, of which the machine sees four measurements only, and a simulated expert who is good
# at large cell nuclei.

from sklearn.preprocessing import StandardScaler

from deferlearn import AssistedSVC, assistance_report
from deferlearn.datasets import load_breast_cancer
from deferlearn.plot import AssistanceDisplay
from deferlearn.teams import make_assisted_pipeline

data = load_breast_cancer()
team = make_assisted_pipeline(
    StandardScaler(), AssistedSVC(alpha=0.05, cv=None, random_state=0, submodularity_ratio=0.1)
)
report = assistance_report(
    team,
    data.data[:, :4],
    data.target,
    data.human_labels,
    budgets=[0.05, 0.1, 0.2, 0.3],
    cv=5,
    random_state=0,
)
AssistanceDisplay.from_report(report)

# %%
# The verdict comes in words, with the tables that it rests on.

print(report)
