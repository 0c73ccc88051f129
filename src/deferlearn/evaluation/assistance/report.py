"""The report: numbers in tables, a verdict in words."""

import math
from dataclasses import dataclass, field
from html import escape
from typing import Any

from deferlearn.evaluation.assistance.factors import Row
from deferlearn.evaluation.assistance.layout import sections
from deferlearn.evaluation.assistance.verdict import Findings, share

TABLES = ("teams", "steps", "factors", "subgroups", "sensitivities")
ANSWERS = {"yes": "yes", "no": "no", "unclear": "not clear from these data"}


@dataclass(frozen=True, kw_only=True)
class AssistanceReport(Findings):
    """Whether assistance pays, with everything that the answer rests on; made by `assistance_report`.

    Attributes
    ----------
    pays : {"yes", "no", "unclear"}
        "yes" if the team is shown to cost less than the machine alone at `budget`. "no" if a gain of
        `min_gain` is ruled out at every budget tried.
    budget : float or int
        The budget that `pays` and the verdict are about: `best_budget` if assistance pays, else the one
        with the smallest cost.
    best_budget : float or int
        The budget beyond which more deferral is not shown to help; 0 if no budget is shown to help.
    verdict : list of str
        The answer in sentences.
    measure : {"error", "cost"}
        What the verdict compares; they are the same unless costs were given.
    confidence : float
        Level of the intervals.
    teams : list of dict
        The machine alone, the team at each budget and the human alone: `who`, `budget`, the share
        `deferred` in the test parts, `error`, `sensitivity`, `specificity`, `cost`; `difference`, the
        team's cost minus the machine's; `versus_human`, the cost minus that of the human alone; all of
        these with `_low` and `_high`. With more than two classes `macro_f1` takes the place of sensitivity
        and specificity; for grades there are also `grade_error`, with its ends, and `quadratic_kappa`.
        `machine_error_on_deferred` and `human_error_on_deferred` are errors on the deferred cases.
        `break_even_factor` is the factor of the human's errors there at which team and machine cost the
        same: 0 if the team costs more even with humans who never err, None if no factor does.
    steps : list of dict
        What each step to the next larger budget does to the cost: `from_budget`, `to_budget`, `difference`.
    factors : list of dict
        The team if humans err `factor` times as often on the deferred cases: `human_error` there,
        `error`, `cost`, `difference`.
    subgroups : list of dict
        For each `subgroup` and `budget`: `n_cases`, `n_groups`, `n_positive`, `deferred`,
        `machine_error`, `human_error`, `team_error`, and `difference`, the cost of the team's errors
        minus that of the machine's.
    sensitivities : list of dict
        With more than two classes, for each `class` and `budget`: `n_cases`, and the share of the class
        that is found, `machine_sensitivity`, `human_sensitivity` and `team_sensitivity`, with `_low` and
        `_high`. Empty with two classes.
    subgroup_name : str or None
        The column of the subgroups.
    settings : dict
        The settings of the report, and counts: cases, groups, splits, readers.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn import assistance_report
    >>> from deferlearn.teams import UncertaintyTriage
    >>> from deferlearn.datasets import make_linear
    >>> X, y = make_linear(150, random_state=1)
    >>> expert = np.where(np.arange(150) % 10, y, -y)  # errs on every tenth case
    >>> report = assistance_report(
    ...     UncertaintyTriage(alpha=0.1, cv=None), X, y, expert, budgets=[0.2, 0.4], random_state=0
    ... )
    >>> report.pays, report.best_budget
    ('yes', 0.4)
    >>> sorted(report.to_dict())[:4]
    ['best_budget', 'budget', 'confidence', 'factors']
    """

    pays: str
    budget: float | int
    verdict: list[str]
    confidence: float
    steps: list[Row]
    sensitivities: list[Row] = field(default_factory=list)

    @property
    def headline(self) -> str:
        """Question and answer in one line."""
        at = f", at a budget of {share(self.budget)}" if self.pays == "yes" else ""
        return f"Does assistance pay? {ANSWERS[self.pays].capitalize()}{at}."

    def __str__(self) -> str:
        said = "\n".join(f"- {sentence}" for sentence in self.verdict)
        tables = "\n\n".join(section.text() for section in sections(self))
        return f"{self.headline}\n\n{said}\n\n{tables}"

    def __repr__(self) -> str:
        return f"<AssistanceReport: {self.headline}>"

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.verdict)
        tables = "".join(section.html() for section in sections(self))
        return f"<div><h4>{escape(self.headline)}</h4><ul>{said}</ul>{tables}</div>"

    def to_dict(self) -> dict[str, Any]:
        """The report as numbers, strings, lists and dicts, ready for JSON; None for unknown numbers.

        Returns
        -------
        report : dict
            The attributes by their names, and `headline`.
        """
        plain = {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}
        return plain | {"headline": self.headline}

    def to_frame(self, table: str = "teams") -> Any:
        """One of the tables as a pandas DataFrame.

        Parameters
        ----------
        table : {"teams", "steps", "factors", "subgroups", "sensitivities"}, default="teams"
            Which table.

        Returns
        -------
        frame : pandas.DataFrame
        """
        if table not in TABLES:
            raise ValueError(f"there is no table {table!r}; use one of {TABLES}")
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas", name="pandas") from error
        return pd.DataFrame(getattr(self, table))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)  # a label of another type, such as a date
