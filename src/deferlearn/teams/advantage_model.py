"""What the machine's and the human's answers are expected to cost, learned from held-out samples."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import isotonic_regression
from sklearn.base import clone, is_regressor

from deferlearn._utils.types import Array, Bools
from deferlearn.humans.coding import Codes, Coding, mean_weights
from deferlearn.teams.calibration import calibrate
from deferlearn.teams.forest import ForestRegressor
from deferlearn.teams.forest_arrays import forest_arrays
from deferlearn.teams.policy import seed_all
from deferlearn.teams.ranking import (
    ByAdvantage,
    expected_human,
    expected_machine,
    read_margin,
)
from deferlearn.teams.samples import Samples

# Each of the two rates by predicted class starts from so many cases at the rate of all.
PRIOR_CASES = 2.0
# Isotonic fits are flat in places. There the less sure case goes first, by a hair: so much of the
# largest cost, whatever the unit of costs.
TIE_BREAK = 1e-6

FOREST = ForestRegressor()
# Names of the simple models.
MACHINE_ERRORS, HUMAN_ERRORS = ("margin", "probability"), ("class", "truth")


class Truth(NamedTuple):
    """The true classes of samples, what an error on each costs, and what each mistake costs."""

    codes: Codes
    weights: Array
    coding: Coding

    @classmethod
    def of(cls, samples: Samples, rows: Any = slice(None)) -> Self:
        """The truth about some of the samples."""
        return cls(samples.codes[rows], samples.weights[rows], samples.coding)


@dataclass(eq=False)
class AdvantageModel:
    """Expected cost of the machine's answer minus that of the human's, learned from held-out samples.

    Parameters
    ----------
    machine_error : "margin", "probability" or regressor
        "margin": isotonic in how sure the machine is, for each of its answers. "probability": by the
        probability of each class, a logistic curve in the margin. A regressor sees x and the margin.
    human_error : "class", "truth" or regressor
        "class": the mean over the cases with the same answer of the machine. "truth": the mean over the
        cases of each true class, weighted by the probability of that class. A regressor sees x.
    """

    machine_error: Any
    human_error: Any

    def fit(
        self,
        X: Any,
        margin: Array,
        machine_cost: Array,
        human_cost: Array,
        truth: Truth,
        seed: int,
        human: Any = None,
    ) -> Self:
        """Learn from margins of samples that the machine had not seen, and from their costs.

        ``truth`` are the classes of the samples, with the cost of an error on each. ``human`` is the
        human's regressor, if it has been fitted on these cases already.
        """
        # Of machine and human, either a model or steps and rates.
        self.machine_: Any = None
        self.human_: Any = None
        self.steps_: list[tuple[Array, Array]] = []
        self.rates_: list[float] = []
        self.weights_: list[float] = []
        self.curve_: list[float] = []
        several = margin.ndim == 2
        self.stakes_: Any = truth.coding.stakes if several else ()
        said, sure, _ = read_margin(margin, self.stakes_)
        n_classes = len(truth.coding.classes)
        self.hair_ = TIE_BREAK * (max(machine_cost.max(), human_cost.max()) or 1.0)
        if self.machine_error == "probability" or self.human_error == "truth":
            self.curve_ = [1.0, 0.0]  # the margins of several classes are probabilities already
            if not several:
                signs = truth.coding.signs(truth.codes)[:, 0]
                curve = calibrate(margin, signs, np.ones(len(margin)))
                self.curve_ = [curve.slope, curve.offset]
        if self.machine_error == "probability":
            self.weights_ = mean_weights(truth.codes, truth.weights, n_classes).tolist()
        elif isinstance(self.machine_error, str):
            self.steps_ = [_isotonic(sure, machine_cost, said == k) for k in range(n_classes)]
        else:
            self.machine_ = _seeded(self.machine_error, seed).fit(_join(X, margin), machine_cost)
        if isinstance(self.human_error, str):
            # By the true class, or by what the machine says.
            by = truth.codes if self.human_error == "truth" else said
            self.rates_ = [_rate(human_cost, by == k) for k in range(n_classes)]
        else:
            self.human_ = self.fit_human(X, human_cost, seed) if human is None else human
        return self

    def fit_human(self, X: Any, human_cost: Array, seed: int) -> Any:
        """The regressor of the human's cost, which knows nothing of the machine."""
        return _seeded(self.human_error, seed).fit(X, human_cost)

    def predict(self, X: Any, margin: Array) -> Array:
        """The advantage of asking the human about each case."""
        machine, human = self.expected(X, margin)
        _, sure, _ = read_margin(margin, self.stakes_)
        return np.asarray(machine - human - self.hair_ * sure / (1.0 + sure), dtype=np.float64)

    def expected(self, X: Any, margin: Array) -> tuple[Array, Array]:
        """What the machine's answer and the human's are expected to cost."""
        if self.machine_ is not None:
            machine = self.machine_.predict(_join(X, margin))
        else:
            weights = self.weights_ if margin.ndim == 1 else self.stakes_
            machine = expected_machine(margin, self.steps_, weights, self.curve_)
        if self.human_ is not None:
            human = self.human_.predict(X)
        else:
            by_truth = self.human_error == "truth"
            curve = self.curve_ if by_truth else []
            human = expected_human(margin, self.rates_, curve, self.stakes_)
        return np.asarray(machine, dtype=np.float64), np.asarray(human, dtype=np.float64)

    def ranking(self) -> ByAdvantage | None:
        """The fitted model as arrays; None if a regressor is not known in this form."""
        models = (self.machine_, self.human_)
        machine, human = (None if model is None else forest_arrays(model) for model in models)
        if [machine is None, human is None] != [model is None for model in models]:
            return None
        by_truth = self.human_error == "truth"
        return ByAdvantage(
            hair=float(self.hair_),
            steps=self.steps_,
            rates=self.rates_,
            machine=machine,
            human=human,
            weights=self.stakes_ if len(self.stakes_) else self.weights_,
            curve=self.curve_,
            by_truth=by_truth,
        )


