"""The next model: fitted on cases of the desk, compared with the active one, stored as a candidate.

The newest cases of known truth are kept back. Neither the candidate nor the active model has seen them, so
both are compared on them, case by case. Nothing changes at the desk until a supervisor activates the
candidate (`deferlearn.desk.models.activate_model`); to go back, activate the old model again.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, insert, select

from deferlearn._utils.types import Bools, Index, Labels
from deferlearn._utils.words import counted
from deferlearn.desk.database import now
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, Invalid
from deferlearn.desk.learning.comparing import Comparison, Policy, compare, known_cases
from deferlearn.desk.learning.filling import Known, fill, like_the_newest
from deferlearn.desk.learning.population import read_chance, truth_chance
from deferlearn.desk.models import load_model, plain_card, store_model
from deferlearn.desk.monitoring.case_tables import case_table
from deferlearn.desk.monitoring.losses import Grades, grades_of, losses
from deferlearn.desk.monitoring.records import Records, read_records
from deferlearn.desk.schema import model_report
from deferlearn.tables import TableDecider, TableError, TabularTeam, fit_table
from deferlearn.tables.cases import Cases
from deferlearn.tables.columns import NUMBER, score_names
from deferlearn.tables.encoder import TableEncoder
from deferlearn.tables.frames import as_table
from deferlearn.teams.parameters import share_of

# The newest part of the cases, on which models are compared.
HELD_OUT = 0.25
# Fewer cases say too little.
LEAST_TRAINED, LEAST_COMPARED = 50, 20
# Only so many of the newest cases are used.
MOST_CASES = 200_000
# So many cases are enough for each one of known truth, unless they are few: more that are filled in add no
# information.
MOST_FILLED, FEW = 10, 5_000


@dataclass(frozen=True)
class Refit:
    """A candidate and what is known of it.

    Attributes
    ----------
    model_id : int
        Its row in the database.
    created : bool
        Whether it is new; the same cases give the same model.
    comparison : Comparison
        With the active model.
    report : dict
        Plain values: what it was fitted on, and the comparison.
    """

    model_id: int
    created: bool
    comparison: Comparison
    report: dict[str, Any]


def refit(
    desk: Desk,
    *,
    actor: str,
    name: str = "refit",
    newest: int = MOST_CASES,
    held_out: float = HELD_OUT,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Refit:
    """Fit the next model on the cases of the desk, compare it with the active one, and store it.

    Parameters
    ----------
    desk : Desk
        A desk with an active model, whose settings (columns, budget, experts, tuning) are kept.
    actor : str
        Who asks for it.
    name : str, default="refit"
        What people call it.
    newest : int, default=200000
        Only so many of the newest cases are used: fewer if the past is no longer like the present.
    held_out : float, default=0.25
        The newest part of the cases of known truth, on which both models are compared.
    seed : int, default=0
        Random seed.
    n_jobs : int or None, default=None
        Number of fits that run at the same time.

    Returns
    -------
    Refit

    Raises
    ------
    Conflict
        If the truth of too few cases is known.
    Invalid
        If no model can be fitted on the cases.
    """
    judge = desk.active_judge()
    with desk.database.reading() as connection:
        records = read_records(connection, limit=newest, content=True)
        seen = last_case_of(connection, judge.model_id)
    last = last_to_learn_from(records, held_out, seen)
    fitted = fit_records(records, records.number <= last, judge.card, seed=seed, n_jobs=n_jobs)
    content = _saved(fitted.model)
    candidate = load_model(content)
    comparison = compare_on(records, records.number > last, candidate, judge.decider)
    report = plain_card(
        {
            "active_model": judge.model_id,
            "last_case": int(last),
            **fitted.facts,
            "comparison": comparison.plain(),
        }
    )
    card = {**candidate.card_, "desk": {"last_case": int(last)}}

    number, created = desk.database.write(
        lambda connection: store_candidate(
            connection, content, card, report, name=name, actor=actor
        )
    )
    return Refit(number, created, comparison, report)


def store_candidate(
    connection: Connection,
    content: bytes,
    card: dict[str, Any],
    report: dict[str, Any],
    *,
    name: str,
    actor: str,
) -> tuple[int, bool]:
    """Store a model and the report on it, both or neither.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    content : bytes
        The file of the model.
    card : dict
        Its card.
    report : dict
        What it was fitted on, and how it compares with the active model.
    name : str
        What people call it.
    actor : str
        Who stores it.

    Returns
    -------
    id : int
    created : bool
        Whether it was not there before.
    """
    number, created = store_model(connection, content, card, name=name, actor=actor)
    if created:
        row = insert(model_report).values(model_id=number, at=now(connection), report=report)
        connection.execute(row)
    return number, created


def last_case_of(connection: Connection, model_id: int) -> int:
    """The last case of the desk that a model was fitted on; 0 if it was fitted elsewhere."""
    report = connection.execute(
        select(model_report.c.report).where(model_report.c.model_id == model_id)
    ).scalar()
    return 0 if report is None else int(report["last_case"])


def last_to_learn_from(records: Records, held_out: float = HELD_OUT, seen: int = 0) -> int:
    """The number of the last case that the candidate may learn from.

    Parameters
    ----------
    records : Records
        Cases.
    held_out : float, default=0.25
        The newest part of the cases of known truth, on which both models are compared.
    seen : int, default=0
        The last case that the active model has learned from.

    Returns
    -------
    number : int
        All cases after it are unseen by both models.
    """
    known = np.array([one is not None for one in records.truth], dtype=bool)
    numbers = records.number[known]
    n = int(len(numbers) * (1 - held_out))
    last = max(int(numbers[n - 1]), seen) if n else seen
    before, after = int((numbers <= last).sum()), int((numbers > last).sum())
    if before < LEAST_TRAINED or after < LEAST_COMPARED:
        raise Conflict(
            f"The truth of {counted(len(numbers), 'case')} is known, {before} to learn from and {after} to "
            f"compare with; a refit needs {LEAST_TRAINED} and {LEAST_COMPARED}, the latter newer than what "
            "the active model was fitted on."
        )
    return last


@dataclass(frozen=True)
class Fitted:
    """A model that was fitted on records, with facts about them."""

    model: TabularTeam
    facts: dict[str, Any]


def fit_records(
    records: Records, rows: Any, card: dict[str, Any], *, seed: int = 0, n_jobs: int | None = None
) -> Fitted:
    """Fit a model like that of a card on some of the cases.

    Parameters
    ----------
    records : Records
        Cases with their content.
    rows : ndarray of bool of shape (n_cases,)
        The cases that may be used.
    card : dict
        Of the model whose settings are kept.
    seed : int, default=0
        Random seed.
    n_jobs : int or None, default=None
        Number of fits that run at the same time.

    Returns
    -------
    Fitted
    """
    luck = np.random.default_rng(seed)
    rows = np.flatnonzero(rows)
    with _told():
        known = _known(records, rows, card)
        _check_answered(records, rows[known.has_truth], card)
        start = like_the_newest(known)
        if not _are_answered(records, rows[start:][known.after(start).has_truth], card):
            start = 0
        rows, known = rows[start:], known.after(start)
        truth, answer = fill(known, luck)
    experts = card.get("experts") or []
    n_known = int(known.has_truth.sum())
    taken, most = np.arange(len(rows)), max(MOST_FILLED * n_known, FEW)
    if len(rows) > most:
        # At random, so that the mixture stays; but experts are told apart by what they answered themselves.
        drawn = luck.choice(len(rows), most, replace=False)
        taken = np.union1d(drawn, np.flatnonzero(known.has_both)) if experts else np.sort(drawn)
    answers, readers = _answers(records, card, rows, answer)
    cases = _cases(records, card, rows[taken], truth[taken], answers[taken], readers)
    numbers, categories = _kinds(card)
    with warnings.catch_warnings(record=True) as caught, _told():
        warnings.simplefilter("always")
        model = fit_table(
            cases,
            budget=None if experts else share_of(card["budget"], card["rows"]),
            capacity={row["expert"]: float(row["share"]) for row in experts} or None,
            alpha=None if card["tuned"] else card["alpha"],
            seed=seed,
            number=numbers,
            category=categories,
            n_jobs=n_jobs,
        )
    read = np.zeros(len(records), dtype=bool)
    read[records.row] = True
    used = rows[known.has_truth]
    facts = {
        "cases": n_known,
        "read_by_experts": int(read[used].sum()),
        "audited": int((read & records.audited & ~records.deferred)[used].sum()),
        "first_case": int(records.number[rows[0]]),
        "left_out": start,
        "rows": len(taken),
        "notes": sorted({str(one.message) for one in caught if one.category is UserWarning}),
    }
    model.card_["rows"] = n_known
    return Fitted(model, facts)


def _known(records: Records, rows: Index, card: dict[str, Any]) -> Known:
    """Features, truths and answers of some cases."""
    table = as_table(table_of(card, [records.content[row] for row in rows.tolist()]))
    numbers, categories = _kinds(card)
    encoder = TableEncoder(number=numbers, category=categories, score=card.get("machine_score"))
    truth, answer = records.truth[rows], records.first_answer[rows]
    decided = records.deferred[rows], records.audited[rows], records.probability[rows]
    known, read = (np.array([one is not None for one in part], bool) for part in (truth, answer))
    chance = truth_chance(known, *decided)
    features = encoder.fit(table).transform(table)
    return Known(features, truth, answer, chance, chance * read_chance(known, read, *decided))


def _kinds(card: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The columns of a model that are numbers, but no scores, and those that are categories."""
    scores = score_names(card.get("machine_score"))
    numbers = [one for one, kind in card["columns"].items() if kind == NUMBER]
    categories = [one for one in card["columns"] if one not in numbers]
    return [one for one in numbers if one not in scores], categories


