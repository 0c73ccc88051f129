"""What the active model says about one case, before anybody's time is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.tables import TableDecider
from deferlearn.tables.decider import answers_of, probabilities_of
from deferlearn.tables.reasons import OneByOne, sentences
from deferlearn.teams.decider import Decider, Judged

# The name of the expert in the models that do not tell experts apart.
SOMEBODY = ""


@dataclass(frozen=True)
class Judgement:
    """What a model says about a case.

    Attributes
    ----------
    model_id : int
        The model.
    answer : str
        The machine's answer.
    probabilities : dict or None
        The probability of each class, if the model knows it.
    score : float or None
        The deferral score; None if it is not finite.
    deferred : bool
        Whether the model's own rule defers the case, at the prices of its training.
    unusual : str
        What makes the case unlike the training cases; empty if nothing does.
    gains : dict
        By expert, how much is gained if she takes the case, before prices; the name is SOMEBODY if the
        model does not tell experts apart. A gain is in errors avoided, or the score above the threshold
        if the model's own rule decides (`own_rule`).
    own_rule : bool
        Whether the model's own rule decides, so that it has nobody to choose between.
    expected_machine : float or None
        Errors that the machine is expected to make.
    expected : dict
        Errors that experts are expected to make, as far as they are known.
    """

    model_id: int
    answer: str
    probabilities: dict[str, float] | None
    score: float | None
    deferred: bool
    unusual: str
    gains: dict[str, float]
    own_rule: bool
    expected_machine: float | None
    expected: dict[str, float]
    _decision: Array
    _clause: str

    def reason(self, clause: str, taken_by: str, deferred: bool, compared: str) -> str:
        """Why the case is taken by the machine or an expert, in a sentence.

        Parameters
        ----------
        clause : str
            The rule that decided; empty for the model's own.
        taken_by : str
            The name of the expert.
        deferred : bool
            Whether an expert takes it.
        compared : str
            The expert whose expected errors are named.

        Returns
        -------
        reason : str
        """
        expected, sure = None, None
        if self.expected_machine is not None and compared in self.expected:
            expected = (np.array([self.expected_machine]), np.array([self.expected[compared]]))
        if self.probabilities is not None and len(self.probabilities) > 2:
            sure = np.array([self.probabilities[self.answer]])
        why = f"unusual case, {self.unusual}" if self.unusual and deferred else ""
        (reason,) = sentences(
            [clause or why or self._clause],
            np.array([self.answer]),
            self._decision,
            np.array([deferred]),
            np.array([False]),
            expected,
            sure,
            [self.unusual],
            [taken_by or "expert"],
            [compared or "expert"],
        )
        return reason


class Judge:
    """A loaded model that judges one case after another.

    Parameters
    ----------
    decider : TableDecider
        The part of the model that decides.
    model_id : int
        Its row in the database.
    """

    def __init__(self, decider: TableDecider, model_id: int) -> None:
        self.decider, self.model_id, self.card = decider, model_id, decider.card_
        self.experts: list[str] = [row["expert"] for row in self.card.get("experts") or []]
        machine = decider.machine
        if decider.has_experts:
            # Arrays answer in a tenth of the time of an estimator.
            machine = machine.decider() or machine
        self._machine: Any = machine
        threshold = float(machine.deferral_threshold_)
        self._rule = OneByOne(threshold, np.array(self.card["score_percentiles"]))

    @property
    def classes(self) -> list[str]:
        """The answers that there are."""
        return list(self.card["classes"])

    @property
    def columns(self) -> dict[str, str]:
        """The fields that the model uses, and whether each is a number or a category."""
        return dict(self.card["columns"])

    def judge(self, fields: Mapping[str, Any]) -> Judgement:
        """Judge a case.

        Parameters
        ----------
        fields : mapping
            The case.

        Returns
        -------
        Judgement

        Raises
        ------
        TableError
            If a field is missing, or cannot be read.
        """
        decider = self.decider
        codes, _ = decider.encoder.codes([fields])
        features = decider.encoder.features(codes)
        strange = decider.guard.strange(codes)
        unusual = decider.guard.reasons(codes, strange)[0]
        judged = self._judged(features)
        machine = self._machine
        (answer,) = answers_of(machine, features, judged.decision).tolist()
        chances = probabilities_of(machine, features, judged.decision)
        score = float(judged.score[0])
        own_machine, expected = None, {}
        if judged.expected is not None:
            own_machine, human = (float(errors[0]) for errors in judged.expected)
            expected[SOMEBODY] = human
        own_rule = len(self.experts) < 2
        if decider.has_experts and not np.isnan(chances).any():
            own, theirs, gains = decider.team.weigh(features, chances, [answer])
            own_machine = float(own[0])
            expected = dict(zip(self.experts, theirs[0].tolist(), strict=True))
        if own_rule:
            above = score - self._rule.threshold
            by_expert = {(self.experts or [SOMEBODY])[0]: above if math.isfinite(above) else 0.0}
            deferred = bool(judged.deferred[0])
        else:
            by_expert = dict(zip(self.experts, gains[0].tolist(), strict=True))
            deferred = False  # prices decide
        return Judgement(
            model_id=self.model_id,
            answer=str(answer),
            probabilities=None
            if np.isnan(chances).any()
            else dict(zip(self.classes, chances[0].tolist(), strict=True)),
            score=score if math.isfinite(score) else None,
            deferred=deferred,
            unusual=unusual,
            gains=by_expert,
            own_rule=own_rule,
            expected_machine=own_machine,
            expected=expected,
            _decision=judged.decision,
            _clause=next(iter(self._rule.clauses(judged.score, np.array([deferred])))),
        )

    def _judged(self, features: Array) -> Judged:
        machine = self._machine
        if isinstance(machine, Decider):
            return machine.judge(features)
        return Judged(
            machine.decision_function(features),
            machine.deferral_score(features),
            machine.defer(features),
        )
