"""Cases that are unlike all training cases: how many, why, who takes them, and who errs on them."""

from deferlearn._utils.types import Bools, Index
from deferlearn.report.estimates import Row, share
from deferlearn.tables.decisions import WHO, Decisions
from deferlearn.tables.totals import Totals

# Of cases like those in training, a smaller share is unusual.
FALSE_ALARMS = 0.01


def unusual_cases(totals: Totals, unusual: Bools, judged: Decisions, group: Index) -> Row:
    """What is known of the unusual cases.

    Parameters
    ----------
    totals : Totals
        What the model counted when it decided about the cases.
    unusual : ndarray of bool of shape (n_cases,)
        Which cases are unusual.
    judged : Decisions
        The answers to the cases.
    group : ndarray of int of shape (n_cases,)
        The group of each case.

    Returns
    -------
    found : dict
        With the keys share, many (whether there are clearly more than false alarms), deferred (how many of
        them humans take), columns (those with unusual cells, the one with most of them first), notes,
        machine_wrong (how many of them the machine gets wrong), judged (how many of them have an answer of
        a human), and wrong (how many of these machine, human and team get wrong).
    """
    found, counted = share(unusual, group), unusual & judged.read
    by_cells = sorted(totals.strange.items(), key=lambda item: -item[1][0])
    return {
        "share": found,
        "many": bool(found["lower"] > FALSE_ALARMS),
        "deferred": totals.unusual_deferred,
        "columns": [name for name, _ in by_cells],
        "notes": [*totals.unusual_notes(), *totals.shifts],
        "machine_wrong": int(judged.wrong("machine")[unusual].sum()),
        "judged": int(counted.sum()),
        "wrong": {who: int(judged.wrong(who)[counted].sum()) for who in WHO},
    }
