"""The doctors of the paper's experiments on medical images."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from deferlearn._utils.types import Array
from deferlearn.humans.losses import labels_from_scores, loss_from_scores
from deferlearn.humans.retina import APTOS, MESSIDOR, STARE, Doctors
from deferlearn.humans.uniform import Seed

# Grades such as 0.6000000000000001 are meant to be 0.6.
SAME_GRADE = 1e-9
# The logarithm of a uniform variable is divided by a parameter, and must stay finite.
SMALLEST_PARAMETER = 1e-100


@dataclass(frozen=True)
class DirichletDraw:
    """Probabilities, answers and losses of all doctors in one draw.

    Attributes
    ----------
    probabilities : ndarray of shape (n_samples, n_readers, n_grades)
        Each doctor's probability of answering each grade.
    answers : ndarray of shape (n_samples, n_readers)
        The grade that each doctor answered, as one of the human's `grades`.
    scores : ndarray of shape (n_samples, n_readers)
        The score of that answer.
    expected_losses : ndarray of shape (n_samples, n_readers)
        Each doctor's expected loss, given the doctor's probabilities.
    """

    probabilities: Array
    answers: Array
    scores: Array
    expected_losses: Array


class DirichletHuman:
    """The paper's simulated doctors, who answer with probabilities that differ from case to case.

    For a case of true grade q each doctor draws the probabilities of the answers, p ~
    Dirichlet(parameters[q]), and then an answer from Cat(p). Each answer has a score h in [-1, 1];
    its sign is the class, of the truth as well. The paper's human loss c(x, y) is the expectation of
    ``[1 - y h]_+`` under the first doctor's probabilities: `expected_losses`. What a human says when
    asked is the first doctor's answer: `scores` and `labels`.

    Parameters
    ----------
    parameters : array-like of shape (n_grades, n_grades)
        Row q holds the positive parameters for the true grade q, one for each answer.
    grade_scores : array-like of shape (n_grades,)
        Score of each answer, in [-1, 1]; negative means class -1.
    grades : array-like of shape (n_grades,), default=None
        Values that stand for the grades in the data; with None they are 0, 1, 2, ...
    n_readers : int, default=4
        How many doctors read each case.
    uniform_weight : float, default=0
        Level of skill: each doctor's probabilities are mixed with the uniform distribution, of
        this weight. 0 is the paper's doctor, 1 gives a random answer. The same seed means the
        same doctors at every weight.

    See Also
    --------
    DirichletHuman.messidor, DirichletHuman.stare, DirichletHuman.aptos : the paper's doctors.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.humans import DirichletHuman
    >>> doctor = DirichletHuman.messidor()
    >>> grades = np.repeat([0, 1, 2, 3], 1000)
    >>> y = doctor.true_labels(grades)
    >>> wrong = doctor.labels(grades, random_state=0) != y
    >>> bool(abs(wrong[grades == 0].mean() - 2 / 8) < 0.05)  # (1 + 1) / (3 + 3 + 1 + 1)
    True
    >>> doctor.expected_losses(grades, random_state=0).shape
    (4000,)
    >>> doctor.scores(grades, random_state=0, all_readers=True).shape
    (4000, 4)
    """

    def __init__(
        self,
        parameters: ArrayLike,
        grade_scores: ArrayLike,
        *,
        grades: ArrayLike | None = None,
        n_readers: int = 4,
        uniform_weight: float = 0.0,
    ) -> None:
        self.parameters = np.array(parameters, dtype=np.float64)
        n_grades = len(self.parameters) if self.parameters.ndim else 0
        if self.parameters.shape != (n_grades, n_grades) or n_grades < 2:
            raise ValueError(
                "parameters must have one row and one column for each of at least two grades, got "
                f"the shape {self.parameters.shape}"
            )
        if not ((self.parameters >= SMALLEST_PARAMETER) & np.isfinite(self.parameters)).all():
            raise ValueError(
                f"parameters of a Dirichlet distribution must be positive (at least "
                f"{SMALLEST_PARAMETER:g}) and finite, got {self.parameters.tolist()}"
            )
        self.grade_scores = _check_per_grade("grade_scores", grade_scores, n_grades)
        if np.abs(self.grade_scores).max() > 1:
            raise ValueError(f"grade_scores must lie in [-1, 1], got {grade_scores!r}")
        given = np.arange(n_grades) if grades is None else grades
        self.grades = _check_per_grade("grades", given, n_grades)
        if len(np.unique(self.grades)) != n_grades:
            raise ValueError(f"grades must be different from each other, got {grades!r}")
        if isinstance(n_readers, bool) or int(n_readers) != n_readers or n_readers < 1:
            raise ValueError(f"n_readers must be a positive whole number, got {n_readers!r}")
        self.n_readers = int(n_readers)
        if not 0.0 <= uniform_weight <= 1.0:
            raise ValueError(f"give 0 <= uniform_weight <= 1, got {uniform_weight!r}")
        self.uniform_weight = float(uniform_weight)

    def __repr__(self) -> str:
        return (
            f"DirichletHuman({self.parameters.tolist()}, {self.grade_scores.tolist()}, "
            f"grades={self.grades.tolist()}, n_readers={self.n_readers}, "
            f"uniform_weight={self.uniform_weight})"
        )

    @classmethod
    def messidor(
        cls, source: str = "paper", *, n_readers: int = 4, uniform_weight: float = 0.0
    ) -> Self:
        """Doctors of the paper's Messidor experiment, grades 0 to 3.

        Parameters
        ----------
        source : {"paper", "code"}, default="paper"
            Parameters of the paper's appendix, or of the authors' program; grade 1 differs.
        n_readers : int, default=4
            How many doctors.
        uniform_weight : float, default=0
            Level of skill, see `DirichletHuman`.

        Returns
        -------
        human : DirichletHuman
        """
        return cls._of(MESSIDOR, source, n_readers=n_readers, uniform_weight=uniform_weight)

    @classmethod
    def stare(
        cls, source: str = "paper", *, n_readers: int = 4, uniform_weight: float = 0.0
    ) -> Self:
        """Doctors of the paper's Stare experiment, grades 0.2, 0.4, 0.6, 0.8 and 1.

        Parameters
        ----------
        source : {"paper", "code"}, default="paper"
            Parameters of the paper's appendix, or of the authors' program; grade 0.6 differs.
        n_readers : int, default=4
            How many doctors.
        uniform_weight : float, default=0
            Level of skill, see `DirichletHuman`.

        Returns
        -------
        human : DirichletHuman
        """
        return cls._of(STARE, source, n_readers=n_readers, uniform_weight=uniform_weight)

    @classmethod
    def aptos(
        cls, source: str = "paper", *, n_readers: int = 4, uniform_weight: float = 0.0
    ) -> Self:
        """Doctors of the paper's Aptos experiment, grades 0 to 4.

        Parameters
        ----------
        source : {"paper", "code"}, default="paper"
            Parameters of the paper's appendix, or of the authors' program; grade 1 differs.
        n_readers : int, default=4
            How many doctors.
        uniform_weight : float, default=0
            Level of skill, see `DirichletHuman`.

        Returns
        -------
        human : DirichletHuman
        """
        return cls._of(APTOS, source, n_readers=n_readers, uniform_weight=uniform_weight)

    @classmethod
    def _of(cls, doctors: Doctors, source: str, **options: Any) -> Self:
        parameters = doctors.parameters(source)
        return cls(parameters, doctors.scores, grades=doctors.grades, **options)

    @property
    def mean_probabilities(self) -> Array:
        """Probability of each answer (column) given the true grade (row), over all draws."""
        return self._mix(self.parameters / self.parameters.sum(axis=1, keepdims=True))

    def true_labels(self, grades: ArrayLike) -> NDArray[np.int64]:
        """Class of each case: the sign of its true grade's score.

        Parameters
        ----------
        grades : array-like of shape (n_samples,)
            True grades.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            -1 or +1.
        """
        return labels_from_scores(self.grade_scores[self._index(grades)])

    def draw(self, grades: ArrayLike, random_state: Seed = None) -> DirichletDraw:
        """Draw all doctors: their probabilities, answers and scores.

        Parameters
        ----------
        grades : array-like of shape (n_samples,)
            True grades.
        random_state : int, RandomState or None, default=None
            Seed of the draw. All methods called with the same integer use the same draw.

        Returns
        -------
        draw : DirichletDraw
        """
        index = self._index(grades)
        rng = check_random_state(random_state)
        probabilities = self._mix(self._draw_probabilities(index, rng))
        u = rng.random_sample((len(index), self.n_readers))
        # The first answer whose cumulated probability exceeds u, so never one of probability 0.
        cumulated = probabilities.cumsum(axis=2)
        cumulated /= cumulated[:, :, -1:]
        answers = (cumulated <= u[:, :, None]).sum(axis=2)
        return DirichletDraw(
            probabilities,
            self.grades[answers],
            self.grade_scores[answers],
            self.expected_loss_of(probabilities, grades),
        )

    def expected_loss_of(self, probabilities: ArrayLike, grades: ArrayLike) -> Array:
        """Expected loss of given probabilities: the sum of ``p_k [1 - y h_k]_+`` over the answers k.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples, ..., n_grades)
            Probability of each answer.
        grades : array-like of shape (n_samples,)
            True grades.

        Returns
        -------
        losses : ndarray of shape (n_samples, ...)
            Between 0 and 2.
        """
        chances = np.asarray(probabilities, dtype=np.float64)
        y = self.true_labels(grades)
        if chances.shape[:1] != y.shape or chances.shape[-1] != len(self.grades):
            raise ValueError(
                f"probabilities of {len(y)} cases and {len(self.grades)} grades are needed, got the "
                f"shape {chances.shape}"
            )
        loss = np.maximum(0.0, 1.0 - y[:, None] * self.grade_scores)
        return np.einsum("i...k,ik->i...", chances, loss)

    def scores(
        self, grades: ArrayLike, random_state: Seed = None, *, all_readers: bool = False
    ) -> Array:
        """Draw the first doctor's score for each case, or the scores of all doctors.

        Parameters
        ----------
        grades : array-like of shape (n_samples,)
            True grades.
        random_state : int, RandomState or None, default=None
            As in `draw`.
        all_readers : bool, default=False
            Whether to return the scores of all doctors.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_readers)
            In [-1, 1].
        """
        scores = self.draw(grades, random_state).scores
        return scores if all_readers else scores[:, 0]

    def labels(
        self, grades: ArrayLike, random_state: Seed = None, *, all_readers: bool = False
    ) -> NDArray[np.int64]:
        """Draw the first doctor's answer for each case, or all answers: the sign of the score.

        Parameters
        ----------
        grades : array-like of shape (n_samples,)
            True grades.
        random_state : int, RandomState or None, default=None
            As in `draw`.
        all_readers : bool, default=False
            Whether to return the answers of all doctors.

        Returns
        -------
        labels : ndarray of shape (n_samples,) or (n_samples, n_readers)
            -1 or +1.
        """
        return labels_from_scores(self.scores(grades, random_state, all_readers=all_readers))

    def losses(
        self, grades: ArrayLike, random_state: Seed = None, *, all_readers: bool = False
    ) -> Array:
        """Loss ``[1 - y h]_+`` of the first doctor's score, or its mean over all doctors.

        Parameters
        ----------
        grades : array-like of shape (n_samples,)
            True grades.
        random_state : int, RandomState or None, default=None
            As in `draw`.
        all_readers : bool, default=False
            Whether to average over all doctors.

        Returns
        -------
        losses : ndarray of shape (n_samples,)
            Between 0 and 2.
        """
        scores = self.scores(grades, random_state, all_readers=all_readers)
        return loss_from_scores(scores, self.true_labels(grades))

    def expected_losses(self, grades: ArrayLike, random_state: Seed = None) -> Array:
        """Human loss c(x, y) of the paper: expected under the first doctor's probabilities.

        Parameters
        ----------
        grades : array-like of shape (n_samples,)
            True grades.
        random_state : int, RandomState or None, default=None
            As in `draw`: the doctors' probabilities are drawn, their answers are averaged over.

        Returns
        -------
        losses : ndarray of shape (n_samples,)
            Between 0 and 2.
        """
        return self.draw(grades, random_state).expected_losses[:, 0]

    def _mix(self, probabilities: Array) -> Array:
        weight = self.uniform_weight
        return (1.0 - weight) * probabilities + weight / len(self.grades)

    def _draw_probabilities(self, index: NDArray[np.intp], rng: Any) -> Array:
        """Normalised gamma variables, by their logarithms so that tiny parameters don't underflow.

        If G ~ Gamma(a + 1) and U is uniform, ``G U^(1/a)`` has the law Gamma(a).
        """
        a = np.repeat(self.parameters[index][:, None], self.n_readers, axis=1)
        # 1 - u lies in (0, 1]: its logarithm is finite.
        logs = np.log(rng.standard_gamma(a + 1.0)) + np.log(1.0 - rng.random_sample(a.shape)) / a
        weights = np.exp(logs - logs.max(axis=2, keepdims=True))
        return weights / weights.sum(axis=2, keepdims=True)

    def _index(self, grades: ArrayLike) -> NDArray[np.intp]:
        """Row of `parameters` of each true grade."""
        try:
            given = np.asarray(grades, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"grades must be numbers: {error}") from error
        if given.ndim != 1:
            raise ValueError(f"grades must have one dimension, got the shape {given.shape}")
        distance = np.abs(given[:, None] - self.grades)
        strange = ~(distance.min(axis=1) <= SAME_GRADE)
        if strange.any():
            row = np.flatnonzero(strange)[0]
            raise ValueError(
                f"the grade {given[row]:g} at row {row} is none of {self.grades.tolist()}"
            )
        return distance.argmin(axis=1)


def _check_per_grade(name: str, values: ArrayLike, n_grades: int) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.shape != (n_grades,) or not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be {n_grades} finite numbers, one for each grade, got {values!r}"
        )
    return array
