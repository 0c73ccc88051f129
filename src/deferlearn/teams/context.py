"""What teams need to be judged on held-out folds: machines and models without each fold, made once."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.humans.coding import Codes, codes_among
from deferlearn.objective import NumericalError
from deferlearn.teams.folds import splits_from
from deferlearn.teams.held_out import Split, held_out
from deferlearn.teams.machine import MachineSettings, below_others
from deferlearn.teams.probabilities import ClassMachine, calibrate_classes, margins_in
from deferlearn.teams.samples import Samples

Made = TypeVar("Made")

# Kernel values of held-out rows that may be kept while alphas change (256 MB).
SHARED_VALUES = 2**25
# Under keys with this word are selections on all samples with their objectives.
SELECTION = "selection"


class HeldOutScores(NamedTuple):
    """What a team says of samples that it has not seen.

    Attributes
    ----------
    said : ndarray of int of shape (n_samples,)
        The machine's answers, as places among the classes.
    score : ndarray of shape (n_samples,)
        Deferral scores that can be compared across folds; a sample with -inf is never deferred.
    rate : float
        The share of the samples to be deferred.
    """

    said: Codes
    score: Array
    rate: float


@dataclass(frozen=True)
class FoldContext:
    """Samples in folds, one machine to be fitted on them, and all that was made of them so far.

    Attributes
    ----------
    samples : Samples
        With the settings of the machine.
    folds : list of ndarray
        Held-out rows; together every row once. Empty if nothing is to be held out.
    seed : int
        Random seed of the models that are fitted.
    n_jobs : int or None
        How many folds to work on at a time.
    machines : sequence of MachineSettings or BroughtSettings
        All machines of the search.
    """

    samples: Samples
    folds: list[Index]
    seed: int
    n_jobs: int | None = None
    machines: Sequence[Any] = ()
    _made: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def splits(self) -> list[Split]:
        """The folds as pairs (train, test)."""
        return splits_from(self.folds, len(self.samples))

    @property
    def machine(self) -> tuple[Any, bytes | None]:
        """What tells machines apart: their settings, and the samples that they are fitted on."""
        trained_on = self.samples.trained_on
        return self.samples.settings, None if trained_on is None else trained_on.tobytes()

    def with_machine(self, settings: Any) -> Self:
        """The same folds with another machine; what does not depend on it is shared."""
        return replace(self, samples=replace(self.samples, settings=settings))

    def trained_on(self, kept: Bools) -> Self:
        """The same folds with a machine that is fitted on some of the samples only."""
        return replace(self, samples=replace(self.samples, trained_on=kept))

    def once(self, key: Any, make: Callable[[], Made]) -> Made:
        """What was made under this key before, or is made now."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    def forget(self, kind: str) -> None:
        """Drop what was made under keys that begin with this word, since it takes much memory."""
        for key in [key for key in self._made if key[0] == kind]:
            del self._made[key]

    def name_of(self, team: Any, *without: str) -> tuple[type, str]:
        """The same for estimators that differ at most in the parameters named (and those within them)."""
        params = {
            name: value
            for name, value in team.get_params().items()
            if name.partition("__")[0] not in without
        }
        # Kept, so that no other parameter gets the address by which one may be shown.
        self._made.setdefault(("named",), []).append(params)
        return type(team), str(params)

    def margins(self) -> tuple[Array, list[Array]]:
        """Decision values of machines without a fold: of every sample, and of each machine's own.

        With several classes these are logarithms of probabilities, a column per class; see
        `teams.probabilities`.
        """
        settings = self.samples.settings
        if not isinstance(settings, MachineSettings):
            return self.once(("margins", self.machine), lambda: settings.margins_in(self))
        if self.samples.coding.several:
            return self.once(
                ("margins", self.machine), lambda: margins_in(self, self.class_scores())
            )
        made = self._by_alpha("decisions", _margins)
        return self.join([new for new, _ in made]), [own for _, own in made]

    def class_scores(self) -> Array:
        """Held-out decision values of the SVMs that tell several classes apart, not calibrated."""
        return self.join(self._by_alpha("class scores", _class_scores))

    def _by_alpha(self, kind: str, solve: Callable[..., Any]) -> list[Any]:
        """What SVMs without each fold say; machines that differ in alpha only are solved together."""
        settings = self.samples.settings
        key = (kind, self.machine)
        if key not in self._made:
            # Machines that differ in alpha only are solved one after the other, fold by fold.
            family = dict.fromkeys(
                (
                    *(m for m in self.machines if isinstance(m, MachineSettings)),
                    settings,
                )
            )
            alphas = [
                member.alpha
                for member in family
                if replace(member, alpha=settings.alpha) == settings
            ]
            parts = held_out(solve, self.splits, self.samples, alphas, n_jobs=self.n_jobs)
            for place, alpha in enumerate(alphas):
                solved = self.with_machine(replace(settings, alpha=alpha)).machine
                self._made[kind, solved] = [part[place] for part in parts]
        made: list[Any] = self._made[key]
        for part in made:
            if isinstance(part, NumericalError):
                raise part
        return made

    def final(self) -> tuple[Any, Array]:
        """The machine fitted on all samples, and its decision values of them."""
        settings = self.samples.settings

        def make() -> tuple[Any, Array]:
            if not isinstance(settings, MachineSettings):
                final: tuple[Any, Array] = settings.final_in(self)
                return final
            samples = self.samples
            machine = samples.placed(samples.training_part().solve())
            if samples.coding.several:
                raw = self.class_scores() if self.folds else machine.decision_function(samples.X)
                calibration = calibrate_classes(raw, samples.codes, samples.coding)
                return ClassMachine(machine, calibration), calibration(raw)
            return machine, machine.decision_function(samples.X)

        return self.once(("final", self.machine), make)

    def join(self, parts: Sequence[NDArray[Any]]) -> Any:
        """What was found fold by fold, in the order of the samples."""
        out = np.empty((len(self.samples), *parts[0].shape[1:]), dtype=parts[0].dtype)
        for fold, part in zip(self.folds, parts, strict=True):
            out[fold] = part
        return out

    def mean_rate(self, rates: Sequence[float]) -> float:
        """The mean over all samples of a rate in each fold."""
        return float(np.average(rates, weights=[len(fold) for fold in self.folds]))


