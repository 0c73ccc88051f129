"""A team that is fitted without a human says so."""

import warnings

import numpy as np
import pytest

from deferlearn import AdvantageTriage, AssistedSVC, AssistedSVCCV
from deferlearn.datasets import make_linear
from deferlearn.humans import NoHumanWarning

X, Y = make_linear(60, random_state=0)


@pytest.mark.parametrize(
    "team",
    [
        AssistedSVC(0.2, cv=None),
        AdvantageTriage(0.2, cv=2),
        AssistedSVCCV(0.2, alphas=[0.1], kernels=["linear"], policies=["margin"], cv=2),
    ],
    ids=lambda team: type(team).__name__,
)
def test_no_human_is_warned_of_once(team):
    with pytest.warns(NoHumanWarning, match="score_assisted") as caught:
        team.fit(X, Y)
    assert len([w for w in caught if w.category is NoHumanWarning]) == 1
    assert caught[0].filename == __file__
    said = np.where(np.arange(60) % 7, Y, -Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoHumanWarning)
        team.fit(X, Y, human_labels=said)
