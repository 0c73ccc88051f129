"""Partitioned greedy: one part is the whole, reported values are true, workers change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from deferlearn.bounds import certificate
from deferlearn.datasets import make_linear, make_shifted
from deferlearn.humans import UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.selection import SelectionInterrupted, distorted_greedy, partitioned_greedy
from deferlearn.selection.partitioned import _deal

X, Y = make_shifted(240, 6, random_state=0)
LOSS = UniformHuman(0.3).losses(Y, random_state=0)
WEIGHTS = np.random.RandomState(0).uniform(0.5, 2.0, len(Y))
MACHINES: list[tuple[Any, dict[str, Any]]] = [
    (X, {"alpha": 0.02}),
    (X.tolist(), {"alpha": 0.02, "fit_intercept": False}),
    (sp.csr_array(X), {"alpha": 0.02, "weights": WEIGHTS}),
    (X, {"alpha": 0.05, "kernel": "rbf", "weights": WEIGHTS}),
    (X, {"alpha": 0.05, "kernel": "poly", "degree": 2, "gamma": 0.3}),
    (X @ X.T, {"alpha": 0.05, "kernel": "precomputed"}),
    (X, {"alpha": 0.05, "kernel": lambda A, B: A @ B.T}),
]
NAMES = [
    "linear", "list", "sparse and weights", "rbf and weights", "poly", "precomputed", "callable",
]  # fmt: skip


def value_of(order: Any, rows: Any, machine: dict[str, Any], loss: np.ndarray = LOSS) -> float:
    """``g(S) - c(S)`` by two machines that know nothing of the selection."""
    kept = np.setdiff1d(np.arange(len(Y)), order)
    rest = dict(machine)
    if rest.get("weights") is not None:
        rest["weights"] = rest["weights"][kept]
    if rest.get("kernel") == "rbf":
        rest["gamma"] = 1.0 / (X.shape[1] * X.var())
    if rest.get("kernel") == "precomputed":
        fewer = rows[np.ix_(kept, kept)]
    else:
        fewer = rows[kept] if sp.issparse(rows) else np.asarray(rows)[kept]
    before = SVMObjective(rows, Y, **machine).value
    return float(before - SVMObjective(fewer, Y[kept], **rest).value - loss[order].sum())


@pytest.mark.parametrize("train_on", ["all", "part"])
@pytest.mark.parametrize(("rows", "machine"), MACHINES, ids=NAMES)
def test_one_part_is_the_whole(rows: Any, machine: dict[str, Any], train_on: str) -> None:
    whole = distorted_greedy(SVMObjective(rows, Y, **machine), LOSS, 24, 0.3)
    one = partitioned_greedy(
        rows, Y, LOSS, 24, 0.3, n_partitions=1, train_on=train_on, random_state=0, **machine
    )
    assert one.order.tolist() == whole.order.tolist()
    np.testing.assert_allclose(one.gains, whole.gains, atol=1e-9)
    assert one.value == pytest.approx(whole.value, abs=1e-9)
    assert (one.algorithm, one.n, len(one.members)) == ("partitioned", 24, 1)


@pytest.mark.parametrize("train_on", ["all", "part"])
@pytest.mark.parametrize(("rows", "machine"), MACHINES, ids=NAMES)
def test_the_value_is_that_of_fresh_machines(
    rows: Any, machine: dict[str, Any], train_on: str
) -> None:
    result = partitioned_greedy(
        rows, Y, LOSS, 24, 0.3, n_partitions=3, train_on=train_on, random_state=0, **machine
    )
    assert result.value == pytest.approx(value_of(result.order, rows, machine), abs=1e-8)
    assert result.gains.sum() - LOSS[result.order].sum() == pytest.approx(result.value, abs=1e-8)
    np.testing.assert_allclose(
        result.scores, result.omegas * result.gains - LOSS[result.order], atol=1e-10
    )
    for member in result.members:  # no single part does better
        assert len(member.order) <= 16
        assert result.value >= value_of(member.order, rows, machine) - 1e-8


@pytest.mark.parametrize("train_on", ["all", "part"])
def test_picks_are_what_parts_nominated(train_on: str) -> None:
    """The second run is a greedy over the nominated: the witness evaluates each of their gains."""
    n, ratio, machine = 12, 0.3, {"alpha": 0.02}
    result = partitioned_greedy(X, Y, LOSS, n, ratio, train_on=train_on, random_state=1, **machine)
    parts = _deal(Y, 4, np.random.RandomState(1))
    for rows, member in zip(parts, result.members, strict=True):
        assert set(member.order) <= set(rows)
        alone = SVMObjective(X[rows], Y[rows], **machine)
        if train_on == "part":
            expected = rows[distorted_greedy(alone, LOSS[rows], 6, ratio).order]
            assert member.order.tolist() == expected.tolist()
    plain, expected = SVMObjective(X, Y, **machine), []
    nominated = np.unique(np.concatenate([m.order for m in result.members]))
    for i in range(n):
        left = np.setdiff1d(nominated, expected)
        scores = (1 - ratio / n) ** (n - 1 - i) * plain.gains(left) - LOSS[left]
        if scores.max() > 0:
            expected.append(int(left[scores.argmax()]))
            plain.remove(expected[-1])
    assert result.order.tolist() == expected


def test_parts_are_random_shares_of_each_class() -> None:
    labels = np.r_[np.full(30, -1.0), np.full(9, 1.0)]
    parts = _deal(labels, 4, np.random.RandomState(0))
    assert sorted(np.concatenate(parts)) == list(range(39))
    assert {len(part) for part in parts} == {9, 10}
    assert {int((labels[part] > 0).sum()) for part in parts} <= {2, 3}
    others = _deal(labels, 4, np.random.RandomState(1))
    assert any(a.tolist() != b.tolist() for a, b in zip(parts, others, strict=True))


@pytest.mark.parametrize("train_on", ["all", "part"])
def test_workers_change_nothing(train_on: str) -> None:
    big, labels = make_shifted(3000, 60, random_state=0)  # more than joblib sends without a file
    loss = UniformHuman(0.2).losses(labels, random_state=0)
    results = [
        partitioned_greedy(
            big, labels, loss, 10, 0.3, alpha=0.01, n_partitions=3, train_on=train_on,
            n_jobs=n_jobs, random_state=0,
        )
        for n_jobs in (None, 2)
    ]  # fmt: skip
    for one, two in zip(*([r, *r.members] for r in results), strict=True):
        assert one.order.tolist() == two.order.tolist()
        assert one.gains.tolist() == two.gains.tolist()  # to the last digit
        assert one.value == two.value


@pytest.mark.parametrize("train_on", ["all", "part"])
def test_floor_holds(train_on: str) -> None:
    result = partitioned_greedy(
        X, Y, np.zeros(240), 230, alpha=0.02, n_partitions=3, min_kept_per_class=31,
        train_on=train_on, random_state=0,
    )  # fmt: skip
    kept = np.delete(Y, result.order)
    assert min((kept == 1).sum(), (kept == -1).sum()) >= 31
    assert result.min_kept_per_class == 31


def test_a_part_may_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the second run were poor, the best part's own picks are returned, with their true gains."""
    from deferlearn.selection import partitioned

    def poor(*arguments: Any, **options: Any) -> Any:
        if options["algorithm"] == "partitioned":
            arguments = (*arguments[:4], lambda ground, n: [])  # no rounds, so no picks
        return greedy_run(*arguments, **options)

    greedy_run = partitioned.run
    monkeypatch.setattr(partitioned, "run", poor)
    for train_on in ("all", "part"):
        result = partitioned_greedy(
            X, Y, LOSS, 12, 0.3, alpha=0.02, train_on=train_on, random_state=0
        )
        values = [value_of(m.order, X, {"alpha": 0.02}) for m in result.members]
        assert result.order.tolist() == result.members[int(np.argmax(values))].order.tolist()
        assert result.value == pytest.approx(max(values), abs=1e-8)
        assert result.gains.sum() - LOSS[result.order].sum() == pytest.approx(result.value)
        np.testing.assert_allclose(
            result.scores, result.omegas * result.gains - LOSS[result.order], atol=1e-12
        )
        assert [i.picked for i in result.iterations] == result.order.tolist()


