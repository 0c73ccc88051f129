"""The verdict says what the intervals allow, no more; the report can be read, stored and refused."""

import json
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn import AssistedSVC, assistance_report
from deferlearn.datasets import make_shifted
from deferlearn.evaluation import AssistanceReport
from deferlearn.evaluation.assistance.inputs import Costs
from deferlearn.evaluation.assistance.judge import Judge
from deferlearn.evaluation.assistance.study import make_report
from deferlearn.evaluation.assistance.tables import best_place
from deferlearn.evaluation.assistance.trial import Trial
from deferlearn.evaluation.assistance.verdict import Findings, decide, sentences
from deferlearn.humans import UniformHuman
from deferlearn.teams import FullAutomation, UncertaintyTriage
from stub_team import StubTeam

X, Y = make_shifted(120, n_features=3, shift=0.5, random_state=0)
HUMAN = UniformHuman(0.15).labels(Y, random_state=0)
SPLITS = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]


def row(budget, low, high, **changes):
    middle = (low + high) / 2
    return {
        "who": "team",
        "budget": budget,
        "deferred": float(budget),
        "error": 0.3 + middle,
        "difference": middle,
        "difference_low": low,
        "difference_high": high,
        "versus_human": 0.0,
        "versus_human_low": -0.1,
        "versus_human_high": 0.1,
        "human_error_on_deferred": 0.1,
        "machine_error_on_deferred": 0.3,
        "break_even_factor": 2.0,
    } | changes


def found(rows, best=0.0, **changes):
    machine, human = {"who": "machine", "error": 0.3}, {"who": "human", "error": 0.2}
    counts = {"n_cases": 200, "n_groups": 200, "n_left_out": 0, "n_readers": 1}
    options = {
        "teams": [machine, *rows, human],
        "factors": [],
        "subgroups": [],
        "best_budget": best,
        "measure": "error",
        "subgroup_name": None,
        "settings": counts | {"min_gain": changes.pop("min_gain", 0.01)},
    }
    return Findings(**(options | changes))


@pytest.mark.parametrize(
    ("intervals", "best", "gain", "pays", "budget"),
    [
        ([(-0.10, -0.02), (-0.12, -0.03)], 0.1, 0.01, "yes", 0.1),
        ([(-0.10, 0.01), (-0.12, 0.03)], 0.0, 0.01, "unclear", 0.1),
        ([(-0.009, 0.03), (-0.005, 0.1)], 0.0, 0.01, "no", 0.1),
        ([(0.01, 0.03), (0.02, 0.1)], 0.0, 0.0, "no", 0.1),
        # A gain, but surely less than what is asked for.
        ([(-0.009, -0.001), (-0.008, 0.004)], 0.1, 0.01, "no", 0.1),
        # ... at one budget, while another may gain more.
        ([(-0.009, -0.001), (-0.05, 0.004)], 0.1, 0.01, "unclear", 0.2),
        # Harm at one budget says nothing of the other.
        ([(-0.03, 0.02), (0.02, 0.1)], 0.0, 0.01, "unclear", 0.1),
    ],
)
def test_decision(intervals, best, gain, pays, budget):
    rows = [row(b, *ends) for b, ends in zip([0.1, 0.2], intervals, strict=True)]
    assert decide(found(rows, best, min_gain=gain)) == (pays, budget)


