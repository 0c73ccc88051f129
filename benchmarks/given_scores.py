"""Scores of a forest that was trained elsewhere, given as a column, against the forest as the machine.

The training part of each split is halved. A forest that learns from one half scores the other half and the
test part; a team learns from the other half with these scores. Its rival has the forest itself as machine,
trained on the half that the team learns from: both forests see equally much. Printed are mean errors of the
teams, and their paired difference with its 95% interval over the splits. Run it with::

    python benchmarks/given_scores.py
"""

import argparse

import numpy as np

from deferlearn.evaluation.intervals import t_interval
from deferlearn.experiments.comparison_data import NAMES, comparison_split
from deferlearn.teams import AdvantageTriage
from deferlearn.teams.forest import ForestClassifier

BUDGETS = (0.1, 0.2)


def errors_on(name: str, seed: int) -> dict[tuple[float, str], float]:
    """The share of wrong answers of both teams to the test part, at each budget."""
    split = comparison_split(name, seed)
    n = len(split.y_train)
    order = np.random.RandomState(seed).permutation(n)
    elsewhere, here = order[: n // 2], order[n // 2 :]
    forest = ForestClassifier(n_estimators=200, min_samples_leaf=2, random_state=seed)
    forest.fit(split.X_train[elsewhere], split.y_train[elsewhere])
    found = {}
    for budget in BUDGETS:
        team = AdvantageTriage(
            budget, machine_error="probability", human_error="truth", random_state=seed
        )
        X, y, human = split.X_train[here], split.y_train[here], split.human_train[here]
        old, new = (forest.predict_proba(cases)[:, 1] for cases in (X, split.X_test))
        team.fit(X, y, human_labels=human, machine_scores=old)
        said = team.predict_assisted(split.X_test, split.human_test, batch=True, machine_scores=new)
        found[budget, "column"] = float(np.mean(said != split.y_test))
        team.set_params(machine=ForestClassifier(n_estimators=200, min_samples_leaf=2))
        team.fit(X, y, human_labels=human)
        said = team.predict_assisted(split.X_test, split.human_test, batch=True)
        found[budget, "machine"] = float(np.mean(said != split.y_test))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20, help="number of splits (default: 20)")
    parser.add_argument(
        "--seed", type=int, default=1000, help="seed of the first split (default: 1000)"
    )
    options = parser.parse_args()
    print("| data | budget | scores as a column | forest as machine | difference, 95% interval |")
    print("|---|---|---|---|---|")
    differences = []
    for name in NAMES:
        rows = [errors_on(name, options.seed + k) for k in range(options.splits)]
        for budget in BUDGETS:
            column, machine = (
                np.array([row[budget, who] for row in rows]) for who in ("column", "machine")
            )
            differences.append(column - machine)
            mean, low, high = t_interval(column - machine)
            print(
                f"| {name} | {budget:g} | {column.mean():.4f} | {machine.mean():.4f} | "
                f"{mean:+.4f} [{low:+.4f}, {high:+.4f}] |",
                flush=True,
            )
    mean, low, high = t_interval(np.mean(differences, axis=0))
    print(f"| all | | | | {mean:+.4f} [{low:+.4f}, {high:+.4f}] |")


if __name__ == "__main__":
    main()