def test_quality_with_machines_of_all() -> None:
    """All of the whole greedy's value here; with ``train_on="part"`` it would be 0.57 to 1."""
    for seed in range(3):
        rows, labels = make_linear(300, random_state=seed)
        loss = UniformHuman(0.2).losses(labels, random_state=0)
        whole = distorted_greedy(SVMObjective(rows, labels, alpha=0.1), loss, 45, 0.1)
        result = partitioned_greedy(rows, labels, loss, 45, 0.1, alpha=0.1, random_state=seed)
        chance = np.random.RandomState(seed).choice(300, 45, replace=False)
        state = SVMObjective(rows, labels, alpha=0.1)
        before = state.value
        for k in chance:
            state.remove(int(k))
        assert result.value >= 0.99 * whole.value
        assert before - state.value - loss[chance].sum() < 0.5 * whole.value


def test_the_certificate_claims_no_guarantee() -> None:
    rows, labels, loss = X[:50], Y[:50], LOSS[:50]
    result = partitioned_greedy(rows, labels, loss, 6, 0.01, alpha=0.02, random_state=0)
    report = certificate(SVMObjective(rows, labels, alpha=0.02), result, loss)
    assert not report.guaranteed
    assert "No theorem is known for algorithm 'partitioned'" in report.reason
    assert report.value == pytest.approx(result.value)
    assert report.value <= report.optimum.value


