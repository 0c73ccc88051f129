"""Several experts with limited time: what routing gains, and whether capacities hold.

- ``skills``: five simulated experts with known skills (one good in each half of the space, one good at one
  class, one who guesses, one who is wrong more often than right), and 5 to 5,000 answers of each. The error
  of the team against one that knows the true skills, and against a team that takes a random expert.
- ``loads``: the share of new cases that each expert gets, against the capacity, over 200 draws.
- ``stream``: days whose mix of cases drifts; losses against the best assignment of each day in hindsight,
  and limits that must never be exceeded.
- ``sleep``: five real experts, by nights: routing against the best single expert, a random one, and a team
  for the average human, at the same total budget.
- ``intervals``: how often the intervals of experts' error rates hold the true rates.
- ``speed``: an assignment of 20,000 cases to 20 experts.

Run them with::

    python benchmarks/experts.py skills loads stream sleep intervals speed
"""

import argparse
import warnings
from collections import Counter
from time import process_time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold

from deferlearn import AdvantageTriage
from deferlearn.datasets import load_sleep
from deferlearn.evaluation.intervals import t_interval
from deferlearn.experts import ExpertTeam, Stream, estimate_skills, transport
from deferlearn.experts.stream import hindsight

NAMES = ("left", "right", "class 1", "guessing", "adverse")
CAPACITY = dict.fromkeys(NAMES, 0.06)


def draw_cases(
    n: int, luck: np.random.Generator, shift: float = 0.0, alike: bool = False
) -> tuple[Any, ...]:
    """Cases, their classes, and the experts' answers."""
    X = luck.normal(size=(n, 4)) + shift * np.array([0.0, 0.0, 1.0, 0.0])
    y = (luck.random(n) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))).astype(int)
    left = np.where(X[:, 2] < 0, 0.03, 0.4)
    rates = [left, 0.43 - left, np.where(y == 1, 0.03, 0.35), np.full(n, 0.5), np.full(n, 0.8)]
    if alike:
        rates = [np.full(n, 0.12)] * len(NAMES)
    wrong = luck.random((n, len(NAMES))) < np.column_stack(rates)
    return X, y, np.where(wrong, 1 - y[:, None], y[:, None])


def machine() -> AdvantageTriage:
    return AdvantageTriage(
        machine=LogisticRegression(),
        machine_error="probability",
        human_error="truth",
        random_state=0,
    )


def known_skills(team: ExpertTeam, X: Any, alike: bool) -> Any:
    """The places of experts in an assignment that knows how often each of them errs on each case."""
    odds = 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))
    left = np.where(X[:, 2] < 0, 0.03, 0.4)
    by_class = odds * 0.03 + (1 - odds) * 0.35
    ones = np.ones(len(X))
    rates = np.column_stack([left, 0.43 - left, by_class, 0.5 * ones, 0.8 * ones])
    if alike:
        rates[:] = 0.12
    own, _ = team.expected_errors(X)
    counts = np.floor(np.array(list(CAPACITY.values())) * len(X))
    return transport(own[:, None] - rates, counts, len(X)).chosen


def skills(splits: int, picture: str | None) -> None:
    """Routing against known skills and against a random expert, as the number of answers grows."""
    table = []
    print(
        "| experts | answers of each | known skills | routing | average human | routing less average |"
    )
    print("|---|---|---|---|---|---|")
    for alike in (False, True):
        for answers in (5, 20, 50, 200, 1000, 5000):
            rows = [_errors(answers, alike, seed) for seed in range(splits)]
            known, routed, pooled = np.array(rows).T
            mean, low, high = t_interval(routed - pooled)
            table.append((alike, answers, known.mean(), routed.mean(), pooled.mean()))
            print(
                f"| {'alike' if alike else 'differ'} | {answers} | {known.mean():.4f} "
                f"| {routed.mean():.4f} | {pooled.mean():.4f} | {mean:+.4f} [{low:+.4f}, {high:+.4f}] |",
                flush=True,
            )

    if picture is not None:
        draw_skills(table, picture)