def _margins(
    train: Index, test: Index, samples: Samples, alphas: list[float]
) -> list[tuple[Array, Array] | NumericalError]:
    """For each alpha, decision values of the rows ``test`` and of a machine's own rows, or the error."""
    whole, new = samples.part(train), samples.seen_by(test, train)
    part = whole.training_part()
    # A kernel is evaluated once for all alphas, unless its values take too much memory.
    share = part is whole and len(alphas) > 1 and len(test) * len(train) <= SHARED_VALUES
    values = part.settings.kernel_values(new, part.X) if share else None
    found: list[Any] = [None] * len(alphas)
    for place, objective in part.objectives(alphas):
        if isinstance(objective, NumericalError):
            found[place] = objective
            continue
        machine: Any = whole.placed(part.with_alpha(alphas[place]).machine_in(objective))
        decided = machine.decide_by(values) if share else machine.decision_function(new)
        own = (
            part.own_decisions(objective, machine)
            if part is whole
            else machine.decision_function(whole.X)
        )
        found[place] = (decided, own)
    return found


def _class_scores(
    train: Index, test: Index, samples: Samples, alphas: list[float]
) -> list[Array | NumericalError]:
    """For each alpha, scores of the rows ``test`` by the machines that tell classes apart, or the error."""
    whole, new = samples.part(train).training_part(), samples.seen_by(test, train)
    if samples.trained_on is not None and samples.settings.precomputed:
        new = new[:, np.flatnonzero(samples.trained_on[train])]
    share = len(alphas) > 1 and len(test) * len(train) <= SHARED_VALUES
    values = whole.settings.kernel_values(new, whole.X) if share else None
    found: list[Any] = [[] for _ in alphas]
    first: Any = None  # the objective whose kernel values the machines of the other classes share
    for part in whole.told_apart():
        for place, objective in part.objectives(alphas, like=first):
            first = objective if first is None else first
            if isinstance(objective, NumericalError) or isinstance(found[place], NumericalError):
                found[place] = objective if isinstance(objective, NumericalError) else found[place]
                continue
            machine: Any = part.with_alpha(alphas[place]).machine_in(objective)
            decided = machine.decide_by(values) if share else machine.decision_function(new)
            found[place].append(decided)
    lost = whole.lost_among(np.ones(len(whole), dtype=bool))
    return [
        one if isinstance(one, NumericalError) else below_others(np.column_stack(one), lost)
        for one in found
    ]


def places(score: Array, rate: float) -> Array:
    """Scores of one fold as places in it: policies of folds differ in scale."""
    if rate in (0.0, 1.0):
        # No case or every case: these must not compete with the scores of other folds.
        return np.full(len(score), -np.inf if rate == 0.0 else np.inf)
    return np.asarray(rankdata(score) / len(score))


def scores_by_fitting(team: Any, context: FoldContext) -> HeldOutScores:
    """Held-out scores of any team: it is fitted without each fold, and asked about the fold."""

    def make() -> list[tuple[Codes, Array, float]]:
        return held_out(_fit_and_ask, context.splits, team, context.samples, n_jobs=context.n_jobs)

    parts = context.once(("fitted", context.machine, context.name_of(team)), make)
    return HeldOutScores(
        context.join([said for said, _, _ in parts]),
        context.join([places(score, rate) for _, score, rate in parts]),
        context.mean_rate([rate for _, _, rate in parts]),
    )


def _fit_and_ask(
    train: Index, test: Index, team: Any, samples: Samples
) -> tuple[Codes, Array, float]:
    if len(np.unique(samples.codes[train])) < 2:
        # Where one class alone is left the machine answers with it, and no case is deferred.
        return np.full(len(test), samples.codes[train][0]), np.zeros(len(test)), 0.0
    part = samples.part(train)
    with warnings.catch_warnings():
        # What a part of the samples lacks is no news; the fit on all of them warns of it.
        warnings.simplefilter("ignore", UserWarning)
        team = part.fit_other(clone(team))
    new = samples.seen_by(test, train)
    if hasattr(team, "predict"):
        said = codes_among(np.asarray(team.predict(new)), samples.classes, "predict(X)")
    else:
        said = samples.coding.by_votes(team.decision_function(new))
    return said, team.deferral_score(new), float(team.deferral_rate_)
