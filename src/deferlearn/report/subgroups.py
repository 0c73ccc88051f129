"""Whether some groups of cases fare worse than the others, with the machine and with the team."""

from collections.abc import Sequence

import numpy as np

from deferlearn._utils.types import Index
from deferlearn.report.estimates import Family, Row, share
from deferlearn.report.where import values_in_order
from deferlearn.tables.decisions import WHO, Decisions


def subgroup_gaps(
    judged: Decisions, group: Index, values: Sequence[str], classes: Sequence[str]
) -> list[Row]:
    """Errors of each subgroup, what the team changes there, and the gap to all other cases.

    All comparisons are one family: their intervals hold together.

    Parameters
    ----------
    judged : Decisions
        The answers of machine and human, and who decides.
    group : ndarray of int
        The group of each case, within which cases are alike.
    values : sequence of str
        The subgroup of each case.
    classes : sequence of str
        The classes. With two of them, there are gaps for the cases of each class as well.

    Returns
    -------
    rows : list of dict
        From the subgroup with the most errors of the team to the one with the fewest. With the keys
        subgroup, cases, deferred, machine, human and team (the errors), change (errors of the team minus
        those of the machine; None if no case is deferred), machine_gap and team_gap (errors minus those in
        all other cases; None for the only subgroup), and classes: for each of two classes the keys class,
        cases, team (the errors on it) and team_gap.
    """
    read = judged.read
    own, truth = group[read], judged.truth[read]
    wrong = {who: judged.wrong(who)[read] for who in WHO}
    machine, team = (wrong[who].astype(np.float64) for who in ("machine", "team"))
    kinds = np.array(values, dtype=object)[read]
    parts = {value: kinds == value for value in values_in_order(kinds)}
    shown = tuple(classes) if len(classes) == 2 else ()
    families: dict[str | None, Family] = {None: Family(own)}
    families |= {label: Family(own[truth == label]) for label in shown}
    asked = judged.deferred[read].any()
    for part in parts.values():
        if asked:
            families[None].within(team - machine, part)
        if not part.all():
            families[None].against_rest(machine, part)
            families[None].against_rest(team, part)
        for label in shown:
            of_class = part[truth == label]
            if of_class.any() and not of_class.all():
                families[label].against_rest(team[truth == label], of_class)
    compared = {label: iter(family.rows()) for label, family in families.items()}
    rows = []
    for value, part in parts.items():
        row: Row = {
            "subgroup": value,
            "cases": int(part.sum()),
            "deferred": share(judged.deferred[read][part], own[part]),
            **{who: share(wrong[who][part], own[part]) for who in WHO},
            "change": next(compared[None]) if asked else None,
            "machine_gap": None if part.all() else next(compared[None]),
            "team_gap": None if part.all() else next(compared[None]),
            "classes": [],
        }
        for label in shown:
            both = part & (truth == label)
            of_class = part[truth == label]
            compares = of_class.any() and not of_class.all()
            row["classes"].append(
                {
                    "class": label,
                    "cases": int(both.sum()),
                    "team": share(wrong["team"][both], own[both]) if both.any() else None,
                    "team_gap": next(compared[label]) if compares else None,
                }
            )
        rows.append(row)
    return sorted(rows, key=lambda row: -row["team"]["share"])
