"""`AssistedSVC`: an SVM and the choice of the cases that humans take, learned together."""

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.progress import Progress, in_words, sometimes, watched_by
from deferlearn._utils.types import Array
from deferlearn.bounds import certificate
from deferlearn.bounds.certificate import Certificate
from deferlearn.humans.human import Human
from deferlearn.humans.losses import check_bound
from deferlearn.objective import SumObjective, SVMObjective
from deferlearn.selection import SelectionResult
from deferlearn.teams.assisted_folds import AssistedFolds, seen_by
from deferlearn.teams.context import SELECTION, FoldContext, HeldOutScores
from deferlearn.teams.folds import random_folds
from deferlearn.teams.packing import pack, unpack
from deferlearn.teams.parameters import check_assisted_svc, count_of, draw_seed, share_of
from deferlearn.teams.policy import DeferralPolicy, resolve_policy
from deferlearn.teams.ranking import BySureness, Constant, Ranking
from deferlearn.teams.samples import Samples
from deferlearn.teams.selector import Selector
from deferlearn.teams.svm_team import SVMTeam
from deferlearn.teams.threshold import Threshold, threshold_at, threshold_from_folds

if TYPE_CHECKING:
    from deferlearn.teams.machine import MachineObjective

# The work of a fit: a sweep on all samples takes half as long as selections without each of five folds.
UNITS = {"selection": (1, 1.0), "folds": (1, 2.0)}
# In a search on more samples than this, a sweep takes steps of at least this size.
FEW_SAMPLES, COARSE_DELTA = 2000, 0.5


class _Selected(NamedTuple):
    """The objective on all samples, the samples to be deferred, and the objective without them."""

    objective: "MachineObjective"
    result: SelectionResult
    rest: "MachineObjective"


