"""pi(d | x): a model that says of a case not seen before how much it belongs with a human."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _num_samples, check_is_fitted

from deferlearn._utils.types import Array
from deferlearn.teams.forest_arrays import forest_arrays
from deferlearn.teams.ranking import ByForest, ByMargin, Constant, Ranking

FEATURES = ("x", "margin", "both")
NAMES = ("margin", "mlp")
# Enough for hundreds of samples; a policy that is stopped before is a good one all the same.
MLP_EPOCHS = 500


@dataclass(eq=False, repr=False)
class DeferralPolicy(BaseEstimator):
    r"""A classifier of "deferred" against "kept", with a choice of what it gets to see.

    It is trained on the samples that a selection has deferred and kept, and ranks new cases by how much
    they look like the deferred ones. `AssistedSVC` takes it as ``policy``; the names that it takes
    are short for:

    - ``"margin"``: ``DeferralPolicy()``, logistic regression on the absolute margin
      :math:`|w^T \phi(x) + b|`, as in the paper's experiments on real data;
    - ``"mlp"``: a perceptron with one hidden layer on x, as in its synthetic ones; x is standardised, of
      which the paper says nothing;
    - a classifier ``clf``: ``DeferralPolicy(clf, features="x")``.

    The form of the paper's appendix, one slope and no intercept on the signed margin, is
    ``DeferralPolicy(LogisticRegression(fit_intercept=False), signed=True)``.

    Parameters
    ----------
    estimator : classifier, default=None
        Needs `decision_function` or `predict_proba`; None is `LogisticRegression` on the
        standardised features.
    features : {"margin", "x", "both"}, default="margin"
        What the classifier sees: the machine's margin, the features x, or x with the margin as the
        last column.
    signed : bool, default=False
        Whether the margin keeps its sign.

    Attributes
    ----------
    estimator_ : classifier or None
        The fitted one; None if there was nothing to learn.
    constant_ : float or None
        The score of every case if no sample (0) or all samples (1) had been deferred.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams.policy import DeferralPolicy
    >>> margin = np.array([0.1, -0.2, 1.5, -2.0])
    >>> policy = DeferralPolicy().fit(np.zeros((4, 1)), margin, [True, True, False, False])
    >>> policy.deferral_score(np.zeros((2, 1)), [0.0, -3.0]).round(1)
    array([ 1.2, -2.6])
    """

    estimator: Any = None
    _: KW_ONLY
    features: str = "margin"
    signed: bool = False

    @property
    def sees_margin(self) -> bool:
        """Whether the machine's margin is among the features."""
        return self.features != "x"

    @property
    def ranks_by_margin(self) -> bool:
        """Whether the fitted policy is a linear function of the margin: then only its sign was learned."""
        coef = getattr(_last_step(self.estimator_), "coef_", None)
        return self.features == "margin" and coef is not None and np.size(coef) == 1

    def fit(self, X: Any, margin: Any, deferred: Any, random_state: Any = None) -> Self:
        """Learn which samples were deferred.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.
        margin : array-like of shape (n_samples,)
            The machine's ``w.phi(x) + b`` for each; not looked at if ``features="x"``.
        deferred : array-like of bool of shape (n_samples,)
            Which of them were deferred.
        random_state : int or None, default=None
            Seed for each `random_state` of the classifier that is None.

        Returns
        -------
        self
        """
        self._check()
        target = np.asarray(deferred, dtype=bool).astype(np.int64)
        self.estimator_: Any = None
        self.constant_: float | None = None
        if len(target) == 0:
            raise ValueError("A policy cannot be learned from no samples.")
        if target.min() == target.max():
            self.constant_ = float(target[0])
            return self
        # Standardised, since margins have the units of X: scores must not drown in rounding.
        estimator = (
            make_pipeline(StandardScaler(), LogisticRegression())
            if self.estimator is None
            else clone(self.estimator)
        )
        if random_state is not None:
            seed_all(estimator, random_state)
        with warnings.catch_warnings():
            # Whether a policy is good shows in its deferrals, not in the last digits of its weights.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.estimator_ = estimator.fit(self._features(X, margin), target)
        return self

    def deferral_score(self, X: Any, margin: Any) -> Array:
        """How much each case belongs with a human: larger is more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New cases.
        margin : array-like of shape (n_samples,)
            The machine's ``w.phi(x) + b`` for each.

        Returns
        -------
        score : ndarray of shape (n_samples,)
            The classifier's `decision_function`, or if it has none its probability of "deferred".
        """
        check_is_fitted(self)
        if self.constant_ is not None:
            return np.full(_num_samples(X), self.constant_)
        features = self._features(X, margin)
        # The decision function first: probabilities round to 1 long before the ranking ends.
        if hasattr(self.estimator_, "decision_function"):
            return np.asarray(self.estimator_.decision_function(features), dtype=np.float64)
        return np.asarray(self.estimator_.predict_proba(features)[:, 1], dtype=np.float64)

    def ranking(self) -> Ranking | None:
        """The fitted policy as arrays; None for a classifier that is not known in this form.

        Returns
        -------
        ranking : Ranking or None
            It gives the same scores.
        """
        check_is_fitted(self)
        if self.constant_ is not None:
            return Constant(self.constant_)
        if self.estimator is None and self.features == "margin":  # the default, on one feature
            scaler, logistic = self.estimator_[0], self.estimator_[1]
            return ByMargin(
                signed=bool(self.signed),
                centre=float(scaler.mean_[0]),
                scale=float(scaler.scale_[0]),
                slope=float(logistic.coef_[0, 0]),
                offset=float(logistic.intercept_[0]),
            )
        forest = forest_arrays(self.estimator_)
        return None if forest is None else ByForest(forest, self.features, bool(self.signed))

    def _check(self) -> None:
        if not isinstance(self.features, str) or self.features not in FEATURES:
            raise ValueError(f"features={self.features!r} is not known; use one of {FEATURES}.")
        if not isinstance(self.signed, bool | np.bool_):
            raise ValueError(f"signed={self.signed!r} must be True or False.")
        if self.estimator is None:
            return
        if isinstance(self.estimator, type):
            raise ValueError(
                f"estimator={self.estimator!r} is a class; give an instance, with parentheses."
            )
        if not _is_classifier(self.estimator):
            raise ValueError(f"estimator={self.estimator!r} must be a scikit-learn classifier.")
        if not any(hasattr(self.estimator, m) for m in ("decision_function", "predict_proba")):
            raise ValueError(
                f"estimator={self.estimator!r} has neither decision_function nor predict_proba, so it "
                "cannot rank cases; set its option for probabilities, or take another classifier."
            )

    def _features(self, X: Any, margin: Any) -> Any:
        if self.features == "x":
            return X
        column = np.asarray(margin, dtype=np.float64)
        column = column.reshape(len(column), -1)  # a machine for several classes may have several
        column = column if self.signed else np.abs(column)
        if self.features == "margin":
            return column
        if sp.issparse(X):
            return sp.csr_array(sp.hstack([X, sp.csr_array(column)]))
        return np.hstack([X, column])


