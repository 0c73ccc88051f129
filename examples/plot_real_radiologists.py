"""
Real radiologists: assistance need not help
===========================================

Four radiologists judged each of 902 lung nodules. One plays the human, the opinion of the other
three is the truth, and their outlines are the features. Does it help if the human takes the nodules
of which the machine is least sure?
"""

# %%
# Nodules of one patient are similar, so all of them are in the same part of every split (``groups``).

from sklearn.preprocessing import StandardScaler

from deferlearn import UncertaintyTriage, assistance_report, make_assisted_pipeline
from deferlearn.datasets import load_lidc
from deferlearn.plot import AssistanceDisplay

data = load_lidc(reader=0)
team = make_assisted_pipeline(StandardScaler(), UncertaintyTriage(alpha=0.01, cv=None))
report = assistance_report(
    team,
    data.data,
    data.target,
    data.human_labels,
    budgets=[0.05, 0.1, 0.2, 0.4],
    groups=data.groups,
    cv=5,
    random_state=0,
)
AssistanceDisplay.from_report(report)

# %%
print(report.headline)
for sentence in report.verdict:
    print("-", sentence)

# %%
# The human errs more often than the machine, also on the deferred cases: where the outlines say little,
# another look says little, too. Two remarks: the features come from outlines that experts drew, so the
# machine sees what a machine alone would not see; and the "truth" is the opinion of three radiologists,
# with which the fourth may rightly disagree.
