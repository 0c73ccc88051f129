"""What is measured in addition with more than two classes: by class, over all classes, and by grade."""

import numpy as np

from deferlearn.evaluation.assistance.factors import Row
from deferlearn.evaluation.assistance.judge import Judge
from deferlearn.metrics import team_macro_f1, team_quadratic_kappa


def class_levels(judge: Judge, place: int | None) -> Row:
    """Measures over all classes at a budget, or those of the human alone (None).

    Errors by grade have an interval. There is none for macro F1 and kappa, which are no means over cases.
    """
    kinds, trial = judge.trial.kinds, judge.trial
    assert kinds is not None
    known = np.arange(len(kinds.labels))
    pair = (kinds.truth, kinds.human) if place is None else (kinds.tested, kinds.answers[place])
    row: Row = {"macro_f1": team_macro_f1(*pair, classes=known)}
    if not kinds.graded:
        return row
    by_human = np.abs(kinds.human - kinds.truth).astype(np.float64)
    off = by_human if place is None else kinds.off[place]
    most, widening = float(len(known) - 1), 1.0 if place is None else trial.widening
    row |= judge.alone(off, ends=(0.0, most), widening=widening).columns("grade_error")
    kappa = team_quadratic_kappa(*pair, grades=known, zero_division=float("nan"))
    return row | {"quadratic_kappa": kappa}


def sensitivity_table(judge: Judge) -> list[Row]:
    """Of each class the share that is found, by the machine, the human, and the team at each budget."""
    trial = judge.trial
    if trial.kinds is None:
        return []
    found, by_human = 1.0 - trial.wrong, (~trial.human_wrong).astype(np.float64)
    rows = []
    for code, label in enumerate(trial.kinds.labels):
        own = trial.kinds.truth == code
        common = (
            {"class": label, "n_cases": int(own.sum())}
            | judge.alone(found[0], own, widening=trial.widening).columns("machine_sensitivity")
            | judge.alone(by_human, own).columns("human_sensitivity")
        )
        for place in judge.teams:
            team = judge.alone(found[place], own, widening=trial.widening)
            rows.append(
                {"budget": trial.budgets[place]} | common | team.columns("team_sensitivity")
            )
    return rows
