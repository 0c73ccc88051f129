"""A small team of three experts with different skills, fitted once."""

from functools import cache

import numpy as np

from deferlearn import AdvantageTriage
from deferlearn.experts import ExpertTeam
from deferlearn.humans import SkilledHuman

CAPACITY = {"Ann": 0.1, "Bob <b>": 0.05, "Cem": 0.2}


def expert_cases():
    """Cases, their truth, and the answers of a good, a poor and a rare expert."""
    luck = np.random.default_rng(0)
    X = luck.normal(size=(300, 2))
    y = np.where(X[:, 1] + luck.normal(size=300) > 0, 1, -1)
    said = {
        name: SkilledHuman(error).labels(X, y, random_state=seed).astype(float)
        for seed, (name, error) in enumerate(zip(CAPACITY, (0.02, 0.35, 0.1), strict=True))
    }
    said["Cem"][8:] = np.nan
    return X, y, said


@cache
def expert_team():
    X, y, said = expert_cases()
    team = ExpertTeam(AdvantageTriage(alpha=0.1), CAPACITY, skills="class", random_state=0)
    return team.fit(X, y, said)
