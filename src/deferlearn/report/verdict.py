"""The answers of the page in sentences: what was found, in counts per 1,000 cases."""

from typing import Any

from deferlearn._utils.words import counted, listed
from deferlearn.report.effect import FEWER, MORE, NOT_ASKED
from deferlearn.report.reliability import AGREES, IN_PARTS, TOO_SURE
from deferlearn.report.words import PerThousand, with_commas

Row = dict[str, Any]
ANSWERS = {FEWER: "Yes", MORE: "No", NOT_ASKED: "No human is asked"}


def headline(effect: Row, errors: dict[str, Row], told: PerThousand) -> str:
    """Whether it pays to ask humans, in a sentence or two.

    Parameters
    ----------
    effect : dict
        From `deferlearn.report.effect.effect`.
    errors : dict
        The errors of machine, human and team.
    told : PerThousand
        Writes the shares.

    Returns
    -------
    words : str
        They begin with the answer. It says so if humans alone do better than the team: whoever reads no
        further must not take a small gain for a good result.
    """
    answer = ANSWERS.get(effect["answer"], "Not shown")
    cost, end = effect["cost"], ""
    # What it is about: errors, or what they cost.
    means = {who: found["share"] for who, found in errors.items()} if cost is None else cost
    fewer, what = ("fewer", "errors") if cost is None else ("less", "the cost of errors")
    change = (effect if cost is None else cost)["difference"]
    if humans_do_better(effect):
        answer += (
            ", but humans alone do better"
            if effect["answer"] == FEWER
            else "; humans alone do better"
        )
        alone = told(means["human"])
        made = f"make {alone}" if cost is None else f"cause costs of {alone}"
        end = f" Humans who read all 1,000 would {made}."
    if effect["answer"] == NOT_ASKED:
        costs = "" if cost is None else f", at a cost of {told(means['machine'])}"
        return (
            f"{answer}. The model leaves all of these cases to the machine, which makes "
            f"{told.interval(errors['machine'])} errors per 1,000 cases{costs}.{end}"
        )
    machine, team = means["machine"], means["team"]
    before, after = told(machine), told(team)
    # The difference of the numbers shown, so that the sentence adds up.
    shown = told.more_or_fewer((told.rounded(team) - told.rounded(machine)) / 1000, fewer)
    s = "" if cost is None else "s"
    moves = f"{'fall' if team < machine else 'rise'}{s} from {before} to {after}: {shown}"
    if before == after:
        moves = f"stay{s} at {before}"
    if effect["answer"] in (FEWER, MORE):
        moves += f", {told.between(change, fewer)}"
    else:
        moves += f". The true change may lie anywhere {told.between(change, fewer)}"
    read = told(effect["deferred"]["share"])
    return f"{answer}. Per 1,000 cases, humans read {read} and {what} {moves}.{end}"


def humans_do_better(effect: Row) -> bool:
    """Whether humans alone are shown to make fewer errors than the team, or errors of less cost."""
    judged_by = effect if effect["cost"] is None else effect["cost"]
    return bool(judged_by["versus_human"]["lower"] > 0)


def findings(numbers: Row, told: PerThousand) -> list[str]:
    """What else the decision rests on: counts, humans alone, classes and subgroups that fare worse."""
    effect, errors = numbers["effect"], numbers["errors"]
    human, machine = errors["human"], errors["machine"]
    n, read = effect["cases"], effect["deferred"]["count"]
    found = []
    if effect["answer"] != NOT_ASKED:
        found.append(
            f"Counted on these {counted(n, 'case')}: the machine alone is wrong on {machine['count']}. "
            f"Humans read {read}, put {effect['fixed']} of its errors right, and turn "
            f"{effect['spoilt']} of its right answers into errors, so {errors['team']['count']} remain."
        )
        found += _price(effect, told)
    if effect["cost"] is not None:
        found.append(_by_costs(effect["cost"], told))
    alone = effect["versus_human"] | {"difference": -effect["versus_human"]["difference"]}
    alone["lower"], alone["upper"] = (
        -effect["versus_human"]["upper"],
        -effect["versus_human"]["lower"],
    )
    unclear = "" if alone["supported"] else ", which is not a clear difference"
    found.append(
        f"Humans alone, reading all 1,000 cases, would make {told(human['share'])} errors: "
        f"{told.change_in_words(alone)} than the team{unclear}."
    )
    if effect["cases_needed"] is not None and effect["answer"] != NOT_ASKED:
        found.append(
            f"If the difference is as large as it looks here, about {with_commas(effect['cases_needed'])} "
            f"cases are needed to show it; there are {with_commas(n)}."
        )
    found += _kinds_of_errors(numbers, told) + harms(numbers, told)
    return found + _many_unusual(numbers["unusual"])