@dataclass(eq=False, repr=False)
class AssistedSVC(SVMTeam):
    r"""A support vector machine that learns which cases to leave to a human.

    Of the training samples V it chooses a set S of at most ``budget`` to *defer*, and fits the machine on
    the rest, so that machine and human together lose least:

    .. math::

        \min_{S, w, b} \; \sum_{i \in V \setminus S} u_i \left( \alpha \|w\|^2 +
        [1 - y_i (w^T \phi(x_i) + b)]_+ \right) + \sum_{i \in S} (u_i c_i + d)

    with human losses :math:`c_i`, error weights :math:`u_i` (``class_weight``) and the cost d of human time
    (twice ``deferral_cost``, since a wrong answer has a hinge loss of 2). A second model, the policy,
    learns from S which new cases to defer.

    With more than two classes the machine's part is a sum over machines that tell them apart: one per class
    against the rest, or one for each step from a grade to the next. A wrong answer then has a hinge loss of
    4, or of 2 per grade. The sum is monotone and weakly submodular, as its parts are, so nothing else
    changes: gains are exact, and the guarantees hold with the smallest of the parts' ratios.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples. A number acts on
        new data as the fraction that it was of the training samples.
    alpha : float, default=1.0
        Regularisation, the paper's lambda. With k samples kept, the C of `sklearn.svm.SVC` is
        ``1 / (2 * alpha * k)``; with `class_weight`, k is the sum of their weights. It depends on the
        units of X: standardise the features, and tune it. If it is too large, the machine gives the same
        answer everywhere.
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        A callable gets two sets of rows and returns their kernel values. Sparse X is for "linear" only.
    degree, gamma, coef0 : float
        Parameters of the kernels "poly" and "rbf", as in `sklearn.svm.SVC`.
    fit_intercept : bool, default=True
        Whether the machine has an offset b.
    margin : {"soft", "hard"}, default="soft"
        "hard" is for the linear kernel and classes that can be separated.
    class_weight : dict, "balanced" or None, default=None
        The cost of an error on each class. It is the same whoever errs: the human's losses are
        multiplied by it as the machine's are. The cost of the human's time is not.
    classes : {"auto", "grades"} or sequence of labels, default="auto"
        "auto": two classes; or more without an order, with a machine for each class against the rest.
        "grades": ordered as numbers are, with a machine for each step from a grade to the next. For words,
        give the grades from the lowest to the highest.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        What each answer (column) to a case of each class (row) costs, in units of one error and in the
        order of `classes_`. None: every error costs 1, or 1 per grade. The human's answers cost exactly
        this; the machine is trained with the mean cost of the errors on a class as its weight.
    deferral_cost : float, default=0.0
        The cost of human time per deferred sample, in units of one error: at 0.1, reading a case costs a
        tenth of an error.
    min_kept_per_class : int, default=0
        The least number of samples of each class that stay with the machine.
    selection : {"distorted", "stochastic", "unconstrained"}, default="distorted"
        The algorithm; see `deferlearn.selection`. "unconstrained" requires ``budget=1.0``.
    submodularity_ratio : "sweep" or float in (0, 1], default="sweep"
        The paper's gamma, or a search for a good one.
    epsilon : float in (0, 1), default=0.01
        Used by the stochastic algorithm: the smaller it is, the larger are its random samples.
    delta : float in (0, 1), default=0.1
        Step of the sweep.
    tol : float in [0, 1), default=0.0
        Certified slack of each choice of the best candidate: its score is at least ``1 - tol`` times the
        best possible, and ``selection_.slack`` is the largest slack of a pick. 0 is exact. With a linear
        kernel, a soft margin, and more than 2,000 samples and features, as in text, ``tol > 0`` also makes
        a fit much faster: `deferlearn.objective.ApproximateSVMObjective` then gives gains to within
        ``selection_.gap``, and there is no certificate. With any other machine, and with
        ``selection="unconstrained"``, gains are exact.
    policy : {"margin", "mlp"}, DeferralPolicy or classifier, default="margin"
        The model that decides about new cases. "margin" sees only how sure the machine is, "mlp" and
        any classifier see x; `deferlearn.teams.policy.DeferralPolicy` gives the choice.
    human_bound : float or None, default=None
        The paper's H: when given, human scores outside [-H, H] are an error.
    cv : int, splitter or None, default=5
        Folds behind the threshold of `defer`. For each fold, selection, machine and policy are fitted on
        the other folds, so that the threshold rests on scores of held-out samples. None uses the scores
        of the training samples: this is quick, for very large data, and less exact.
    n_jobs : int or None, default=None
        The number of folds to work on at a time, and of threads for the selection on all samples. It
        does not change the fit.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the random samples of the selection, of the policy, and of the coin that
        decides between equal scores.
    verbose : int, default=0
        Whether to print what is done, and from time to time how long the rest may take.
    cache_size : float, default=512
        Megabytes for the matrix of a kernel other than the linear one, or for as many of its columns as
        fit. A smaller cache makes a fit with thousands of samples slower, and changes nothing else.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    deferred_ : ndarray of bool of shape (n_samples,)
        The samples deferred to humans.
    deferred_indices_ : ndarray of shape (n_deferred,)
        The same as rows of the X given to `fit`, in the order in which they were picked.
    selection_ : SelectionResult
        The picks, their gains, and how they were found.
    human_loss_ : ndarray of shape (n_samples,)
        The losses used by the selection: gaps filled, times the class weight, plus the cost of human time
        on the hinge scale.
    coef_ : ndarray of shape (n_machines, n_features)
        The weight vector w, for a linear kernel; with several classes, one for each machine.
    dual_coef_ : ndarray of shape (n_machines, n_support)
        ``w = dual_coef_ @ phi(support_vectors_)``.
    support_ : ndarray of shape (n_support,)
        Rows of the support vectors.
    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Those rows; empty for a precomputed kernel.
    intercept_ : ndarray of shape (n_machines,)
        The offset b; the midpoint where an interval of offsets is optimal.
    policy_ : DeferralPolicy
        The fitted policy.
    deferral_threshold_ : float
        `defer` defers above it; inf if no sample was deferred, -inf if all were.
    deferral_rate_ : float
        The share of the samples that was deferred, which is also the expected share on new data.
    certificate_ : deferlearn.bounds.Certificate
        What is known about how good the selection is. It exists once `certify` was called.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    See Also
    --------
    deferlearn.teams.pipeline.AssistedPipeline : A pipeline with the methods of this class.
    deferlearn.save : Store a fitted model.

    Notes
    -----
    Where a budget reaches the share of the smaller class, to defer all of it can be optimal. The machine
    then knows one class and always answers so, and `fit` warns. If nothing at all is kept, the machine
    answers with the majority of y.

    The rate of `defer` on new data is right on average, not in every fit: for 60 samples and a budget of
    0.2 it varies by 0.05 or so from one training set to the next, for 300 by 0.02. Without folds
    (``cv=None``) it was up to 0.04 too high for 60 samples. `defer_top` meets its number exactly, where
    cases come in batches.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn import AssistedSVC
    >>> rng = np.random.RandomState(0)
    >>> X = rng.normal(size=(120, 2))
    >>> y = np.where(X[:, 0] > 0, "sick", "well")
    >>> hard = np.abs(X[:, 1]) > 1.5  # here the features mislead, and the doctor does not
    >>> y[hard] = np.where(X[hard, 0] > 0, "well", "sick")
    >>> doctor = y.copy()
    >>> doctor[:12] = "well"
    >>> clf = AssistedSVC(budget=0.2, alpha=0.01, policy="mlp", random_state=0)
    >>> clf = clf.fit(X, y, human_labels=doctor)
    >>> int(clf.deferred_.sum())
    24
    >>> clf.predict([[2.0, 0.0], [-2.0, 0.0]])
    array(['sick', 'well'], dtype='<U4')
    >>> clf.defer([[2.0, 0.0], [2.0, 2.5]])
    array([False,  True])
    >>> clf.predict_assisted([[2.0, 0.0], [2.0, 2.5]], lambda rows: ["well"] * len(rows))
    array(['sick', 'well'], dtype='<U4')
    """

    budget: float | int = 0.2
    _: KW_ONLY
    deferral_cost: float = 0.0
    min_kept_per_class: int = 0
    selection: str = "distorted"
    submodularity_ratio: float | str = "sweep"
    epsilon: float = 0.01
    delta: float = 0.1
    tol: float = 0.0
    policy: Any = "margin"
    human_bound: float | None = None
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    cache_size: float = 512

    shares_machines = False  # its machines are trained without the deferred samples

    @property
    def needs_folds(self) -> bool:  # type: ignore[override]
        """Whether the policy learns from held-out samples: it does if it sees more than the margin."""
        return resolve_policy(self.policy).features != "margin"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # `predict` also answers the cases that the machine was never meant to take.
        tags.classifier_tags.poor_score = True
        return tags

    # -- fitting ------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        check_assisted_svc(self)

    def _warn_of(self, human: Human) -> None:
        human.warn(stacklevel=3)

    def fit_samples(self, samples: Samples, context: FoldContext | None = None) -> Self:
        """Fit on samples that have been checked already; see `Team.fit_samples`."""
        self._note(samples)
        samples = self._check_samples(samples)
        policy = resolve_policy(self.policy, sparse=hasattr(samples.X, "tocsr"))
        count_of(self.budget, len(samples))
        if context is None:
            # Its folds are made when they are needed.
            context = FoldContext(samples, [], draw_seed(self.random_state), self.n_jobs)
        else:
            context = replace(context, samples=samples)
        self.human_loss_ = samples.hinge_cost(self.deferral_cost)
        show = sometimes(lambda *now: self._say(in_words(*now))) if self.verbose else None
        with watched_by(show), Progress(UNITS) as progress:
            progress.begin("selection")
            self._store_selection(self._select(context, self.verbose), samples)
            progress.done()
            progress.begin("folds")
            self._fit_policy(policy, context)
            progress.done()
        return self

    def _check_samples(self, samples: Samples) -> Samples:
        """Check the samples by this team's own parameters, and set the margin and the cache."""
        self._check_floor(samples)
        scores = samples.human.scores
        if self.human_bound is not None and "human_scores" in samples.human.given:
            check_bound(scores[~np.isnan(scores)], self.human_bound)
        settings = replace(
            samples.settings,
            margin=self.margin,
            cache_size=self.cache_size,
            # The unconstrained algorithm has no tolerance.
            approximate=self.tol > 0.0 and self.selection != "unconstrained",
        )
        return replace(samples, settings=settings)

    def open_selection(self, samples: Samples) -> tuple[Any, Selector]:
        """What selects samples for this team: the machine's objective on all of them, and the algorithm.

        So a selection can be repeated with other losses of the human.

        Parameters
        ----------
        samples : Samples
            Of `read_samples`.

        Returns
        -------
        objective : SVMObjective or SumObjective
        selector : Selector
        """
        samples = self._check_samples(samples)
        return samples.objective(self.n_jobs), self._selector(draw_seed(self.random_state))

    def _selector(self, seed: int, verbose: int = 0) -> Selector:
        return Selector(
            selection=self.selection,
            ratio=self.submodularity_ratio,
            epsilon=self.epsilon,
            delta=self.delta,
            tol=self.tol,
            min_kept_per_class=self.min_kept_per_class,
            seed=seed,
            verbose=verbose,
        )

    def _check_floor(self, samples: Samples) -> None:
        for code, label in enumerate(samples.classes.tolist()):
            there = int((samples.codes == code).sum())
            if self.min_kept_per_class > there:
                raise ValueError(
                    f"min_kept_per_class={self.min_kept_per_class}, but there are only {there} samples of "
                    f"class {label!r} to keep; lower it to {there} to defer none of them."
                )

    def _store_selection(self, selected: _Selected, samples: Samples) -> None:
        """Keep the picks, and the machine of the rest."""
        objective, result, rest = selected
        self.selection_ = result
        self.deferred_indices_ = result.order
        self.deferred_ = np.zeros(len(samples), dtype=bool)
        self.deferred_[result.order] = True
        # For `certify`, in this process only: `__getstate__` leaves it out.
        self._objective: MachineObjective | None = objective
        self._certificate: Certificate | None = None
        self._machine = samples.machine_in(rest)
        self._warn_of_lost_classes(samples)

    def _select(
        self, context: FoldContext, verbose: int = 0, delta: float | None = None
    ) -> _Selected:
        """The samples to be deferred, of all, and the machine without them."""
        samples, budget = context.samples, count_of(self.budget, len(context.samples))
        selector = self._selector(context.seed)
        if delta is not None:
            selector = replace(selector, delta=delta)

        def make() -> _Selected:
            objective = samples.objective(context.n_jobs)
            self._say(f"machine on all {len(samples)} samples: F = {objective.value:.6g}")
            loss = samples.hinge_cost(self.deferral_cost)
            result, rest = replace(selector, verbose=verbose).run(objective, loss, budget)
            return _Selected(objective, result, rest)

        key = (SELECTION, context.machine, self.margin, self.deferral_cost, selector, budget)
        selected = context.once(key, make)
        count, value = len(selected.result.order), selected.result.value
        self._say(f"deferred {count} of at most {budget}: g - c = {value:.6g}")
        return selected

    def _without_folds(self, context: FoldContext, ratio: float) -> AssistedFolds:
        """Selections, machines and policies without each fold, at the ratio for all samples."""
        shrunk = 1.0 - 1.0 / len(context.folds)
        return AssistedFolds(
            context,
            self._selector(context.seed).for_part(ratio, shrunk),
            count_of(self.budget, len(context.samples)),
            float(self.deferral_cost),
        )

    def _fit_policy(self, policy: DeferralPolicy, context: FoldContext) -> None:
        """Fit the policy, and set the threshold so that the rate on new data is that of training.

        A machine is surer of the samples that it was fitted on than of new ones, and so is a policy; and a
        sample that stands for selection itself takes a place from others, which a new case does not. So
        all three are fitted without each fold too, and the samples of a fold ranked among the others.

        A policy that sees x and the margin learns from margins of held-out samples, since it meets new
        cases. One that sees the margin alone learns which end of it to defer, from the machine's own
        samples as in the paper: the held-out margins that it is judged by must not have had a say.
        """
        samples, seed = context.samples, context.seed
        rate = len(self.deferred_indices_) / len(samples)
        own = self._machine.decision_function(samples.X)
        if rate in (0.0, 1.0) or (self.cv is None and not context.folds):
            seen = seen_by(policy, own, samples.coding)
            policy.fit(samples.X, seen, self.deferred_, seed)
            threshold = threshold_at(policy.deferral_score(samples.X, seen), rate, seed)
        else:
            if not context.folds:
                folds = random_folds(self.cv, samples.X, samples.y, seed)
                context = replace(context, folds=folds)
            self._say(f"policy and threshold, by {len(context.folds)} folds")
            threshold = self._held_out_threshold(policy, context, own, rate)
        self._note_probabilities(context)
        if rate in (0.0, 1.0) and self.budget != 0:
            which, what = (
                ("all samples were", "every case") if rate else ("no sample was", "no case")
            )
            warnings.warn(
                f"The policy cannot be learned, since {which} deferred in training (budget: "
                f"{count_of(self.budget, len(samples))} samples); it is constant, and `defer` defers "
                f"{what}.",
                UserWarning,
                stacklevel=4,
            )
        self.policy_ = policy
        self._threshold, self._rate = threshold, rate

    def _note_probabilities(self, context: FoldContext) -> None:
        """Learn probabilities from held-out samples, of machines that were selected for like this one."""
        samples = context.samples
        self._odds = None
        if self.cv is None and not context.folds:
            return
        if not context.folds:
            made = random_folds(self.cv, samples.X, samples.codes, context.seed)
            context = replace(context, folds=made)
        folds = self._without_folds(context, self.selection_.submodularity_ratio)
        self._learn_probabilities(samples, folds.margin)

    def _held_out_threshold(
        self, policy: DeferralPolicy, context: FoldContext, own: Array, rate: float
    ) -> Threshold:
        """Fit the policy, and find the threshold by ranks of held-out samples."""
        samples, coding = context.samples, context.samples.coding
        folds = self._without_folds(context, self.selection_.submodularity_ratio)
        unfitted = clone(policy)
        seen = seen_by(policy, own if policy.features == "margin" else folds.margin, coding)
        policy.fit(samples.X, seen, self.deferred_, context.seed)
        # A policy that ranks by the margin alone has learned no more from a fold than the direction.
        # A fold that is wrong about it would rank from the wrong end, so the policy of all samples is used.
        n_folds = len(context.folds)
        policies = (
            [policy] * n_folds if policy.ranks_by_margin else folds.policies(unfitted, own=False)
        )
        scores = policy.deferral_score(samples.X, seen_by(policy, own, coding))
        return threshold_from_folds(folds.ranks(policies), scores, rate, n_folds, context.seed)

    def held_out_scores(self, context: FoldContext) -> HeldOutScores:
        """Decision values and deferral scores of held-out samples; see `Team.held_out_scores`.

        As in `fit`, the sweep is for all samples, parts take the ratio that it finds, and a policy that
        sees more than the margin learns from held-out ones. Teams that differ only in their policy
        share selections. On thousands of samples, counted once per machine with several classes, the
        sweep makes larger steps than in `fit`: it would take longer than all the rest of a search.
        """
        context = replace(context, samples=self._check_samples(context.samples))
        samples = context.samples
        policy = resolve_policy(self.policy, sparse=hasattr(samples.X, "tocsr"))
        if self.submodularity_ratio == "sweep":
            few = len(samples) * samples.coding.n_machines <= FEW_SAMPLES
            delta = self.delta if few else max(self.delta, COARSE_DELTA)
            ratio = self._select(context, delta=delta).result.submodularity_ratio
        else:
            ratio = float(self.submodularity_ratio)
        folds = self._without_folds(context, ratio)
        policies = folds.policies(policy, own=policy.features == "margin")
        return folds.scores(policies, share_of(self.budget, len(samples)))

    def _warn_of_lost_classes(self, samples: Samples) -> None:
        """Warn, with counts, if humans take all samples of a class."""
        codes, n = samples.codes, len(self.classes_)
        counts, kept = (np.bincount(c, minlength=n) for c in (codes, codes[~self.deferred_]))
        if kept.all():
            return
        table = list(zip(self.classes_.tolist(), counts.tolist(), kept.tolist(), strict=True))
        if self._coding.several and np.count_nonzero(kept) > 1:
            lost = [label for label, _, left in table if left == 0]
            taken = ", ".join(
                f"all {had} samples of class {c!r}" for c, had, left in table if not left
            )
            then = f"the machine never answers {' or '.join(map(repr, lost))}"
        else:
            taken = ", ".join(
                f"{had - left} of {had} samples of class {label!r}" for label, had, left in table
            )
            # It answers every case alike, so that one shows what.
            said = self._answers(self._machine.decision_function(samples.X[:1]))
            answer = self.classes_.tolist()[int(said[0])]
            then = f"the machine is left without a class, and predicts {answer!r} for every case"
        warnings.warn(
            f"Humans take {taken}: {then}. Lower the budget, or set min_kept_per_class.",
            UserWarning,
            stacklevel=5,
        )

    def _say(self, text: str) -> None:
        if self.verbose:
            print(f"[AssistedSVC] {text}")

    # -- what the team asks for ----------------------------------------------------------------

    def _rank(self, X: Any) -> Array:
        policy = self.policy_
        margin = seen_by(policy, self._decide(X), self._coding) if policy.sees_margin else None
        return policy.deferral_score(X, margin)

    def _ranking(self) -> Ranking | None:
        found = self.policy_.ranking()
        if found is None or not self._coding.several or isinstance(found, Constant):
            return found
        # A policy that sees the decision values of all classes is not known as arrays.
        sees_all = self.policy_.sees_margin and self.policy_.signed
        return None if sees_all else BySureness(found, len(self.classes_))

    def _own_budget(self) -> float:
        return share_of(self.budget, len(self.deferred_))

    # -- the certificate, and how a model is stored --------------------------------------------

    def certify(self) -> Certificate:
        """Compute what is known about how good the selection is; the result is kept as `certificate_`.

        It can take longer than the fit. It needs the training data, which a fitted model holds on to
        until then, in this process only: call it before the model is copied or stored.

        Returns
        -------
        certificate : deferlearn.bounds.Certificate
            The bound on the best selection's value, the guarantee of the theorem if its conditions
            hold, and a `summary()` in words.
        """
        check_is_fitted(self)
        if self._certificate is None:
            if self._objective is None:
                raise ValueError(
                    "The certificate needs the training data, and a model that was copied or loaded has "
                    "none: call certify() on the fitted model, before it is copied or stored."
                )
            if not isinstance(self._objective, SVMObjective | SumObjective):
                raise ValueError(
                    f"The certificate needs exact gains, but with tol={self.tol} and so many features they "
                    f"are known only to within {self.selection_.gap:.2g}. The slack of the picks is in "
                    "selection_.slack; for a certificate, fit with tol=0, which can take very long."
                )
            self._certificate = certificate(self._objective, self.selection_, self.human_loss_)
            self._objective = None  # and with it the training data
        return self._certificate

    @property
    def certificate_(self) -> Certificate:
        """What is known about how good the selection is, once `certify` was called."""
        check_is_fitted(self)
        if self._certificate is None:
            raise AttributeError(
                "certificate_ is not known yet: call certify(), which computes it."
            )
        return self._certificate

    def __getstate__(self) -> dict[str, Any]:
        # The state of a model is what prediction needs; the objective holds all training data.
        state = dict(super().__getstate__())
        if "selection_" in state:
            state["selection_"] = pack(state["selection_"])
            state["_objective"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "selection_" in state:
            state["selection_"] = unpack(state["selection_"])
        super().__setstate__(state)