@contextmanager
def _told() -> Iterator[None]:
    """Say that cases cannot be learned from, instead of failing."""
    try:
        yield
    except (TableError, ValueError) as error:
        raise Invalid(
            f"No model can be fitted on these cases: {str(error).rstrip('.')}."
        ) from error


def _are_answered(records: Records, rows: Index, card: dict[str, Any]) -> bool:
    """Whether experts have answered any of these cases; those of the model, if it tells them apart."""
    named = {row["expert"] for row in card.get("experts") or []}
    read, known = zip(records.row.tolist(), records.expert, strict=True), set(rows.tolist())
    return any(row in known and (not named or who in named) for row, who in read)


def _check_answered(records: Records, rows: Index, card: dict[str, Any]) -> None:
    """A team learns from the experts' answers, too."""
    if not _are_answered(records, rows, card):
        raise Conflict(
            "No expert of the model has answered any of the cases to learn from: a refit needs answers of "
            "experts beside the truth."
        )


def _answers(
    records: Records, card: dict[str, Any], rows: Index, filled: Labels
) -> tuple[Labels, tuple[str, ...]]:
    """A column per expert with the answers of this expert, or one filled-in column for all of them."""
    experts = [row["expert"] for row in card.get("experts") or []]
    if experts:
        table = np.full((len(records), len(experts)), None, dtype=object)
        for row, who, value in zip(records.row, records.expert, records.value, strict=True):
            if who in experts:
                table[row, experts.index(who)] = value
        return table[rows], tuple(experts)
    return filled[:, None], ("experts",)


