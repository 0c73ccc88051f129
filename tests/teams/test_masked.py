"""Masked arrays: what is masked is missing where answers may be missing, and refused elsewhere."""

import numpy as np
import pytest

from deferlearn import AssistedSVC, UncertaintyTriage
from deferlearn.datasets import make_linear

X, Y = make_linear(40, random_state=0)
HUMAN = np.where(np.arange(40) % 7 == 0, -Y, Y)
HIDDEN = np.arange(40) == 3


def masked(values):
    mask = HIDDEN if values.ndim == 1 else np.repeat(HIDDEN[:, None], values.shape[1], axis=1)
    return np.ma.masked_array(values, mask=mask)


def model():
    return AssistedSVC(cv=2, submodularity_ratio=0.5, random_state=0)


@pytest.mark.parametrize("name", ["X", "y", "sample_weight", "machine_scores"])
def test_masked_input_is_refused(name):
    given = {"X": X, "y": Y, "human_labels": HUMAN}
    values = {"X": X, "y": Y, "sample_weight": np.ones(40), "machine_scores": X[:, 0]}[name]
    team = UncertaintyTriage(cv=2) if name == "machine_scores" else model()
    with pytest.raises(ValueError, match=f"{name} has masked entries"):
        team.fit(**{**given, name: masked(values)})
    if name != "machine_scores":
        team.fit(**{**given, name: np.ma.masked_array(values)})  # nothing is masked


def test_masked_cases_are_refused():
    clf = model().fit(X, Y, human_labels=HUMAN)
    with pytest.raises(ValueError, match="X has masked entries"):
        clf.defer(masked(X))


def test_masked_answers_are_missing():
    gaps = HUMAN.astype(float)
    gaps[HIDDEN] = np.nan
    with pytest.warns(UserWarning, match="1 "):
        expected = model().fit(X, Y, human_labels=gaps)
    with pytest.warns(UserWarning, match="1 "):
        found = model().fit(X, Y, human_labels=masked(HUMAN))
    np.testing.assert_array_equal(found.human_loss_, expected.human_loss_)
