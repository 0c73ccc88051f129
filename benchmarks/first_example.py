"""README's first example over many splits: the team against a tuned SVC, a random forest, and the expert.

Is a sleeper in REM sleep? Every split draws a third of the nights to learn from and judges on all others.
The team may ask the expert about at most a tenth of the new cases. Printed are mean errors, and the team's
paired difference from each rival with its 95% interval over the splits. Run it with::

    python benchmarks/first_example.py
"""

import argparse
from time import perf_counter

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
from sklearn.svm import SVC

from deferlearn import TeamCV
from deferlearn.datasets import load_sleep
from deferlearn.evaluation.intervals import t_interval

GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": ["scale", 0.01, 0.001]}


def errors_on(seed: int, data: dict) -> dict[str, float]:
    """The share of wrong answers on new nights."""
    X, y, expert, night = data["data"], data["target"], data["human_labels"], data["groups"]
    known = np.random.RandomState(seed).permutation(80)[:27]
    read = ~np.isnan(expert)  # a deferred case needs an answer
    old = np.flatnonzero(np.isin(night, known) & read)[::40]
    new = np.flatnonzero(~np.isin(night, known) & read)[::5]
    team = TeamCV(budget=0.1, random_state=seed)
    team.fit(X[old], y[old], human_labels=expert[old], groups=night[old])
    folds = list(StratifiedGroupKFold(5).split(X[old], y[old], night[old]))
    svc = GridSearchCV(SVC(), GRID, cv=folds).fit(X[old], y[old])
    forest = RandomForestClassifier(random_state=seed).fit(X[old], y[old])
    said = {
        "team": team.predict_assisted(X[new], expert[new]),
        "SVC, tuned": svc.predict(X[new]),
        "random forest": forest.predict(X[new]),
        "expert": expert[new],
    }
    found = {who: float(np.mean(answers != y[new])) for who, answers in said.items()}
    return found | {"asked": float(team.defer(X[new]).mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20, help="number of splits (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first split (default: 0)")
    options = parser.parse_args()
    data = load_sleep(expert=5)
    rows = []
    for seed in range(options.seed, options.seed + options.splits):
        start = perf_counter()
        rows.append(errors_on(seed, data))
        said = ", ".join(f"{who} {value:.4f}" for who, value in rows[-1].items())
        print(f"split {seed}: {said} ({perf_counter() - start:.0f} s)", flush=True)
    print("\n| | error | team minus this, 95% interval |\n|---|---|---|")
    team = np.array([row["team"] for row in rows])
    print(
        f"| team (asks about {np.mean([row['asked'] for row in rows]):.1%}) | {team.mean():.4f} | |"
    )
    for who in ("SVC, tuned", "random forest", "expert"):
        other = np.array([row[who] for row in rows])
        mean, low, high = t_interval(team - other)
        print(f"| {who} | {other.mean():.4f} | {mean:+.4f} [{low:+.4f}, {high:+.4f}] |")


if __name__ == "__main__":
    main()
