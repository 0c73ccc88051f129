"""Several experts with limited time: what each is good at, and who takes which case.

Prices turn the problem with capacities into the paper's problem: an expert whose time is short costs more.
"""

from deferlearn.experts.expert_team import ExpertTeam
from deferlearn.experts.skills import Skills, estimate_skills
from deferlearn.experts.stream import Stream
from deferlearn.experts.training import ExpertCertificate
from deferlearn.experts.transport import Assignment, transport

__all__ = [
    "Assignment",
    "ExpertCertificate",
    "ExpertTeam",
    "Skills",
    "Stream",
    "estimate_skills",
    "transport",
]
