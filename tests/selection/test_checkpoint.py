"""A selection that was killed goes on from its last pick, and ends as if nothing had happened."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import pickle
import signal
import time
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checks import check_seeds
from deferlearn.datasets import make_linear, make_shifted
from deferlearn.humans import UniformHuman
from deferlearn.objective import Objective, SVMObjective
from deferlearn.selection import (
    SelectionInterrupted,
    SelectionResult,
    distorted_greedy,
    stochastic_distorted_greedy,
    submodularity_sweep,
    unconstrained_distorted_greedy,
)
from deferlearn.selection.checkpoint import FIRST_LINE
from problems import FULL, Problem, chunks

N = 60


def make_case() -> tuple[SVMObjective, np.ndarray]:
    X, y = make_linear(N, random_state=1)
    return SVMObjective(X, y, alpha=0.05), UniformHuman(0.2).losses(y, random_state=0)


@pytest.fixture(scope="module")
def case() -> tuple[SVMObjective, np.ndarray]:
    return make_case()


def distorted(objective: Any, loss: Any, **options: Any) -> SelectionResult:
    return distorted_greedy(objective, loss, 20, 0.3, **options)


def floored(objective: Any, loss: Any, **options: Any) -> SelectionResult:
    return distorted_greedy(objective, np.zeros(N), 55, 0.3, min_kept_per_class=7, **options)


def stochastic(objective: Any, loss: Any, **options: Any) -> SelectionResult:
    return stochastic_distorted_greedy(objective, loss, 20, 0.3, random_state=3, **options)


def unconstrained(objective: Any, loss: Any, **options: Any) -> SelectionResult:
    return unconstrained_distorted_greedy(objective, loss, 0.3, random_state=3, **options)


def sweep(objective: Any, loss: Any, **options: Any) -> SelectionResult:
    return submodularity_sweep(objective, loss, 6, delta=0.3, **options)


def random_sweep(objective: Any, loss: Any, **options: Any) -> SelectionResult:
    return submodularity_sweep(
        objective, loss, 6, delta=0.3, algorithm=stochastic_distorted_greedy,
        random_state=np.random.RandomState(5), **options,
    )  # fmt: skip


ALGORITHMS = [distorted, floored, stochastic, unconstrained, sweep, random_sweep]


def without_work(i: Any) -> Any:
    """What happened in a round, but for how many gains were solved: bounds depend on the past."""
    return tuple(
        None if isinstance(value, float) and np.isnan(value) else value
        for value in i._replace(n_exact=0, n_screened=0)
    )


def assert_same(result: SelectionResult, whole: SelectionResult) -> None:
    for name in ("order", "gains", "scores", "omegas"):
        np.testing.assert_array_equal(getattr(result, name), getattr(whole, name))
    compared = {"order", "gains", "scores", "omegas", "iterations", "members"}
    for field in fields(SelectionResult):
        if field.name not in compared:
            assert getattr(result, field.name) == getattr(whole, field.name), field.name
    mine, theirs = result.iterations, whole.iterations
    assert [without_work(i) for i in mine] == [without_work(i) for i in theirs]
    for member, other in zip(result.members, whole.members, strict=True):
        assert_same(member, other)


# --------------------------------------------------------------------------------------- going on


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_goes_on_from_every_line(case: Any, algorithm: Any, tmp_path: Path) -> None:
    """Whatever was written last: all rounds after it are made, and none before."""
    objective, loss = case
    path = tmp_path / "run"
    whole = algorithm(objective, loss, checkpoint=path)
    # Without a file an objective makes many rounds at once, and rounds in another way.
    without = algorithm(objective, loss)
    if (whole.scores > 1e-9).all():  # not so where samples cost and gain nothing but rounding
        assert abs(without.value - whole.value) <= 1e-11
        assert without.order.tolist() == whole.order.tolist()
        np.testing.assert_allclose(without.gains, whole.gains, rtol=0.0, atol=1e-11)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    for count in range(0, len(lines), 1 + len(lines) // 25):
        path.write_bytes(b"".join(lines[:count]))
        fresh, _ = make_case()  # as in another process: nothing is known from before
        assert_same(algorithm(fresh, loss, checkpoint=path), whole)
        written = path.read_bytes().splitlines(keepends=True)
        assert written[:count] == lines[:count]
        assert len(written) == len(lines)


@pytest.mark.parametrize("seeds", chunks(130_000, 1_400 if FULL else 56, 28), ids=str)
def test_goes_on_with_degenerate_data(seeds: range, tmp_path: Path) -> None:
    """Duplicates, ties, one class, hard margins: replayed states lead to the same picks."""

    def check(p: Problem, rng: np.random.Generator) -> list[str] | None:
        if p.n > 60:
            return None
        objective, path = p.objective(), tmp_path / "run"
        path.unlink(missing_ok=True)
        n = int(rng.integers(1, p.n + 1))
        loss = np.round(rng.uniform(0.0, 2.0, p.n), 1) * objective.value / p.n
        whole = distorted_greedy(objective, loss, n, 0.3, checkpoint=path)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: int(rng.integers(2, len(lines)))]))
        again = distorted_greedy(p.objective(), loss, n, 0.3, checkpoint=path)
        if again.order.tolist() != whole.order.tolist():
            return [f"{p.name}: {again.order} instead of {whole.order}"]
        if abs(again.value - whole.value) > 1e-12 * p.size(objective.value):
            return [f"{p.name}: {again.value!r} instead of {whole.value!r}"]
        return []

    check_seeds(seeds, check, checked_share=0.6)


def slowly(name: str, path: Path, rounds: int) -> None:
    """A selection that takes a moment for each round, and never gets past the last."""
    seen = []

    def wait(iteration: Any) -> None:
        seen.append(iteration)
        time.sleep(600.0 if len(seen) == rounds else 0.002)

    by_name = {algorithm.__name__: algorithm for algorithm in ALGORITHMS}
    by_name[name](*make_case(), checkpoint=path, callback=wait)


@pytest.mark.parametrize("algorithm", [distorted, stochastic, sweep])
def test_killed_at_random_moments(case: Any, algorithm: Any, tmp_path: Path) -> None:
    """SIGKILL leaves no time to tidy up; no round is lost or written twice."""
    context = multiprocessing.get_context("fork")
    whole = algorithm(*case, checkpoint=tmp_path / "whole")
    size = (tmp_path / "whole").stat().st_size
    rounds = sum(len(r.iterations) for r in [whole, *whole.members])
    rng, path, before = np.random.RandomState(0), tmp_path / "run", b""
    for _ in range(6):
        child = context.Process(target=slowly, args=(algorithm.__name__, path, rounds))
        child.start()
        # By what is done rather than by the clock: a busy machine must not make it always too early.
        wanted = min(len(before) + rng.randint(1, 400), size // 2)
        while not path.exists() or path.stat().st_size < wanted:
            assert child.is_alive()
            time.sleep(0.0005)
        time.sleep(rng.uniform(0.0, 0.004))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        now = path.read_bytes()
        assert now.startswith(before)
        before = now[: now.rindex(b"\n") + 1]
    assert b" [0, " in before  # it got somewhere
    objective, loss = make_case()
    assert_same(algorithm(objective, loss, checkpoint=path), whole)
    assert path.read_bytes().startswith(before)


def test_an_interrupted_run_says_how_to_go_on(case: Any, tmp_path: Path) -> None:
    objective, loss = case
    path = tmp_path / "run"

    def stop(iteration: Any) -> None:
        if iteration.index == 7:
            raise KeyboardInterrupt

    for algorithm in (distorted, sweep):
        path.unlink(missing_ok=True)
        stops = stop if algorithm is distorted else _after(20)
        with pytest.raises(SelectionInterrupted, match=r"same call goes on .*checkpoint='.*run'"):
            algorithm(objective, loss, checkpoint=path, callback=stops)
        whole = algorithm(objective, loss, checkpoint=tmp_path / algorithm.__name__)
        assert_same(algorithm(objective, loss, checkpoint=path), whole)
    stopped = SelectionInterrupted(distorted(objective, loss), "file")
    again = pickle.loads(pickle.dumps(stopped))
    assert (str(again), again.checkpoint) == (str(stopped), "file")
    assert "goes on" not in str(SelectionInterrupted(stopped.result))


def _after(count: int) -> Any:
    seen: list[int] = []

    def stop(iteration: Any) -> None:
        seen.append(iteration.index)
        if len(seen) == count:
            raise KeyboardInterrupt

    return stop


def test_the_callback_hears_of_recorded_rounds_too(case: Any, tmp_path: Path) -> None:
    objective, loss = case
    path = tmp_path / "run"
    with pytest.raises(SelectionInterrupted):
        distorted(objective, loss, checkpoint=path, callback=_after(5))
    for _ in ("unfinished", "finished"):
        seen: list[int] = []
        distorted(objective, loss, checkpoint=path, callback=lambda i, s=seen: s.append(i.index))
        assert seen == list(range(20))


class Untouchable(SVMObjective):
    """Refuses to look for anything; samples can be removed."""

    def gain(self, k: int) -> float:
        raise AssertionError("nothing is left to look for")

    score_bounds = gain_bounds = gain  # type: ignore[assignment]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_finished_run_looks_for_nothing(case: Any, algorithm: Any, tmp_path: Path) -> None:
    objective, loss = case
    whole = algorithm(objective, loss, checkpoint=tmp_path / "run")
    X, y = make_linear(N, random_state=1)
    done = algorithm(Untouchable(X, y, alpha=0.05), loss, checkpoint=tmp_path / "run")
    assert_same(done, whole)
    assert done.n_exact == whole.n_exact


def forged(path: Path, change: Any) -> None:
    """Change the lines of a file, and write the checksums that belong to them."""
    first, *lines = path.read_bytes().splitlines()
    values = [json.loads(line[9:]) for line in lines]
    change(values)
    texts = [json.dumps(value).encode() for value in values]
    path.write_bytes(
        b"\n".join([first, *(b"%08x %s" % (zlib.crc32(text), text) for text in texts), b""])
    )


def raise_the_value(values: list[Any]) -> None:
    values[-1]["end"] += 1.0


def swap_a_pick(values: list[Any]) -> None:
    picked = {row[1] for row in values[1:-1]}
    values[4][1] = next(k for k in range(N) if k not in picked)


def repeat_a_pick(values: list[Any]) -> None:
    values[4][1] = values[3][1]


@pytest.mark.parametrize("change", [raise_the_value, swap_a_pick, repeat_a_pick])
def test_a_file_with_new_checksums_is_not_believed(case: Any, change: Any, tmp_path: Path) -> None:
    """A finished run, too, is made again from its picks."""
    objective, loss = case
    path = tmp_path / "run"
    whole = distorted(objective, loss, checkpoint=path)
    forged(path, lambda values: None)
    assert_same(distorted(objective, loss, checkpoint=path), whole)
    forged(path, change)
    with pytest.raises(
        ValueError, match=r"does not fit this objective: (the selection|def|sample)"
    ):
        distorted(objective, loss, checkpoint=path)


def test_a_generator_moves_on_as_it_would_have(case: Any, tmp_path: Path) -> None:
    objective, loss = case
    draws = []
    with_file = stochastic(objective, loss, checkpoint=tmp_path / "whole")
    for checkpoint in (None, tmp_path / "run", tmp_path / "run"):
        rng = np.random.RandomState(3)
        result = stochastic_distorted_greedy(
            objective, loss, 20, 0.3, random_state=rng, checkpoint=checkpoint
        )
        assert_same(result, stochastic(objective, loss) if checkpoint is None else with_file)
        draws.append(rng.randint(10**9))
    assert len(set(draws)) == 1


# ------------------------------------------------------------------------------- what is in the file


@pytest.mark.parametrize("tail", [b"5d5f", b"00000000 [8, 1", b"\0" * 40, b'0000000a [1]\n{"\n'])
def test_a_torn_end_is_dropped(case: Any, tail: bytes, tmp_path: Path) -> None:
    objective, loss = case
    path = tmp_path / "run"
    with pytest.raises(SelectionInterrupted):
        distorted(objective, loss, checkpoint=path, callback=_after(8))
    good = path.read_bytes()
    path.write_bytes(good + tail)
    whole = distorted(objective, loss, checkpoint=tmp_path / "whole")
    assert_same(distorted(objective, loss, checkpoint=path), whole)
    assert path.read_bytes().startswith(good)
    assert tail not in path.read_bytes()


def test_a_file_torn_at_every_byte(case: Any, tmp_path: Path) -> None:
    objective, loss = case
    path = tmp_path / "run"
    whole = distorted_greedy(objective, loss, 2, checkpoint=path)
    content = path.read_bytes()
    for size in [*range(40), *range(40, len(content), 7)]:
        path.write_bytes(content[:size])
        assert_same(distorted_greedy(objective, loss, 2, checkpoint=path), whole)
        assert path.read_bytes().splitlines()[:2] == content.splitlines()[:2]


def test_damage_in_the_middle_is_told(case: Any, tmp_path: Path) -> None:
    objective, loss = case
    path = tmp_path / "run"
    distorted(objective, loss, checkpoint=path)
    lines = path.read_bytes().splitlines(keepends=True)
    for bad in (lines[5].replace(b"[3", b"[8"), b"", b"\n", lines[4]):
        damaged = b"".join([*lines[:5], bad, *lines[6:]])
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is damaged in line 6\. .*start from the beginning"):
            distorted(objective, loss, checkpoint=path)
        assert path.read_bytes() == damaged


@pytest.mark.parametrize("content", [b"my thesis\n", b"deferlearn selection checkpoint 2\n", b"\0"])
def test_other_files_are_left_alone(case: Any, content: bytes, tmp_path: Path) -> None:
    objective, loss = case
    path = tmp_path / "thesis.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"thesis\.txt' is no checkpoint of this version"):
        distorted(objective, loss, checkpoint=path)
    assert path.read_bytes() == content


def test_no_folder_is_made(case: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        distorted(*case, checkpoint=tmp_path / "nowhere" / "run")


def test_one_run_at_a_time(case: Any, tmp_path: Path) -> None:
    objective, loss = case

    def meanwhile(iteration: Any) -> None:
        distorted(objective, loss, checkpoint=tmp_path / "run")

    with pytest.raises(ValueError, match="is in use by another run"):
        distorted(objective, loss, checkpoint=tmp_path / "run", callback=meanwhile)
    distorted(objective, loss, checkpoint=tmp_path / "run")  # free again


# ----------------------------------------------------------------------------------- other problems

X, Y = make_shifted(40, 3, random_state=0)
LOSS = UniformHuman(0.5).losses(Y, random_state=0)
BASE: dict[str, Any] = {"X": X, "alpha": 0.1, "weights": np.ones(40)}


@pytest.mark.parametrize(
    ("machine", "selection", "said"),
    [
        ({"X": X[np.r_[1, 0, 2:40]]}, {}, "X differs"),
        ({"alpha": 0.2}, {}, r"alpha is 0\.1 there, 0\.2 here"),
        ({"weights": np.r_[2.0, np.ones(39)]}, {}, "weights differs"),
        ({"kernel": "rbf"}, {}, "kernel is 'linear' there, 'rbf' here"),
        ({"fit_intercept": False}, {}, "fit_intercept is True there, False here"),
        ({"y": -Y}, {}, "labels differs"),
        ({}, {"human_loss": LOSS[::-1]}, "human_loss differs"),
        ({}, {"n": 9}, "n is 8 there, 9 here"),
        ({}, {"submodularity_ratio": 0.4}, r"submodularity_ratio is 0\.5 there, 0\.4 here"),
        ({}, {"tol": 0.1}, r"tol is 0\.0 there, 0\.1 here"),
        ({}, {"min_kept_per_class": 2}, "min_kept_per_class is 0 there, 2 here"),
    ],
)
def test_another_problem_is_refused(
    machine: dict[str, Any], selection: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "run"

    def select(machine: dict[str, Any], selection: dict[str, Any]) -> SelectionResult:
        given = {"y": Y, **BASE, **machine}
        asked = {"human_loss": LOSS, "n": 8, "submodularity_ratio": 0.5, **selection}
        objective = SVMObjective(given.pop("X"), given.pop("y"), **given)
        return distorted_greedy(objective, checkpoint=path, **asked)

    first = select({}, {})
    content = path.read_bytes()
    with pytest.raises(ValueError, match=rf"another selection: .*{said}.*Name another file"):
        select(machine, selection)
    assert path.read_bytes() == content
    assert_same(select({}, {}), first)


def test_sparse_rows_and_kernels_have_fingerprints(tmp_path: Path) -> None:
    import scipy.sparse as sp

    for number, (rows, options) in enumerate(
        [
            (sp.csr_array(X), {}),
            (X, {"kernel": "poly", "degree": 2}),
            (X, {"kernel": lambda A, B: A @ B.T}),
            (X @ X.T, {"kernel": "precomputed"}),
        ]
    ):
        path = tmp_path / str(number)
        first = distorted_greedy(SVMObjective(rows, Y, **options), LOSS, 5, checkpoint=path)
        again = distorted_greedy(SVMObjective(rows, Y, **options), LOSS, 5, checkpoint=path)
        assert_same(again, first)
        other = options | ({"degree": 3} if number == 1 else {"alpha": 0.3})
        with pytest.raises(ValueError, match="belongs to another selection"):
            distorted_greedy(SVMObjective(rows, Y, **other), LOSS, 5, checkpoint=path)


def test_other_draws_are_refused(case: Any, tmp_path: Path) -> None:
    objective, loss = case
    path = tmp_path / "run"
    stochastic(objective, loss, checkpoint=path)
    for change, said in (
        ({"random_state": 4}, "random_state differs"),
        ({"epsilon": 0.2, "random_state": 3}, r"epsilon is 0\.01 there, 0\.2 here"),
    ):
        with pytest.raises(ValueError, match=said):
            stochastic_distorted_greedy(objective, loss, 20, 0.3, checkpoint=path, **change)
    with pytest.raises(ValueError, match="algorithm is 'stochastic' there, 'distorted' here"):
        distorted(objective, loss, checkpoint=path)
    for algorithm, arguments in (
        (stochastic_distorted_greedy, (20,)),
        (unconstrained_distorted_greedy, ()),
    ):
        with pytest.raises(ValueError, match="checkpoint needs a random_state"):
            algorithm(objective, loss, *arguments, checkpoint=tmp_path / "new")
    assert not (tmp_path / "new").exists()


# ------------------------------------------------------------------------------- any other objective


class Coverage(Objective):
    """F(A) = weight of what the kept sets cover: nothing but the members that an objective must have."""

    kept: Any = None  # each has its own

    def __init__(self, sets: list[set[int]], weight: list[float]) -> None:
        self.sets, self.weight = sets, weight
        self.kept = np.ones(len(sets), dtype=bool)

    def _of(self, kept: np.ndarray) -> float:
        covered = set[int]().union(*(self.sets[k] for k in np.flatnonzero(kept)))
        return float(sum(self.weight[i] for i in covered))

    @property
    def value(self) -> float:
        return self._of(self.kept)

    def gain(self, k: int) -> float:
        rest = self.kept.copy()
        rest[k] = False
        return self.value - self._of(rest)

    def gain_bounds(self, ks: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(ks)), np.full(len(ks), np.inf)

    def remove(self, k: int) -> None:
        self.kept[k] = False

    def copy(self) -> Coverage:
        other = type(self)(self.sets, self.weight)
        other.kept = self.kept.copy()
        return other


SETS = [{0}, {1}, {2, 3}, {3}, {4, 0}, {5}]


def test_an_objective_without_a_fingerprint(tmp_path: Path) -> None:
    path, loss = tmp_path / "run", np.full(6, 0.1)
    ones = Coverage(SETS, [1, 2, 3, 4, 5, 6])
    whole = distorted_greedy(ones, loss, 4, 0.5)
    with pytest.raises(SelectionInterrupted):
        distorted_greedy(ones, loss, 4, 0.5, checkpoint=path, callback=_after(2))
    content = path.read_bytes()
    # Another with the same F(V), as far as it can be told: its gains give it away.
    with pytest.raises(
        ValueError, match="does not fit this objective: deferring sample 5 gained 6"
    ):
        distorted_greedy(Coverage(SETS, [6, 5, 4, 3, 2, 1]), loss, 4, 0.5, checkpoint=path)
    with pytest.raises(
        ValueError, match=r"loss with no sample deferred is 21\.0 there, 22\.0 here"
    ):
        distorted_greedy(Coverage(SETS, [2, 2, 3, 4, 5, 6]), loss, 4, 0.5, checkpoint=path)
    assert path.read_bytes() == content
    assert_same(distorted_greedy(ones, loss, 4, 0.5, checkpoint=path), whole)
    # Nor is a finished run taken for that of another problem.
    content = path.read_bytes()
    with pytest.raises(
        ValueError, match="does not fit this objective: deferring sample 5 gained 6"
    ):
        distorted_greedy(Coverage(SETS, [6, 5, 4, 3, 2, 1]), loss, 4, 0.5, checkpoint=path)
    assert_same(distorted_greedy(ones, loss, 4, 0.5, checkpoint=path), whole)
    assert path.read_bytes() == content


def test_an_objective_with_a_fingerprint_of_its_own(tmp_path: Path) -> None:
    class Named(Coverage):
        def fingerprint(self) -> dict[str, Any]:
            return {"weight": list(self.weight)}

    path, loss = tmp_path / "run", np.full(6, 0.1)
    distorted_greedy(Named(SETS, [1, 2, 3, 4, 5, 6]), loss, 4, checkpoint=path)
    with pytest.raises(ValueError, match=r"weight is .* there"):
        distorted_greedy(Named(SETS, [6, 5, 4, 3, 2, 1]), loss, 4, checkpoint=path)


@pytest.mark.parametrize("weight", [(1, 2.5, math.nan), None, True, {"a": (1,)}], ids=str)
def test_what_a_fingerprint_may_hold(weight: Any, tmp_path: Path) -> None:
    class Named(Coverage):
        def fingerprint(self) -> dict[str, Any]:
            return {"held": weight}

    path, loss, objective = tmp_path / "run", np.full(6, 0.1), Named(SETS, [1, 2, 3, 4, 5, 6])
    first = distorted_greedy(objective, loss, 4, checkpoint=path)
    assert_same(distorted_greedy(objective, loss, 4, checkpoint=path), first)


def test_what_a_fingerprint_may_not_hold(tmp_path: Path) -> None:
    class Named(Coverage):
        def fingerprint(self) -> dict[str, Any]:
            return {"held": np.ones(3)}

    with pytest.raises(ValueError, match=r"fingerprint\(\) .* ndarray"):
        distorted_greedy(Named(SETS, [1] * 6), np.full(6, 0.1), 4, checkpoint=tmp_path / "run")


def test_integers_of_sparse_indices_do_not_matter(tmp_path: Path) -> None:
    import scipy.sparse as sp

    for kind in (np.int32, np.int64):
        rows = sp.csr_array(X)
        rows.indices, rows.indptr = rows.indices.astype(kind), rows.indptr.astype(kind)
        distorted_greedy(SVMObjective(rows, Y), LOSS, 5, checkpoint=tmp_path / "run")


def test_the_file_is_text(case: Any, tmp_path: Path) -> None:
    path = tmp_path / "run"
    distorted(*case, checkpoint=str(path))
    text = path.read_text(encoding="ascii")
    assert text.startswith(FIRST_LINE.decode())
    assert text.count("\n") == 1 + 1 + 20 + 1  # what it is, what was asked, rounds, the end