def resolve_policy(policy: Any, sparse: bool = False) -> DeferralPolicy:
    """The policy that a name or a classifier is short for, as a new object."""
    if isinstance(policy, str):
        if policy == "margin":
            return DeferralPolicy()
        if policy == "mlp":
            scaler = StandardScaler(with_mean=not sparse)  # without a mean zeros stay zeros
            return DeferralPolicy(
                make_pipeline(scaler, MLPClassifier(max_iter=MLP_EPOCHS)), features="x"
            )
        raise ValueError(
            f"policy={policy!r} is not known; use one of {NAMES}, a DeferralPolicy, or a classifier."
        )
    resolved = clone(policy) if isinstance(policy, DeferralPolicy) else None
    if resolved is None:
        if not _is_classifier(policy):
            raise ValueError(
                f"policy={policy!r} must be one of {NAMES}, a DeferralPolicy, or an instance of a "
                "scikit-learn classifier."
            )
        resolved = DeferralPolicy(clone(policy), features="x")
    resolved._check()
    return resolved


def _last_step(estimator: Any) -> Any:
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def _is_classifier(thing: Any) -> bool:
    """Whether it is an instance of a classifier; scikit-learn's own test takes estimators only."""
    return hasattr(thing, "fit") and not isinstance(thing, type) and bool(is_classifier(thing))


def seed_all(estimator: Any, seed: int) -> None:
    """Give a seed to every part of the classifier that has none."""
    open_seeds = {
        name: seed
        for name, value in estimator.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    if open_seeds:
        estimator.set_params(**open_seeds)
