"""Weeks of a simulated desk as records, of which every number is known by construction."""

from __future__ import annotations

import numpy as np

from deferlearn.desk.database import SECOND
from deferlearn.desk.monitoring.records import Records

CASES, AUDITS, KNOWN = 1000, 0.1, 0.6
# A fifth of the cases is hard and deferred. The machine is wrong in 30% of these and in 5% of the others;
# experts, independently, in 10% of all.
HARD, MACHINE_HARD, MACHINE_EASY, EXPERT = 0.2, 0.3, 0.05, 0.1
UNUSUAL, WAIT = 0.005, 3600.0  # seconds
NAMES = np.array(["Ann", "Bob", "Eve"], dtype=object)
NOW = 7 * 86400 * SECOND
TRUE = {
    "share deferred": HARD,
    "share of unusual cases": UNUSUAL,
    "time within which 50% are answered": WAIT * np.log(2),
    "time within which 90% are answered": WAIT * np.log(10),
    "machine's error": MACHINE_EASY,
    "machine's disagreement with experts": MACHINE_EASY * (1 - EXPERT)
    + (1 - MACHINE_EASY) * EXPERT,
    "team's error": HARD * EXPERT + (1 - HARD) * MACHINE_EASY,
    **{f"expert's error, {name}": EXPERT for name in NAMES},
    "both wrong": (HARD * MACHINE_HARD + (1 - HARD) * MACHINE_EASY) * EXPERT,
    "errors above those expected, the machine": 0.0,
    "errors above those expected, experts": 0.0,
    "load per day": 20.0,
}


def simulated_week(luck: np.random.Generator) -> Records:
    """The records of a week.

    Parameters
    ----------
    luck : Generator
        Random numbers.

    Returns
    -------
    Records
        Cases that arrived in the last hours still wait.
    """
    n = CASES
    hard, known = luck.random(n) < HARD, luck.random(n) < KNOWN
    foreseen = np.where(hard, MACHINE_HARD, MACHINE_EASY)
    truth = luck.integers(0, 2, n)
    machine = truth ^ (luck.random(n) < foreseen)
    said = truth ^ (luck.random(n) < EXPERT)
    arrived = np.sort(luck.integers(0, NOW, n))
    answered = arrived + (luck.exponential(WAIT, n) * SECOND).astype(np.int64)
    is_open = hard & (answered > NOW)
    audited = ~hard & (luck.random(n) < AUDITS)
    rows = np.flatnonzero((hard | audited) & ~is_open)
    labels = np.array(["ill", "well"], dtype=object)
    final = np.where(is_open, None, np.where(hard, labels[said], labels[machine]))
    return Records(
        number=np.arange(1, n + 1),
        received_at=arrived,
        model_id=np.ones(n, dtype=np.int64),
        content=[],
        deferred=hard,
        audited=audited,
        unusual=luck.random(n) < UNUSUAL,
        probability=np.where(hard, 0.0, AUDITS),
        machine_answer=labels[machine],
        answer=final,
        truth=np.where(known, labels[truth], None),
        expected_machine=foreseen,
        expected_expert=np.full(n, EXPERT),
        by_expert=hard & ~is_open,
        open=is_open,
        answered_at=np.where(is_open, 0, answered),
        row=rows,
        expert=luck.choice(NAMES, len(rows)),
        value=labels[said][rows],
        kind=np.where(hard[rows], "reading", "audit").astype(object),
        expected=np.full(len(rows), EXPERT),
    )