def _isotonic(sure: Array, cost: Array, rows: Bools) -> tuple[Array, Array]:
    """Steps of the machine's expected cost, falling with how sure it is, in the rows of one answer."""
    if not rows.any():
        return np.zeros(1), np.array([cost.mean()])
    # As scikit-learn's `IsotonicRegression`, whose checks take ten times as long as the fit.
    sure, place, count = np.unique(sure[rows], return_inverse=True, return_counts=True)
    mean = np.bincount(place, weights=cost[rows]) / count
    fall = isotonic_regression(mean, weights=count, increasing=False).x
    corner = np.ones(len(fall), dtype=bool)  # the line is flat on both sides of all others
    corner[1:-1] = (fall[1:-1] != fall[:-2]) | (fall[1:-1] != fall[2:])
    return sure[corner], fall[corner]


def _rate(cost: Array, rows: Bools) -> float:
    """The human's mean cost in some rows, drawn towards that of all cases."""
    return float(
        (cost[rows].sum() + PRIOR_CASES * cost.mean()) / (np.count_nonzero(rows) + PRIOR_CASES)
    )


def _join(X: Any, margin: Array) -> Any:
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([X, sp.csr_array(margin.reshape(X.shape[0], -1))]))
    return np.hstack([X, margin.reshape(X.shape[0], -1)])


def _seeded(regressor: Any, seed: int) -> Any:
    model = clone(regressor)
    seed_all(model, seed)
    return model


def resolve_error(name: str, value: Any, words: tuple[str, ...]) -> Any:
    """A model of errors: a word for a simple one, "forest", or a regressor as it is."""
    if isinstance(value, str):
        if value in words:
            return value
        if value == "forest":
            return FOREST
    elif not isinstance(value, type) and hasattr(value, "fit") and is_regressor(value):
        return value
    raise ValueError(
        f"{name}={value!r} must be {', '.join(map(repr, words))}, 'forest', or an instance of a "
        "scikit-learn regressor."
    )