@given(
    st.lists(
        st.tuples(st.floats(-0.3, 0.3), st.floats(0.001, 0.2)).map(
            lambda p: (p[0] - p[1], p[0] + p[1])
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([0.0, 0.01, 0.1]),
)
@settings(max_examples=100, deadline=None)
def test_words_never_outrun_the_intervals(intervals, gain):
    rows = [row((i + 1) / 10, *ends) for i, ends in enumerate(intervals)]
    better = [r["budget"] for r in rows if r["difference_high"] < 0]
    data = found(rows, better[0] if better else 0.0, min_gain=gain)
    pays, budget = decide(data)
    said = " ".join(sentences(data, pays, budget))
    if pays == "yes":
        assert data.at(budget)["difference_high"] < 0
        assert said.startswith("Assistance pays")
    if pays == "no":
        assert all(r["difference_low"] > -gain for r in rows)
    assert ("shown to do worse than the machine" in said) == (
        pays != "yes" and any(r["difference_low"] > 0 for r in rows)
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"versus_human_low": 0.01}, "would do better still"),
        ({"versus_human_high": -0.01}, "would do worse"),
        ({}, "are not shown to do better or worse"),
    ],
)
def test_humans_alone(changes, words):
    rows = [row(0.1, -0.1, -0.05, **changes), row(0.3, -0.2, -0.1)]
    said = sentences(found(rows, 0.1), "yes", 0.1)
    assert any(words in sentence for sentence in said)
    needed = "not shown to be worse than humans alone is 30%"
    assert any(needed in sentence for sentence in said) == ("versus_human_low" in changes)


def test_what_breaks_it():
    rows = [row(0.1, -0.1, -0.05)]
    factors = [
        {"budget": 0.1, "factor": f, "human_error": 0.1 * f}
        | {"difference": d, "difference_low": d - 0.03, "difference_high": d + 0.03}
        for f, d in [(0.5, -0.09), (1.0, -0.075), (2.0, 0.0), (4.0, 0.15)]
    ]
    said = sentences(found(rows, 0.1, factors=factors), "yes", 0.1)
    assert any("gone if humans erred 2 times as often" in s for s in said)
    twice = [
        s for s in said if s.startswith("If they err 2 times as often (0.200 instead of 0.100)")
    ]
    assert twice[0].endswith("[-0.030, +0.030]: no clear difference.")
    assert any(s.startswith("If they err 4") and s.endswith("a clear loss.") for s in said)
    assert not any("always" in s for s in said)
    factors[-1]["human_error"] = 0.35  # not four times 0.1: on one class every answer is wrong
    said = sentences(found(rows, 0.1, factors=factors), "yes", 0.1)
    assert any(s.startswith("If they err 4 times as often, or always on one class (") for s in said)
    assert not any(s.startswith("If they err 0.5") for s in said)  # changes nothing


def test_warning_of_harmed_subgroups():
    """Humans good for one half of the cases, dreadful for the other; all are handed over alike."""
    rng = np.random.default_rng(0)
    n = 300
    site = np.where(np.arange(n) % 3 == 0, "small", "large")
    y = np.where(rng.uniform(size=n) < 0.5, 1, -1)
    X = np.column_stack([y + 1.2 * rng.standard_normal(n), rng.standard_normal(n)])
    human = np.where(site == "large", y, -y)
    report = assistance_report(StubTeam(), X, y, human, [0.5], cv=4, subgroup=site, random_state=0)
    (warning,) = [s for s in report.verdict if s.startswith("Warning")]
    assert "'small' (100 cases)" in warning
    assert "'large'" not in warning
    harmed = [r for r in report.subgroups if r["subgroup"] == "small"]
    assert harmed[0]["difference_low"] > 0
    fair = assistance_report(StubTeam(), X, y, y * 1, [0.5], cv=4, subgroup=site, random_state=0)
    assert any(s.startswith("No subgroup of 'subgroup' is shown") for s in fair.verdict)


def trial_of(costs):
    """A trial in which the errors at each budget are as given: rows of 0 and 1."""
    wrong = np.array(costs, dtype=float)
    n = wrong.shape[1]
    zero = np.zeros_like(wrong)
    return Trial(
        budgets=[i / 10 for i in range(len(wrong))],
        rows=np.arange(n),
        positive=np.arange(n) % 2 == 0,
        human_wrong=np.zeros(n, dtype=bool),
        wrong=wrong,
        deferred=zero,
        machine_wrong=zero,
        group=np.arange(n),
        n_train=float(n),
        n_splits=5,
    )


def errors(n, k):
    return (np.arange(n) < k).astype(float)


