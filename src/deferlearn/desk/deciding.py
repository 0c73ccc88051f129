"""Who takes a case: the machine or experts, by prices, within hard limits; and which cases are audited."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from deferlearn.desk.capacity import TimeLeft, limit_of
from deferlearn.desk.judging import SOMEBODY, Judgement
from deferlearn.desk.rules import Configuration, Moment
from deferlearn.desk.schema import ANYONE
from deferlearn.tables.expert_reasons import by_prices

# Differences between experts below this, in errors, are decided by chance: else one of two experts who
# are alike would get all cases.
COIN = 1e-3
# Flags of cases that the machine answered although it should not have.
NO_TIME, UNUSUAL_NO_TIME = "no expert had time", "unusual, and no expert had time"


@dataclass(frozen=True)
class Luck:
    """The random numbers of one case, drawn before its transaction, which may run twice.

    Attributes
    ----------
    audit : float
        Below the share of audits the case is audited if the machine takes it.
    auditor : float
        Which expert audits it.
    seed : int
        Of the coins between experts who are alike.
    """

    audit: float
    auditor: float
    seed: int

    @classmethod
    def draw(cls) -> Luck:
        """New random numbers, which nobody can foresee."""
        source = random.SystemRandom()
        return cls(source.random(), source.random(), source.getrandbits(32))


@dataclass(frozen=True)
class Choice:
    """Who takes a case.

    Attributes
    ----------
    seats : list of int
        Who reads it: ids of experts, or ANYONE; empty if the machine takes it.
    reason : str
        Why, in a sentence.
    flag : str or None
        What is wrong with it.
    prices : dict
        The prices that counted, by expert's id.
    compared : str
        The name of the expert whose expected errors are stored.
    auditor : int or None
        Who audits the machine's answer.
    audit_probability : float
        The probability with which the case was audited.
    """

    seats: list[int]
    reason: str
    flag: str | None
    prices: dict[int, float]
    compared: str = SOMEBODY
    auditor: int | None = None
    audit_probability: float = 0.0
    gains: dict[int, float] = field(default_factory=dict)


def places_of(configuration: Configuration, judged: Judgement) -> list[int]:
    """Who may be given cases: experts, or ANYONE if the model does not tell them apart.

    Parameters
    ----------
    configuration : Configuration
        What is configured.
    judged : Judgement
        What the model says about any case.

    Returns
    -------
    places : list of int
        Ids of experts, or ANYONE.
    """
    if SOMEBODY in judged.gains:
        return [ANYONE]
    return [one.id for one in configuration.active_experts if one.name in judged.gains]


def choose(left: TimeLeft, moment: Moment, judged: Judgement, luck: Luck) -> Choice:
    """Decide who takes a case, of those who have time; their readings count as given.

    Parameters
    ----------
    left : TimeLeft
        The time of those of `places_of`.
    moment : Moment
        Now.
    judged : Judgement
        What the model says.
    luck : Luck
        Random numbers of the case.

    Returns
    -------
    Choice
    """
    configuration = moment.configuration
    options = _options(configuration, judged)
    gains = {place: judged.gains[name] for place, name in options.items()}
    prices = {place: configuration.price(place) for place in options}
    coins = random.Random(luck.seed)
    net = {place: gains[place] - prices[place] - COIN * coins.random() for place in options}
    if judged.own_rule:
        wanted = judged.deferred and all(price <= 0 or net[e] > 0 for e, price in prices.items())
    else:
        wanted = any(value > 0 for value in net.values())
    order = sorted(options, key=lambda place: -net[place])
    seats: list[int] = []
    if wanted or judged.unusual:
        # Whom the case does not help is asked only for a second reading, or if it is unusual.
        useful = [e for e in order if judged.own_rule or judged.unusual or net[e] > 0]
        seats = _seats(left, moment, useful, order)
    flag = None
    if not seats and (wanted or judged.unusual):
        flag = UNUSUAL_NO_TIME if judged.unusual else NO_TIME
    compared = options[seats[0]] if seats else options[order[0]] if order else SOMEBODY
    names = tuple(options.values())
    clause = NO_TIME if flag else ""
    if not clause and not judged.own_rule and not (judged.unusual and seats) and names:
        who = options[seats[0]] if seats else None
        clause = _clause(judged, configuration, options, who)
    taken_by = compared if seats else SOMEBODY
    reason = judged.reason(clause, taken_by, bool(seats), compared)
    auditor, probability = None, 0.0
    if not seats:
        auditor, probability = _auditor(left, moment, luck)
    for seat in seats if auditor is None else [auditor]:
        left.give(seat)
    return Choice(seats, reason, flag, prices, compared, auditor, probability, gains)


def _options(configuration: Configuration, judged: Judgement) -> dict[int, str]:
    """Who may take the case, with the names that the model has for them."""
    if SOMEBODY in judged.gains:
        return {ANYONE: SOMEBODY}
    return {one.id: one.name for one in configuration.first_readers if one.name in judged.gains}


def _seats(left: TimeLeft, moment: Moment, useful: list[int], order: list[int]) -> list[int]:
    """As many experts as there must be readings, the first by the gain of those who have time."""
    configuration = moment.configuration
    readings = configuration.rules.readings
    if useful == [ANYONE]:
        readings = min(readings, max(len(configuration.first_readers), 1))
        free = left.at(ANYONE)
        return [ANYONE] * (readings if free is None else min(readings, free))
    seats = [place for place in useful if left.at(place) != 0]
    if seats:
        seats += [place for place in order if place not in useful and left.at(place) != 0]
    return seats[:readings]


def _clause(
    judged: Judgement, configuration: Configuration, options: dict[int, str], who: str | None
) -> str:
    """Why the expert takes the case, or none does, by prices."""
    names = tuple(options.values())
    gains = np.array([[judged.gains[name] for name in names]])
    prices = np.array([configuration.price(place) for place in options])
    return next(iter(by_prices(np.array([who], dtype=object), gains, prices, names)))


def _auditor(left: TimeLeft, moment: Moment, luck: Luck) -> tuple[int | None, float]:
    """Who audits a case of the machine, and the probability that it is audited.

    The probability is zero if nobody has time, whatever the random numbers are.
    """
    share = moment.rules.audit_share
    if share <= 0:
        return None, 0.0
    # Found out also for cases that are not drawn: the probability must not depend on the draw.
    configuration = moment.configuration
    free = {place: limit_of(configuration, place) for place in left.places if left.at(place) != 0}
    if not free:
        return None, 0.0
    if luck.audit >= share:
        return None, share
    return _in_random_order(free, luck.auditor)[0], share


def _in_random_order(limits: dict[int, int | None], luck: float) -> list[int]:
    """Experts in a random order, those with more time rather first."""
    source = random.Random(luck)
    usual = max((limit for limit in limits.values() if limit is not None), default=1)
    # Exponential numbers divided by weights put each one first in proportion to its weight.
    return sorted(
        limits,
        key=lambda place: (
            source.expovariate(1.0)
            / (usual if limits[place] is None else max(limits[place] or 0, 1e-9))
        ),
    )
