"""A stored model that decides about new cases, and loads no more than it needs for that."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.packing import packed, unpacked
from deferlearn._utils.types import Array, Bools, Labels
from deferlearn.tables.encoding import Encoding
from deferlearn.tables.errors import TableError
from deferlearn.tables.guard import Guard
from deferlearn.teams.decider import Decider, Judged
from deferlearn.teams.storage import read_member

# Format of the card; raised when its keys change their meaning.
FORMAT = 2
# What commands ask a card for.
CARD = (
    "budget", "classes", "columns", "group", "identifier", "label", "machine_score", "readers", "rows",
)  # fmt: skip
# The part of a model file that has everything needed to decide, as arrays.
MEMBER = "decider.npz"


class Decided(NamedTuple):
    """The decisions on some cases; the names are those of the columns that `deferlearn apply` adds.

    Attributes
    ----------
    machine_answer : ndarray of str of shape (n_cases,)
        The machine's answer, also where a human takes the case.
    decision_value : ndarray of shape (n_cases,), with more than two classes (n_cases, n_columns)
        The machine's decision value, positive for the second of two classes; see
        `deferlearn.AssistedSVC.decision_function`.
    deferral_score : ndarray of shape (n_cases,)
        How much each case belongs with a human.
    deferred : ndarray of bool of shape (n_cases,)
        Whether a human takes the case.
    unusual : ndarray of str of shape (n_cases,)
        What makes a case unlike the training cases, such as a number out of range; empty if nothing does.
    probabilities : ndarray of shape (n_cases, n_classes)
        The probability of each class, as the machine sees it, in the order of the card's classes; NaN if
        it is not known.
    expert : ndarray of str of shape (n_cases,)
        The expert who takes the case; empty for the machine, and if the model does not tell experts apart.
    """

    machine_answer: Labels
    decision_value: Array
    deferral_score: Array
    deferred: Bools
    unusual: Labels
    probabilities: Array
    expert: Labels


@dataclass(frozen=True, eq=False)
class TableDecider:
    """The part of a `TabularTeam` that decides; `load_decider` and `TabularTeam.decider` make it.

    Parameters
    ----------
    card_ : dict
        The model's card.
    encoder : Encoding
        From columns to features.
    guard : Guard
        Which cases are unusual.
    team : Decider or estimator
        The team as arrays. It is the estimator itself if its policy is not known in this form, such as a
        classifier of your own.
    chosen : Decider or estimator
        The same, or the best team if the estimator is a search.
    version : str
        A name of the model file that no other model has; empty if the model is not in a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import deferlearn
    >>> from deferlearn.tables import fit_table, load_decider, select_cases
    >>> size = np.random.default_rng(0).normal(size=80)
    >>> table = {"size": size, "site": ["Oslo", "Rome"] * 40, "truth": np.where(size > 0, "ill", "well")}
    >>> model = fit_table(select_cases(table, "truth"), alpha=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     deferlearn.save(model, Path(folder) / "model.skops")
    ...     decider = load_decider(Path(folder) / "model.skops")
    >>> decided = decider.decide({"size": -2.0, "site": "Paris"})
    >>> decided.machine_answer[0], bool(decided.deferred[0])
    (np.str_('well'), True)
    >>> print(decided.unusual[0])
    'site' has a category that did not occur in training
    >>> decider.decide([{"size": 0.1, "site": "Oslo"}, {"size": 2.0, "site": "Rome"}]).machine_answer
    array(['ill', 'ill'], dtype='<U4')
    """

    card_: dict[str, Any]
    encoder: Encoding
    guard: Guard
    team: Any
    chosen: Any
    version: str = ""

    def decide(self, cases: Any, *, defer_unusual: bool = True) -> Decided:
        """Decide about cases, one by one.

        A case gets the same decision alone as among others. The only exception is a group of equal rows
        whose score is exactly the threshold; see `deferlearn.AssistedSVC.defer`.

        Parameters
        ----------
        cases : dict, list of dict, DataFrame, dict of columns or pyarrow.Table
            One case as a dict of its cells, several as a list of such dicts, or a table. Columns that the
            model does not use are ignored.
        defer_unusual : bool, default=True
            Whether humans take cases that are unlike the training cases, whatever their scores are: the
            machine knows nothing about such cases. See `deferlearn.tables.guard`.

        Returns
        -------
        Decided
        """
        codes, _ = self.encoder.codes(cases)
        strange = self.guard.strange(codes)
        features = self.encoder.features(codes)
        team, machine = self.team, self.machine
        considered = team.consider(features) if self.has_experts else None
        if isinstance(team, Decider):
            judged = team.judge(features)
        elif considered is not None:
            judged = Judged(
                machine.decision_function(features),
                considered.score,
                np.array([name is not None for name in considered.who], dtype=bool),
            )
        else:
            judged = Judged(
                machine.decision_function(features),
                team.deferral_score(features),
                team.defer(features),
            )
        deferred = judged.deferred | strange.any(axis=1) if defer_unusual else judged.deferred
        expert = np.full(len(deferred), "")
        if considered is not None:
            who = with_preferred(team, considered.who, considered.gains, deferred)
            expert = np.array(["" if name is None else name for name in who], dtype=str)
        return Decided(
            answers_of(machine, features, judged.decision),
            judged.decision,
            judged.score,
            deferred,
            np.array(self.guard.reasons(codes, strange), dtype=str),
            probabilities_of(machine, features, judged.decision),
            expert,
        )

    @property
    def has_experts(self) -> bool:
        """Whether the model tells experts apart."""
        return bool(self.card_.get("experts"))

    @property
    def machine(self) -> Any:
        """The team with the machine: the same, or the one within an `ExpertTeam`."""
        return self.team.team_ if self.has_experts else self.team

    def packed(self) -> bytes | None:
        """The part of the file that has everything needed to decide; None if there is no such part."""
        if not isinstance(self.team, Decider):
            return None
        return packed(
            {
                "card": self.card_,
                "encoder": vars(self.encoder),
                "guard": vars(self.guard),
                "team": self.team.values(),
            }
        )

    @classmethod
    def unpacked(cls, content: bytes, version: str) -> Self:
        """The decider that was packed."""
        values = unpacked(content)
        check_card(values["card"])
        team = Decider.from_values(values["team"])
        encoder, guard = Encoding(**values["encoder"]), Guard(**values["guard"])
        return cls(values["card"], encoder, guard, team, team, version)


def with_preferred(team: Any, who: NDArray[Any], gains: Array, deferred: Bools) -> NDArray[Any]:
    """The expert who takes each deferred case, one at a time, None for the others.

    Parameters
    ----------
    team : ExpertTeam
        The team.
    who : ndarray of object of shape (n_cases,)
        Who takes each case by the team's own rule.
    gains : ndarray of shape (n_cases, n_experts)
        What each expert is expected to gain on the cases, as `ExpertTeam.gains` says.
    deferred : ndarray of bool of shape (n_cases,)
        Cases that experts take. Those that are deferred for another reason than the team's own go to the
        expert whose expected errors plus price are smallest.

    Returns
    -------
    who : ndarray of object of shape (n_cases,)
    """
    extra = deferred & np.array([name is None for name in who], dtype=bool)
    if not extra.any():
        return who
    filled = who.copy()
    filled[extra] = team.preferred(gains[extra])
    return filled


def answers_of(team: Any, features: Array, decision: Array) -> Labels:
    """The machine's answers; its decision values are known already.

    Parameters
    ----------
    team : Decider or estimator
        The team.
    features : ndarray of shape (n_cases, n_features)
        Cases.
    decision : ndarray of shape (n_cases,) or (n_cases, n_columns)
        The team's decision values of them.

    Returns
    -------
    answers : ndarray of str of shape (n_cases,)
    """
    if isinstance(team, Decider):
        return team.answers(decision)
    if decision.ndim == 1:  # as `predict`, in half the time
        return np.asarray(team.classes_[(decision > 0).astype(np.intp)])
    return np.asarray(team.predict(features))


def probabilities_of(team: Any, features: Array, decision: Array) -> Array:
    """The probability of each class, as the machine sees it; NaN if it is not known.

    Parameters
    ----------
    team, features, decision
        As in `answers_of`.

    Returns
    -------
    probabilities : ndarray of shape (n_cases, n_classes)
    """
    if isinstance(team, Decider):
        return team.probabilities(decision)
    if not hasattr(team, "predict_proba"):
        return np.full((len(features), len(team.classes_)), np.nan)
    return np.asarray(team.predict_proba(features))


def load_decider(path: str | os.PathLike[str]) -> TableDecider:
    """Read the part of a model that decides, from a file that `deferlearn fit` wrote.

    This takes a fraction of the time of `deferlearn.load`: neither scikit-learn nor the compiled engine is
    loaded, unless the team is known as an estimator only.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    TableDecider

    Raises
    ------
    TableError
        If the file cannot be read, or was not written by `deferlearn fit`.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
        part = read_member(content, os.fspath(path), MEMBER)
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TableError(str(error)) from error
    if part is None:
        from deferlearn.tables.team import load_team

        model, version = load_team(path)
        return model.decider(version)
    try:
        return TableDecider.unpacked(part, version_of(content))
    except TableError as error:
        raise TableError(f"{path} {error}") from error
    except Exception as error:  # whatever it is, the file is at fault
        raise TableError(f"{path} cannot be read: {error!r}") from error


def version_of(content: bytes) -> str:
    """A name of a model file that no other model has."""
    return f"deferlearn-{hashlib.sha256(content).hexdigest()[:12]}"


def check_card(card: dict[str, Any]) -> None:
    """Refuse the card of another format; the message continues the name of the file."""
    if not isinstance(card, dict):
        raise TableError(f"cannot be read: its card is {card!r}")
    if card.get("format") != FORMAT:
        raise TableError("was written by another version of deferlearn: fit the model again")


def check_whole_card(card: dict[str, Any], path: Path) -> None:
    """Refuse a card that lacks what commands ask for."""
    missing = [name for name in CARD if name not in card]
    if missing:
        raise TableError(f"{path} cannot be read: its card lacks {', '.join(missing)}")