@pytest.mark.parametrize(
    ("counts", "best"),
    [
        ([80, 80, 80], 0),
        ([80, 40, 40], 1),
        ([80, 40, 10], 2),
        ([80, 74, 68, 62, 56], 4),  # by 0, 2, 4: steps of 6 cases are not clear, two together are
        ([80, 40, 60, 38], 1),
        ([40, 80, 80], 0),
    ],
)
def test_best_budget(counts, best):
    judge = Judge(trial_of([errors(200, k) for k in counts]), Costs(), 0.95)
    assert best_place(judge) == best


@st.composite
def trials(draw):
    """Anything that can happen to a few cases, in groups or not, some of them tested twice."""
    n, budgets = draw(st.integers(2, 12)), draw(st.integers(2, 4))
    halves = st.sampled_from([0.0, 0.5, 1.0])

    def table(entries):
        return np.array(draw(st.lists(entries, min_size=budgets * n, max_size=budgets * n)))

    deferred = table(halves).reshape(budgets, n)
    deferred[0] = 0.0
    human_wrong = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    kept_wrong = table(halves).reshape(budgets, n) * (1 - deferred)
    return Trial(
        budgets=[i / 10 for i in range(budgets)],
        rows=np.arange(n),
        positive=np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))),
        human_wrong=human_wrong,
        wrong=kept_wrong + deferred * human_wrong,
        deferred=deferred,
        machine_wrong=table(halves).reshape(budgets, n) * deferred,
        group=np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))),
        n_train=draw(st.floats(1.0, 100.0)),
        n_splits=2,
    )


@given(
    trials(),
    st.sampled_from([Costs(), Costs(0.0, 5.0, 0.3)]),
    st.sampled_from([[1.0], [0.0, 1.0, 7.0]]),
)
@settings(max_examples=60, deadline=None)
def test_any_trial_makes_a_report_that_agrees_with_itself(trial, costs, factors):
    n = len(trial.rows)
    report = make_report(
        Judge(trial, costs, 0.9),
        factors=factors,
        subgroup_name="site",
        subgroup_values=[str(i % 3) for i in range(n)],
        settings={"n_readers": 1, "n_left_out": 0, "min_gain": 0.01},
    )
    assert report.settings["n_groups"] == len(set(trial.group))
    json.dumps(report.to_dict(), allow_nan=False)
    assert str(report)
    tried = report.teams[1:-1]
    here = [row for row in report.factors if row["factor"] == 1.0]
    for row, same in zip(tried, here, strict=True):
        assert row["difference_low"] <= row["difference"] <= row["difference_high"]
        assert row["difference"] == pytest.approx(row["cost"] - report.teams[0]["cost"])
        for key in ("difference", "difference_low", "difference_high", "cost", "error"):
            assert same[key] == pytest.approx(row[key])
        cases = [r["n_cases"] for r in report.subgroups if r["budget"] == row["budget"]]
        assert sum(cases) == n
    assert report.best_budget in trial.budgets
    if report.pays == "yes":
        assert report.budget == report.best_budget > 0


# -- the report as an object ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report():
    site = np.where(X[:, 0] > 0, "<b>north</b>", "south")
    return assistance_report(StubTeam(), X, Y, HUMAN, [0.2, 0.4], cv=SPLITS, subgroup=site)


def test_json_holds_everything(report):
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain["verdict"] == report.verdict
    assert plain["teams"][1]["error"] == report.teams[1]["error"]
    assert plain["settings"]["n_cases"] == 120
    assert plain["headline"] == report.headline
    assert set(plain) == {*AssistanceReport.__dataclass_fields__, "headline"}


def test_text_and_html(report):
    text = str(report)
    assert text.startswith(report.headline)
    for sentence in report.verdict:
        assert sentence in text
    assert f"{report.teams[1]['error']:.3f} [{report.teams[1]['error_low']:.3f}" in text
    assert "machine alone" in text
    assert repr(report) == f"<AssistanceReport: {report.headline}>"
    html = report._repr_html_()
    assert "&lt;b&gt;north&lt;/b&gt;" in html
    assert "<b>north" not in html
    assert html.count("<table>") == html.count("</table>") == 3
    assert html.count("<tr>") == html.count("</tr>")