def test_ends() -> None:
    nothing = partitioned_greedy(X, Y, LOSS, 0, alpha=0.02, random_state=0)
    assert (nothing.order.size, nothing.value) == (0, 0.0)
    hopeless = partitioned_greedy(X, Y, np.full(240, 1e9), 20, alpha=0.02, random_state=0)
    assert (hopeless.order.size, hopeless.value) == (0, 0.0)
    for train_on in ("all", "part"):  # one sample a part: machines of one class
        tiny = partitioned_greedy(
            X[:6], Y[:6], np.zeros(6), 6, alpha=0.1, n_partitions=6, train_on=train_on,
            random_state=0,
        )  # fmt: skip
        assert tiny.value >= 0.0
    seen: list[int] = []
    partitioned_greedy(
        X, Y, LOSS, 5, alpha=0.02, random_state=0, callback=lambda i: seen.append(i.index)
    )
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_partitions": 0}, "n_partitions=0 must be a whole number from 1 to .* 240"),
        ({"n_partitions": 241}, "n_partitions=241"),
        ({"n_partitions": 2.0}, r"n_partitions=2\.0"),
        ({"oversampling": 0.5}, r"oversampling=0\.5 must be a number, 1 or larger"),
        ({"oversampling": np.nan}, "oversampling=nan"),
        ({"train_on": "some"}, "train_on='some' must be 'all' or 'part'"),
        ({"n": 300}, "n=300 must be between 0 and the number of samples, 240"),
        ({"human_loss": -LOSS}, "human_loss must be finite and not negative"),
        ({"alpha": 0.0}, "alpha"),
        ({"submodularity_ratio": 2.0}, "submodularity_ratio"),
        ({"tol": 1.5}, "tol"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"human_loss": LOSS, "n": 5, **change}
    with pytest.raises(ValueError, match=message):
        partitioned_greedy(X, Y, **arguments)


@pytest.mark.parametrize("train_on", ["all", "part"])
def test_an_interrupt(train_on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part's picks, in its own numbers, are nobody's selection; those of the second run are."""

    def stop(iteration: Any) -> None:
        if iteration.index == 3:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"alpha": 0.02, "train_on": train_on, "random_state": 0}
    whole = partitioned_greedy(X, Y, LOSS, 20, **options)
    with pytest.raises(SelectionInterrupted) as stopped:
        partitioned_greedy(X, Y, LOSS, 20, callback=stop, **options)
    assert stopped.value.result.order.tolist() == whole.order[:4].tolist()

    def interrupted(self: SVMObjective, rounds: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(SVMObjective, "rounds_ahead", interrupted)
    with pytest.raises(KeyboardInterrupt) as plain:
        partitioned_greedy(X, Y, LOSS, 20, **options)
    assert not isinstance(plain.value, SelectionInterrupted)
