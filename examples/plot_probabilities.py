"""
Probabilities that can be trusted, and what they decide
=======================================================

Who should answer a case depends on how probable it is that each of them errs. So the probabilities have
to come true: of all the cases to which the machine gives 80%, it must be right on 80%.
"""

# %%
# The machine is a naive Bayes classifier, which is known to be far too sure of itself. It sees what a
# published network says of an epoch of sleep and of the epochs around it: many columns that repeat each
# other. There are five stages of sleep, and the expert is a real one.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import BernoulliNB
from sklearn.svm import SVC

from deferlearn import AdvantageTriage
from deferlearn.datasets import load_sleep
from deferlearn.metrics import log_loss, team_error
from deferlearn.plot import ReliabilityDisplay

data = load_sleep(expert=2, classes="stages")
columns = [i for i, name in enumerate(data.feature_names) if name.startswith("Tsinalis")]
nights = np.random.RandomState(0).permutation(80)
read = ~np.isnan(data.human_labels)
train = np.flatnonzero(read & np.isin(data.groups, nights[:40]))[::25]
test = np.flatnonzero(read & np.isin(data.groups, nights[40:]))[::8]
X, X_new = data.data[train][:, columns], data.data[test][:, columns]
y, y_new = data.target[train], data.target[test]
expert, expert_new = data.human_labels[train].astype(int), data.human_labels[test].astype(int)

bayes = BernoulliNB().fit(X, y)
team = AdvantageTriage(budget=0.1, machine=BernoulliNB(), random_state=0)
team.fit(X, y, human_labels=expert)

# %%
# A team calibrates its machine on samples that the machine had not seen.

figure = plt.figure(figsize=(9, 4.6), layout="constrained")
models = {"naive Bayes": bayes, "the team's machine": team}
for part, (name, model) in zip(figure.subfigures(1, 2), models.items(), strict=True):
    ReliabilityDisplay.from_estimator(model, X_new, y_new, ax=part.subplots())
    part.suptitle(f"{name}: log loss {log_loss(y_new, model.predict_proba(X_new)):.2f}")

# %%
# From these probabilities and from what is learned of the expert, the team expects how often each of
# them errs on a case, and defers where the expert is expected to gain most:

machine_errs, _ = team.expected_errors(X_new)
deferred = team.defer(X_new)
answers = {
    "SVC() without help": SVC().fit(X, y).predict(X_new),
    "naive Bayes": bayes.predict(X_new),
    "expert": expert_new,
    "team": team.predict_assisted(X_new, expert_new),
}
for name, said in answers.items():
    print(f"{name}: error {team_error(y_new, said):.3f}")
print(f"deferred: {deferred.mean():.0%}")
for name, rows in {"deferred": deferred, "kept": ~deferred}.items():
    wrong = (team.predict(X_new) != y_new)[rows].mean()
    print(f"machine on {name} epochs: expected {machine_errs[rows].mean():.3f}, true {wrong:.3f}")

# %%
# The answers of the calibrated machine are nearly those of naive Bayes. What has changed is how sure it
# is of them, and that decides who is asked. Half of the machine's answers to the deferred epochs are
# wrong.
#
# Nights differ, and probabilities cannot know it. This split is a kind one: on two others, the machine
# erred four to five percentage points more often than expected, and on one with 24 nights to learn
# instead of 40, twelve points. On the easier question of REM sleep, with all six networks as features, a
# plain SVC() erred less than this team (0.022 against 0.025): a weak machine is not saved by calibration.
