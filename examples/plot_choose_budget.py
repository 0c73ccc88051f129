"""
Does assistance pay, and how much of it?
========================================

A budget is a decision about people's time. `deferlearn.assistance_report` measures the team at
several budgets on held-out cases, compares case by case with the machine alone, and says what is
clear from the data and what is not.
"""

# %%
# The cases are breast tumours, and the machine sees four measurements of them. The expert is simulated
# and good at large cell nuclei.

from sklearn.preprocessing import StandardScaler

from deferlearn import AssistedSVC, assistance_report, make_assisted_pipeline
from deferlearn.datasets import load_breast_cancer
from deferlearn.plot import AssistanceDisplay

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
# The report has the verdict in words, with the tables behind it.

print(report)
