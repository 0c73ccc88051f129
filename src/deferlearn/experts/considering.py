"""What is expected of the machine and of each expert on new cases."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.types import Array
from deferlearn.experts.error_models import Cases
from deferlearn.experts.routing import Routing, chosen_of
from deferlearn.experts.transport import MACHINE, Places
from deferlearn.humans.coding import Codes, codes_among


class Considered(NamedTuple):
    """All that an `ExpertTeam` says of some cases, one at a time.

    Attributes
    ----------
    who : ndarray of object of shape (n_cases,)
        As `assign` says.
    score : ndarray of shape (n_cases,)
        As `deferral_score` says.
    gains : ndarray of shape (n_cases, n_options)
        As `gains` says.
    machine : ndarray of shape (n_cases,)
    experts : ndarray of shape (n_cases, n_experts)
        As `expected_errors` says.
    """

    who: NDArray[Any]
    score: Array
    gains: Array
    machine: Array
    experts: Array


class Considering:
    """The part of `ExpertTeam` that says what is expected of the machine and of the experts."""

    team_: Any
    experts_: tuple[str, ...]
    classes_: NDArray[Any]
    _routing: Routing

    def _new(self, X: Any) -> tuple[Cases, Codes]:
        """New cases as models of errors see them, and the machine's answers."""
        check_is_fitted(self)
        probabilities = self.team_.predict_proba(X)
        machine = codes_among(self.team_.predict(X), self.classes_, "predict(X)")
        return Cases(check_array(X, accept_sparse="csr", dtype=np.float64), probabilities), machine

    def consider(self, X: Any) -> Considered:
        """All that the team says of cases, one at a time; the machine is asked about them once.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_cases, n_features)
            Cases.

        Returns
        -------
        Considered
        """
        cases, machine = self._new(X)
        own, experts, gains = self._expected(cases, machine)
        if len(self.experts_) == 1:
            places = np.where(self.team_.defer(X), 0, MACHINE)
            score = self.team_.deferral_score(X)
        else:
            net = self._routing.net(gains, cases.X)
            places, score = chosen_of(net), np.asarray(net.max(axis=1))
        return Considered(named(places, self.options_), score, gains, own, experts)

    def weigh(self, X: Any, probabilities: Array, said: ArrayLike) -> tuple[Array, Array, Array]:
        """`expected_errors` and `gains` of cases about which the machine has been asked already.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_cases, n_features)
            Cases: finite numbers.
        probabilities : ndarray of shape (n_cases, n_classes)
            The machine's probabilities of the classes.
        said : array-like of shape (n_cases,)
            The machine's answers.

        Returns
        -------
        machine : ndarray of shape (n_cases,)
        experts : ndarray of shape (n_cases, n_experts)
        gains : ndarray of shape (n_cases, n_options)
        """
        check_is_fitted(self)
        codes = codes_among(np.asarray(said), self.classes_, "said")
        return self._expected(Cases(X, probabilities), codes)

    def _expected(self, cases: Cases, machine: Codes) -> tuple[Array, Array, Array]:
        """What the machine's and the experts' answers are expected to cost, and the gains."""
        routing = self._routing
        own = routing.machine_cost(cases.probabilities, machine)
        return own, routing.model.expected(cases, routing.worst), routing.gains(cases, machine)

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


def named(places: Places, options: Sequence[Any]) -> NDArray[Any]:
    """Who takes each case: an option, or None for the machine."""
    names = np.empty(len(places), dtype=object)
    for row in np.flatnonzero(places != MACHINE):
        names[row] = options[places[row]]
    return names
