"""Fitting on tables: budgets of every kind, and what a card tells."""

import json

import numpy as np
import pytest

from case_tables import make_cases
from deferlearn.tabular import TableError, fit_table, select_cases
from deferlearn.tabular.evaluation import MAX_CASES, cross_validated_errors


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


def test_many_cases_are_not_fitted_again_to_judge_them(cases, monkeypatch):
    monkeypatch.setattr("deferlearn.tabular.evaluation.MAX_CASES", 79)
    assert MAX_CASES >= 79
    assert cross_validated_errors(None, cases) is None


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
