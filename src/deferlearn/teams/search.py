"""Try teams with machines on held-out folds, and choose by what the team gets wrong there."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from deferlearn._utils.progress import Progress
from deferlearn._utils.types import Array, Bools, Index
from deferlearn.humans.answers import find_missing
from deferlearn.humans.losses import majority_labels
from deferlearn.metrics import evaluate_team, find_metric
from deferlearn.objective import NumericalError
from deferlearn.teams.candidates import equip, resolve_team
from deferlearn.teams.choice import by_group, choose
from deferlearn.teams.context import SELECTION, FoldContext, scores_by_fitting
from deferlearn.teams.machine import MachineSettings
from deferlearn.teams.machines import parameters_of
from deferlearn.teams.parameters import count_of
from deferlearn.teams.samples import Samples
from deferlearn.teams.threshold import first_of

# What uncertainty triage stands for where it only finds the machines for teams that are not quick.
PILOT = "every policy"
# Units of a search's work beside the trials of its slow policies.
MACHINE, WINNER = "machine", "winner"
# How long a trial of a team that trains machines of its own takes, compared with the folds of one machine.
# It matters only until the first such trial is done.
OWN_MACHINES = 10.0


class Trial(NamedTuple):
    """What a candidate did with samples that it had not seen, and what that is worth.

    Attributes
    ----------
    positive : ndarray of bool of shape (n_samples,)
        Whether the machine's answer is the second class.
    deferred : ndarray of bool of shape (n_samples,)
        The samples that went to the human.
    by_fold : ndarray of shape (n_folds,)
        The score in each fold, larger is better.
    by_part : ndarray of shape (n_parts,)
        The score in each independent part of the data: a sample, a group of samples, or a fold. Its mean
        is the score of all samples.
    """

    positive: Bools
    deferred: Bools
    by_fold: Array
    by_part: Array


class Outcome(NamedTuple):
    """The winner of a search, not fitted, and the table of all candidates.

    Attributes
    ----------
    team : estimator
        The winner, with the parameters of its machine.
    settings : MachineSettings
        Its machine.
    params : dict
        Its policy as given, and the machine's parameters.
    place : int
        Its place in the table.
    score : float
        Its mean score.
    cv_results : dict of ndarray
        A row per candidate, as in `sklearn.model_selection.GridSearchCV`.
    machine : int
        The number of its machine.
    """

    team: Any
    settings: MachineSettings
    params: dict[str, Any]
    place: int
    score: float
    cv_results: dict[str, Any]
    machine: int


@dataclass(frozen=True)
class Search:
    """The candidates of a search, and the samples in folds on which they are tried.

    Attributes
    ----------
    context : FoldContext
        The samples in folds; what teams make of them is shared by all candidates and budgets.
    machines : list of MachineSettings
        Machines to try.
    policies : sequence
        Ways to share the work, from simple to elaborate; see `resolve_team`.
    common : dict
        Parameters that all teams get where they have them.
    cv : int, splitter or iterable
        The folds as the user gave them, which the winner keeps.
    groups : ndarray of shape (n_samples,) or None
        Samples that belong together.
    scoring : str, callable or None
        A metric, or None for the cost of the team's answers.
    n_refined : int
        The number of machines with which teams that are not quick are tried.
    n_standard_errors : float
        How many standard errors from the best are a near-tie.
    report : callable
        Called with a line of text per candidate.
    """

    context: FoldContext
    machines: list[MachineSettings]
    policies: Sequence[Any]
    common: dict[str, Any]
    cv: Any = 5
    groups: NDArray[Any] | None = None
    scoring: Any = None
    n_refined: int = 2
    n_standard_errors: float = 1.0
    report: Callable[[str], None] = lambda text: None

    def units(self) -> dict[str, tuple[int, float]]:
        """The work of `run` and `fit`, for a `Progress`.

        Quick teams share the machines of the folds, so that all of them with a machine are one unit.
        """
        machines = len(self.machines)
        units = {MACHINE: (machines, 1.0), WINNER: (1, 1.0)}
        for policy in self.policies:
            team = resolve_team(policy)
            if not getattr(team, "is_quick", False):
                alone = not getattr(team, "shares_machines", True)
                weight = OWN_MACHINES if alone else 1.0
                units[str(policy)] = (min(self.n_refined, machines), weight)
        return units

    def run(self, budget: float, progress: Progress | None = None) -> Outcome:
        """Try the quick teams with every machine, the others with the best of these, and choose."""
        progress = Progress(self.units()) if progress is None else progress
        self.context.forget(SELECTION)  # those of another budget
        teams = [resolve_team(policy) for policy in self.policies]
        # A team of other authors need not declare what ours do.
        quick = [place for place, team in enumerate(teams) if getattr(team, "is_quick", False)]
        tried: dict[tuple[int, int], Trial] = {}
        failures: list[NumericalError] = []

        def attempt(team: Any, machine: int, policy: Any) -> Trial | None:
            """A trial; None where the machine cannot be solved, which must not end the search."""
            settings = self.machines[machine]
            what = f"{policy}, kernel {settings.kernel}, alpha {settings.alpha:g}"
            try:
                trial = self._try(team, machine, budget)
            except NumericalError as error:
                failures.append(error)
                warnings.warn(f"Left out: {what}. {error}", FitFailedWarning, stacklevel=4)
                return None
            if policy != PILOT:
                self.report(f"{what}: {trial.by_part.mean():.4f}")
            return trial

        best = np.full(len(self.machines), -np.inf)
        for machine in range(len(self.machines)):
            progress.begin(MACHINE)
            for place in quick:
                trial = attempt(teams[place], machine, self.policies[place])
                if trial is not None:
                    tried[place, machine] = trial
                    best[machine] = max(best[machine], trial.by_part.mean())
            if not quick:  # uncertainty finds the machines for the others
                pilot = attempt(resolve_team("uncertainty"), machine, PILOT)
                best[machine] = -np.inf if pilot is None else pilot.by_part.mean()
            progress.done()
        refined = np.sort(np.argsort(-best, kind="stable")[: self.n_refined])
        for place in (place for place in range(len(teams)) if place not in quick):
            for machine in refined[np.isfinite(best[refined])].tolist():
                progress.begin(str(self.policies[place]))
                trial = attempt(teams[place], machine, self.policies[place])
                progress.done()
                if trial is not None:
                    tried[place, machine] = trial
        if not tried:
            raise failures[0]
        return self._conclude(tried, teams, budget)

    def fit(self, outcome: Outcome, budget: float | int) -> Any:
        """The winner fitted on all samples, with the same folds behind its threshold.

        What the search has fitted on these folds is not fitted again.
        """
        context = self.context.with_machine(outcome.settings, outcome.machine)
        samples = context.samples
        winner = equip(outcome.team, outcome.settings, {**self.common, "budget": budget})
        if hasattr(winner, "fit_samples"):
            winner.fit_samples(samples, context)
        else:
            winner = equip(winner, outcome.settings, {"cv": context.splits})
            winner.fit(samples.X, samples.labels, **samples.human.given)
        # The folds' rows mean nothing to a clone on other samples.
        own = winner.get_params(deep=False)
        return winner.set_params(**{"cv": self.cv} if "cv" in own else {})

    def _try(self, team: Any, machine: int, budget: float) -> Trial:
        settings = self.machines[machine]
        context = self.context.with_machine(settings, machine)
        ready = equip(team, settings, {**self.common, "budget": budget, "n_jobs": None})
        if hasattr(ready, "held_out_scores"):
            ready.check_parameters()
            found = ready.held_out_scores(context)
        else:
            found = scores_by_fitting(equip(ready, settings, {"cv": None}), context)
        count = count_of(float(found.rate), len(found.score))
        deferred = first_of(found.score, count) & (found.score > -np.inf)
        return self._scored(found.decision > 0, deferred)

    def _scored(self, positive: Bools, deferred: Bools) -> Trial:
        samples, folds = self.context.samples, self.context.folds
        if self.scoring is None:
            machine = samples.machine_cost(np.where(positive, 1.0, -1.0))
            human = samples.human_cost(self.common["deferral_cost"])
            gain = -np.where(deferred, human, machine)
            by_fold = np.array([gain[fold].mean() for fold in folds])
            return Trial(positive, deferred, by_fold, by_group(gain, self.groups))
        function, larger = find_metric(self.scoring)
        said = np.where(deferred, answers_of(samples), samples.classes[positive.astype(np.int64)])

        def value_in(fold: Index) -> float:
            truth, part = samples.labels[fold], deferred[fold]
            value = evaluate_team(function, truth, said[fold], lambda: part, samples.classes)
            if not np.isfinite(value):
                raise ValueError(
                    f"scoring={self.scoring!r} gives {value} for a fold of {len(fold)} cases: such "
                    "candidates cannot be compared."
                )
            return value if larger else -value

        by_fold = np.array([value_in(fold) for fold in folds])
        return Trial(positive, deferred, by_fold, by_fold)

    def _conclude(
        self, tried: dict[tuple[int, int], Trial], teams: list[Any], budget: float
    ) -> Outcome:
        """The table of all candidates, and the choice."""
        # Of candidates that tie exactly the larger alpha comes first: the simpler machine.
        keys = sorted(tried, key=lambda key: (key[0], -self.machines[key[1]].alpha, key[1]))
        scores = np.array([tried[key].by_fold for key in keys])
        parts = [tried[key].by_part for key in keys]
        mean = np.array([part.mean() for part in parts])
        params = [
            {"policy": self.policies[place], **parameters_of(self.machines[machine])}
            for place, machine in keys
        ]
        cv_results = {
            "params": params,
            "param_policy": _objects([p["policy"] for p in params]),
            "param_alpha": np.array([p["alpha"] for p in params]),
            "param_kernel": _objects([p["kernel"] for p in params]),
            **{f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": rankdata(-np.round(mean, 12), method="min").astype(np.int32),
            "deferral_rate": np.array([tried[key].deferred.mean() for key in keys]),
        }
        index = choose(
            mean,
            np.array([place for place, _ in keys]),
            lambda a, b: parts[a] - parts[b],
            float(self.n_standard_errors),
            np.array([not getattr(teams[place], "is_assisted", True) for place, _ in keys]),
        )
        place, machine = keys[index]
        settings = self.machines[machine]
        team = equip(teams[place], settings, {**self.common, "budget": budget})
        return Outcome(
            team, settings, params[index], index, float(mean[index]), cv_results, machine
        )


def _objects(values: list[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def answers_of(samples: Samples) -> NDArray[Any]:
    """The human's answer to each sample, for metrics that need one."""
    given = samples.human.given
    if not given:
        return samples.labels
    if "human_labels" not in given:
        raise ValueError(
            f"scoring needs the human's answers, but {next(iter(given))} was given: give human_labels, "
            "or leave scoring=None, which looks at losses."
        )
    answers = given["human_labels"]
    missing = find_missing(answers if answers.ndim == 2 else answers[:, None]).all(axis=1)
    if missing.any():
        raise ValueError(
            f"scoring needs an answer to every case, but {int(missing.sum())} have none: leave them "
            "out, or leave scoring=None, which gives them the average loss of their class."
        )
    return majority_labels(answers) if answers.ndim == 2 else answers
