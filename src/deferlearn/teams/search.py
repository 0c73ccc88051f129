"""Try teams with machines on held-out folds, and choose by what the team gets wrong there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from deferlearn._utils.progress import Progress
from deferlearn.teams.blend import BlendSettings
from deferlearn.teams.candidates import equip, resolve_team
from deferlearn.teams.choice import choose
from deferlearn.teams.context import SELECTION, FoldContext, scores_by_fitting
from deferlearn.teams.machine import MachineSettings
from deferlearn.teams.parameters import count_of, share_of
from deferlearn.teams.team import Team
from deferlearn.teams.threshold import first_of
from deferlearn.teams.trial import Trial, judge
from deferlearn.teams.trials import FINALIST, MACHINE, WINNER, Candidate, Trials, preference

# How long a trial of a team that trains machines of its own takes, compared with the folds of one machine.
# It matters only until the first such trial is done.
OWN_MACHINES = 10.0


class Outcome(NamedTuple):
    """The winner of a search, not fitted, and the table of all candidates.

    Attributes
    ----------
    team : estimator
        The winner, with the parameters of its machine.
    settings : MachineSettings, BroughtSettings or BlendSettings
        Its machine.
    params : dict
        Its policy as given, and the machine's parameters.
    place : int
        Its place in the table.
    score : float
        Its mean score.
    share : float
        The share of the budget that it should spend.
    cv_results : dict of ndarray
        A row per candidate, as in `sklearn.model_selection.GridSearchCV`.
    """

    team: Any
    settings: Any
    params: dict[str, Any]
    place: int
    score: float
    share: float
    cv_results: dict[str, Any]


@dataclass(frozen=True)
class Search:
    """The candidates of a search, and the samples in folds on which they are tried.

    Attributes
    ----------
    context : FoldContext
        The samples in folds; what teams make of them is shared by all candidates and budgets.
    machines : list of MachineSettings or BroughtSettings
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
    sparing : bool
        Whether teams that fit machines of their own are tried with one machine only, of the first family
        that suits.
    n_standard_errors : float
        How many standard errors from the best are a near-tie.
    blend : bool
        Whether the mean of the best machines of all families is tried, too.
    repeats : sequence of FoldContext
        The same samples in other folds, on which the best candidates are tried again.
    n_finalists : int
        How many candidates these are.
    shares : sequence of float
        Shares of the budget of which the one that does best is spent, the largest first.
    given_scores : bool
        Whether the machine's scores were given, as the last column of the features.
    report : callable
        Called with a line of text per candidate.
    """

    context: FoldContext
    machines: list[Any]
    policies: Sequence[Any]
    common: dict[str, Any]
    cv: Any = 5
    groups: NDArray[Any] | None = None
    scoring: Any = None
    n_refined: int = 2
    sparing: bool = False
    n_standard_errors: float = 1.0
    blend: bool = False
    repeats: Sequence[FoldContext] = ()
    n_finalists: int = 6
    shares: Sequence[float] = (1.0,)
    given_scores: bool = False
    report: Callable[[str], None] = lambda text: None

    def units(self) -> dict[str, tuple[int, float]]:
        """The work of `run` and `fit`, for a `Progress`.

        Quick teams share the machines of the folds, so that all of them with a machine are one unit.
        """
        machines = len(self.machines) + self._can_blend()
        units = {MACHINE: (machines, 1.0), WINNER: (1, 1.0)}
        if self.repeats:
            units[FINALIST] = (self.n_finalists * len(self.repeats), 1.0)
        for policy in self.policies:
            team = resolve_team(policy)
            if not getattr(team, "is_quick", False):
                weight = 1.0 if getattr(team, "shares_machines", True) else OWN_MACHINES
                units[str(policy)] = (min(self.n_tries(team), machines), weight)
        return units

    def n_tries(self, team: Any) -> int:
        """With how many machines a team that is not quick is tried."""
        if self.sparing and not getattr(team, "shares_machines", True):
            return 1
        return self.n_refined

    def _can_blend(self) -> bool:
        return self.blend and len({settings.family for settings in self.machines}) > 1

    def run(self, budget: float, progress: Progress | None = None) -> Outcome:
        """Try the quick teams with every machine, the others with the best of these, and choose."""
        progress = Progress(self.units()) if progress is None else progress
        for context in (self.context, *self.repeats):
            context.forget(SELECTION)  # those of another budget
        trials = Trials(self, budget, progress)
        trials.try_quick()
        if self._can_blend():
            trials.try_blend()
        trials.try_slow()
        if not trials.tried:
            raise trials.failures[0] if trials.failures else self._no_candidate()
        finalists = trials.try_finalists() if self.repeats else list(trials.tried)
        return self._conclude(trials, finalists)

    def _no_candidate(self) -> ValueError:
        families = ", ".join(dict.fromkeys(settings.family for settings in self.machines))
        return ValueError(
            f"None of policies={list(self.policies)!r} can have any of these machines: {families}. Those "
            "of AssistedSVC need an SVM, and 'assisted' one of another kind that can be refitted."
        )

    def fit(self, outcome: Outcome, budget: float | int) -> Any:
        """The winner fitted on all samples, with the same folds behind its threshold.

        What the search has fitted on these folds is not fitted again.
        """
        context = self.context.with_machine(outcome.settings)
        samples = context.samples
        if outcome.share < 1.0:
            budget = outcome.share * share_of(budget, len(samples))
        winner = equip(outcome.team, outcome.settings, {**self.common, "budget": budget})
        if isinstance(winner, Team):
            winner.takes_given(self.given_scores)
            winner.fit_samples(samples, context)
        else:
            winner = equip(winner, outcome.settings, {"cv": context.splits})
            samples.fit_other(winner)
        # The folds' rows mean nothing to a clone on other samples.
        own = winner.get_params(deep=False)
        return winner.set_params(**{"cv": self.cv} if "cv" in own else {})

    def try_in(
        self,
        context: FoldContext,
        team: Any,
        settings: Any,
        budget: float,
        shares: Sequence[float] | None = None,
    ) -> Trial:
        """A trial of one candidate on the folds of a context: of its shares of the budget the best."""
        context = context.with_machine(settings)
        ready = equip(team, settings, {**self.common, "budget": budget, "n_jobs": None})
        if hasattr(ready, "held_out_scores"):
            ready.check_parameters()
            found = ready.held_out_scores(context)
        else:
            found = scores_by_fitting(equip(ready, settings, {"cv": None}), context)
        shares = self.shares if shares is None else shares
        if not getattr(team, "shares_machines", True):  # it is trained for the whole of the budget
            shares = (1.0,)
        costs = {name: self.common[name] for name in ("deferral_cost", "cost_matrix")}
        trials = []
        for share in shares:
            count = count_of(share * float(found.rate), len(found.score))
            deferred = first_of(found.score, count) & (found.score > -np.inf)
            trial = judge(context, found.said, deferred, self.groups, self.scoring, costs)
            trials.append(trial._replace(share=share))
        return max(trials, key=lambda trial: float(trial.by_part.mean()))

    def _conclude(self, trials: Trials, finalists: list[Candidate]) -> Outcome:
        """The table of all candidates, and the choice among the finalists."""
        machines, tried = trials.machines, trials.tried
        # Of candidates that tie exactly the larger alpha comes first: the simpler machine.
        keys = sorted(
            tried, key=lambda key: (key[0], -getattr(machines[key[1]], "alpha", 0.0), key[1])
        )
        scores = np.array([tried[key].by_fold for key in keys])
        # Finalists are judged by all folds that they were tried on.
        parts = [trials.repeated.get(key, tried[key].by_part) for key in keys]
        mean = np.array([part.mean() for part in parts])
        params = [
            {"policy": self.policies[place], **self._name(machines[machine])}
            for place, machine in keys
        ]
        cv_results = {
            "params": params,
            "param_policy": _objects([p["policy"] for p in params]),
            "param_machine": _objects([machines[machine].family for _, machine in keys]),
            "param_alpha": np.array([p.get("alpha", np.nan) for p in params]),
            "param_kernel": _objects([p.get("kernel") for p in params]),
            **{f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": rankdata(-np.round(mean, 12), method="min").astype(np.int32),
            "deferral_rate": np.array([tried[key].deferred.mean() for key in keys]),
        }
        if self.repeats:
            cv_results["finalist"] = np.array([key in finalists for key in keys])
        among = [k for k, key in enumerate(keys) if key in finalists]
        chosen = choose(
            mean[among],
            np.array([preference(keys[k][0], machines[keys[k][1]]) for k in among]),
            lambda a, b: parts[among[a]] - parts[among[b]],
            float(self.n_standard_errors),
            np.array([self.replaces_assistance(trials, keys[k]) for k in among]),
        )
        index = among[chosen]
        place, machine = keys[index]
        settings = machines[machine]
        team = equip(trials.teams[place], settings, {**self.common, "budget": trials.budget})
        share = tried[keys[index]].share
        return Outcome(team, settings, params[index], index, float(mean[index]), share, cv_results)

    def replaces_assistance(self, trials: Trials, candidate: Candidate) -> bool:
        """Whether it never asks a human, and is taken where asking does no better.

        With a blend among the machines, the blend alone: the best of the others is best by luck.
        """
        place, machine = candidate
        asks = getattr(trials.teams[place], "is_assisted", True)
        return not asks and (
            not trials.blended or isinstance(trials.machines[machine], BlendSettings)
        )

    def _name(self, settings: Any) -> dict[str, Any]:
        """What a machine is called in the table: its family where there are several kinds of machines."""
        only_svms = all(isinstance(machine, MachineSettings) for machine in self.machines)
        return ({} if only_svms else {"machine": settings.family}) | settings.parameters()


def _objects(values: list[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
