"""`TeamCV`: the machine, whatever its kind, and the way to share its work that do best together."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from deferlearn._utils.checks import check_flag, is_whole, plain
from deferlearn._utils.types import Array
from deferlearn.teams.blend import settings_from
from deferlearn.teams.brought import BroughtSettings, GivenScores, check_machine, takes_sparse
from deferlearn.teams.context import FoldContext
from deferlearn.teams.folds import stratified_folds
from deferlearn.teams.forest import ForestClassifier
from deferlearn.teams.machines import machines_of, suits_rbf
from deferlearn.teams.parameters import draw_seed
from deferlearn.teams.samples import Samples
from deferlearn.teams.search_team import SearchTeam

# Kinds of machines by their names. Those of SVMs are kernels, with the smallest and the largest alpha. The
# features of the rbf kernel have length 1, however many columns there are: it wants less regularisation.
SVMS = {"linear": (1e-3, 10.0), "rbf": (1e-4, 1.0)}
OTHERS = {
    "forest": (
        "random forest",
        ForestClassifier(n_estimators=200, min_samples_leaf=1),
    ),
    "boosting": (
        "gradient boosting",
        HistGradientBoostingClassifier(),
    ),
}
# Our forest is for two classes; and boosting grows a tree per class and step.
OTHERS_OF_SEVERAL = {
    "forest": ("random forest", RandomForestClassifier(n_estimators=100)),
    "boosting": ("gradient boosting", HistGradientBoostingClassifier(max_iter=60)),
}
# With several classes, the human's errors are harder to foresee, so that a smaller budget is tried, too.
SHARES = (1.0, 0.5, 0.25)
AUTO_MACHINES = ("linear", "rbf", "forest", "boosting")
# From simple to elaborate.
AUTO_POLICIES = (
    "expected_cost",
    "uncertainty",
    "advantage",
    "advantage_by_region",
    "advantage_forest",
    "margin",
    "forest",
    "assisted",
    "automation",
)


@dataclass(eq=False, repr=False)
class TeamCV(SearchTeam):
    """The machine, of any kind, and the way to share its work that do best together.

    Candidates are compared by what the *team* gets wrong on held-out samples, as in `AssistedSVCCV`, which
    is the same search restricted to SVMs. Two rules keep luck from deciding. The best candidates are tried
    once more on other folds. And where nothing else is clearly better, the safest candidate is taken: the
    mean of the best machines of all kinds, with the policy that compares expected costs. The winner is
    fitted on all samples.

    Parameters
    ----------
    budget : float, int or sequence of them, default=0.2
        The most that may be deferred, as in `AssistedSVC`. With several budgets, machines and models are
        fitted once for all of them; the winners are in `teams_`, and the methods are those of the first.
    machines : "auto" or sequence of str or classifier, default="auto"
        Machines to try: "linear" and "rbf" are SVMs, with several regularisations and widths, "forest" is a
        random forest and "boosting" is gradient boosting; any other classifier of scikit-learn's kind is
        fitted by itself. "auto" is these four, for more than 5,000 samples without "rbf"; for sparse
        features "linear" and "forest".
    policies : "auto" or sequence, default="auto"
        Ways to share the work; of those that nearly tie the first is chosen.

        - "expected_cost": `AdvantageTriage` by probabilities: the machine's error by the probability of
          each class, the human's by how often humans err on each class;
        - "uncertainty", "advantage", "advantage_by_region", "advantage_forest", "predicted_error",
          "automation", "margin", "forest", "mlp", or a team, as in `AssistedSVCCV`; those that train an
          SVM without the deferred samples are tried with SVMs only;
        - "assisted": `AssistedTriage`, the same idea for all other machines.

        "auto" is "expected_cost", "uncertainty", "advantage", "advantage_by_region", "advantage_forest",
        "margin", "forest", "assisted" and "automation". On more than 5,000 samples, counted once for each
        SVM that several classes need, those three are left out that train machines without the
        deferred samples ("margin", "forest", "assisted"), for the time they take: name them to have them.

        Human time is not spent on a tie: where asking does no better than "automation", that is chosen.
        With more than two classes, teams that spend half or a quarter of the budget are tried, too.
    alphas : int or array-like of float, default=7
        Regularisations of the SVMs: values, or a number of them, evenly spaced on a logarithmic scale from
        0.001 to 10 for the linear kernel and from 0.0001 to 1 for the rbf kernel.
    blend : bool, default=True
        Whether the mean of the best machines of all kinds is a machine, too. See
        `deferlearn.teams.blend.Blend`.
    n_repeats : int, default=2
        On how many sets of folds the best candidates are tried; 1 is the first set alone. A splitter is
        used once.
    n_finalists : int, default=4
        How many candidates are tried on all sets of folds.
    n_refined : int, default=2
        The slower policies are tried with this many machines, those that did best with the quick ones.
        Policies that fit machines of their own are tried with one: the best of the first kind that suits,
        so of the linear SVMs for "margin" and "forest".
    n_standard_errors : float, default=2.0
        How many standard errors of the difference from the best are a near-tie. With dozens of candidates,
        the best is ahead of an equal by one or two.
    scoring : str, callable or None, default=None
        What is compared, as in `AssistedSVCCV`.
    cv : int, splitter or iterable of (train, test), default=5
        Folds, as in `AssistedSVCCV`.
    class_weight : dict, "balanced" or None, default=None
        The cost of an error on each class, whoever errs.
    classes : {"auto", "grades"} or sequence of labels, default="auto"
        "auto": two classes; or more without an order, with a machine for each class against the rest.
        "grades": ordered as numbers are, with a machine for each step from a grade to the next. For words,
        give the grades from the lowest to the highest.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        What each answer (column) to a case of each class (row) costs, in units of one error and in the
        order of `classes_`. None: every error costs 1, or 1 per grade. The human's answers cost exactly
        this; the machine is trained with the mean cost of the errors on a class as its weight, and
        gives the answer with the smallest expected cost.
    deferral_cost : float, default=0.0
        The cost of human time per deferred case, in units of one error.
    n_jobs : int or None, default=None
        The number of fits to run at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of machines and policies, and of the coin that decides between equal scores.
    verbose : int, default=0
        Whether to print a line per candidate, and from time to time how long the rest may take.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, fitted on all samples.
    best_params_ : dict
        Its "policy", as given, its "machine" in words, and the machine's parameters.
    best_score_ : float
        Its mean score on held-out cases; larger is better. As the best of many it is a little optimistic.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarray
        As in `AssistedSVCCV`, and "finalist". Mean scores of finalists are those on all sets of folds.
    teams_ : dict
        With several budgets, the winner for each of them, fitted on all samples.
    classes_ : ndarray of shape (n_classes,)
        The labels, in order; if there are two, the second is the positive class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names.

    See Also
    --------
    AssistedSVCCV : The search among SVMs.
    AdvantageTriage : A team with a machine of your choice.

    Examples
    --------
    >>> from deferlearn import TeamCV
    >>> from deferlearn.datasets import make_quadratic
    >>> from deferlearn.humans import UniformHuman, labels_from_scores
    >>> X, y = make_quadratic(200, random_state=0)
    >>> doctor = labels_from_scores(UniformHuman(0.1).scores(y, random_state=0))
    >>> team = TeamCV(0.2, machines=["rbf", "forest"], policies=["expected_cost"], random_state=0)
    >>> team = team.fit(X[::2], y[::2], human_labels=doctor[::2])
    >>> team.best_params_["machine"]
    'blend'
    >>> bool(team.score_assisted(X[1::2], y[1::2], doctor[1::2]) > 0.85)
    True
    """

    _: KW_ONLY
    machines: Any = "auto"
    alphas: Any = 7
    blend: bool = True
    n_repeats: Any = 2
    n_finalists: Any = 4
    n_refined: Any = 2
    n_standard_errors: float = 2.0

    takes_scores: ClassVar[bool] = True

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""
        for name in ("machines", "policies"):
            given = getattr(self, name)
            if isinstance(given, str) and given == "auto":
                continue
            ordered = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
            if not ordered or not len(given):
                raise ValueError(
                    f"{name}={given!r} must be 'auto' or a list of at least one entry."
                )
        for place, machine in enumerate(self._asked_machines()):
            if not isinstance(machine, str):
                check_machine(machine, f"machines[{place}]", optional=False)
            elif machine not in SVMS | OTHERS:
                raise ValueError(
                    f"machines has {machine!r}, which is not known; use {[*SVMS, *OTHERS]}, or a "
                    "scikit-learn classifier."
                )
        check_flag("blend", self.blend)
        for name in ("n_repeats", "n_finalists"):
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise ValueError(f"{name}={plain(value)!r} must be a whole number, 1 or larger.")
        super().check_parameters()

    def _asked_machines(self) -> Sequence[Any]:
        return AUTO_MACHINES if isinstance(self.machines, str) else self.machines

    def _policies(self) -> Sequence[Any]:
        return AUTO_POLICIES if isinstance(self.policies, str) else self.policies

    def _machines(self, X: Any, y: Array, several: bool) -> list[Any]:
        if self._given_scores:
            return [GivenScores()]
        asked = self._asked_machines()
        if isinstance(self.machines, str):
            if sp.issparse(X):
                asked = [name for name in asked if name in ("linear", "forest")]
            elif not suits_rbf(X):
                asked = [name for name in asked if name != "rbf"]
        found: list[Any] = []
        for machine in asked:
            if isinstance(machine, str) and machine in SVMS:
                found += machines_of(self.alphas, [machine], True, X, y, SVMS[machine])
            elif isinstance(machine, str):
                name, estimator = (OTHERS_OF_SEVERAL if several else OTHERS)[machine]
                found.append(BroughtSettings(estimator, name))
            else:
                known = [settings.family for settings in found]
                name = type(machine).__name__
                count = sum(family.partition(" (")[0] == name for family in known)
                found.append(
                    settings_from(machine, X, y, f"{name} ({count + 1})" if count else name)
                )
        return found

    def _more(self, samples: Samples, groups: Any, seed: int) -> dict[str, Any]:
        more: dict[str, Any] = {
            "blend": bool(self.blend),
            "n_finalists": int(self.n_finalists),
            "sparing": True,
        }
        if samples.coding.several:
            more["shares"] = SHARES
        if not isinstance(self.cv, Integral):  # a splitter may give the same folds again
            return more
        repeats = []
        for k in range(1, int(self.n_repeats)):
            folds = stratified_folds(self.cv, samples.X, samples.labels, groups, seed + k)
            repeats.append(FoldContext(samples, folds, draw_seed(seed), self.n_jobs))
        return more | {"repeats": repeats}

    def _takes_sparse(self) -> bool:
        kinds = self._asked_machines()
        if isinstance(self.machines, str) or self._given_scores:
            return True
        return all(
            machine in ("linear", "forest") if isinstance(machine, str) else takes_sparse(machine)
            for machine in kinds
        )
