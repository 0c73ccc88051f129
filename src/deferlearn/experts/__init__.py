"""Several experts with limited time: what each is good at, and who takes which case.

Prices turn the problem with capacities into the paper's problem: an expert whose time is short costs more.

Names are loaded when they are first used: `Stream` and `transport` need neither scikit-learn nor the
compiled engine.
"""

from typing import TYPE_CHECKING

from deferlearn._utils.lazy import on_first_use

# The function has the name of its module, which would take its place if it were loaded later.
from deferlearn.experts.transport import Assignment, transport

if TYPE_CHECKING:
    from deferlearn.experts.expert_team import ExpertTeam
    from deferlearn.experts.skills import Skills, estimate_skills
    from deferlearn.experts.stream import Stream
    from deferlearn.experts.training import ExpertCertificate

__all__ = [
    "Assignment",
    "ExpertCertificate",
    "ExpertTeam",
    "Skills",
    "Stream",
    "estimate_skills",
    "transport",
]

__getattr__ = on_first_use(
    __name__,
    {
        "ExpertCertificate": "training",
        "ExpertTeam": "expert_team",
        "Skills": "skills",
        "Stream": "stream",
        "estimate_skills": "skills",
    },
)
