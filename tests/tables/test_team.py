"""Fitting on tables: budgets of every kind, and what a card tells."""

import json

import numpy as np
import pytest

import deferlearn
from case_tables import make_cases
from deferlearn.tables import Router, TableError, as_table, fit_table, make_team, select_cases
from deferlearn.tables.held_out import MAX_CASES, cross_validated_errors, sampled_rows
from deferlearn.teams import AssistedSVCCV


@pytest.fixture
def search(monkeypatch):
    """Lets `fit_table` try only these candidates."""

    def restrict(**candidates):
        def make(budget, *, alpha, seed, n_jobs, folds, scored, grades, costs):
            assert not scored
            assert grades is None
            assert costs is None
            if alpha is not None:
                return make_team(budget, alpha=alpha, seed=seed, n_jobs=n_jobs, folds=folds)
            return AssistedSVCCV(
                budget=budget, random_state=seed, n_jobs=n_jobs, cv=folds, **candidates
            )

        monkeypatch.setattr("deferlearn.tables.team.make_team", make)

    return restrict


@pytest.fixture(scope="module")
def cases():
    return select_cases(make_cases(), "diagnosis", humans=["reader_1"], identifier="id")


@pytest.mark.filterwarnings("ignore:Humans take", "ignore:The policy cannot be learned")
@pytest.mark.parametrize("budget", [0, 79, 1.0])
def test_every_budget_gives_a_card_that_json_can_hold(cases, budget):
    model = fit_table(cases, budget=budget, alpha=0.1, drop=["patient", "reader_2"])
    errors = cross_validated_errors(model, cases)
    told = json.loads(json.dumps({**model.card_, "errors": errors}, allow_nan=False))
    assert told["budget"] == budget
    assert 0 <= errors["team"]["error"] <= 1
    if budget == 0:
        assert errors["team"] == errors["machine"]
        assert told["deferral_threshold"] is None
    if budget == 1.0:
        assert errors["team"] == errors["human"]


def test_a_card_counts_what_it_was_given(cases):
    card = fit_table(cases, alpha=0.1, seed=7, drop=["patient", "reader_2"]).card_
    assert card["class_counts"] == {
        label: int(np.sum(cases.truth == label)) for label in ("ill", "well")
    }
    assert card["human"]["read"] == 80
    assert card["human"]["error"] == card["readers"][0]["error"]
    assert (card["label"], card["identifier"], card["group"]) == ("diagnosis", "id", None)
    assert card["seed"] == 7
    assert len(card["score_percentiles"]) == 101
    assert card["features"] == ["size", "dose", "age", "age is missing", "site=Oslo", "site=Rome"]


def test_it_is_tuned_for_the_team_unless_alpha_is_given(cases, search):
    few = {"alphas": [0.01, 0.1], "policies": ["uncertainty", "advantage"], "kernels": ["linear"]}
    search(**few)
    model = fit_table(cases, drop=["patient", "reader_2"], seed=2)
    assert model.card_["tuned"]
    expected = AssistedSVCCV(budget=0.2, random_state=2, **few)
    features = model.encoder.transform(cases.features)
    expected.fit(features, cases.truth, human_labels=cases.answers)
    assert model.team.best_params_ == expected.best_params_
    assert model.card_["alpha"] == expected.best_params_["alpha"]
    assert model.card_["policy"] == expected.best_params_["policy"]
    assert model.card_["machine"] == "linear SVM"
    np.testing.assert_array_equal(model.defer(cases.features), expected.defer(features))
    assert not fit_table(cases, alpha=0.1, drop=["patient", "reader_2"]).card_["tuned"]


# Those that defer in training are stored in other tests, with the certificate that takes seconds.
@pytest.mark.parametrize("policy", ["uncertainty", "advantage", "advantage_by_region"])
def test_whoever_wins_can_be_stored_and_routes_as_before(cases, policy, search, tmp_path):
    search(alphas=[0.1], policies=[policy])
    model = fit_table(cases, drop=["patient", "reader_2"])
    deferlearn.save(model, tmp_path / "m.skops")
    again = deferlearn.load(tmp_path / "m.skops")
    new = as_table(make_cases(50, seed=2))
    chunks = [new.slice(0, 20), new.slice(20)]
    for budget in (None, 0.4):
        (one, two), other = (
            [routed for _, routed in Router(m, budget=budget).route(lambda: chunks)]
            for m in (model, again)
        )
        assert [one, two] == other
        deferred = one["deferred"].to_pylist() + two["deferred"].to_pylist()
        expected = model.defer(new) if budget is None else model.defer_top(new, budget)
        assert deferred == expected.tolist()
        told = ["expected errors: machine" in reason for reason in one["reason"].to_pylist()]
        assert all(told) if policy != "uncertainty" else not any(told)
    assert cross_validated_errors(model, cases)["team"]["cases"] == 80


def test_reasons_tell_the_expected_errors_of_the_team(cases, search):
    search(alphas=[0.1], policies=["advantage"])
    model = fit_table(cases, drop=["patient", "reader_2"])
    ((_, routed),) = Router(model).route(lambda: [cases.features])
    machine, human = model.chosen.expected_errors(model.encoder.transform(cases.features))
    for reason, one, other in zip(routed["reason"].to_pylist(), machine, human, strict=True):
        assert reason.endswith(f"; expected errors: machine {one:.2g}, human {other:.2g}")


@pytest.mark.parametrize("group", [None, "patient"])
def test_of_many_cases_a_sample_is_judged(group, monkeypatch):
    """Above the limit nothing was judged, and nothing was said."""
    assert MAX_CASES == 1000
    monkeypatch.setattr("deferlearn.tables.held_out.MAX_CASES", 60)
    cases = select_cases(make_cases(), "diagnosis", humans=["reader_1"], group=group)
    model = fit_table(cases, alpha=0.1, drop=["id", "reader_2"])
    errors = cross_validated_errors(model, cases)
    assert 55 <= errors["team"]["cases"] <= 60
    assert errors == cross_validated_errors(model, cases)
    rows = sampled_rows(cases, 60, 0)
    assert len(np.unique(rows)) == len(rows) <= 60
    if group:  # whole groups
        inside, outside = cases.groups[rows], np.delete(cases.groups, rows)
        assert not set(inside.tolist()) & set(outside.tolist())
    else:
        shares = [np.mean(part == "ill") for part in (cases.truth, cases.truth[rows])]
        assert abs(shares[0] - shares[1]) < 0.02


def test_without_answers_there_is_no_assumed_human():
    table = {k: v for k, v in make_cases().items() if not k.startswith("reader")}
    cases = select_cases(table, "diagnosis", group="patient")
    model = fit_table(cases, alpha=0.1, drop=["id"])
    assert list(cross_validated_errors(model, cases)) == ["machine"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"budget": 1.5}, "budget=1.5"),
        ({"budget": -1}, "budget=-1"),
        ({"budget": 81}, "budget=81"),
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"alpha": np.nan}, "alpha=nan"),
        ({"number": ["none"]}, "no column 'none'"),
    ],
)
def test_settings_are_refused_before_the_fit(cases, options, says):
    with pytest.raises(TableError, match=says):
        fit_table(cases, **options)