def test_frames(report):
    pytest.importorskip("pandas")
    frame = report.to_frame()
    assert frame["who"].tolist() == ["machine", "team", "team", "human"]
    assert report.to_frame("factors").shape[0] == 6
    assert report.to_frame("subgroups")["n_cases"].sum() == 240
    with pytest.raises(ValueError, match="no table 'team'"):
        report.to_frame("team")


def test_no_positive_case_judged():
    """Sensitivity is then unknown, and JSON says so by null."""
    read = np.where(Y == -1, Y.astype(float), np.nan)
    report = assistance_report(StubTeam(), X, Y, read, [0.2], cv=SPLITS)
    assert np.isnan(report.teams[1]["sensitivity"])
    assert report.to_dict()["teams"][1]["sensitivity"] is None
    assert "-" in str(report)


def test_too_small_a_budget_is_said():
    report = assistance_report(StubTeam(), X, Y, HUMAN, [0.01], cv=SPLITS)
    assert report.teams[1]["deferred"] == 0.0
    assert report.teams[1]["difference"] == 0.0
    assert any("no case at all was deferred" in s for s in report.verdict)
    both = assistance_report(StubTeam(), X, Y, HUMAN, [0.01, 0.5], cv=SPLITS)
    assert any(s.startswith("At a budget of 1% no case was deferred") for s in both.verdict) or (
        both.budget == 0.01
    )


def test_everything_deferred_is_no_team():
    y = np.where(np.arange(120) % 2, 1, -1)  # nothing to do with X
    human = np.where(np.arange(120) % 10, y, -y)
    report = assistance_report(StubTeam(), X, y, human, [1.0], cv=SPLITS)
    assert report.pays == "yes"
    assert any("nothing is left to the machine" in s for s in report.verdict)
    assert not any("Humans alone" in s or "largest budget" in s for s in report.verdict)


class Worried(StubTeam):
    def fit(self, X, y, human_labels=None):
        warnings.warn("the same each time", UserWarning, stacklevel=2)
        return super().fit(X, y, human_labels)


def test_what_all_fits_warn_of_is_said_once():
    with pytest.warns(UserWarning, match="the same each time") as caught:
        assistance_report(Worried(), X, Y, HUMAN, [0.2, 0.4], cv=4, random_state=0)
    assert len(caught) == 1
    assert caught[0].filename.endswith("test_verdict.py")


def test_few_cases_are_said_to_be_few():
    report = assistance_report(StubTeam(), X[:24], Y[:24], HUMAN[:24], [0.5], cv=2, random_state=0)
    assert any("With 24 cases all intervals are rough" in s for s in report.verdict)


