"""The cases of a report: the features that the model needs, the truth, the human answers, names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.words import listed
from deferlearn.evaluation.assistance.inputs import MAX_SUBGROUPS
from deferlearn.tables.cases import Cases, select_cases
from deferlearn.tables.cells import label_text, with_points
from deferlearn.tables.columns import score_names
from deferlearn.tables.errors import TableError
from deferlearn.tables.frames import as_table
from deferlearn.tables.team import TabularTeam


@dataclass(frozen=True)
class ReportCases:
    """Cases to judge a model by.

    Attributes
    ----------
    cases : Cases
        The cases with a label; their features are the columns that the model uses.
    names : list of str
        The name of each case: from the identifier's column, or its row.
    subgroup : str or None
        Name of a column; the verdict compares machine and team for each of its values.
    subgroup_values : list of str or None
        The values of that column.

    Examples
    --------
    >>> from deferlearn.report import ReportCases
    >>> from deferlearn.tables import select_cases
    >>> table = {"age": [61, 48], "truth": ["ill", "well"], "doctor": ["ill", "ill"]}
    >>> chosen = ReportCases(select_cases(table, "truth", humans=["doctor"]), ["first", "second"])
    >>> len(chosen), chosen.cases.classes
    (2, ('ill', 'well'))
    """

    cases: Cases
    names: list[str]
    subgroup: str | None = None
    subgroup_values: list[str] | None = None

    def __len__(self) -> int:
        return len(self.cases)


def select_report_cases(
    table: Any,
    model: TabularTeam,
    *,
    label: str | None = None,
    humans: Sequence[str] = (),
    answers: Any = None,
    identifier: str | None = None,
    group: str | None = None,
    subgroup: str | None = None,
    decimal: str = ".",
) -> ReportCases:
    """Split a table into the parts that a report needs; columns have the model's roles unless given.

    Parameters
    ----------
    table : DataFrame, dict of columns or pyarrow.Table
        One row per case, with the model's columns.
    model : TabularTeam
        The model, from `deferlearn.tables.fit_table`.
    label : str or None, default=None
        Column of the true labels; None takes the model's label column.
    humans : sequence of str, default=()
        Columns of answers, one per reader. Without any, and without `answers`, those of the model's readers
        that are columns of the table.
    answers : DataFrame, dict of columns or pyarrow.Table, default=None
        One row per answer, with the columns case, reader and answer.
    identifier, group : str or None, default=None
        Column that names the cases, and column that says which cases belong together; None takes the
        model's column, if the table has it.
    subgroup : str or None, default=None
        Column of subgroups, for each of which the verdict compares machine and team.
    decimal : {".", ","}, default="."
        Decimal separator of numbers in text cells.

    Returns
    -------
    ReportCases

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.report import select_report_cases
    >>> from deferlearn.tables import fit_table, select_cases
    >>> size = np.random.default_rng(0).normal(size=40)
    >>> table = {"size": size, "truth": np.where(size > 0, "ill", "well")}
    >>> table["doctor"] = np.where(size > 0.2, "ill", "well")
    >>> team = fit_table(select_cases(table, "truth", humans=["doctor"]), alpha=0.1)
    >>> chosen = select_report_cases(table, team)
    >>> chosen.names[:2], chosen.cases.readers
    (['row 1', 'row 2'], ('doctor',))
    """
    table = as_table(table)
    card = model.card_
    label = label or card["label"]
    if not humans and answers is None:
        humans = [r["reader"] for r in card["readers"] if r["reader"] in table.column_names]
    if not humans and answers is None:
        raise TableError(
            "a report compares the machine with humans: name a column of their answers (--human), or a "
            "table of answers (--answers)"
        )
    identifier = identifier or _own(card["identifier"], table)
    group = group or _own(card["group"], table)
    for role, name in [
        ("the label", label),
        *(("a human's answers", name) for name in humans),
        ("the identifier", identifier),
        ("the group", group),
    ]:
        if name in card["columns"]:
            raise TableError(
                f"column {name!r} is a feature of the model, so it cannot be {role} as well"
            )
    scores = score_names(card["machine_score"])
    cases = select_cases(
        table,
        label,
        humans=humans,
        answers=answers,
        identifier=identifier,
        group=group,
        machine_score=scores,
        cost_matrix=card.get("cost_matrix"),
        # Of several classes, some may have no case here.
        classes=card["classes"] if card["graded"] or len(card["classes"]) > 2 else None,
    )
    if list(cases.classes) != list(card["classes"]):
        raise TableError(
            f"the label column {label!r} holds the classes {_all(cases.classes)}, but the classes of the "
            f"model are {_all(card['classes'])}"
        )
    used = [*card["columns"], *scores]
    missing = [name for name in used if name not in cases.features.column_names]
    if missing:
        raise TableError(f"there is no column {missing[0]!r}, which the model needs")
    features = cases.features.select(used)
    if decimal == ",":
        numbers = [name for name, kind in card["columns"].items() if kind == "number"]
        features = with_points(features, [*numbers, *scores])
    labelled = np.flatnonzero(
        [value is not None for value in label_text(table.column(label)).to_pylist()]
    )
    names = [f"row {row + 1}" for row in labelled]
    if identifier is not None:
        own = _texts(table, identifier, labelled)
        names = [row if name is None else name for row, name in zip(names, own, strict=True)]
    values = None
    if subgroup is not None:
        if subgroup not in table.column_names:
            raise TableError(f"there is no column {subgroup!r}, named as subgroup")
        values = [
            "(missing)" if text is None else text for text in _texts(table, subgroup, labelled)
        ]
        if len(set(values)) > MAX_SUBGROUPS:
            raise TableError(
                f"column {subgroup!r}, named as subgroup, has {len(set(values))} values, more than "
                f"{MAX_SUBGROUPS}: choose a column with fewer values"
            )
    return ReportCases(
        replace(cases, features=features, graded=card["graded"]), names, subgroup, values
    )


def _texts(table: Any, name: str, rows: NDArray[np.intp]) -> list[str | None]:
    texts = label_text(table.column(name)).to_pylist()
    return [texts[row] for row in rows]


def _own(name: str | None, table: Any) -> str | None:
    return name if name in table.column_names else None


def _all(classes: Sequence[str]) -> str:
    return (
        " and ".join(map(repr, classes)) if len(classes) == 2 else listed(list(map(repr, classes)))
    )
