"""From the answers of experts to what is known about them: skills, models of errors, groups, prices."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import KDTree

from deferlearn._utils.checks import is_whole
from deferlearn._utils.types import Array
from deferlearn.experts.answers import NO_ANSWER
from deferlearn.experts.capacity import as_counts, as_shares, check_capacity, name_text
from deferlearn.experts.error_models import KINDS, ByClass, Cases
from deferlearn.experts.groups import MOST_READINGS, Groups, make_groups
from deferlearn.experts.learning import Machine, learn_errors
from deferlearn.experts.routing import Routing, worst_mistakes
from deferlearn.experts.skills import Skills, estimate_skills
from deferlearn.experts.training import PricedSelection, find_prices
from deferlearn.experts.transport import MACHINE
from deferlearn.humans.coding import Codes
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.folds import splits_from, stratified_folds
from deferlearn.teams.held_out import Split
from deferlearn.teams.parameters import count_of, share_of
from deferlearn.teams.samples import Samples

# So many folds say how forests judge new cases, if there are at most so many samples. With more samples,
# fewer folds will do: what a fold leaves out matters less, and takes longer.
MANY_FOLDS, ENOUGH = 20, 2000
# Probabilities that agree in so many digits are the same.
DIGITS = 9
# A machine has few answers if it gives each of them to so many samples, on average.
MANY_CASES = 20
# Its held-out answers differ from them by no more, on average. Those of a machine that knows its training
# samples by heart do: what it answers to these says nothing about new cases.
LUCK = 0.05


class Knowledge(NamedTuple):
    """What an `ExpertTeam` learns about its experts.

    Attributes
    ----------
    skills : Skills
        How often each of them errs.
    kind : str
        The kind of model by which errors are predicted.
    all_groups : list of Groups
        Who may read a case together, for each number of readings.
    routing : Routing
        Who takes a case, with prices.
    load : list of float
        The share of the samples that each expert would get.
    rate : float
        The share that experts would get together.
    """

    skills: Skills
    kind: str
    all_groups: list[Groups]
    routing: Routing
    load: list[float]
    rate: float


def prices_in_training(
    team: AssistedSVC, samples: Samples, said: Codes, capacity: Mapping[str, float | int]
) -> tuple[Any, PricedSelection]:
    """The machine's objective, and prices at which capacities hold in training.

    Parameters
    ----------
    team : AssistedSVC
        It trains the machine for the experts.
    samples : Samples
        The training samples.
    said : ndarray of int of shape (n_samples, n_experts)
        The experts' answers, -1 where there is none.
    capacity : mapping
        What each expert can take.

    Returns
    -------
    objective : SVMObjective or SumObjective
    found : PricedSelection
    """
    coding, n = samples.coding, len(samples)
    share = _cost_shares(samples, said)
    # Where an expert gave no answer: how often this expert errs on the class.
    cases = Cases(samples.X, np.zeros((n, len(coding.classes))), samples.codes)
    share = np.where(np.isnan(share), ByClass().fit(cases, share, 0).on_class(cases), share)
    unit = coding.hinge_per_error * float(coding.costs.max()) * samples.weights
    cost = unit[:, None] * share + coding.hinge_per_error * float(team.deferral_cost)
    total = count_of(team.budget, n)
    objective, selector = team.open_selection(samples)
    return objective, find_prices(objective, selector, cost, as_counts(capacity, n), total)


def learn_experts(
    team: Any,
    X: Any,
    samples: Samples,
    said: Codes,
    splits: list[Any],
    groups: Any,
    budget: float | int,
    seed: int,
) -> Knowledge:
    """Learn what each expert is good at, form groups of readers, and find prices.

    Parameters
    ----------
    team : ExpertTeam
        Its machine is fitted.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The training samples as they were given.
    samples : Samples
        The training samples.
    said : ndarray of int of shape (n_samples, n_experts)
        The experts' answers, -1 where there is none.
    splits : list of (train, test)
        The folds.
    groups : ndarray of shape (n_samples,) or None
        Samples that belong together.
    budget : float or int
        What all experts can take.
    seed : int
        Random seed of forests and coins.

    Returns
    -------
    Knowledge
    """
    codes, coding, n = samples.codes, samples.coding, len(samples)
    mix = np.bincount(codes, minlength=len(team.classes_)) / n
    skills = _count_skills(said, codes, mix, team.experts_, team.classes_)
    known = _as_of_new_cases(team.team_, X)
    cases = Cases(samples.X, known, codes)
    machine = coding.by_probability(np.log(np.maximum(known, 1e-300)))
    arbiter = -1 if team.arbiter is None else team.experts_.index(name_text(team.arbiter))
    capacity = as_shares(check_capacity(team.capacity), n)
    # Those on which the machine is least sure: as many as experts may get, and not too few.
    unsure = known.max(axis=1)
    share = max(0.2, min(share_of(budget, n), 1.0))
    hard = unsure <= np.quantile(unsure, share)
    most = min(MOST_READINGS, len(team.experts_) - (arbiter >= 0))
    all_groups = [
        # One reading needs no arbiter.
        make_groups(
            readings,
            arbiter if readings > 1 else -1,
            said,
            codes,
            machine,
            coding.costs,
            hard,
        )
        for readings in range(1, most + 1)
    ]
    routing = Routing(
        model=ByClass(),
        worst=worst_mistakes(coding),
        stakes=coding.stakes,
        groups=all_groups[int(team.readings) - 1],
        mix=mix,
        deferral_cost=float(getattr(team.team_, "deferral_cost", 0.0)),
        seed=seed,
        capacity=capacity,
        total=1.0 if team.budget is None else share_of(budget, n),
        prices=np.zeros(len(capacity)),
    )
    learned = learn_errors(
        cases,
        _cost_shares(samples, said),
        routing.worst,
        Machine(routing.machine_cost(known, machine), samples.machine_cost(machine)),
        samples.weights * float(coding.costs.max()),
        routing.deferral_cost,
        capacity,
        routing.total,
        _kinds_to_try(team.skills, samples.X, routing.worst),
        splits,
        _finer_splits(team.cv, samples, groups, seed),
        groups,
        seed,
        team.n_jobs,
    )
    routing = replace(routing, model=learned.model)
    gains = routing.gains(cases, machine, learned.expected)
    routing = routing.priced(gains, samples.X)
    places = routing.place(gains, samples.X)
    load = routing.loads(places).tolist()
    rate = float(np.mean(places != MACHINE))
    if len(team.experts_) == 1:  # then the team's own rule decides
        rate = float(getattr(team.team_, "deferral_rate_", 0.0))
        load = [rate]
    return Knowledge(skills, learned.kind, all_groups, routing, load, rate)


def _as_of_new_cases(team: Any, X: Any) -> Array:
    """The probabilities that the machine would give the samples if they were new cases."""
    known: Array = team.held_out_probabilities()
    answers = np.unique(np.round(team.predict_proba(X), DIGITS), axis=0)
    if len(answers) * MANY_CASES > len(known):
        return known
    # A machine of few answers, such as a small tree, gives each of them to many new cases at once. Held-out
    # answers differ a little between folds, by luck, and prices between them would send all of these cases
    # to experts, or none.
    distance, nearest = KDTree(answers).query(known, p=np.inf)
    return np.asarray(answers[nearest]) if distance.mean() <= LUCK else known


def _finer_splits(cv: Any, samples: Samples, groups: Any, seed: int) -> list[Split] | None:
    """More folds than ``cv`` for few samples; None if they would be no more, or cv is a splitter."""
    n = len(samples)
    wanted = min(MANY_FOLDS, MANY_FOLDS * ENOUGH // n)
    if not is_whole(cv) or wanted <= cv:
        return None
    return splits_from(stratified_folds(wanted, samples.X, samples.labels, groups, seed), n)


def _cost_shares(samples: Samples, said: Codes) -> Array:
    """What answers cost as shares of the worst mistake, NaN where there is none."""
    costs = samples.coding.costs
    share = costs[samples.codes[:, None], np.maximum(said, 0)] / max(float(costs.max()), 1e-300)
    return np.where(said == NO_ANSWER, np.nan, share)


def _kinds_to_try(skills: str, X: Any, worst: Array) -> tuple[str, ...]:
    """The kinds of models of errors to try, from simple to elaborate."""
    uneven = bool(np.ptp(worst) > 1e-9 * worst.max())
    if skills == "forest" and uneven:
        raise ValueError(
            "skills='forest' does not know on which class an expert errs, but mistakes on some classes "
            "cost more here: use 'linear' or 'class'."
        )
    if skills != "auto":
        return (skills,)
    without = {"linear"} if sp.issparse(X) else set()
    without |= {"forest"} if uneven else set()
    return tuple(kind for kind in KINDS if kind not in without)


def _count_skills(
    said: Codes, codes: Codes, mix: Array, experts: tuple[str, ...], classes: NDArray[Any]
) -> Skills:
    """How often each expert errs on each class."""
    answered = said != NO_ANSWER
    wrong = answered & (said != codes[:, None])
    counts = [
        np.column_stack([what[codes == k].sum(axis=0) for k in range(len(classes))])
        for what in (wrong, answered)
    ]
    return estimate_skills(counts[0].astype(float), counts[1], mix, experts, classes)