def test_works_without_extras():
    code = """
        import sys

        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in {"matplotlib", "pandas", "typer", "rich", "pyarrow"}:
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Blocker())
        import numpy as np
        from deferlearn import assistance_report
        from deferlearn.teams import UncertaintyTriage
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2)); y = np.where(X[:, 0] > 0, 1, -1)
        human = np.where(rng.uniform(size=60) < 0.2, -y, y)
        report = assistance_report(UncertaintyTriage(cv=None), X, y, human, [0.3], cv=2)
        str(report), report._repr_html_(), report.to_dict()
        from deferlearn.plot import AssistanceDisplay
        for attempt in (report.to_frame, AssistanceDisplay(report).plot):
            try:
                attempt()
            except ImportError as error:
                print(error)
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "to_frame needs pandas: pip install pandas",
        "drawing needs matplotlib: pip install 'deferlearn[plot]'",
    ]


# -- what is refused ------------------------------------------------------------------------------------


class Eager(StubTeam):
    def defer_top(self, X, budget=None):
        return np.ones(len(X), dtype=bool)


class Vague(StubTeam):
    def defer_top(self, X, budget=None):
        return np.zeros(len(X))

    def predict_assisted(self, X, human_labels, batch=False):
        return self.predict(X)


THREE = {"y": np.arange(120) % 3, "human_labels": np.arange(120) % 3}
WORDS = np.where(Y == 1, "sick", "well")
ONE_SIDED = [(np.flatnonzero(Y == 1), np.flatnonzero(Y == -1))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budgets": [0.0]}, "at least one budget above 0"),
        ({"budgets": [0.2, 1.2]}, "fractions between 0 and 1"),
        ({"budgets": 0.2}, "vector of numbers"),
        ({"human_labels": None}, "human_labels is needed"),
        ({"human_labels": HUMAN[:-1]}, "inconsistent numbers of samples"),
        ({"human_labels": np.full(120, np.nan)}, "no answer at all"),
        ({"human_labels": np.where(np.arange(120) == 7, 3, HUMAN)}, "holds 3 at row 7"),
        ({"human_scores": HUMAN, "human_loss": HUMAN}, "at most one of"),
        ({"y": np.ones(120)}, "y has 1 class"),
        (
            {"y": np.arange(120) % 3},
            "human_labels holds -1 at row .*, which is none of the classes",
        ),
        ({"y": np.arange(120) / 7}, "Unknown label type: continuous"),
        ({**THREE, "pos_label": 1}, "pos_label=1 is for two classes, but y has 3"),
        ({**THREE, "false_negative": 5.0}, "costs for two classes, but y has 3"),
        ({"y": np.where(np.arange(120) == 3, np.nan, Y)}, "row 3 has no label"),
        ({"y": WORDS, "human_labels": WORDS}, "Give pos_label='sick' or pos_label='well'"),
        ({"pos_label": 2}, "pos_label=2 is none of the classes"),
        ({"estimator": FullAutomation()}, "FullAutomation has no parameter 'budget'"),
        ({"estimator": Eager()}, "at a budget of 0 Eager still defers 60 of 60"),
        ({"estimator": Vague()}, "boolean mask of 60 cases"),
        ({"confidence": 95}, "between 0 and 1, got 95"),
        ({"false_negative": -1.0}, "false_negative must be a finite number >= 0"),
        ({"deferral_cost": "high"}, "deferral_cost must be a finite number >= 0, got 'high'"),
        ({"false_negative": 0, "false_positive": 0}, "nothing to gain"),
        ({"min_gain": -0.1}, "min_gain must be a finite number >= 0"),
        ({"human_error_factors": [1, -2]}, "numbers >= 0, got -2"),
        ({"human_error_factors": 2.0}, "sequence of numbers"),
        ({"subgroup": "age"}, "X is no table with columns"),
        ({"subgroup": X[:, 0]}, "subgroup has 120 values, more than 20"),
        ({"subgroup": ["a"]}, "a value for each of the 120 cases"),
        ({"groups": np.zeros(120)}, "one group"),
        ({"groups": [None, *range(119)]}, "row 0 has no group"),
        ({"cv": ONE_SIDED}, "in split 0 all .* training cases have the class 1"),
        ({"cv": 100}, "fewer than the 100 folds"),
        ({"cv": []}, "of 0 test parts none"),
        (
            {"human_labels": np.where(np.arange(120) < 60, HUMAN, np.nan), "cv": SPLITS[:1]},
            "of 1 test",
        ),
    ],
)
def test_errors_say_what_was_wrong(change, message):
    good = {
        "estimator": StubTeam(),
        "X": X,
        "y": Y,
        "human_labels": HUMAN,
        "budgets": [0.2],
        "cv": SPLITS,
    }
    with pytest.raises(ValueError, match=message):
        assistance_report(**(good | change))


@pytest.mark.parametrize("estimator", [AssistedSVC, "AssistedSVC", None])
def test_no_estimator(estimator):
    with pytest.raises(TypeError, match="an instance, not a class"):
        assistance_report(estimator, X, Y, HUMAN)


def test_a_class_too_rare_for_the_folds():
    y = np.where(np.arange(120) < 3, 1, -1)
    with pytest.raises(ValueError, match="the class 1 has 3 cases, fewer than the 5 folds"):
        assistance_report(UncertaintyTriage(), X, y, y)
