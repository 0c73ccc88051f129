"""`ExpertTeam`: a machine and several experts with limited time."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn._utils.types import Array, Bools
from deferlearn.experts.answers import NO_ANSWER, ExpertAnswers, read_answers
from deferlearn.experts.asking import team_codes
from deferlearn.experts.capacity import as_counts, as_shares, check_capacity
from deferlearn.experts.error_models import KINDS, ByClass, Cases
from deferlearn.experts.groups import Groups, make_groups
from deferlearn.experts.learning import Machine, learn_errors
from deferlearn.experts.routing import Routing
from deferlearn.experts.skills import Skills, estimate_skills
from deferlearn.experts.training import (
    ExpertCertificate,
    PricedSelection,
    certify_experts,
    find_prices,
)
from deferlearn.experts.transport import MACHINE, Places
from deferlearn.humans.coding import Codes, Coding, codes_among
from deferlearn.humans.human import warn_if_reordered
from deferlearn.humans.labels import check_truth
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.folds import splits_from, stratified_folds
from deferlearn.teams.parameters import count_of, draw_seed, share_of
from deferlearn.teams.samples import Samples
from deferlearn.teams.team import Team
from deferlearn.teams.team_cv import TeamCV

MOST_READINGS = 3


class _Training(NamedTuple):
    """What `certify` needs, in the process of the fit only."""

    objective: Any
    found: PricedSelection
    value: float


@dataclass(eq=False, repr=False)
class ExpertTeam(ClassifierMixin, BaseEstimator):
    """A machine and several experts, each with limited time: who takes which case.

    Each expert's expected loss on a case is learned from all experts' answers and from her own, the more
    from her own the more there are. A case goes to the expert for whom expected loss plus price is
    smallest, if that is below the machine's expected loss. The price of an expert is what one more case in
    her time would be worth. Prices are such that no expert gets more cases than she has time for, on
    average.

    With an `AssistedSVC` the machine is trained for the experts: samples cost ``min_e (c_ie + price_e)``,
    and those that experts take do not train the machine. With a single expert there is nobody to choose
    between, and everything is as `team` alone would do it.

    Parameters
    ----------
    team : estimator or None, default=None
        The machine, and how it is trained: `AssistedSVC`, `TeamCV`, or another team with folds. None is
        `TeamCV`. Its budget is set to what all experts can take.
    capacity : dict
        For each expert the most that she takes: a share of the cases, such as 0.1, or a whole number of
        them. In `fit`, a whole number counts training samples; on new cases it acts as the corresponding
        share. An expert with the capacity 0 takes no cases, but her answers help to judge the others.
    budget : float, int or None, default=None
        The most that all experts take together; None: as much as their capacities allow.
    readings : {1, 2, 3}, default=1
        How many experts read each deferred case. The answer is that of the majority. A machine that is
        trained for experts (`AssistedSVC`) has one reading.
    arbiter : str or None, default=None
        The expert who decides where the readers disagree; she is not among the readers. None: the
        machine's answer decides. Only with two or three readings. How often she will be needed is not known
        beforehand, so her capacity holds on average, in batches, too.
    skills : {"auto", "class", "linear", "forest"}, default="auto"
        How experts' errors are foreseen. "class": by the true class, as likely as the machine finds it.
        "linear": by features and by how sure the machine is, too. "forest": for experts who are good in
        some regions. "auto" takes the simplest of them that no other clearly beats on held-out samples, in
        foreseeing answers and in what the team gets wrong.
    cv : int or splitter, default=5
        Folds for the models of the experts' errors.
    n_jobs : int or None, default=None
        The number of folds to work on at a time.
    random_state : int, RandomState or None, default=None
        Seed of folds and forests, and of the coin that decides between experts who are alike.

    Attributes
    ----------
    team_ : estimator
        The fitted team with the machine.
    experts_ : tuple of str
        Names of the experts.
    classes_ : ndarray of shape (n_classes,)
        The labels, in order.
    skills_ : Skills
        How often each expert errs, with intervals.
    prices_ : dict
        What one more case in each expert's time would be worth, in errors avoided; 0 if time is left.
    budget_price_ : float
        What one more case in the budget of all experts would be worth; 0 without a budget.
    load_ : dict
        The share of the training samples that each expert would get.
    deferral_rate_ : float
        The share of the training samples that experts would get.
    skill_model_ : str
        The kind of model by which errors are foreseen.
    assignment_ : ndarray of object of shape (n_samples,)
        With an `AssistedSVC`: the expert who takes each training sample, None for the machine.

    See Also
    --------
    Stream : Cases that arrive one by one, within daily limits.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn import AdvantageTriage
    >>> from deferlearn.experts import ExpertTeam
    >>> from deferlearn.humans import SkilledHuman
    >>> luck = np.random.default_rng(0)
    >>> X = luck.normal(size=(1000, 2))
    >>> y = np.where(X[:, 1] + luck.normal(size=1000) > 0, 1, -1)
    >>> left = SkilledHuman.good_in_half_space([-1.0, 0.0], good=0.02, poor=0.4)
    >>> right = SkilledHuman.good_in_half_space([1.0, 0.0], good=0.02, poor=0.4)
    >>> answers = {"Ann": left.labels(X, y, random_state=1), "Bob": right.labels(X, y, random_state=2)}
    >>> team = ExpertTeam(AdvantageTriage(), {"Ann": 0.1, "Bob": 0.1}, skills="linear", random_state=0)
    >>> team = team.fit(X, y, answers)
    >>> who = team.assign(X)
    >>> bool(X[who == "Ann", 0].max() < X[who == "Bob", 0].min())
    True
    """

    team: Any = None
    capacity: Any = None
    _: KW_ONLY
    budget: float | int | None = None
    readings: int = 1
    arbiter: str | None = None
    skills: str = "auto"
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "prices_")

    # -- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        answers: Any,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the machine, learn what each expert is good at, and find the prices of their time.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            True labels.
        answers : DataFrame, dict of columns or array-like of shape (n_samples, n_experts)
            A column per expert, empty where she gave no answer; an array in the order of `capacity`. Or a
            long table with the columns case, expert and answer, where cases are the index of X, if it is
            a DataFrame, and else 0, 1, .... An expert without any answer is taken for the average of all.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group, such as one patient's, stay in one fold.
        sample_weight : array-like of shape (n_samples,), default=None
            What an error on each sample costs, whoever errs.

        Returns
        -------
        self
            The fitted estimator.
        """
        for name in ("prices_", "assignment_"):  # a fit that fails leaves no half of an older one
            self.__dict__.pop(name, None)
        capacity = self._check_parameters()
        seed = draw_seed(self.random_state)
        warn_if_reordered(X, answers=answers)
        given = read_answers(answers, len(np.asarray(y)), tuple(capacity), _names_of(X))
        n = len(given.labels)
        default = TeamCV(n_jobs=self.n_jobs, random_state=seed)
        team = clone(default if self.team is None else self.team)
        if not hasattr(team, "cv"):
            raise ValueError(f"team={self.team!r} has no machine that could be helped.")
        budget = self._team_budget(capacity, n)
        if isinstance(team, AssistedSVC) and len(capacity) > 1:
            # In training, capacities are numbers of samples: shares are rounded down one by one.
            budget = min(count_of(budget, n), int(as_counts(capacity, n).sum()))
        if "budget" in team.get_params(deep=False):  # a machine alone has none
            team.set_params(budget=budget)
        samples = team.read_samples(X, y, {}, None, sample_weight)
        said = given.codes(samples.classes)
        self._check_answered(given, said)
        self.experts_, self.classes_ = given.names, samples.classes
        self.n_features_in_ = samples.X.shape[1]
        self._training: _Training | None = None
        if len(capacity) == 1 or not isinstance(team, AssistedSVC):
            human = {"human_labels": given.labels[:, 0] if len(capacity) == 1 else given.labels}
        else:
            objective, found = self._find_prices(team, samples, said, capacity)
            # Errors are weighed, and time is added, when the team reads the losses.
            loss = found.loss - samples.coding.hinge_per_error * float(team.deferral_cost)
            human = {"human_loss": loss * samples.coding.weights[samples.codes] / samples.weights}
        more: dict[str, Any] = {"sample_weight": sample_weight}
        groups = None if groups is None else np.asarray(groups)
        folds = stratified_folds(self.cv, samples.X, samples.labels, groups, seed)
        splits = splits_from(folds, n)
        own_cv = team.cv
        if groups is not None and hasattr(team, "open_search"):
            more["groups"] = groups
        elif groups is not None:
            team.set_params(cv=splits)
        self.team_ = team.fit(X, y, **human, **more).set_params(cv=own_cv)
        if "human_loss" in human:
            value, chosen = found.value_of(team.selection_)
            self._training = _Training(objective, found, value)
            self.assignment_ = _named(chosen, self.experts_)
        self._learn(samples, said, splits, groups, budget, seed)
        return self

    def _check_parameters(self) -> dict[str, float | int]:
        capacity = check_capacity(self.capacity)
        if self.team is not None and not isinstance(self.team, Team):
            raise ValueError(
                f"team={self.team!r} must be a team such as TeamCV(), AssistedSVC() or "
                "AdvantageTriage(machine=...), or None."
            )
        kinds = ("auto", *KINDS)
        if self.skills not in kinds:
            raise ValueError(f"skills={self.skills!r} is not known; use one of {list(kinds)}.")
        if not is_whole(self.readings) or not 1 <= self.readings <= MOST_READINGS:
            raise ValueError(f"readings={plain(self.readings)!r} must be 1, 2 or 3.")
        if self.arbiter is not None:
            if self.arbiter not in capacity:
                raise ValueError(
                    f"arbiter={self.arbiter!r} has no capacity; experts are {list(capacity)}."
                )
            if self.readings == 1:
                raise ValueError(
                    f"arbiter={self.arbiter!r}: with one reading nobody disagrees; set readings to 2 or 3."
                )
        if self.readings > 1 and isinstance(self.team, AssistedSVC):
            raise ValueError(
                f"readings={self.readings}: AssistedSVC trains its machine for single readings; use "
                "another team, such as TeamCV()."
            )
        readers = len(capacity) - (self.arbiter is not None)
        if self.readings > readers:
            raise ValueError(
                f"readings={self.readings} needs as many experts besides the arbiter, but capacity has "
                f"{readers}: {list(capacity)}."
            )
        if self.budget is not None and not is_number(self.budget):
            raise ValueError(f"budget={plain(self.budget)!r} must be a share, a number, or None.")
        return capacity

    def _team_budget(self, capacity: Mapping[str, float | int], n: int) -> float | int:
        """What the team may defer, as it was given if there is one expert and no budget."""
        readers = {name: value for name, value in capacity.items() if name != self.arbiter}
        shares = float(min(as_shares(readers, n).sum() / self.readings, 1.0))
        if self.budget is None:
            (one, *others) = capacity.values()
            return shares if others or one > n else one
        count_of(self.budget, n)
        return min(share_of(self.budget, n), shares)

    def _check_answered(self, given: ExpertAnswers, said: Codes) -> None:
        if not (said != NO_ANSWER).any():
            raise ValueError(
                f"answers holds no answer of any of the experts {list(given.names)}: nothing can be "
                "learned about them."
            )

    def _find_prices(
        self, team: AssistedSVC, samples: Samples, said: Codes, capacity: dict[str, Any]
    ) -> tuple[Any, PricedSelection]:
        """The machine's objective, and prices at which capacities hold in training."""
        coding, n = samples.coding, len(samples)
        share = self._shares(samples, said)
        # Where an expert gave no answer: how often she errs on the class.
        cases = Cases(samples.X, np.zeros((n, len(coding.classes))), samples.codes)
        share = np.where(np.isnan(share), ByClass().fit(cases, share, 0).on_class(cases), share)
        unit = coding.hinge_per_error * float(coding.costs.max()) * samples.weights
        cost = unit[:, None] * share + coding.hinge_per_error * float(team.deferral_cost)
        total = count_of(team.budget, n)
        objective, selector = team.open_selection(samples)
        return objective, find_prices(objective, selector, cost, as_counts(capacity, n), total)

    def _shares(self, samples: Samples, said: Codes) -> Array:
        """What answers cost as shares of the worst mistake, NaN where there is none."""
        costs = samples.coding.costs
        share = costs[samples.codes[:, None], np.maximum(said, 0)] / max(float(costs.max()), 1e-300)
        return np.where(said == NO_ANSWER, np.nan, share)

    def _learn(
        self,
        samples: Samples,
        said: Codes,
        splits: list[Any],
        groups: Any,
        budget: float | int,
        seed: int,
    ) -> None:
        """Learn what each expert is good at, form groups of readers, and find prices."""
        codes, coding, n = samples.codes, samples.coding, len(samples)
        mix = np.bincount(codes, minlength=len(self.classes_)) / n
        self.skills_: Skills = _skills(said, codes, mix, self.experts_, self.classes_)
        known = self.team_.held_out_probabilities()
        cases = Cases(samples.X, known, codes)
        machine = coding.by_probability(np.log(np.maximum(known, 1e-300)))
        arbiter = -1 if self.arbiter is None else self.experts_.index(self.arbiter)
        capacity = as_shares(check_capacity(self.capacity), n)
        # Those on which the machine is least sure: as many as experts may get, and not too few.
        unsure = known.max(axis=1)
        share = max(0.2, min(share_of(budget, n), 1.0))
        hard = unsure <= np.quantile(unsure, share)
        most = min(MOST_READINGS, len(self.experts_) - (arbiter >= 0))
        self._all_groups: list[Groups] = [
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
            worst=_worst(coding),
            stakes=coding.stakes,
            groups=self._all_groups[int(self.readings) - 1],
            mix=mix,
            deferral_cost=float(getattr(self.team_, "deferral_cost", 0.0)),
            seed=seed,
            capacity=capacity,
            total=1.0 if self.budget is None else share_of(budget, n),
            prices=np.zeros(len(capacity)),
        )
        learned = learn_errors(
            cases,
            self._shares(samples, said),
            routing.worst,
            Machine(routing.machine_cost(known, machine), samples.machine_cost(machine)),
            samples.weights * float(coding.costs.max()),
            routing.deferral_cost,
            capacity,
            routing.total,
            self._kinds(samples.X, routing.worst),
            splits,
            groups,
            seed,
            self.n_jobs,
        )
        self.skill_model_ = learned.kind
        routing = replace(routing, model=learned.model)
        gains = routing.gains(cases, machine, learned.expected)
        self._route(routing.priced(gains, samples.X))
        places = self._routing.place(gains, samples.X)
        load = self._routing.loads(places).tolist()
        self.deferral_rate_ = float(np.mean(places != MACHINE))
        if len(self.experts_) == 1:  # then the team's own rule decides
            self.deferral_rate_ = float(getattr(self.team_, "deferral_rate_", 0.0))
            load = [self.deferral_rate_]
        self.load_ = dict(zip(self.experts_, load, strict=True))

    def _kinds(self, X: Any, worst: Array) -> tuple[str, ...]:
        uneven = bool(np.ptp(worst) > 1e-9 * worst.max())
        if self.skills == "forest" and uneven:
            raise ValueError(
                "skills='forest' does not know on which class an expert errs, but mistakes on some classes "
                "cost more here: use 'linear' or 'class'."
            )
        if self.skills != "auto":
            return (self.skills,)
        without = {"linear"} if sp.issparse(X) else set()
        without |= {"forest"} if uneven else set()
        return tuple(kind for kind in KINDS if kind not in without)

    def _route(self, routing: Routing) -> None:
        self._routing = routing
        self.prices_ = dict(zip(self.experts_, routing.prices.tolist(), strict=True))
        self.budget_price_ = float(routing.common)

    # -- expected losses ----------------------------------------------------------------------

    def _new(self, X: Any) -> tuple[Cases, Codes]:
        """New cases as models of errors see them, and the machine's answers."""
        check_is_fitted(self)
        probabilities = self.team_.predict_proba(X)
        machine = codes_among(self.team_.predict(X), self.classes_, "predict(X)")
        return Cases(check_array(X, accept_sparse="csr", dtype=np.float64), probabilities), machine

    def expected_errors(self, X: Any) -> tuple[Array, Array]:
        """How much the machine and each expert are expected to lose on each case, in units of one error.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            Cases.

        Returns
        -------
        machine : ndarray of shape (n_cases,)
        experts : ndarray of shape (n_cases, n_experts)
            In the order of `experts_`; without prices.
        """
        cases, machine = self._new(X)
        routing = self._routing
        own = routing.machine_cost(cases.probabilities, machine)
        return own, routing.model.expected(cases, routing.worst)

    def gains(self, X: Any) -> Array:
        """By how much each option is expected to lose less than the machine, without prices.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            Cases.

        Returns
        -------
        gains : ndarray of shape (n_cases, n_options)
            An option is an expert; with several readings, a group of them, in the order of `options_`.
        """
        cases, machine = self._new(X)
        return self._routing.gains(cases, machine)

    @property
    def options_(self) -> list[Any]:
        """Who may take a case: names of experts, or with several readings tuples of names."""
        check_is_fitted(self)
        groups = self._routing.groups
        names = [tuple(self.experts_[e] for e in group) for group in groups.members]
        return [name[0] for name in names] if groups.readings == 1 else names

    # -- who takes a case ---------------------------------------------------------------------

    def preferred(self, gains: Array) -> NDArray[Any]:
        """Who would take each case at the present prices if an expert had to, whether that pays or not.

        Parameters
        ----------
        gains : ndarray of shape (n_cases, n_options)
            Of the method `gains`.

        Returns
        -------
        who : ndarray of object of shape (n_cases,)
            Options that need nobody without capacity.
        """
        check_is_fitted(self)
        return _named(self._routing.at_prices(np.asarray(gains)).argmax(axis=1), self.options_)

    def assign(self, X: Any) -> NDArray[Any]:
        """Who takes each case, one at a time, by the present prices.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            Cases.

        Returns
        -------
        who : ndarray of object of shape (n_cases,)
            The expert's name, a tuple of names with several readings, or None for the machine.
        """
        return _named(self._assigned(X), self.options_)

    def _assigned(self, X: Any) -> Places:
        check_is_fitted(self)
        if len(self.experts_) == 1:
            return np.where(self.team_.defer(X), 0, MACHINE)
        cases, machine = self._new(X)
        return self._routing.place(self._routing.gains(cases, machine), cases.X)

    def assign_batch(
        self,
        X: Any,
        capacity: Mapping[str, float | int] | None = None,
        *,
        budget: float | int | None = None,
    ) -> NDArray[Any]:
        """Who takes each case of a batch, at the smallest expected loss within hard capacities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            The batch.
        capacity : dict or None, default=None
            For each expert a share of the batch, rounded down, or a number of cases; one above the size of
            the batch is the whole batch. An expert who is not named takes none. None: the capacities of
            `fit`, as shares.
        budget : float, int or None, default=None
            The most that all experts take; None: as much as their capacities allow, and the share in
            `fit` if both are None.

        Returns
        -------
        who : ndarray of object of shape (n_cases,)
            As in `assign`.
        """
        return _named(self._assigned_batch(X, capacity, budget), self.options_)

    def _assigned_batch(self, X: Any, capacity: Any, budget: Any) -> Places:
        check_is_fitted(self)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        counts, total = self._counts(capacity, budget, n)
        if not counts.any():
            return np.full(n, MACHINE)
        if len(self.experts_) == 1:
            return np.where(self.team_.defer_top(X, int(min(counts[0], total))), 0, MACHINE)
        return self._routing.batch(self.gains(X), counts, total).chosen

    def _counts(self, capacity: Any, budget: Any, n: int) -> tuple[Array, float]:
        if capacity is None:
            counts = np.floor(self._routing.capacity * n + 1e-9)
            total = float(np.floor(self._routing.total * n + 1e-9))
        else:
            given = check_capacity(capacity) if any(capacity.values()) else dict(capacity)
            stray = [name for name in given if name not in self.experts_]
            if stray:
                raise ValueError(
                    f"capacity has {stray[0]!r}, who is not among the experts {list(self.experts_)}."
                )
            counts = as_counts({name: given.get(name, 0) for name in self.experts_}, n)
            total = float(n)
        if is_whole(budget):
            budget = min(budget, n)
        return counts, total if budget is None else float(count_of(budget, n, "cases"))

    def update_prices(self, load: Mapping[str, int], n_cases: int, *, step: float = 0.1) -> Self:
        """Move the prices after some cases: up for experts who got more than they can take, else down.

        Parameters
        ----------
        load : dict
            How many of the cases each expert got; 0 for those who are not named.
        n_cases : int
            How many cases there were.
        step : float, default=0.1
            The change of a price, in errors, if the load differs from the capacity by all cases.

        Returns
        -------
        self
            With new `prices_`. Limits that must never be exceeded are the business of `Stream`.
        """
        check_is_fitted(self)
        stray = [name for name in load if name not in self.experts_]
        if stray:
            raise ValueError(
                f"load has {stray[0]!r}, who is not among the experts {list(self.experts_)}."
            )
        if not is_whole(n_cases) or n_cases < 1:
            raise ValueError(f"n_cases={plain(n_cases)!r} must be a whole number, 1 or larger.")
        for name, count in load.items():
            if not is_whole(count) or not 0 <= count <= n_cases:
                raise ValueError(
                    f"load[{name!r}]={plain(count)!r} must be a whole number from 0 to {n_cases}."
                )
        if not is_number(step) or step <= 0:
            raise ValueError(f"step={plain(step)!r} must be a positive number.")
        if len(self.experts_) == 1:
            raise ValueError("With a single expert the team's own rule decides, without prices.")
        routing = self._routing
        share = np.array([load.get(name, 0) / n_cases for name in self.experts_])
        prices = np.maximum(routing.prices + step * (share - routing.capacity), 0.0)
        over = float(share.sum()) / self.readings - routing.total
        common = max(routing.common + step * over, 0.0)
        self._route(replace(routing, prices=prices, common=common))
        return self

    def compare_readings(self, X: Any) -> list[dict[str, float]]:
        """What one, two and three readers per case would cost and reach, side by side.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            Cases like those to come.

        Returns
        -------
        rows : list of dict
            For each number of readers: "readings", the share "deferred", the "time" in readings per case,
            with those of an arbiter, and the expected "error" per case of the team, which takes the
            experts' capacities for this batch. The cost of time is part of it if the team has one.
        """
        cases, machine = self._new(X)
        own = self._routing.machine_cost(cases.probabilities, machine)
        counts, total = self._counts(None, None, len(own))
        if self.budget is None:  # what capacities allow depends on the number of readers
            total = float(len(own))
        rows = []
        for groups in self._all_groups:
            routing = replace(self._routing, groups=groups)
            found = routing.batch(routing.gains(cases, machine), counts, total)
            time = float(routing.loads(found.chosen).sum())
            rows.append(
                {
                    "readings": groups.readings,
                    "deferred": float(np.mean(found.chosen != MACHINE)),
                    "time": time,
                    "error": float((own.sum() - found.gain) / len(own)),
                }
            )
        return rows

    # -- the team's methods -------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """The machine's answer for every row, deferred or not."""
        check_is_fitted(self)
        labels: NDArray[Any] = self.team_.predict(X)
        return labels

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class for every row, as the machine sees it."""
        check_is_fitted(self)
        probabilities: Array = self.team_.predict_proba(X)
        return probabilities

    def deferral_score(self, X: Any) -> Array:
        """How much each case belongs with an expert at the present prices: above 0 it is deferred.

        With a single expert it is the score of `team_`, which has a threshold of its own.
        """
        check_is_fitted(self)
        if len(self.experts_) == 1:
            score: Array = self.team_.deferral_score(X)
            return score
        cases, machine = self._new(X)
        net = self._routing.net(self._routing.gains(cases, machine), cases.X)
        return np.asarray(net.max(axis=1))

    def defer(self, X: Any) -> Bools:
        """Whether an expert should take each case, one at a time."""
        return self._assigned(X) != MACHINE

    def defer_top(self, X: Any, budget: float | int | None = None) -> Bools:
        """Whether an expert should take each case of this batch, within the capacities of `fit`."""
        return self._assigned_batch(X, None, budget) != MACHINE

    def predict_assisted(self, X: Any, answers: Any, batch: bool = False) -> NDArray[Any]:
        """The team's answer: that of the expert who takes a case, else the machine's.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            Cases.
        answers : callable, DataFrame, dict of columns or array-like of shape (n_cases, n_experts)
            A function is asked for the rows that an expert takes: it gets their positions in X, an array
            of integers, and the expert's name, and returns an answer for each. Or a table as in `fit`. A
            deferred case without an answer is an error: the machine does not silently stand in.
        batch : bool, default=False
            Whether to assign by `assign_batch` instead of `assign`.

        Returns
        -------
        labels : ndarray of shape (n_cases,)
        """
        check_is_fitted(self)
        warn_if_reordered(X, answers=answers)
        places = self._assigned_batch(X, None, None) if batch else self._assigned(X)
        machine = codes_among(self.predict(X), self.classes_, "predict(X)")
        groups = self._routing.groups
        codes = team_codes(
            places, machine, answers, groups, self.experts_, self.classes_, _names_of(X)
        )
        return self.classes_[codes]

    def score(self, X: Any, y: ArrayLike, sample_weight: Any = None) -> float:
        """Accuracy of the machine alone; that of the team is `score_assisted`."""
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def score_assisted(self, X: Any, y: ArrayLike, answers: Any, batch: bool = False) -> float:
        """Accuracy of the team; ``answers`` and ``batch`` are as in `predict_assisted`."""
        check_is_fitted(self)
        said = self.predict_assisted(X, answers, batch)
        return float(accuracy_score(check_truth(y, self.classes_), said))

    def certify(self) -> Any:
        """How good the assignment of the training samples is, for a machine that is trained for experts.

        It needs the training data, which a fitted model holds on to in this process only.

        Returns
        -------
        certificate : ExpertCertificate
            With a single expert, the `deferlearn.bounds.Certificate` of `AssistedSVC`.
        """
        check_is_fitted(self)
        if not isinstance(self.team_, AssistedSVC):
            raise ValueError(
                f"{type(self.team_).__name__} trains its machine on all samples, so there is no selection "
                "to certify: use team=AssistedSVC(...)."
            )
        if len(self.experts_) == 1:
            return self.team_.certify()
        if self._training is None:
            raise ValueError(
                "The certificate needs the training data, and a model that was copied or loaded has none: "
                "call certify() on the fitted model, before it is copied or stored."
            )
        certificate: ExpertCertificate = certify_experts(*self._training)
        return certificate

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_training" in state:
            state["_training"] = None
        return state


def _names_of(X: Any) -> Any:
    """The names of the cases in a long table of answers: the index of a DataFrame, else None."""
    index = getattr(X, "index", None)
    return index if hasattr(index, "equals") else None


def _named(places: Places, options: Sequence[Any]) -> NDArray[Any]:
    """Who takes each case: an option, or None for the machine."""
    names = np.empty(len(places), dtype=object)
    for row in np.flatnonzero(places != MACHINE):
        names[row] = options[places[row]]
    return names


def _skills(
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


def _worst(coding: Coding) -> Array:
    """What the worst mistake on a case of each class costs."""
    cost = coding.costs.sum(axis=1)
    weight = np.where(cost > 0, coding.stakes.sum(axis=1) / np.where(cost > 0, cost, 1.0), 1.0)
    return np.asarray(weight * float(coding.costs.max()))
