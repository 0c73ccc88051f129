"""Reasons of decisions: equal scores, no threshold, one case for humans."""

import numpy as np

from deferlearn.tables.reasons import Batch, OneByOne, sentences


def test_reasons_of_equal_scores_and_of_no_threshold():
    rule = OneByOne(0.5, np.linspace(0, 1, 101))
    above, tied, below = rule.clauses(np.array([0.7, 0.5, 0.1]), np.array([True, True, False]))
    assert "0.7 above the threshold 0.5, higher than 70%" in above.replace("69%", "70%")
    assert "0.5 at random at the threshold 0.5" in tied
    assert "0.1 not above the threshold 0.5" in below
    for threshold, who in ((np.inf, "no case"), (-np.inf, "every case")):
        (clause,) = OneByOne(threshold, np.zeros(101)).clauses(np.zeros(1), np.zeros(1, bool))
        assert clause == f"the model defers {who}"


def test_reasons_of_a_batch_count_the_cases():
    scores, ranks, nowhere = np.zeros(1), np.ones(1, dtype=int), np.zeros(1, dtype=bool)
    (one,) = Batch(1, 5).clauses(scores, ranks, nowhere)
    assert one.endswith("the first case goes to humans")
    (two,) = Batch(2, 5).clauses(scores, ranks, ~nowhere)
    assert two.endswith(
        "the first 2 cases go to humans, but here a human is not expected to do better"
    )


def test_probabilities_instead_of_decision_values():
    """With more than two classes; nothing is said of one that is not known."""
    no = np.zeros(2, dtype=bool)
    clauses = ["rule", "rule"]
    values, chances = np.zeros((2, 3)), np.array([0.625, np.nan])
    found = sentences(clauses, np.array(["a", "b"]), values, no, no, probability=chances)
    assert found == [
        "machine: rule; machine's answer 'a' with probability 0.62",
        "machine: rule; machine's answer 'b'",
    ]
