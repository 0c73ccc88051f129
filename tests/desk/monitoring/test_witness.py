"""Every number of the overview against a second computation, with plain loops over the cases as dicts."""

import random
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from deferlearn.desk.database import SECOND
from deferlearn.desk.monitoring.columns import column_shifts
from deferlearn.desk.monitoring.overview import figures_of
from deferlearn.desk.monitoring.records import Records
from deferlearn.tables.guard import learn_guard

HOUR = 3600 * SECOND
NOW = 200 * HOUR
Z = stats.norm.isf(0.025)


def a_case(number, coins):
    """A case, with the traps of real ones: open, unread, unauditable, without truth or expectation."""
    hard = coins.random() < 0.3
    share = coins.choice([0.0, 0.1, 0.1, 0.5])
    audited = not hard and coins.random() < share
    truth = coins.choice("ab")
    one = {
        "number": number,
        "arrived": coins.randrange(0, 190) * HOUR,
        "deferred": hard,
        "audited": audited,
        "probability": 0.0 if hard else share,
        "unusual": coins.random() < 0.05,
        "truth": truth if coins.random() < 0.7 else None,
        "machine": truth if coins.random() < (0.7 if hard else 0.9) else "ab"[truth == "a"],
        "expected_machine": coins.choice([0.3, 0.2]) if hard else coins.choice([0.1, 0.05, None]),
        "answers": [],
    }
    wait = int(coins.expovariate(1 / 20) * HOUR)
    one["open"] = hard and one["arrived"] + wait > NOW
    for _ in range(coins.choice([1, 1, 2]) if hard and not one["open"] else int(audited)):
        said = truth if coins.random() < 0.8 else "ab"[truth == "a"]
        one["answers"].append((coins.choice(["Ann", "Bob"]), said, coins.choice([0.2, 0.1])))
    # Some deferred cases were answered by the machine, because their time was up.
    one["by_expert"] = bool(hard and one["answers"] and coins.random() < 0.9)
    one["final"] = one["answers"][0][1] if one["by_expert"] else one["machine"]
    if one["open"]:
        one["final"] = None
    one["answered"] = one["arrived"] + wait
    return one


def objects(values):
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def numbers(values):
    return np.array([np.nan if one is None else one for one in values])


def as_records(cases):
    answers = [(row, *given) for row, one in enumerate(cases) for given in one["answers"]]
    column = {key: [one[key] for one in cases] for key in cases[0]}
    return Records(
        number=np.array(column["number"]),
        received_at=np.array(column["arrived"]),
        model_id=np.ones(len(cases), dtype=int),
        content=[],
        deferred=np.array(column["deferred"]),
        audited=np.array(column["audited"]),
        unusual=np.array(column["unusual"]),
        probability=np.array(column["probability"]),
        machine_answer=objects(column["machine"]),
        answer=objects(column["final"]),
        truth=objects(column["truth"]),
        expected_machine=numbers(column["expected_machine"]),
        expected_expert=np.full(len(cases), np.nan),
        by_expert=np.array(column["by_expert"]),
        open=np.array(column["open"]),
        answered_at=np.array([0 if one["open"] else one["answered"] for one in cases]),
        row=np.array([one[0] for one in answers]),
        expert=objects([one[1] for one in answers]),
        value=objects([one[2] for one in answers]),
        kind=objects(["reading" if cases[one[0]]["deferred"] else "audit" for one in answers]),
        expected=np.array([one[3] for one in answers]),
    )


@pytest.fixture(scope="module")
def cases():
    coins = random.Random(23)
    return [a_case(number, coins) for number in range(1, 1501)]


@pytest.fixture(scope="module")
def figures(cases):
    found, groups = figures_of(as_records(cases), 0.25, NOW)
    return {(one.name, one.about): one for one in found} | {"groups": groups}


def score_interval(hits, n):
    """Where the score test of a share is at its limit: Wilson's interval by definition."""

    def beyond(p):
        return (hits / n - p) ** 2 - Z**2 * p * (1 - p) / n

    mean = hits / n
    low = 0.0 if not hits else brentq(beyond, 0, mean)
    return low, 1.0 if hits == n else brentq(beyond, mean, 1)


def close(interval, mean, ends=None):
    assert interval.mean == pytest.approx(mean)
    if ends is not None:
        assert (interval.low, interval.high) == pytest.approx(ends, abs=1e-7)
    assert interval.low < interval.mean < interval.high


def test_shares_of_deferred_and_unusual_cases(cases, figures):
    for name, key in (("share deferred", "deferred"), ("share of unusual cases", "unusual")):
        hits = sum(one[key] for one in cases)
        close(figures[name, ""].interval, hits / 1500, score_interval(hits, 1500))
    assert figures["share deferred", ""].expected == 0.25


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_waiting_times_are_those_of_kaplan_and_meier(cases, figures, share):
    waits = [
        ((NOW if one["open"] else one["answered"]) - one["arrived"], one["open"])
        for one in cases
        if one["deferred"]
    ]
    left, below, found = 1.0, 1.0, {}
    spread = 0.0
    for time in sorted({wait for wait, still in waits if not still}):
        at_risk = sum(wait >= time for wait, _ in waits)
        answered = sum(wait == time and not still for wait, still in waits)
        left *= 1 - answered / at_risk
        if at_risk == answered:
            break
        spread += answered / (at_risk * (at_risk - answered))  # Greenwood
        level = np.log(-np.log(left))
        half = Z * np.sqrt(spread) / abs(np.log(left))
        below, above = np.exp(-np.exp(level + half)), np.exp(-np.exp(level - half))
        for name, line in (("value", left), ("low", below), ("high", above)):
            if line <= 1 - share and name not in found:
                found[name] = time / SECOND
    interval = figures[f"time within which {share:.0%} are answered", ""].interval
    close(interval, found["value"], (found["low"], found["high"]))