def draw_skills(table: list[tuple[bool, int, float, float, float]], path: str) -> None:
    """The errors of the three teams against the number of answers."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, alike in zip(axes, (False, True), strict=True):
        _, answers, *errors = zip(*(row for row in table if row[0] == alike), strict=True)
        names = ("skills known", "skills learned", "one average human")
        for name, values, style in zip(names, errors, ("k--", "C0o-", "C1s-"), strict=True):
            ax.plot(answers, values, style, label=name)
        ax.set(
            xscale="log",
            xlabel="answers of each expert",
            title="experts are alike" if alike else "experts differ",
            ylim=(0, None),
        )
    axes[0].set_ylabel("share of wrong answers")
    axes[0].legend(loc="lower left")
    figure.savefig(path)


def _errors(answers: int, alike: bool, seed: int) -> list[float]:
    """Errors of teams that know the skills, that learn them, and that take a random expert."""
    luck = np.random.default_rng(seed)
    X, y, said = draw_cases(max(answers, 600), luck, alike=alike)
    given = np.where(np.argsort(luck.random(said.shape), axis=0) >= answers, np.nan, said)
    new, truth, told = draw_cases(5000, luck, alike=alike)
    each = np.arange(len(truth))
    team = ExpertTeam(machine(), CAPACITY, random_state=seed).fit(X, y, given)
    ideal = known_skills(team, new, alike)
    known = np.where(ideal >= 0, told[each, ideal], team.predict(new))
    routed = team.predict_assisted(new, told, batch=True)
    average = machine().set_params(budget=sum(CAPACITY.values()))
    average.fit(X, y, human_labels=given)
    anyone = told[each, luck.integers(0, len(NAMES), len(truth))]
    pooled = average.predict_assisted(new, anyone, batch=True)
    return [float(np.mean(said != truth)) for said in (known, routed, pooled)]


def loads(draws: int, n: int) -> None:
    """The share of new cases that each expert gets one at a time, against the capacity."""
    capacity = dict(zip(NAMES[:3], (0.05, 0.1, 0.05), strict=True))
    print(
        "| skills | expert | capacity | mean load | standard error of the mean | standard deviation "
        "| off by standard errors |"
    )
    print("|---|---|---|---|---|---|---|")
    for kind in ("class", "linear", "forest"):
        found = []
        for seed in range(draws):
            luck = np.random.default_rng(seed)
            X, y, said = draw_cases(n, luck)
            new = draw_cases(2000, luck)[0]
            team = ExpertTeam(machine(), capacity, skills=kind, random_state=seed)
            who = team.fit(X, y, said[:, :3]).assign(new)
            found.append([np.mean(who == name) for name in capacity])
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        for (name, most), m, s in zip(capacity.items(), mean, spread, strict=True):
            error = s / np.sqrt(draws)
            off = (m - most) / error
            print(
                f"| {kind} | {name} | {most} | {m:.4f} | {error:.4f} | {s:.4f} | {off:+.1f} |",
                flush=True,
            )


def stream(days: int, per_day: int) -> None:
    """Days whose mix drifts: the loss against hindsight, and the largest load of a day."""
    luck = np.random.default_rng(0)
    X, y, said = draw_cases(2000, luck)
    team = ExpertTeam(machine(), CAPACITY, random_state=0).fit(X, y, said)
    limits = {name: int(share * per_day) for name, share in CAPACITY.items()}
    live = Stream(team.prices_, limits, per_day)
    most = np.zeros(len(limits), dtype=int)
    sums = np.zeros(4)  # machine alone, fixed prices with limits, stream, hindsight
    seconds = 0.0
    for day in range(days):
        shift = 1.5 * np.sin(2 * np.pi * day / days)
        # More or fewer cases arrive than planned.
        n = int(per_day * (1 + 0.2 * np.sin(7 * day)))
        new = draw_cases(n, luck, shift)[0]
        own, _ = team.expected_errors(new)
        gains = team.gains(new)
        start = process_time()
        places = live.assign_day(gains)
        seconds += process_time() - start
        most = np.maximum(most, live.load)
        won = gains[places >= 0, places[places >= 0]].sum()
        fixed = _with_fixed_prices(gains, np.array(list(team.prices_.values())), limits)
        best = hindsight(gains, list(limits.values()))
        sums += [own.sum(), own.sum() - fixed, own.sum() - won, own.sum() - best]
    cases = days * per_day
    print(
        f"{days} days of about {per_day} cases, {cases:,} in all: {seconds / cases * 1e6:.0f} us per case"
    )
    print("| | expected errors per 1,000 cases | above hindsight |")
    print("|---|---|---|")
    for name, value in zip(
        ("machine alone", "fixed prices", "stream", "hindsight"), sums, strict=True
    ):
        print(f"| {name} | {1000 * value / cases:.1f} | {value / sums[3] - 1:+.1%} |")
    over = [
        name for name, top, limit in zip(limits, most, limits.values(), strict=True) if top > limit
    ]
    print(
        f"largest loads {most.tolist()}, limits {list(limits.values())}: exceeded by {over or 'nobody'}"
    )


def _with_fixed_prices(gains: Any, prices: Any, limits: dict[str, int]) -> float:
    load, most, won = np.zeros(len(prices)), np.array(list(limits.values())), 0.0
    for gain in gains:
        net = np.where(load < most, gain - prices, -np.inf)
        best = int(net.argmax())
        if net[best] > 0:
            load[best] += 1
            won += gain[best]
    return won


def sleep(splits: int, budget: float) -> None:
    """Five real experts: routing against the best single expert, a random one, and the average human."""
    data = load_sleep(classes="stages", context=1)
    read = ~np.isnan(data.answers).any(axis=1)
    rows = np.flatnonzero(read)
    answers = data.answers[rows].astype(int)
    votes = (answers[:, :, None] == np.arange(5)).sum(axis=1)
    tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    rows, answers, truth = rows[~tied], answers[~tied], votes.argmax(axis=1)[~tied]
    X, nights = data.data[rows], data.groups[rows]
    # An expert is judged by the other four: the expert's own vote would count in favour.
    others = votes[~tied][:, None, :] - (answers[:, :, None] == np.arange(5))
    judged = others.argmax(axis=2)
    # An answer that only the expert's own vote makes right counts as wrong, in training, too.
    told = np.where((answers != judged) & (answers == truth[:, None]), judged, answers)
    names = [f"expert {k + 1}" for k in range(5)]
    results: dict[str, list[float]] = {}
    kinds: list[str] = []
    for seed in range(splits):
        luck = np.random.RandomState(1000 + seed)
        order = luck.permutation(np.unique(nights))
        train = np.flatnonzero(np.isin(nights, order[:40]))[::16]
        test = np.flatnonzero(np.isin(nights, order[40:]))[::10]
        base = machine().set_params(machine=LogisticRegression(C=0.1, max_iter=2000))
        capacity = dict.fromkeys(names, budget / 5)
        team = ExpertTeam(base, capacity, random_state=seed)
        team.fit(X[train], truth[train], told[train], groups=nights[train])
        said = team.predict(X[test])
        by_machine = (said[:, None] != judged[test]).mean(axis=1)
        by_expert = answers[test] != judged[test]

        def error(places: Any, by_machine: Any = by_machine, by_expert: Any = by_expert) -> float:
            rows = np.arange(len(places))
            return float(np.where(places < 0, by_machine, by_expert[rows, places]).mean())

        gains = team.gains(X[test])
        n = len(test)
        share = np.full(5, int(budget / 5 * n))
        total = int(share.sum())  # of each team
        chosen = {"routing, equal time": transport(gains, share, n).chosen}
        chosen["routing, any split of the time"] = transport(gains, np.full(5, n), total).chosen
        # The rivals have folds of whole nights, too.
        folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
        cv = list(folds.split(X[train], truth[train], nights[train]))
        average = clone(base).set_params(budget=budget, cv=cv)
        average.fit(X[train], truth[train], human_labels=told[train])
        deferred = average.defer_top(X[test], budget=total)
        best = int(np.argmin([np.mean(answers[train, e] != judged[train, e]) for e in range(5)]))
        one = clone(base).set_params(budget=budget, cv=cv)
        one.fit(X[train], truth[train], human_labels=told[train, best])
        chosen["best single expert"] = np.where(one.defer_top(X[test], budget=total), best, -1)
        chosen["machine alone"] = np.full(n, -1)
        for name, places in chosen.items():
            results.setdefault(name, []).append(error(places))
        # A random expert makes the mean error of the five; a single draw would add noise.
        at_random = np.where(deferred, by_expert.mean(axis=1), by_machine)
        results.setdefault("average human, random expert", []).append(float(at_random.mean()))
        kinds.append(team.skill_model_)
    print(f"Sleep stages, budget {budget:.0%}, {splits} splits by nights")
    print(f"models of skills: {dict(Counter(kinds))}")
    print(
        "| who | error | equal time less this, 95% interval | any split less this, 95% interval |"
    )
    print("|---|---|---|---|")
    ours = [np.array(results[name]) for name in list(results)[:2]]
    for name, values in results.items():
        less = [t_interval(own - np.array(values)) for own in ours]
        words = [f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]" for mean, low, high in less]
        print(f"| {name} | {np.mean(values):.4f} | {' | '.join(words)} |", flush=True)


def intervals(draws: int) -> None:
    """How often intervals hold the true error rates, for experts of several kinds."""
    luck = np.random.default_rng(0)
    alike, one_poor = np.full(5, 0.1), np.array([0.1, 0.1, 0.1, 0.8])
    kinds: dict[str, Any] = {
        "six experts between 0% and 30%": lambda: (luck.beta(2, 18, 6), luck.integers(5, 400, 6)),
        "six experts between 0% and 100%": lambda: (luck.beta(1, 3, 6), luck.integers(5, 400, 6)),
        "four good ones, one who guesses, one at 90%": lambda: (
            np.array([*luck.uniform(0.02, 0.2, 4), 0.5, 0.9]),
            luck.integers(5, 400, 6),
        ),
        "five at 10%, 20 answers of each": lambda: (alike, np.full(5, 20)),
        "five at 10%, 300 answers of each": lambda: (alike, np.full(5, 300)),
        "three at 10%, one at 80%, 20 answers of each": lambda: (one_poor, np.full(4, 20)),
        "three at 10%, one at 80%, 300 answers of each": lambda: (one_poor, np.full(4, 300)),
    }
    print("| experts | intervals that hold the truth | standard error |")
    print("|---|---|---|")
    for words, draw in kinds.items():
        shares = []
        for _ in range(draws):
            truth, answered = draw()
            wrong = luck.binomial(answered, truth).astype(float)
            names = tuple(map(str, range(len(truth))))
            found = estimate_skills(
                wrong[:, None], answered[:, None], np.ones(1), names, np.ones(1)
            )
            shares.append(np.mean((found.low <= truth) & (truth <= found.high)))
        error = np.std(shares, ddof=1) / np.sqrt(draws)
        print(f"| {words} | {np.mean(shares):.1%} | {error:.1%} |", flush=True)


def speed() -> None:
    """An assignment of 20,000 cases to 20 experts."""
    luck = np.random.default_rng(0)
    gain = luck.beta(0.5, 5, (20_000, 1)) - luck.beta(0.5, 6, (20_000, 20)) / 2 + 0.3
    start = process_time()
    found = transport(gain, np.full(20, 200), len(gain))
    print(
        f"20,000 cases, 20 experts: {process_time() - start:.1f} s; gain {found.gain:.6f}, "
        f"bound {found.bound:.6f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("skills", "loads", "stream", "sleep", "intervals", "speed")
    parser.add_argument(
        "parts", nargs="*", choices=[*parts, []], help="what to measure (default: all)"
    )
    parser.add_argument("--splits", type=int, default=20, help="number of splits (default: 20)")
    parser.add_argument(
        "--draws",
        type=int,
        default=200,
        help="draws of loads, and a fifth of those of intervals (default: 200)",
    )
    parser.add_argument(
        "--samples", type=int, default=600, help="samples of each draw of loads (default: 600)"
    )
    parser.add_argument("--days", type=int, default=1000, help="days of a stream (default: 1,000)")
    parser.add_argument("--picture", help="file for a picture of skills (default: none)")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "no answer was given", UserWarning)
    for part in options.parts or parts:
        print(f"\n## {part}\n")
        if part == "skills":
            skills(options.splits, options.picture)
        elif part == "loads":
            loads(options.draws, options.samples)
        elif part == "stream":
            stream(options.days, 1000)
        elif part == "sleep":
            for budget in (0.05, 0.1, 0.2):
                sleep(options.splits, budget)
        elif part == "intervals":
            intervals(5 * options.draws)
        else:
            speed()


if __name__ == "__main__":
    main()
