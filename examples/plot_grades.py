"""
Grades: how far off is an answer?
=================================

Grades have an order. To call a severe case healthy is worse than to call it moderate. A team that knows
the order asks the doctor about the cases in which the machine may be far off.
"""

# %%
# The patients are simulated. One measurement follows the severity closely, but not in every sixth
# patient, where it misleads; a second one hints at who these patients are. The doctor looks at the
# patient: wrong in one of five cases, mostly by one grade.

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from deferlearn import AdvantageTriage
from deferlearn.humans import ConfusedHuman
from deferlearn.metrics import team_error, team_grade_error, team_quadratic_kappa
from deferlearn.plot import ConfusionDisplay

grades = ["healthy", "mild", "moderate", "severe"]
luck = np.random.RandomState(0)
severity = luck.randint(4, size=1500)
odd = luck.uniform(size=1500) < 1 / 6
measured = np.where(odd, luck.uniform(0, 3, size=1500), severity) + 0.35 * luck.normal(size=1500)
X = np.column_stack([measured, odd + 0.4 * luck.normal(size=1500)])
y = np.array(grades)[severity]
doctor = ConfusedHuman.off_by_one(0.2, grades).labels(y, random_state=luck)
known, new = slice(0, 750), slice(750, None)

# %%
# ``classes`` names the grades from the lowest to the highest. An error then counts by how many grades
# it is off, and the machine gives the answer with the smallest expected distance.

forest = RandomForestClassifier(200, min_samples_leaf=10, random_state=0)
team = AdvantageTriage(budget=0.2, machine=forest, classes=grades, random_state=0)
team.fit(X[known], y[known], human_labels=doctor[known])
answers = {
    "SVC() without help": SVC().fit(X[known], y[known]).predict(X[new]),
    "the team's machine": team.predict(X[new]),
    "doctor": doctor[new],
    "team": team.predict_assisted(X[new], doctor[new]),
}
print(f"the doctor sees {team.defer(X[new]).mean():.0%} of the patients")
print(f"{'':20} {'wrong':>6} {'grades off':>11} {'far off':>8} {'kappa':>6}")
places = {grade: place for place, grade in enumerate(grades)}
for name, said in answers.items():
    off = np.abs([places[a] - places[b] for a, b in zip(said, y[new], strict=True)])
    kappa = team_quadratic_kappa(y[new], said, grades=grades)
    mean = team_grade_error(y[new], said, grades=grades)
    print(
        f"{name:20} {team_error(y[new], said):6.3f} {mean:11.3f} {(off > 1).mean():8.3f} {kappa:6.3f}"
    )

# %%
# Rows are the truth, columns the answers. What is far from the diagonal is far off.

ConfusionDisplay.from_predictions(
    y[new],
    machine=answers["the team's machine"],
    human=doctor[new],
    team=answers["team"],
    classes=grades,
)
