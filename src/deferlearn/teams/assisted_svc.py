"""`AssistedSVC`: an SVM and the choice of the cases that humans take, learned together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from deferlearn.bounds import certificate
from deferlearn.bounds.certificate import Certificate
from deferlearn.humans.human import binary_labels, losses_of, warn_if_reordered
from deferlearn.objective import SVMObjective
from deferlearn.selection import SelectionResult
from deferlearn.teams.crossfit import Samples, fit_cross, fit_in_sample, fold_rows
from deferlearn.teams.machine import Machine, machine_of, settings_of
from deferlearn.teams.packing import pack, unpack
from deferlearn.teams.parameters import check_parameters, count_of, prices_of, share_of
from deferlearn.teams.policy import DeferralPolicy, resolve_policy
from deferlearn.teams.selector import Selector
from deferlearn.teams.team import MachineMixin, TeamMixin
from deferlearn.teams.threshold import Threshold, threshold_at, threshold_from_folds

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Index = NDArray[np.int64]


class AssistedSVC(MachineMixin, TeamMixin, ClassifierMixin, BaseEstimator):
    r"""A support vector machine that learns which cases to leave to a human.

    Of the training samples V it chooses a set S of at most ``budget`` to *defer*, and fits the machine on
    the rest, so that machine and human together lose least:

    .. math::

        \min_{S, w, b} \; \sum_{i \in V \setminus S} u_i \left( \alpha \|w\|^2 +
        [1 - y_i (w^T \phi(x_i) + b)]_+ \right) + \sum_{i \in S} (u_i c_i + d)

    with human losses :math:`c_i`, prices of errors :math:`u_i` (``class_weight``) and the price d of human
    time (``deferral_cost``). A second model, the policy, learns from S which new cases to defer.

    Parameters
    ----------
    budget : float or int, default=0.2
        The most that may be deferred: a fraction in [0, 1], or a number of samples. A number acts on
        new data as the fraction that it was of the training samples.
    alpha : float, default=1.0
        Regularisation, the paper's lambda. With k samples kept, the C of `sklearn.svm.SVC` is
        ``1 / (2 * alpha * k)``; with `class_weight`, k is the sum of their prices. It depends on the
        units of X: standardise the features, and tune it. Too large, the machine answers alike everywhere.
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        A callable gets two sets of rows and returns their kernel values. Sparse X is for "linear" only.
    degree, gamma, coef0 : float
        Of the kernels "poly" and "rbf", as in `sklearn.svm.SVC`.
    fit_intercept : bool, default=True
        Whether the machine has an offset b.
    margin : {"soft", "hard"}, default="soft"
        "hard" is for the linear kernel and classes that can be separated.
    class_weight : dict, "balanced" or None, default=None
        The price of an error on each class. It is the same whoever errs: the human's losses are
        multiplied by it as the machine's are. What the human's time costs is not.
    deferral_cost : float, default=0.0
        Added to every human loss: the price of human time.
    min_kept_per_class : int, default=0
        At least so many samples of each class stay with the machine.
    selection : {"distorted", "stochastic", "unconstrained"}, default="distorted"
        The algorithm; see `deferlearn.selection`. "unconstrained" requires ``budget=1.0``.
    submodularity_ratio : "sweep" or float in (0, 1], default="sweep"
        The paper's gamma, or a search for a good one.
    epsilon : float in (0, 1), default=0.01
        Of the stochastic algorithm: smaller means larger random samples.
    delta : float in (0, 1), default=0.1
        Step of the sweep.
    tol : float in [0, 1), default=0.0
        Certified slack of each choice of the best candidate; 0 is exact.
    policy : {"margin", "mlp"}, DeferralPolicy or classifier, default="margin"
        The model that decides about new cases. "margin" sees only how sure the machine is, "mlp" and
        any classifier see x; `deferlearn.teams.policy.DeferralPolicy` gives the choice.
    human_bound : float or None, default=None
        The paper's H: when given, human scores outside [-H, H] are an error.
    cv : int, splitter or None, default=5
        Folds behind the threshold of `defer`. For each, selection, machine and policy are fitted on the
        other folds, so that the threshold rests on scores of cases not seen. None takes the scores of
        the training samples: quick, for very large data, and less exact.
    n_jobs : int or None, default=None
        How many folds to work on at a time, and threads for the selection on all samples; the fit is
        the same.
    random_state : int, RandomState or None, default=None
        Of the folds, the random samples of the selection, the policy and the coin between equal scores.
    verbose : int, default=0
        Whether to print what is done.
    cache_size : float, default=512
        Megabytes for the matrix of a kernel other than the linear one, or as many of its columns as fit;
        less makes a fit with thousands of samples slower, and changes nothing else.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive class.
    deferred_ : ndarray of bool of shape (n_samples,)
        The samples given to humans.
    deferred_indices_ : ndarray of shape (n_deferred,)
        The same as rows of the X given to `fit`, in the order in which they were picked.
    selection_ : SelectionResult
        The picks, their gains, and how they were found.
    human_loss_ : ndarray of shape (n_samples,)
        The losses that the selection was made with: gaps filled, times the price, plus the cost.
    coef_ : ndarray of shape (1, n_features)
        The weight vector w, for a linear kernel.
    dual_coef_ : ndarray of shape (1, n_support)
        ``w = dual_coef_ @ phi(support_vectors_)``.
    support_ : ndarray of shape (n_support,)
        Rows of the support vectors.
    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Those rows; empty for a precomputed kernel.
    intercept_ : ndarray of shape (1,)
        The offset b; the midpoint where an interval of offsets is optimal.
    policy_ : DeferralPolicy
        The fitted policy.
    deferral_threshold_ : float
        `defer` defers above it; inf if nobody was deferred, -inf if everybody was.
    deferral_rate_ : float
        The share of the samples that was deferred, and which `defer` keeps to.
    certificate_ : deferlearn.bounds.Certificate
        What is known about how good the selection is. It is computed when it is first asked for, or
        when the model is stored or copied, which can take longer than the fit; until then the model
        holds on to the training data.
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

    def __init__(
        self,
        budget: float | int = 0.2,
        alpha: float = 1.0,
        kernel: Any = "linear",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        margin: str = "soft",
        class_weight: Any = None,
        deferral_cost: float = 0.0,
        min_kept_per_class: int = 0,
        selection: str = "distorted",
        submodularity_ratio: float | str = "sweep",
        epsilon: float = 0.01,
        delta: float = 0.1,
        tol: float = 0.0,
        policy: Any = "margin",
        human_bound: float | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        cache_size: float = 512,
    ) -> None:
        self.budget = budget
        self.alpha = alpha
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.margin = margin
        self.class_weight = class_weight
        self.deferral_cost = deferral_cost
        self.min_kept_per_class = min_kept_per_class
        self.selection = selection
        self.submodularity_ratio = submodularity_ratio
        self.epsilon = epsilon
        self.delta = delta
        self.tol = tol
        self.policy = policy
        self.human_bound = human_bound
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.cache_size = cache_size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # `predict` also answers the cases that the machine was never meant to take.
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = self._is_kernel("linear")
        tags.input_tags.pairwise = self._is_kernel("precomputed")
        return tags

    # -- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        human_loss: ArrayLike | None = None,
        human_scores: ArrayLike | None = None,
        human_labels: ArrayLike | None = None,
    ) -> AssistedSVC:
        """Choose the samples to defer, and fit machine and policy.

        At most one of the three describes the human. With none, the human is taken to be always right.
        Missing answers (NaN, None, pandas' NA) are allowed; a case that nobody read gets the average
        loss of its class, and a warning says how many there are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; the Gram matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Two classes, of any type.
        human_loss : array-like of shape (n_samples,), default=None
            What the human's answer to each sample costs, 0 or more.
        human_scores : array-like of shape (n_samples,) or (n_samples, n_readers), default=None
            Scores h, positive for the second of the classes; the loss is ``[1 - y h]_+``, the mean of it
            over several readers.
        human_labels : array-like of shape (n_samples,) or (n_samples, n_readers), default=None
            Answers in the labels of y; right costs 0, wrong costs 2.

        Returns
        -------
        self
            The fitted estimator.
        """
        self.__dict__.pop("_threshold", None)  # a fit that fails leaves no half of an older one
        check_parameters(self)
        warn_if_reordered(
            X, human_loss=human_loss, human_scores=human_scores, human_labels=human_labels
        )
        samples = self._check_samples(X, y, human_loss, human_scores, human_labels)
        policy = resolve_policy(self.policy, sparse=hasattr(samples.X, "tocsr"))
        n_samples = len(samples.y)
        budget = count_of(self.budget, n_samples)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

        objective = samples.settings.objective(samples.X, samples.y, samples.weights, self.n_jobs)
        self._say(f"machine on all {n_samples} samples: F = {objective.value:.6g}")
        selector = Selector(
            selection=self.selection,
            ratio=self.submodularity_ratio,
            epsilon=self.epsilon,
            delta=self.delta,
            tol=self.tol,
            min_kept_per_class=self.min_kept_per_class,
            seed=seed,
            verbose=self.verbose,
        )
        result = selector.run(objective, samples.loss, budget)
        self._say(f"deferred {len(result.order)} of at most {budget}: g - c = {result.value:.6g}")
        self._store_selection(result, objective, samples)
        self._fit_policy(policy, samples, selector, budget, seed)
        return self

    def _check_samples(
        self, X: Any, y: Any, human_loss: Any, human_scores: Any, human_labels: Any
    ) -> Samples:
        """Everything about the samples in the form that the engine takes."""
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            accept_sparse="csr" if self._is_kernel("linear") else False,
        )
        self.classes_, signs = binary_labels(y)
        prices = prices_of(self.class_weight, y, signs, self.classes_)
        loss = losses_of(
            signs,
            self.classes_,
            human_loss=human_loss,
            human_scores=human_scores,
            human_labels=human_labels,
            human_bound=self.human_bound,
        )
        self._check_floor(signs)
        settings = settings_of(self, X, signs)
        return Samples(X, signs, prices, prices * loss + float(self.deferral_cost), settings)

    def _check_floor(self, signs: Array) -> None:
        for label, sign in zip(self.classes_.tolist(), (-1.0, 1.0), strict=True):
            there = int((signs == sign).sum())
            if self.min_kept_per_class > there:
                raise ValueError(
                    f"min_kept_per_class={self.min_kept_per_class}, but there are only {there} samples of "
                    f"class {label!r} to keep; lower it to {there} to defer none of them."
                )

    def _store_selection(
        self, result: SelectionResult, objective: SVMObjective, samples: Samples
    ) -> None:
        """Keep the picks, and the machine of the rest."""
        self.selection_ = result
        self.deferred_indices_ = result.order
        self.deferred_ = np.zeros(len(samples.y), dtype=bool)
        self.deferred_[result.order] = True
        self.deferral_rate_ = len(result.order) / len(samples.y)
        self.human_loss_ = samples.loss
        self._objective: SVMObjective | None = objective
        self._certificate: Certificate | None = None
        state = objective.copy()
        for k in result.order:
            state.remove(int(k))
        self._machine: Machine = machine_of(
            state, samples.X, samples.y, samples.weights, samples.settings
        )
        self._warn_of_lost_classes(samples.y)

    def _fit_policy(
        self,
        policy: DeferralPolicy,
        samples: Samples,
        selector: Selector,
        budget: int,
        seed: int,
    ) -> None:
        """Fit the policy, and set the threshold so that the rate on new data is that of training."""
        constant = self.deferral_rate_ in (0.0, 1.0)
        if constant or self.cv is None:
            scores = fit_in_sample(samples, self.deferred_, self._machine, policy, seed)
            self._threshold: Threshold = threshold_at(scores, self.deferral_rate_, seed)
        else:
            folds = fold_rows(self.cv, samples, seed)
            self._say(f"policy and threshold, by {len(folds)} folds")
            ratio = self.selection_.submodularity_ratio
            part = selector.for_part(ratio, 1.0 - 1.0 / len(folds))
            ranks, own = fit_cross(
                samples,
                self.deferred_,
                self._machine,
                policy,
                folds,
                part,
                budget,
                seed,
                self.n_jobs,
            )
            self._threshold = threshold_from_folds(
                ranks, own, self.deferral_rate_, len(folds), seed
            )
        if constant and self.budget != 0:
            who, what = ("everybody", "all") if self.deferral_rate_ else ("nobody", "none")
            warnings.warn(
                f"The policy cannot be learned, since {who} was deferred in training (budget: {budget} "
                f"samples); it is constant, and `defer` defers {what} of the cases.",
                UserWarning,
                stacklevel=3,
            )
        self.policy_ = policy
        self.deferral_threshold_ = self._threshold.value

    def _warn_of_lost_classes(self, signs: Array) -> None:
        """Say so, with counts, if humans took all samples of a class."""
        counts = [int((signs == sign).sum()) for sign in (-1.0, 1.0)]
        kept = [int((signs[~self.deferred_] == sign).sum()) for sign in (-1.0, 1.0)]
        if 0 not in kept:
            return
        said = ", ".join(
            f"{had - left} of {had} samples of class {label!r}"
            for label, had, left in zip(self.classes_.tolist(), counts, kept, strict=True)
        )
        answer = self.classes_.tolist()[int(self._machine.intercept > 0)]
        warnings.warn(
            f"Humans take {said}: the machine is left without a class, and predicts {answer!r} for "
            "every case. Lower the budget, or set min_kept_per_class.",
            UserWarning,
            stacklevel=4,
        )

    def _say(self, text: str) -> None:
        if self.verbose:
            print(f"[AssistedSVC] {text}")

    # -- what the mixins ask for ---------------------------------------------------------------

    def _rank(self, X: Any) -> Array:
        margin = self._decide(X) if self.policy_.sees_margin else None
        return self.policy_.deferral_score(X, margin)

    def _own_budget(self) -> float:
        return share_of(self.budget, len(self.deferred_))

    # -- the certificate, and how a model is stored --------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """What is known about how good the selection is; computed when first asked for."""
        check_is_fitted(self)
        if self._certificate is None:
            assert self._objective is not None
            self._certificate = certificate(self._objective, self.selection_, self.human_loss_)
            self._objective = None  # and with it the training data
        return self._certificate

    def __getstate__(self) -> dict[str, Any]:
        # A stored model knows its certificate, since it leaves the training data behind.
        if getattr(self, "_objective", None) is not None and hasattr(self, "_threshold"):
            _ = self.certificate_
        state = dict(super().__getstate__())
        if "selection_" in state:
            state["selection_"] = pack(state["selection_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "selection_" in state:
            state["selection_"] = unpack(state["selection_"])
        super().__setstate__(state)
