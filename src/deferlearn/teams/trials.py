"""The trials of one run of a search: which candidates are tried, and in which order."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import FitFailedWarning

from deferlearn._utils.progress import Progress
from deferlearn._utils.types import Array
from deferlearn.objective import NumericalError
from deferlearn.teams.blend import BlendSettings, in_words
from deferlearn.teams.candidates import resolve_team, suits
from deferlearn.teams.context import FoldContext
from deferlearn.teams.machine_arrays import MachineError
from deferlearn.teams.trial import Trial

if TYPE_CHECKING:
    from deferlearn.teams.search import Search

# What uncertainty triage stands for where it only finds the machines for teams that are not quick.
PILOT = "every policy"
# Units of a search's work beside the trials of its slow policies.
MACHINE, FINALIST, WINNER = "machine", "finalist", "winner"

# A policy, by its place among the policies, and its machine, by its place among the machines.
Candidate = tuple[int, int]


@dataclass
class Trials:
    """The trials of one run of a search."""

    search: "Search"
    budget: float
    progress: Progress

    def __post_init__(self) -> None:
        self.teams = [resolve_team(policy) for policy in self.search.policies]
        # A team of other authors need not declare what ours do.
        self.quick = [
            place for place, team in enumerate(self.teams) if getattr(team, "is_quick", False)
        ]
        self.machines: list[Any] = []
        self.best: list[float] = []  # score of each machine with a quick team
        self.tried: dict[Candidate, Trial] = {}
        self.repeated: dict[Candidate, Array] = {}  # the mean score in each part over all repeats
        self.failures: list[Exception] = []
        self.blended = False

    def try_quick(self) -> None:
        """Try the quick teams with every machine."""
        for settings in self.search.machines:
            self._try_machine(settings)

    def try_blend(self) -> None:
        """Try the quick teams with the mean of the best machines of all families."""
        members = [self.machines[place] for place in self._best_of_families()]
        self.blended = len(members) > 1
        if self.blended:
            self._try_machine(BlendSettings(tuple(members)))

    def try_slow(self) -> None:
        """Try the other teams with the best machines: first the best of each family, then any.

        In a sparing search, a team that fits machines of its own is tried with the best machine of the
        first family that it can have. Families come from simple to elaborate, and to leave the hardest
        samples to the human helps a machine most that cannot fit them.
        """
        first = self._best_of_families()
        ranked = first + [m for m in self._by_score() if m not in first]
        for place in (place for place in range(len(self.teams)) if place not in self.quick):
            team, policy = self.teams[place], str(self.search.policies[place])
            suited = [machine for machine in ranked if suits(team, self.machines[machine])]
            n_tries = self.search.n_tries(team)
            if n_tries < self.search.n_refined:
                families = [settings.family for settings in self.machines]
                suited.sort(key=lambda machine: families.index(families[machine]))
            for machine in suited[:n_tries]:
                self.progress.begin(policy)
                self._try(place, machine)
                self.progress.done()

    def try_finalists(self) -> list[Candidate]:
        """Try the best candidates, one per policy and family, on other folds."""
        ranked = sorted(self.tried, key=lambda key: -self.tried[key].by_part.mean())
        finalists: dict[tuple[int, str], Candidate] = {}
        for place, machine in ranked:
            finalists.setdefault((place, self.machines[machine].family), (place, machine))
        chosen = list(finalists.values())[: self.search.n_finalists]
        # Those that are taken on a tie must be among them.
        safest = min(self.tried, key=lambda key: preference(key[0], self.machines[key[1]]))
        alone = [key for key in finalists.values() if self.search.replaces_assistance(self, key)]
        for key in (finalists[safest[0], self.machines[safest[1]].family], *alone[:1]):
            chosen += [] if key in chosen else [key]
        for place, machine in chosen:
            parts = [self.tried[place, machine].by_part]
            for context in self.search.repeats:
                self.progress.begin(FINALIST)
                share = self.tried[place, machine].share
                trial = self._attempt(context, place, machine, (share,))
                parts += [] if trial is None else [trial.by_part]
                self.progress.done()
            if len({len(part) for part in parts}) == 1:
                self.repeated[place, machine] = np.asarray(np.mean(parts, axis=0))
        return chosen

    def _by_score(self) -> list[int]:
        order = np.argsort(-np.array(self.best), kind="stable")
        return [int(m) for m in order if np.isfinite(self.best[m])]

    def _best_of_families(self) -> list[int]:
        """The best machine of each family, the best family first."""
        found: dict[str, int] = {}
        for machine in self._by_score():
            found.setdefault(self.machines[machine].family, machine)
        return list(found.values())

    def _try_machine(self, settings: Any) -> None:
        machine = len(self.machines)
        self.machines.append(settings)
        self.best.append(-np.inf)
        self.progress.begin(MACHINE)
        for place in self.quick:
            self._try(place, machine)
        if not self.quick:  # uncertainty finds the machines for the others
            pilot = self._attempt(self.search.context, None, machine)
            self.best[machine] = -np.inf if pilot is None else float(pilot.by_part.mean())
        self.progress.done()

    def _try(self, place: int, machine: int) -> None:
        if not suits(self.teams[place], self.machines[machine]):
            return
        trial = self._attempt(self.search.context, place, machine)
        if trial is not None:
            self.tried[place, machine] = trial
            if place in self.quick:
                self.best[machine] = max(self.best[machine], float(trial.by_part.mean()))

    def _attempt(
        self,
        context: FoldContext,
        place: int | None,
        machine: int,
        shares: Sequence[float] | None = None,
    ) -> Trial | None:
        """A trial; None where the machine cannot be solved, which must not end the search."""
        settings = self.machines[machine]
        team = resolve_team("uncertainty") if place is None else self.teams[place]
        policy = PILOT if place is None else self.search.policies[place]
        what = f"{policy}, {in_words(settings)}"
        try:
            trial = self.search.try_in(context, team, settings, self.budget, shares)
        except (NumericalError, MachineError) as error:
            self.failures.append(error)
            warnings.warn(f"Left out: {what}. {error}", FitFailedWarning, stacklevel=6)
            return None
        if place is not None:
            self.search.report(f"{what}: {trial.by_part.mean():.4f}")
        return trial


def preference(place: int, settings: Any) -> int:
    """The order in which candidates that nearly tie are taken: by policy, and of these a blend first.

    Of several machines that are about as good, one is the best by luck; their mean is the safer choice.
    """
    return 2 * place + (not isinstance(settings, BlendSettings))
