"""The loop that all algorithms share; they differ in which samples are candidates in each round."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn._utils.threads import one_blas_thread
from deferlearn._utils.types import Array, Index
from deferlearn.objective import Objective, Pick, Rounds
from deferlearn.objective.validation import as_reals
from deferlearn.selection.checkpoint import (
    CheckpointFile,
    Record,
    description,
    iteration_of,
    opened,
)
from deferlearn.selection.result import Iteration, SelectionInterrupted, SelectionResult
from deferlearn.selection.states import EMPTY, TIE, State, States, shared_states

Callback = Callable[[Iteration], None]

# The most rounds that an objective makes by itself before interrupts and callbacks have their turn.
AT_ONCE = 64
# And where other runs have been before: this one may soon come to a set whose pick is known.
AFTER_A_FORK = 6
# By how much, relative to max(1, F(V)), the gain of a pick may differ from what a checkpoint recorded.
AGREEMENT = 1e-6


def omega(ratio: float, n: int, index: int) -> float:
    """``(1 - gamma / n) ** (n - 1 - i)``, which grows to one: early rounds distrust gains."""
    return float((1.0 - ratio / n) ** (n - 1 - index))


def run(
    objective: Objective,
    human_loss: ArrayLike,
    n: Any,
    ratio: Any,
    rounds: Callable[[Index, int], Iterable[Index | None]],
    *,
    algorithm: str,
    tol: Any = 0.0,
    min_kept_per_class: Any = 0,
    callback: Callback | None = None,
    states: States | None = None,
    checkpoint: CheckpointFile = None,
    stream: str | None = None,
    **details: Any,
) -> SelectionResult:
    """Go through the rounds and defer the best candidate of each, if its score is positive.

    ``rounds`` gets all candidates and the budget, and gives the candidates of each round (None: all).
    ``stream`` stands for the random stream that the rounds draw from, if they do.
    """
    loss, n = check_loss(objective, human_loss), check_budget(objective, n)
    ratio, tol = check_ratio(ratio), check_tol(tol)
    floor = ClassFloor(objective, check_floor(min_kept_per_class))
    shared = shared_states(objective, states)
    with opened(checkpoint) as file:
        record = Record()
        if file is not None:
            fingerprint = shared.root.objective.fingerprint()
            asked = {**fingerprint, "n": n, "submodularity_ratio": ratio, "algorithm": algorithm}
            asked |= {"tol": tol, "min_kept_per_class": floor.least, **details}
            if stream is not None:
                asked["random_state"] = stream
            record = file.begin(description(shared, loss, **asked))
        selection = _Run(shared, loss, n, ratio, tol, floor, algorithm=algorithm, **details)
        # A run that is continued from a file must round as before, so it makes one round at a time. With
        # one candidate per round most rounds have no pick, and looking ahead would save nothing.
        selection.looks_ahead = file is None and tol == 0.0 and algorithm != "unconstrained"
        tell = callback or (lambda _: None)
        drawn = Draws(rounds(shared.candidates, n))
        try:
            with one_blas_thread():
                for index in drawn.rounds():
                    tell(selection.round(index, drawn, record))
        except KeyboardInterrupt:
            kept_in = None if file is None else file.path
            raise SelectionInterrupted(selection.result(interrupted=True), kept_in) from None
        result = selection.result()
        if record.value is None:
            record.end(result.value, result.gap)
        # Rounds of a file are made again, without looking for the best: what it says of itself is no proof.
        elif abs(result.value - record.value) > AGREEMENT * max(1.0, shared.root.value):
            raise _misfit(record, f"the selection was worth {record.value:g}, now {result.value:g}")
    return result


class Draws:
    """The candidates of each round, drawn when they are first asked for; None stands for all."""

    def __init__(self, drawn: Iterable[Index | None]) -> None:
        self._coming = iter(drawn)
        self._drawn: list[Index | None] = []

    def __getitem__(self, index: int) -> Index | None:
        return self._drawn[index]

    def ahead(self, index: int, count: int) -> list[Index | None]:
        """The candidates of the next rounds from ``index`` on, at most ``count`` of them."""
        self._drawn += islice(self._coming, max(0, index + count - len(self._drawn)))
        return self._drawn[index : index + count]

    def rounds(self) -> Iterator[int]:
        """The number of each round."""
        index = 0
        while True:
            if index == len(self._drawn):
                try:
                    self._drawn.append(next(self._coming))
                except StopIteration:
                    return
            yield index
            index += 1


class _Run:
    """One selection under way."""

    def __init__(
        self,
        states: States,
        loss: Array,
        n: int,
        ratio: float,
        tol: float,
        floor: "ClassFloor",
        **named: Any,
    ) -> None:
        self.states, self.loss, self.n, self.ratio = states, loss, n, ratio
        self.floor, self.tol, self._named = floor, tol, named
        # The state of the present set; None where picks are known without it.
        self._state: State | None = states.root
        self._name, self._n_picked = EMPTY, 0
        self._value, self._gap = states.root.value, states.root.gap
        self._iterations: list[Iteration] = []
        self._free = np.zeros(len(loss), dtype=bool)
        self._free[states.candidates] = True
        # The end of the rounds that the objective has made by itself, and up to which round it was asked.
        self._end: tuple[int, State] = (EMPTY, states.root)
        self._last_ahead = -1
        self.looks_ahead = False
        self._forks = states.n_states > 1
        # Other losses mean other picks in the same sets.
        self._losses = hash(loss.tobytes())

    def round(self, index: int, draws: Draws, record: Record) -> Iteration:
        """One round: as it was recorded, as it is known, or by looking for the best candidate."""
        weight = omega(self.ratio, self.n, index)
        if self.looks_ahead:
            pick = self._known_pick(index, draws, weight)
            if pick is not None:
                return self._follow(pick, index, weight)
        again = index < len(record.rounds)
        drawn = draws[index]
        candidates = self.states.candidates if drawn is None else drawn
        candidates = self.floor.allowed(candidates[self._free[candidates]])
        if again:
            iteration = iteration_of(record.rounds[index], weight)
            if iteration.picked >= 0 and iteration.picked not in candidates:
                raise _misfit(record, f"sample {iteration.picked} was no candidate")
        else:
            iteration = self._look(index, weight, candidates)
        self._iterations.append(iteration)
        if iteration.picked >= 0:
            before = self._value
            self._defer(iteration.picked)
            fell = before - self._value
            if again and abs(fell - iteration.gain) > AGREEMENT * max(1.0, self.states.root.value):
                raise _misfit(
                    record,
                    f"deferring sample {iteration.picked} gained {iteration.gain:g}, now {fell:g}",
                )
        if not again:
            record.add(iteration)
        return iteration

    def _known_pick(self, index: int, draws: Draws, weight: float) -> Pick | None:
        """The best candidate if it is known, or if the objective finds it, with those of later rounds."""
        left = self.floor.rounds_left()
        if left == 0:  # a class may have to stay: then candidates are chosen round by round
            return None
        drawn = draws[index]
        key = self._key(self._name, drawn)
        pick = self.states.pick_at(key, weight)
        if pick is not None or not self._state_here().untouched:
            return pick
        rows = draws.ahead(index, min(AFTER_A_FORK if self._forks else AT_ONCE, left))
        low, high = self.states.ratios or (self.ratio, self.ratio)
        numbers = range(index, index + len(rows))
        omegas, lowest, highest = (
            np.array([omega(ratio, self.n, number) for number in numbers])
            for ratio in (self.ratio, high, low)
        )
        rounds = Rounds(
            omegas, lowest, highest, self.loss, self._free,
            None if drawn is None else np.array(rows), TIE, self.states.unit,
        )  # fmt: skip

        made = self.states.look_ahead(
            self._state_here(),
            self._name,
            rounds,
            lambda name, number: self._key(name, rows[number]),
        )
        if made is None:
            return None
        state, name, count = made
        self._end, self._last_ahead = (name, state), index + count
        return self.states.pick_at(key, weight)

    def _key(self, name: int, drawn: Index | None) -> tuple[Any, ...]:
        """All that a pick depends on, besides omega."""
        draw = None if drawn is None else hash(drawn.tobytes())
        return (name, self._losses, self.floor.least, draw)

    def _follow(self, pick: Pick, index: int, weight: float) -> Iteration:
        """Take a pick that is known, without the state of its set."""
        n_exact = pick.n_exact if index < self._last_ahead else 0
        # In the order of their names: a sweep makes thousands, and keywords would double the time.
        iteration = Iteration(
            index, weight, pick.k, weight * pick.gain - float(self.loss[pick.k]), pick.gain,
            pick.n_candidates, n_exact, pick.n_candidates - n_exact, 0.0,
        )  # fmt: skip
        self._iterations.append(iteration)
        self._move(self.states.name_with(self._name, pick.k), None, pick.k, pick.value)
        return iteration

    def _state_here(self) -> State:
        if self._state is None:
            name, state = self._end
            self._state = state if name == self._name else self.states.state_of(self._name)
        return self._state

    def _look(self, index: int, weight: float, candidates: Index) -> Iteration:
        choice = self._state_here().best(candidates, weight, self.loss, self.tol)
        return Iteration(
            index=index,
            omega=weight,
            picked=choice.k,
            score=choice.score,
            gain=choice.gain,
            n_candidates=len(candidates),
            n_exact=choice.n_exact,
            n_screened=len(candidates) - choice.n_exact,
            slack=choice.slack,
        )

    def _defer(self, k: int) -> None:
        before = self._state_here().gap
        state, name = self.states.after(self._state_here(), self._name, k)
        self._move(name, state, k, state.value)
        self._gap = max(self._gap, before + state.gap)  # the gain is a difference of the two

    def _move(self, name: int, state: State | None, k: int, value: float) -> None:
        # One assignment: an interrupt finds state and picks in agreement.
        self._state, self._name, self._n_picked, self._value = (
            state,
            name,
            self._n_picked + 1,
            value,
        )
        self._free[k] = False
        self.floor.take(k)

    def result(self, interrupted: bool = False) -> SelectionResult:
        """What has been picked so far."""
        iterations = list(self._iterations)
        # A pick counts once its state has been reached: an interrupt may come before.
        while sum(i.picked >= 0 for i in iterations) > self._n_picked:
            iterations.pop()
        made = [i for i in iterations if i.picked >= 0]
        order = np.array([i.picked for i in made], dtype=np.int64)
        initial = self.states.root.value
        value = initial - self._value - float(self.loss[order].sum())
        self.states.end(self._name, self._state_here())
        return SelectionResult(
            order=order,
            gains=np.array([i.gain for i in made]),
            scores=np.array([i.score for i in made]),
            omegas=np.array([i.omega for i in made]),
            value=value,
            initial_value=initial,
            n=self.n,
            submodularity_ratio=self.ratio,
            iterations=iterations,
            tol=self.tol,
            gap=self._gap,
            min_kept_per_class=self.floor.least,
            interrupted=interrupted,
            n_states=self.states.n_states,
            **self._named,
        )


def _misfit(record: Record, why: str) -> ValueError:
    path = None if record.checkpoint is None else record.checkpoint.path
    return ValueError(
        f"checkpoint={path!r} does not fit this objective: {why}. Name another file, or delete this one "
        "to start from the beginning."
    )


class ClassFloor:
    """Keeps at least a number of samples of each class with the machine."""

    def __init__(self, objective: Objective, least: int) -> None:
        self.least = least
        self._kept = objective.kept
        if least > 0:
            if objective.labels is None:
                raise ValueError(
                    f"min_kept_per_class={least} needs the class of each sample, but "
                    f"{type(objective).__name__}.labels is None; define labels, or use 0."
                )
            self._labels = np.asarray(objective.labels)
            kept = self._labels[objective.kept]
            self._left = {label: int((kept == label).sum()) for label in np.unique(kept)}

    def allowed(self, candidates: Index) -> Index:
        """The candidates that may still be deferred."""
        if self.least <= 0:
            return candidates
        open_ = [label for label, left in self._left.items() if left > self.least]
        return candidates[np.isin(self._labels[candidates], open_)]

    def rounds_left(self) -> int:
        """For how many more rounds every sample may be deferred, whatever is picked."""
        if self.least <= 0:
            return len(self._kept)
        return max(0, min(self._left.values()) - self.least)

    def take(self, k: int) -> None:
        """Count a deferred sample."""
        if self.least > 0:
            self._left[self._labels[k]] -= 1


def check_loss(objective: Objective, human_loss: ArrayLike) -> Array:
    """Human losses: one finite, non-negative number per sample of an objective."""
    if not isinstance(objective, Objective):
        raise TypeError(
            "A selection needs an objective that derives from deferlearn.objective.Objective, got "
            f"{type(objective).__name__}."
        )
    n = len(objective.kept)
    loss = as_reals(human_loss, "human_loss")
    if loss.shape != (n,):
        raise ValueError(
            f"human_loss must hold one number for each of the {n} samples, got shape {loss.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(loss) & (loss >= 0.0)))
    if len(bad):
        raise ValueError(
            f"human_loss must be finite and not negative, got {loss[bad[0]]} at index {bad[0]}."
        )
    return loss


def check_budget(objective: Objective, n: Any) -> int:
    """The number of samples that may be deferred: 0 to all that are kept."""
    most = int(np.sum(objective.kept))
    if not is_whole(n):
        raise ValueError(f"n={plain(n)!r} must be a whole number of samples.")
    if not 0 <= n <= most:
        raise ValueError(f"n={n} must be between 0 and the number of samples, {most}.")
    return int(n)


def check_ratio(ratio: Any) -> float:
    """A submodularity ratio in (0, 1]."""
    return _in_interval("submodularity_ratio", ratio, upper_open=False)


def check_open_unit(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    return _in_interval(name, value, upper_open=True)


def check_tol(tol: Any) -> float:
    """A relative slack in [0, 1)."""
    if not is_number(tol) or not 0 <= tol < 1:
        raise ValueError(f"tol={plain(tol)!r} must be a number in [0, 1); 0 is exact.")
    return float(tol)


def _in_interval(name: str, value: Any, *, upper_open: bool) -> float:
    if not is_number(value) or not (0 < value < 1 if upper_open else 0 < value <= 1):
        raise ValueError(
            f"{name}={plain(value)!r} must be a number in (0, 1{')' if upper_open else ']'}."
        )
    return float(value)


def check_floor(least: Any) -> int:
    """How many of each class must stay: a whole number, 0 for no floor."""
    if not is_whole(least) or least < 0:
        raise ValueError(
            f"min_kept_per_class={plain(least)!r} must be a whole number, 0 or larger."
        )
    return int(least)
