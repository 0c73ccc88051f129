"""What `AssistedSVC` learns without each fold: the selection, the machine, and the policy."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.humans.coding import Coding
from deferlearn.teams.context import FoldContext, HeldOutScores, places
from deferlearn.teams.held_out import held_out
from deferlearn.teams.policy import DeferralPolicy
from deferlearn.teams.ranking import sureness
from deferlearn.teams.samples import Samples
from deferlearn.teams.selector import Selector
from deferlearn.teams.threshold import ranks_among


class FoldFit(NamedTuple):
    """Without a fold: decision values of the fold and of the others, and which of these were deferred."""

    margin: Array
    own_margin: Array
    deferred: Bools

    @property
    def rate(self) -> float:
        """The share that was deferred."""
        return float(self.deferred.mean())


def seen_by(policy: DeferralPolicy, margin: Array, coding: Coding) -> Array:
    """Decision values as a policy sees them: of several classes, how sure the machine is, or all.

    Parameters
    ----------
    policy : DeferralPolicy
        The policy.
    margin : ndarray
        Decision values of the machine.
    coding : Coding
        The classes.

    Returns
    -------
    seen : ndarray
    """
    if margin.ndim == 1 or policy.signed:
        return margin
    return sureness(margin, len(coding.classes))


@dataclass(frozen=True)
class AssistedFolds:
    """Selections, machines and policies without each fold; teams that differ in policy share the former.

    Attributes
    ----------
    context : FoldContext
        The samples in folds; what is learned here is kept in it.
    selector : Selector
        What selects the samples to be deferred, with a ratio of its own.
    budget : int
        How many of all samples may be deferred.
    deferral_cost : float
        Cost of human time, in units of one error.
    """

    context: FoldContext
    selector: Selector
    budget: int
    deferral_cost: float

    @property
    def _counts(self) -> list[int]:
        # Of n samples a part with m has round(budget m / n) to defer.
        n = len(self.context.samples)
        return [round(self.budget * len(rest) / n) for rest, _ in self.context.splits]

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.context.machine, self.deferral_cost, self.selector, *self._counts

    @cached_property
    def parts(self) -> list[FoldFit]:
        """Selection and machine without each fold."""
        context = self.context
        return context.once(
            ("parts", *self._key),
            lambda: held_out(
                _select_without,
                context.splits,
                context.samples,
                context.samples.hinge_cost(self.deferral_cost),
                self.selector,
                each=self._counts,
                n_jobs=context.n_jobs,
            ),
        )

    @cached_property
    def margin(self) -> Array:
        """Decision values of machines that had not seen the sample."""
        return self.context.join([part.margin for part in self.parts])

    def policies(self, policy: DeferralPolicy, *, own: bool) -> list[DeferralPolicy]:
        """The policy learned without each fold.

        Parameters
        ----------
        policy : DeferralPolicy
            Not fitted.
        own : bool
            Whether it learns from the machine's decision values of its own samples, or of held-out ones.

        Returns
        -------
        policies : list of DeferralPolicy
        """
        context = self.context
        coding = context.samples.coding
        seen = [
            (seen_by(policy, part.own_margin if own else self.margin[rest], coding), part.deferred)
            for (rest, _), part in zip(context.splits, self.parts, strict=True)
        ]
        return context.once(
            ("policies", context.name_of(policy), own, "parts", *self._key),
            lambda: held_out(
                _learn_without,
                context.splits,
                policy,
                context.samples,
                context.seed,
                each=seen,
                n_jobs=context.n_jobs,
            ),
        )

    def ranks(self, policies: list[DeferralPolicy]) -> Array:
        """Where held-out samples rank among those that policy and machine were learned from.

        Parameters
        ----------
        policies : list of DeferralPolicy
            One for each fold.

        Returns
        -------
        ranks : ndarray of shape (n_samples,)
        """
        samples, splits = self.context.samples, self.context.splits
        found = []
        for k, ((rest, fold), part, policy) in enumerate(
            zip(splits, self.parts, policies, strict=True)
        ):
            new, old = (
                policy.deferral_score(
                    samples.seen_by(rows, rest), seen_by(policy, margin, samples.coding)
                )
                for rows, margin in ((fold, part.margin), (rest, part.own_margin))
            )
            found.append(ranks_among(new, old, k, len(splits)))
        return self.context.join(found)

    def scores(self, policies: list[DeferralPolicy], most: float) -> HeldOutScores:
        """What the team says of held-out samples.

        Parameters
        ----------
        policies : list of DeferralPolicy
            One for each fold.
        most : float
            The budget, as a share.

        Returns
        -------
        scores : HeldOutScores
        """
        context, samples = self.context, self.context.samples
        scores = [
            places(
                policy.deferral_score(
                    samples.seen_by(fold, rest), seen_by(policy, part.margin, samples.coding)
                ),
                part.rate,
            )
            for (rest, fold), policy, part in zip(context.splits, policies, self.parts, strict=True)
        ]
        rate = context.mean_rate([part.rate for part in self.parts])
        # Counts of parts are rounded, which must not add up to more than the budget.
        return HeldOutScores(
            samples.coding.by_votes(self.margin), context.join(scores), min(rate, most)
        )


def _select_without(
    train: Index, test: Index, samples: Samples, loss: Array, selector: Selector, budget: int
) -> FoldFit:
    part = samples.part(train)
    result, rest = selector.run(part.objective(), loss[train], budget)
    deferred = np.zeros(len(train), dtype=bool)
    deferred[result.order] = True
    machine = part.machine_in(rest)
    new = machine.decision_function(samples.seen_by(test, train))
    return FoldFit(new, part.own_decisions(rest, machine), deferred)


def _learn_without(
    train: Index,
    test: Index,
    policy: DeferralPolicy,
    samples: Samples,
    seed: int,
    seen: tuple[Array, Bools],
) -> DeferralPolicy:
    """A policy that has not seen a fold; ``seen`` are margins of the others, and who was deferred."""
    margin, deferred = seen
    return clone(policy).fit(samples.seen_by(train, train), margin, deferred, seed)
