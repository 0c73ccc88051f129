"""Machine, policy and threshold: teams that say which cases a human should take.

- `AssistedSVC`: the paper's team; its machine is trained without the samples that humans take.
- `AssistedSVCCV`: chooses the machine and the way to share its work by the team's held-out error.
- `AdvantageTriage`: humans take the cases where they are expected to lose less than the machine.
- `UncertaintyTriage`, `PredictedErrorTriage`, `FullAutomation`, `NoAutomation`: the paper's baselines.
- `DeferralPolicy`: decides about new cases for `AssistedSVC`.
- `AssistedPipeline`: a scikit-learn pipeline with a team's methods.
- `save`, `load`: storage without pickle.

All of them are fitted and asked in the same way, so that a comparison is a loop over estimators.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from deferlearn._utils.lazy import on_first_use

if TYPE_CHECKING:
    from deferlearn.teams.advantage import AdvantageTriage
    from deferlearn.teams.assisted_svc import AssistedSVC
    from deferlearn.teams.assisted_svc_cv import AssistedSVCCV
    from deferlearn.teams.assisted_triage import AssistedTriage
    from deferlearn.teams.automation import FullAutomation, NoAutomation
    from deferlearn.teams.pipeline import AssistedPipeline, make_assisted_pipeline
    from deferlearn.teams.policy import DeferralPolicy
    from deferlearn.teams.predicted_error import PredictedErrorTriage
    from deferlearn.teams.storage import load, save
    from deferlearn.teams.surrogates.compare_confidence import CompareConfidence
    from deferlearn.teams.surrogates.cross_entropy import CrossEntropySurrogate
    from deferlearn.teams.surrogates.differentiable_triage import DifferentiableTriage
    from deferlearn.teams.surrogates.one_vs_all import OneVsAllSurrogate
    from deferlearn.teams.surrogates.realizable import RealizableSurrogate
    from deferlearn.teams.team_cv import TeamCV
    from deferlearn.teams.uncertainty import UncertaintyTriage

__all__ = [
    "AdvantageTriage",
    "AssistedPipeline",
    "AssistedSVC",
    "AssistedSVCCV",
    "AssistedTriage",
    "CompareConfidence",
    "CrossEntropySurrogate",
    "DeferralPolicy",
    "DifferentiableTriage",
    "FullAutomation",
    "NoAutomation",
    "OneVsAllSurrogate",
    "PredictedErrorTriage",
    "RealizableSurrogate",
    "TeamCV",
    "UncertaintyTriage",
    "load",
    "make_assisted_pipeline",
    "save",
]

__getattr__ = on_first_use(
    __name__,
    {
        "AdvantageTriage": "advantage",
        "AssistedPipeline": "pipeline",
        "AssistedSVC": "assisted_svc",
        "AssistedSVCCV": "assisted_svc_cv",
        "AssistedTriage": "assisted_triage",
        "TeamCV": "team_cv",
        "DeferralPolicy": "policy",
        "FullAutomation": "automation",
        "NoAutomation": "automation",
        "PredictedErrorTriage": "predicted_error",
        "UncertaintyTriage": "uncertainty",
        "CompareConfidence": "surrogates.compare_confidence",
        "CrossEntropySurrogate": "surrogates.cross_entropy",
        "DifferentiableTriage": "surrogates.differentiable_triage",
        "OneVsAllSurrogate": "surrogates.one_vs_all",
        "RealizableSurrogate": "surrogates.realizable",
        "load": "storage",
        "make_assisted_pipeline": "pipeline",
        "save": "storage",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
