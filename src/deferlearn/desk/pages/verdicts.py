"""Whether the day goes well: one sentence per question, and whether somebody should act."""

from __future__ import annotations

from typing import NamedTuple

from deferlearn.desk.database import SECOND
from deferlearn.desk.pages.today import Today
from deferlearn.desk.pages.words import counted, duration, percent
from deferlearn.desk.rules import Moment
from deferlearn.evaluation.intervals import share_interval

# A queue whose oldest case waits longer than this needs somebody, if there is no deadline.
LONG_WAIT = 4 * 3600


class Verdict(NamedTuple):
    """A sentence, and whether it is good news: "good", "bad", or "open" if nothing can be said."""

    kind: str
    text: str


def verdicts(today: Today, moment: Moment) -> list[Verdict]:
    """What a supervisor should know within ten seconds.

    Parameters
    ----------
    today : Today
        The day in numbers.
    moment : Moment
        Now.

    Returns
    -------
    verdicts : list of Verdict
    """
    found = [_model(moment), _share(today), _queue(today, moment), _experts(today), _flags(today)]
    return [one for one in found if one is not None]


def _model(moment: Moment) -> Verdict | None:
    if moment.configuration.model_id is None:
        return Verdict("bad", "No model is active: cases are refused until one is.")
    return None


def _share(today: Today) -> Verdict:
    if not today.cases:
        return Verdict("open", "No case has arrived today.")
    share = today.deferred / today.cases
    words = f"Experts got {percent(share)} of {counted(today.cases, 'case')} today"
    if today.budget is None:
        return Verdict("open", f"{words}. There is no budget: an expert without a limit takes all.")
    words += f"; they have time for {percent(today.budget)}"
    low, high = share_interval(today.deferred, today.cases, method="wilson")
    if low > today.budget:
        return Verdict("bad", f"{words}. That is more than chance explains.")
    side = "below the budget" if high < today.budget else "the budget, up to chance"
    return Verdict("good", f"{words}. That is {side}.")


def _queue(today: Today, moment: Moment) -> Verdict:
    if not today.waiting or today.oldest is None:
        return Verdict("good", "Nothing waits in the queue.")
    age = max(moment.now - today.oldest, 0) / SECOND
    words = f"{counted(today.waiting, 'reading waits', 'readings wait')}, the oldest for {duration(age)}"
    deadline = moment.rules.deadline_seconds
    late = age > (LONG_WAIT if deadline is None else deadline / 2)
    if deadline is not None:
        words += f"; the deadline is {duration(deadline)}"
    return Verdict("bad" if late else "good", f"{words}.")


def _experts(today: Today) -> Verdict | None:
    active = [load for load in today.loads if load.is_active]
    if not active:
        return Verdict("bad", "No expert takes cases: add one.")
    full = [load for load in active if load.limit is not None and load.given >= load.limit]
    if not full:
        return Verdict(
            "good", f"{counted(len(active), 'expert has', 'experts have')} time left today."
        )
    names = ", ".join(load.name for load in full[:5])
    if len(full) == len(active):
        return Verdict("bad", "All experts have reached their limit of today.")
    return Verdict("open", f"At the limit of today: {names}.")


def _flags(today: Today) -> Verdict | None:
    if not today.flagged:
        return None
    words = counted(today.flagged, "case of today carries", "cases of today carry")
    return Verdict("bad", f"{words} a flag: nobody had time or could tell, or readers disagreed.")