def _cases(
    records: Records,
    card: dict[str, Any],
    rows: Index,
    truth: Labels,
    answers: Labels,
    readers: tuple[str, ...],
) -> Cases:
    contents = [records.content[row] for row in rows.tolist()]
    truth = np.array([str(one) for one in truth])
    group = card.get("group")
    groups = None
    if group is not None and all(one.get(group) is not None for one in contents):
        groups = np.array([str(one[group]) for one in contents], dtype=object)
    graded = bool(card.get("graded"))
    present = set(truth.tolist())
    return Cases(
        features=as_table(table_of(card, contents)),
        truth=truth,
        classes=tuple(one for one in card["classes"] if graded or one in present),
        answers=answers,
        readers=readers,
        groups=groups,
        roles={one: card.get(one) for one in ("label", "identifier", "group", "machine_score")},
        graded=graded,
    )


def table_of(card: dict[str, Any], contents: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The columns that a model of this card uses."""
    scores = score_names(card.get("machine_score"))
    numbers = [one for one, kind in card["columns"].items() if kind == NUMBER]
    numbers += [one for one in scores if one not in numbers]
    return case_table(contents, numbers, [one for one in card["columns"] if one not in numbers])


def compare_on(
    records: Records, period: Bools, candidate: TableDecider, active: TableDecider
) -> Comparison:
    """Compare two models on the cases of a period whose truth is known, and which neither has seen.

    Parameters
    ----------
    records : Records
        Cases with their content.
    period : ndarray of bool of shape (n_cases,)
        The cases of the period, whether their truth is known or not.
    candidate, active : TableDecider
        The models.

    Returns
    -------
    Comparison
    """
    grades = grades_of(active.card_)
    at_hand = known_cases(records, period, grades)
    contents = [records.content[row] for row in at_hand.rows.tolist()]
    truth = records.truth[at_hand.rows]
    one, other = (_policy(decider, contents, truth, grades) for decider in (candidate, active))
    return compare(one, other, at_hand)


def _policy(
    decider: TableDecider, contents: list[dict[str, Any]], truth: Any, grades: Grades
) -> Policy:
    """What a model does with some cases."""
    decided = decider.decide(table_of(decider.card_, contents))
    errors = losses(decided.machine_answer.astype(object), truth, grades)
    return Policy(errors, np.asarray(decided.deferred, dtype=bool))


def _saved(model: TabularTeam) -> bytes:
    import deferlearn

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        deferlearn.save(model, path)
        return path.read_bytes()