def test_machines_error_by_inverse_probabilities(cases, figures):
    own = [one for one in cases if not one["deferred"] and one["probability"] > 0]
    for name, judge in (
        ("machine's error", lambda one: one["truth"]),
        (
            "machine's disagreement with experts",
            lambda one: one["answers"][0][1] if one["answers"] else None,
        ),
    ):
        total, n_seen = 0.0, 0
        for share, size in Counter(one["probability"] for one in own).items():
            seen = [one for one in own if one["probability"] == share and one["audited"]]
            seen = [one for one in seen if judge(one) is not None]
            total += size * sum(one["machine"] != judge(one) for one in seen) / len(seen)
            n_seen += len(seen)
        close(figures[name, ""].interval, total / len(own))
        assert figures[name, ""].count == n_seen


def test_errors_of_experts(cases, figures):
    for name in ("Ann", "Bob"):
        hers = [
            (said != one["truth"], expected)
            for one in cases
            if one["truth"] is not None
            for who, said, expected in one["answers"]
            if who == name
        ]
        hits = sum(wrong for wrong, _ in hers)
        figure = figures["expert's error", name]
        close(figure.interval, hits / len(hers), score_interval(hits, len(hers)))
        assert figure.expected == pytest.approx(sum(value for _, value in hers) / len(hers))


def test_teams_error_where_truth_is_known(cases, figures):
    total, size = 0.0, 0
    for by_expert in (True, False):
        own = [one for one in cases if one["by_expert"] == by_expert and not one["open"]]
        known = [one for one in own if one["truth"] is not None]
        total += len(own) * sum(one["final"] != one["truth"] for one in known) / len(known)
        size += len(own)
    close(figures["team's error", ""].interval, total / size)


def test_both_wrong_against_independence(cases, figures):
    possible = [one for one in cases if one["deferred"] or one["probability"] > 0]
    sums, n = Counter(), 0
    for share in {one["deferred"] or one["probability"] for one in possible}:
        own = [one for one in possible if (one["deferred"] or one["probability"]) == share]
        seen = [one for one in own if one["answers"] and one["truth"] is not None]
        n += len(seen)
        for one in seen:
            machine = one["machine"] != one["truth"]
            expert = one["answers"][0][1] != one["truth"]
            weight = len(own) / len(seen) / len(possible)
            sums.update(machine=weight * machine, expert=weight * expert)
            sums.update(both=weight * (machine and expert))
    figure = figures["both wrong", ""]
    close(figure.interval, sums["both"])
    assert figure.expected == pytest.approx(sums["machine"] * sums["expert"])
    assert figure.count == n


def test_calibration_of_expected_errors(cases, figures):
    machine = [
        (one["machine"] != one["truth"], one["expected_machine"])
        for one in cases
        if one["truth"] is not None and one["expected_machine"] is not None
    ]
    experts = [
        (said != one["truth"], expected)
        for one in cases
        if one["truth"] is not None
        for _, said, expected in one["answers"]
    ]
    for who, pairs in (("the machine", machine), ("experts", experts)):
        away = [wrong - expected for wrong, expected in pairs]
        figure = figures["errors above those expected", who]
        # Bonett and Price: one imagined case at either end.
        more = [*away, -1.0, 1.0]
        centre = sum(more) / len(more)
        spread = sum((one - centre) ** 2 for one in more) / len(more) ** 2
        half = stats.t.isf(0.025, len(away) - 1) * np.sqrt(spread)
        close(figure.interval, sum(away) / len(away), (centre - half, centre + half))
        groups = figures["groups"][who]
        assert sum(group.count for group in groups) == len(pairs)
        order = sorted(pairs, key=lambda pair: pair[1])[: groups[0].count]
        assert groups[0].expected == pytest.approx(sum(pair[1] for pair in order) / len(order))


def test_shift_of_a_column_is_the_distance_of_kolmogorov_and_smirnov():
    luck = np.random.default_rng(24)
    training, new = luck.normal(size=400), luck.normal(0.3, 1.2, size=250)
    guard = learn_guard(["x"], {}, training[:, None])
    (figure,) = column_shifts(guard, new[:, None])
    # The guard keeps some quantiles of the training cases.
    assert figure.interval.mean == pytest.approx(stats.ks_2samp(training, new).statistic, abs=0.01)
    sites = luck.integers(0, 3, 400)
    guard = learn_guard(["site"], {"site": ["a", "b", "c"]}, sites[:, None].astype(float))
    (figure,) = column_shifts(guard, np.repeat([0.0, 1.0, 2.0], [150, 50, 50])[:, None])
    shares = np.bincount(sites) / 400 - np.array([0.6, 0.2, 0.2])
    assert figure.interval.mean == pytest.approx(np.abs(shares).max())