def _by_costs(cost: Row, told: PerThousand) -> str:
    """The costs of machine, team and humans by the model's cost matrix."""
    means = ", ".join(f"{who} {told(cost[who])}" for who in ("machine", "team", "human"))
    versus = cost["versus_human"]
    alone = {
        "difference": -versus["difference"],
        "lower": -versus["upper"],
        "upper": -versus["lower"],
    }
    unclear = "" if versus["supported"] else ", which is not a clear difference"
    return (
        "Mistakes cost what the model's cost matrix says, and the answer above is about these costs, in "
        f"units of one error per 1,000 cases: {means}. Humans alone would cost "
        f"{told.change_in_words(alone, 'less')} than the team{unclear}. The other numbers of this page "
        "count every error as one, unless they are called costs."
    )


def _kinds_of_errors(numbers: Row, told: PerThousand) -> list[str]:
    """What the number of all errors hides: the rarer or the worst class, and how far grades are off."""
    found = []
    if numbers["points"] is not None:
        positive = numbers["points"]["positive"]
        (row,) = (row for row in numbers["classes"] if row["class"] == positive)
        machine, human, team = (told(row[who]["share"]) for who in ("machine", "human", "team"))
        found.append(
            f"Mind the kind of error: of 1,000 cases that are {positive}, the machine misses {machine}, "
            f"the team {team}, and humans alone {human}."
        )
    elif len(numbers["classes"]) > 2:
        there = [row for row in numbers["classes"] if row["team"] is not None]
        row = max(there, key=lambda row: row["team"]["share"])
        machine, human, team = (told(row[who]["share"]) for who in ("machine", "human", "team"))
        found.append(
            f"The team errs most often on cases that are {row['class']}: of 1,000, it gets {team} wrong, "
            f"the machine alone {machine}, and humans alone {human}."
        )
    change = numbers["effect"]["grades"]
    if change is not None:
        machine, team = (numbers["measures"][who]["grade_error"] for who in ("machine", "team"))
        found.append(
            f"Answers are off by {team:.2f} grades on average, those of the machine alone by "
            f"{machine:.2f}: a change of {change['difference']:+.2f} (between {change['lower']:+.2f} and "
            f"{change['upper']:+.2f})."
        )
    return found


def _price(effect: Row, told: PerThousand) -> list[str]:
    gain = effect["spoilt"] - effect["fixed"]
    if effect["answer"] != FEWER or gain >= 0:
        return []
    reads = effect["deferred"]["count"] / -gain
    reads = round(reads, 1) if reads < 10 else round(reads)
    number = f"{reads:g}" if reads < 10 else with_commas(reads)
    cases = "case" if reads == 1 else f"{number} cases"
    return [f"That is one error avoided for every {cases} that humans read."]


def _many_unusual(unusual: Row | None) -> list[str]:
    """That the machine was never meant for many of these cases."""
    if unusual is None or not unusual["many"]:
        return []
    n, judged, wrong = unusual["share"]["count"], unusual["judged"], unusual["wrong"]
    errors = f"the machine alone is wrong on {wrong['machine']} and the team on {wrong['team']}"
    of_them = f"Of the {judged} that a human has answered, {errors}"
    if judged == n:
        of_them = f"{errors[0].upper()}{errors[1:]}"
    elif not judged:
        of_them = (
            f"The machine alone is wrong on {unusual['machine_wrong']}; no human has answered any"
        )
    return [
        f"Warning: {counted(n, 'case')} of {with_commas(unusual['share']['cases'])} are unlike all "
        f"training cases, in {listed(unusual['columns'], most=3)}. The machine was never meant for such "
        f"cases: humans take {unusual['deferred']} of them. {of_them}."
    ]


