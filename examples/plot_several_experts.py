"""
Several experts with little time: who takes which case?
=======================================================

Ann is good at one kind of case, Bob at another, and Cem at all of them, but Cem has hardly any time. A
team of several experts learns this from their answers, and asks each of them where it helps most.
"""

# %%
# The cases and the experts are simulated, so we know what there is to learn. The label is hard to tell
# from the features. Ann errs rarely where the first feature is positive, Bob where it is negative.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from deferlearn import AdvantageTriage
from deferlearn.experts import ExpertTeam
from deferlearn.humans import SkilledHuman
from deferlearn.plot import LoadDisplay, SkillsDisplay

luck = np.random.RandomState(0)
X = luck.normal(size=(1200, 2))
y = np.where(X[:, 1] + 0.8 * luck.normal(size=1200) > 0, 1, -1)
experts = {
    "Ann": SkilledHuman.good_in_half_space([1.0, 0.0], good=0.05, poor=0.4),
    "Bob": SkilledHuman.good_in_half_space([-1.0, 0.0], good=0.05, poor=0.4),
    "Cem": SkilledHuman(0.05),
}
answers = {name: who.labels(X, y, random_state=luck) for name, who in experts.items()}
known, new = slice(0, 600), slice(600, None)

# %%
# A capacity is the share of the cases that an expert can take. The team is fitted to old cases with
# everybody's answers.

capacity = {"Ann": 0.1, "Bob": 0.1, "Cem": 0.04}
team = ExpertTeam(AdvantageTriage(alpha=0.01), capacity, random_state=0)
team.fit(X[known], y[known], {name: said[known] for name, said in answers.items()})
who = team.assign_batch(X[new])

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
colours = {"Ann": "#0072B2", "Bob": "#D55E00", "Cem": "#009E73"}
for label, ax in zip((-1, 1), axes, strict=True):
    rows = y[new] == label
    machine = rows & np.isin(who, list(capacity), invert=True)
    ax.scatter(*X[new][machine].T, s=8, color="0.8", label="machine")
    for name, colour in colours.items():
        ax.scatter(*X[new][rows & (who == name)].T, s=22, color=colour, label=name)
    ax.set(title=f"new cases of class {label:+d}", xlabel="first feature")
axes[0].set_ylabel("second feature")
axes[0].legend(fontsize=8)

# %%
# The team has found out who is good where: Ann gets cases on the right, Bob cases on the left, and Cem
# those in the middle, where the other two are hard to tell apart. All of them are near the boundary of
# the machine. The error, with and without help:


def ask(rows, name):
    """In your program: show these cases to this expert."""
    return answers[name][new][rows]


together = team.predict_assisted(X[new], ask, batch=True)
print(f"SVC() without help: {(SVC().fit(X[known], y[known]).predict(X[new]) != y[new]).mean():.3f}")
print(f"the team's machine: {(team.predict(X[new]) != y[new]).mean():.3f}")
print(f"the team: {(together != y[new]).mean():.3f}")

# %%
# What was learned of the experts, with intervals, and how much of their time is used. Over all cases,
# Ann and Bob err often; but they are not asked about all cases.

SkillsDisplay.from_estimator(team)

# %%
# The price of an expert's time says how many errors more of it would avoid.

LoadDisplay.from_estimator(team)
for name, price in team.prices_.items():
    print(f"one more case for {name} avoids about {price:.2f} errors")
