"""`AssistedSVCCV`: the team with an SVM that does best together on cases not seen."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.teams.candidates import DEFAULT_POLICIES
from deferlearn.teams.machine import MachineSettings
from deferlearn.teams.machines import check_kernel, kernel_name, machines_of, suits_rbf
from deferlearn.teams.search_team import SearchTeam


@dataclass(eq=False, repr=False)
class AssistedSVCCV(SearchTeam):
    """The machine and the way to share its work that do best together, by cross-validation.

    The regularisation that suits a machine on its own need not suit one that hands over its hardest
    cases, and whether it pays to train the machine without the cases that humans take depends on the
    data. So all of it is chosen by what the *team* gets wrong on held-out cases: alpha, kernel, the
    policy, and whether anything is deferred in training at all. The winner is fitted on all samples.

    Parameters
    ----------
    budget : float, int or sequence of them, default=0.2
        The most that may be deferred, as in `AssistedSVC`. With several budgets, machines and models are
        fitted once for all of them; the winners are in `teams_`, and the methods are those of the first.
    alphas : int or array-like of float, default=9
        Values of alpha to try; a number means that many values from 0.001 to 10, evenly spaced on a
        logarithmic scale.
    policies : "auto" or sequence, default="auto"
        Ways to choose the deferred cases, from simple to elaborate; of those that nearly tie the first is
        chosen.

        - "uncertainty": `UncertaintyTriage`, the cases of which the machine is least sure;
        - "advantage": `AdvantageTriage`, those where the human is expected to lose less, by the
          machine's answer and how sure it is; "advantage_by_region" with a forest for where the
          human errs, "advantage_forest" with forests for both;
        - "predicted_error": `PredictedErrorTriage`;
        - "automation": `FullAutomation`, no case;
        - "margin", "mlp", "forest" (on x and the margin), any classifier or `DeferralPolicy`: an
          `AssistedSVC` with that policy, whose machine is trained without the deferred samples;
        - any other team, not fitted, with the methods of `AssistedSVC`. Its alpha, kernel, budget,
          costs, folds and random_state are set here, where it has such parameters.

        "auto" is "uncertainty", "advantage", "advantage_by_region", "advantage_forest", "margin", "forest"
        and "automation". On more than 5,000 samples, counted once for each machine that several classes
        need, the two are left out that train machines without the deferred samples ("margin", "forest"):
        they take longer than all the others together. Name them to have them.

        Human time is not spent on a tie: where nothing does better than "automation", that is chosen. It
        is last, so that it is chosen only there.
    kernels : "auto" or sequence of str or dict, default="auto"
        Kernels to try: a name, or a dict such as ``{"kernel": "rbf", "gamma": 0.1}``. The name "rbf" stands
        for three widths, by the distances between samples: with their median square D, gamma is 0.3 / D,
        1 / D and 3 / D. "auto" is "linear" and "rbf"; for sparse features, and for more than 5,000 samples,
        "linear" alone.
    scoring : str, callable or None, default=None
        None is the mean cost of the team's answers: the class weight where the answer is wrong, and
        `deferral_cost` for each deferred case; without these two, the error. Otherwise a metric of
        `deferlearn.metrics`, by name or as a function; metrics need `human_labels`, and are computed
        fold by fold. "cost" takes `cost_matrix` and `deferral_cost` from this search.
    cv : int, splitter or iterable of (train, test), default=5
        Folds; a number of them is stratified, and keeps groups whole if `fit` is given groups. Each
        sample is held out once, and judged by teams fitted on all samples outside its fold.
    n_refined : int, default=2
        The slower policies (all but "uncertainty", "advantage" and "automation") are tried with this
        many machines: those that did best with the quick ones.
    n_standard_errors : float, default=1.0
        How many standard errors of the difference from the best are a near-tie.
    fit_intercept : bool, default=True
        Whether machines have an offset b.
    class_weight : dict, "balanced" or None, default=None
        The cost of an error on each class, whoever errs.
    classes : {"auto", "grades"} or sequence of labels, default="auto"
        "auto": two classes; or more without an order, with a machine for each class against the rest.
        "grades": ordered as numbers are, with a machine for each step from a grade to the next. For words,
        give the grades from the lowest to the highest.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        What each answer (column) to a case of each class (row) costs, in units of one error and in the
        order of `classes_`. None: every error costs 1, or 1 per grade. The human's answers cost exactly
        this; the machine is trained with the mean cost of the errors on a class as its weight.
    deferral_cost : float, default=0.0
        The cost of human time per deferred case, in units of one error.
    n_jobs : int or None, default=None
        The number of fits to run at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the policies, and of the coin that decides between equal scores.
    verbose : int, default=0
        Whether to print a line per candidate, and from time to time how long the rest may take.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, fitted on all samples: an `AssistedSVC`, a triage, or one of your own.
    best_params_ : dict
        Its "policy", as given, "alpha", and the kernel's parameters.
    best_score_ : float
        Its mean score on held-out cases; larger is better. As the best of many it is a little optimistic:
        `deferlearn.assistance_report` measures the whole procedure.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarray
        As in `sklearn.model_selection.GridSearchCV`, one row per candidate that was tried:
        "params", "param_policy", "param_machine", "param_alpha", "param_kernel", "split0_test_score" and so
        on, "mean_test_score", "std_test_score", "rank_test_score"; and "deferral_rate".
    teams_ : dict
        With several budgets, the winner for each of them, fitted on all samples.
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    Examples
    --------
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.humans import UniformHuman, labels_from_scores
    >>> from deferlearn.teams import AssistedSVCCV
    >>> X, y = make_linear(120, random_state=0)  # no line separates these
    >>> doctor = labels_from_scores(UniformHuman(0.1).scores(y, random_state=0))
    >>> team = AssistedSVCCV(0.3, alphas=[0.1, 1.0], kernels=["linear"], random_state=0)
    >>> team = team.set_params(policies=["uncertainty", "forest"])
    >>> team = team.fit(X, y, human_labels=doctor)
    >>> team.best_params_["policy"]
    'forest'
    >>> team.defer(X[:2]).shape
    (2,)
    """

    _: KW_ONLY
    alphas: Any = 9
    kernels: Any = "auto"
    fit_intercept: bool = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._any_precomputed()
        return tags

    def _machines(self, X: Any, y: Array, several: bool) -> list[MachineSettings]:
        kernels = self.kernels
        if self._auto_kernels():
            kernels = ("linear", "rbf") if suits_rbf(X) else ("linear",)
        return machines_of(self.alphas, kernels, self.fit_intercept, X, y)

    def _policies(self) -> Sequence[Any]:
        return DEFAULT_POLICIES if isinstance(self.policies, str) else self.policies

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        for name in ("policies", "kernels"):
            given = getattr(self, name)
            if isinstance(given, str) and given == "auto":
                continue
            ordered = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
            if not ordered or not len(given):
                raise ValueError(
                    f"{name}={given!r} must be 'auto' or a list with at least one entry."
                )
        super().check_parameters()
        if self._auto_kernels():
            return
        if (
            self._any_precomputed()
            and len({str(kernel_name(kernel)) for kernel in self.kernels}) > 1
        ):
            raise ValueError(
                f"kernels={self.kernels!r}: X is a Gram matrix for 'precomputed' and holds features for "
                "all others, so they cannot be mixed."
            )
        for kernel in self.kernels:
            check_kernel(kernel)

    def _auto_kernels(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "auto"

    def _any_precomputed(self) -> bool:
        return any(kernel_name(kernel) == "precomputed" for kernel in self.kernels)

    def _takes_sparse(self) -> bool:
        if self._auto_kernels():
            return True
        return all(kernel_name(kernel) == "linear" for kernel in self.kernels)