def harms(numbers: Row, told: PerThousand) -> list[str]:
    """Classes and subgroups for which the team is shown to do worse than the machine alone."""
    places = [
        (f"cases that are {row['class']}", row)
        for row in numbers["classes"]
        if row["change"] is not None
    ]
    places += [
        (f"cases with {numbers['cases']['subgroup']} {row['subgroup']}", row)
        for row in numbers["subgroups"] or ()
        if row["change"] is not None
    ]
    return [
        f"Warning: on {place}, the team makes more errors than the machine alone, "
        f"{told(row['team']['share'])} instead of {told(row['machine']['share'])} per 1,000 such cases: "
        f"{told.change_in_words(row['change'])}."
        for place, row in places
        if row["change"]["supported"] and row["change"]["difference"] > 0
    ]


def reliability_answer(found: Row, told: PerThousand) -> str:
    """Whether the machine is as often right as it says, in one sentence."""
    says, right = told(found["says"]), told(found["right"]["share"])
    compared = (
        f"It says that {says} of 1,000 of its answers are right, and {right} are: "
        f"{told.change_in_words(found['difference'])}."
    )
    if found["answer"] == AGREES:
        return f"Yes, as far as these cases show. {compared}"
    if found["answer"] == IN_PARTS:
        return f"On the whole, but not everywhere: see the marked rows. {compared}"
    how = "too sure" if found["answer"] == TOO_SURE else "not sure enough"
    return f"No, the machine is {how}. {compared}"


def drift_answer(found: Row, rate: Row, unusual: Row) -> str:
    """Whether the cases are like those in training, in one sentence."""
    moved = [row["column"] for row in found["columns"] if row["supported"]]
    parts = [f"they differ in {_and(moved)}"] if moved else []
    if unusual["many"]:
        parts.append(
            f"{unusual['share']['count']} of them are unlike all training cases, in "
            f"{listed(unusual['columns'], most=3)}"
        )
    for row in found["errors"]:
        if row["difference"]["supported"]:
            more = "more" if row["difference"]["difference"] > 0 else "less"
            parts.append(f"the {row['who']} errs {more} often than in training")
    if not rate["agrees"]:
        more = "more" if rate["observed"]["share"] > rate["expected"] else "fewer"
        parts.append(f"humans are sent {more} of them than expected")
    if not parts:
        return "As far as these numbers tell, yes: no clear difference was found."
    return f"Not in every respect: {_and(parts)}."


def most_changed(spread: list[Row], told: PerThousand) -> str:
    """The bin or category whose share differs most from that in training."""
    row = max(spread, key=lambda row: abs(row["now"] - row["training"]))
    return f"{row['value']}: {told(row['now'])} instead of {told(row['training'])}"


def refit_answer(assistance: Row, told: PerThousand) -> str:
    """Whether another budget or retraining would help, in one or two sentences."""
    teams = [row for row in assistance["teams"] if row["who"] == "team"]
    (row,) = (row for row in teams if row["budget"] == assistance["budget"])
    low, high = row["difference_low"], row["difference_high"]
    by_cost = assistance["measure"] == "cost"
    fewer = "less" if by_cost else "fewer"
    size = told.more_or_fewer(row["difference"], fewer)
    span = told.between({"lower": low, "upper": high}, fewer)
    compared = f"{size}{'' if by_cost else ' errors'} than its machine alone ({span})"
    makes = "costs" if by_cost else "makes"
    at = f"{told(row['budget'])} of 1,000 cases"
    if assistance["pays"] == "yes":
        return (
            f"Asking humans pays for a team that is refitted on cases like these. If they may read {at}, "
            f"it {makes} {compared}."
        )
    if assistance["pays"] == "no":
        least = told(assistance["settings"]["min_gain"])
        gain = f"a cost of {least}" if by_cost else f"{least} errors"
        return (
            f"Asking humans does not pay for a team that is refitted on cases like these: no budget tried "
            f"can avoid {gain} or more per 1,000 cases. The best one is {at}; the team then {makes} "
            f"{compared}."
        )
    return (
        "It is not clear whether asking humans pays for a team that is refitted on cases like these. The "
        f"most promising budget is {at}; the team then {makes} {compared}."
    )


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
