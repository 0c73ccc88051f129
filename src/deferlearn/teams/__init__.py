"""Machine, policy and threshold: teams that say which cases a human should take.

- `AssistedSVC`: the paper's team; its machine is trained without the samples that humans take.
- `AssistedSVCCV`: chooses the machine and the way to share its work by the team's held-out error.
- `AdvantageTriage`: humans take the cases where they are expected to lose less than the machine.
- `UncertaintyTriage`, `PredictedErrorTriage`, `FullAutomation`, `NoAutomation`: the paper's baselines.
- `DeferralPolicy`: decides about new cases for `AssistedSVC`.
- `AssistedPipeline`: a scikit-learn pipeline with a team's methods.
- `save`, `load`: storage without pickle.

All of them are fitted and asked in the same way, so that a comparison is a loop over estimators.
"""

from deferlearn.teams.advantage import AdvantageTriage
from deferlearn.teams.assisted_svc import AssistedSVC
from deferlearn.teams.assisted_svc_cv import AssistedSVCCV
from deferlearn.teams.automation import FullAutomation, NoAutomation
from deferlearn.teams.pipeline import AssistedPipeline, make_assisted_pipeline
from deferlearn.teams.policy import DeferralPolicy
from deferlearn.teams.predicted_error import PredictedErrorTriage
from deferlearn.teams.storage import load, save
from deferlearn.teams.uncertainty import UncertaintyTriage

__all__ = [
    "AdvantageTriage",
    "AssistedPipeline",
    "AssistedSVC",
    "AssistedSVCCV",
    "DeferralPolicy",
    "FullAutomation",
    "NoAutomation",
    "PredictedErrorTriage",
    "UncertaintyTriage",
    "load",
    "make_assisted_pipeline",
    "save",
]
