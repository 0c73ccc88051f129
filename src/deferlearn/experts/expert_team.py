"""`ExpertTeam`: a machine and several experts with limited time."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from deferlearn.experts.answers import NO_ANSWER, case_names, read_answers
from deferlearn.experts.assisting import Assisting
from deferlearn.experts.capacity import as_counts
from deferlearn.experts.considering import named
from deferlearn.experts.fitting import learn_experts, prices_in_training
from deferlearn.experts.settings import check_settings, team_budget
from deferlearn.experts.skills import Skills
from deferlearn.experts.training import ExpertCertificate, PricedSelection, certify_experts
from deferlearn.humans.coding import Codes
from deferlearn.humans.human import warn_if_reordered
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.folds import splits_from, stratified_folds
from deferlearn.teams.parameters import count_of, draw_seed
from deferlearn.teams.samples import Samples
from deferlearn.teams.team_cv import TeamCV


class _Training(NamedTuple):
    """What `certify` needs, in the process of the fit only."""

    objective: Any
    found: PricedSelection
    value: float


@dataclass(eq=False, repr=False)
class ExpertTeam(Assisting, ClassifierMixin, BaseEstimator):
    """A machine and several experts, each with limited time: who takes which case.

    Each expert's expected loss on a case is learned from all experts' answers and from the expert's own,
    the more from these the more there are. A case goes to the expert for whom expected loss plus price is
    smallest, if that is below the machine's expected loss. The price of an expert is what one more case in
    this expert's time would be worth. Prices are such that no expert gets more cases than there is time
    for, on average.

    With an `AssistedSVC` the machine is trained for the experts: samples cost ``min_e (c_ie + price_e)``,
    and those that experts take do not train the machine. With a single expert there is nobody to choose
    between, and everything is as `team` alone would do it.

    Parameters
    ----------
    team : estimator or None, default=None
        The machine, and how it is trained: `AssistedSVC`, `TeamCV`, or another team with folds. None is
        `TeamCV`. Its budget is set to what all experts can take.
    capacity : dict
        For each expert the most that this expert takes: a share of the cases, such as 0.1, or a whole
        number of them. In `fit`, a whole number counts training samples; on new cases it acts as the
        corresponding share. An expert with the capacity 0 takes no cases, but the answers help to judge the
        others. A name is a text, or a whole number, which stands for its text.
    budget : float, int or None, default=None
        The most that all experts take together; None: as much as their capacities allow.
    readings : {1, 2, 3}, default=1
        How many experts read each deferred case. The answer is that of the majority. A machine that is
        trained for experts (`AssistedSVC`) has one reading.
    arbiter : str or None, default=None
        The expert who decides where the readers disagree, and who is not one of the readers. None: the
        machine's answer decides. Only with two or three readings. How often an arbiter will be needed is
        not known beforehand, so the arbiter's capacity holds on average, in batches, too.
    skills : {"auto", "class", "linear", "forest"}, default="auto"
        How experts' errors are predicted. "class": by the true class, as likely as the machine finds it.
        "linear": by features and by how sure the machine is, too. "forest": for experts who are good in
        some regions. "auto" takes the simplest of them that no other clearly beats on held-out samples, in
        predicting answers and in what the team gets wrong.
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
    capacity_ : dict
        The share of the cases that each expert can take.
    load_ : dict
        The share of the training samples that each expert would get.
    deferral_rate_ : float
        The share of the training samples that experts would get.
    skill_model_ : str
        The kind of model by which errors are predicted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features; only if X has them, all of them strings.
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.team or TeamCV()).input_tags.sparse
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "prices_")

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
            A column per expert, empty where there is no answer; an array in the order of `capacity`. Or a
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
        capacity = check_settings(self)
        seed = draw_seed(self.random_state)
        warn_if_reordered(X, answers=answers)
        given = read_answers(answers, len(np.asarray(y)), tuple(capacity), case_names(X))
        n = len(given.labels)
        default = TeamCV(n_jobs=self.n_jobs, random_state=seed)
        team = clone(default if self.team is None else self.team)
        if not hasattr(team, "cv"):
            raise ValueError(f"team={self.team!r} has no machine that could be helped.")
        budget = team_budget(self, capacity, n)
        if isinstance(team, AssistedSVC) and len(capacity) > 1:
            # In training, capacities are numbers of samples: shares are rounded down one by one.
            budget = min(count_of(budget, n), int(as_counts(capacity, n).sum()))
        if "budget" in team.get_params(deep=False):  # a machine alone has none
            team.set_params(budget=budget)
        samples = team.read_samples(X, y, {}, None, sample_weight)
        said = given.codes(samples.classes)
        if not (said != NO_ANSWER).any():
            raise ValueError(
                f"answers holds no answer of any of the experts {list(given.names)}: nothing can be "
                "learned about them."
            )
        self.experts_, self.classes_ = given.names, samples.classes
        _warn_of_classes(said, samples)
        self._training: _Training | None = None
        if len(capacity) == 1 or not isinstance(team, AssistedSVC):
            human = {"human_labels": given.labels[:, 0] if len(capacity) == 1 else given.labels}
        else:
            objective, found = prices_in_training(team, samples, said, capacity)
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
        self.n_features_in_ = samples.X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(self.team_, "feature_names_in_"):
            self.feature_names_in_ = self.team_.feature_names_in_
        if "human_loss" in human:
            value, chosen = found.value_of(team.selection_)
            self._training = _Training(objective, found, value)
            self.assignment_ = named(chosen, self.experts_)
        known = learn_experts(self, X, samples, said, splits, groups, budget, seed)
        self.skills_: Skills = known.skills
        self.skill_model_, self.deferral_rate_ = known.kind, known.rate
        self.load_ = dict(zip(self.experts_, known.load, strict=True))
        self.capacity_ = dict(zip(self.experts_, known.routing.capacity.tolist(), strict=True))
        self._all_groups = known.all_groups
        self._route(known.routing)
        return self

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


def _warn_of_classes(said: Codes, samples: Samples) -> None:
    """Warn of classes of which no expert has answered any sample."""
    answered = (said != NO_ANSWER).any(axis=1)
    for k, label in enumerate(samples.classes.tolist()):
        own = samples.codes == k
        if own.any() and not answered[own].any():
            warnings.warn(
                f"No expert has answered any sample of the class {label!r}, so nothing is known of their "
                "errors on it: they are taken to err on about half of its cases.",
                UserWarning,
                stacklevel=3,
            )
