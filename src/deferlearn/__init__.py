"""Classifiers that know which cases to defer to a human.

The rooms, in the order in which data flows through them:

- `deferlearn.humans`: what a human's answer costs, as one loss per sample; simulated experts.
- `deferlearn.metrics`: what the answers of machine and human are worth together.
- `deferlearn.objective`: the machine's objective and the exact gain of deferring a sample.
- `deferlearn.selection`: the algorithms that choose the samples to defer.
- `deferlearn.bounds`: what the theorems guarantee, and a certificate for each selection.
- `deferlearn.teams`: machine, policy and threshold as one estimator; pipelines, search, storage.
- `deferlearn.experts`: several experts with limited time, and who takes which case.
- `deferlearn.evaluation`: whether assistance pays, with intervals.
- `deferlearn.datasets`: generators, shipped data and fetchers.
- `deferlearn.tables`: tables in, decisions out.
- `deferlearn.plot`: pictures; matplotlib is needed only when something is drawn.

The names listed in ``deferlearn.__all__`` can be imported from here. They are loaded when they are first
used, so that ``import deferlearn`` stays fast.
"""

from typing import TYPE_CHECKING

from deferlearn._utils.lazy import on_first_use

if TYPE_CHECKING:
    from deferlearn.evaluation import assistance_report, automation_curve
    from deferlearn.metrics import make_team_scorer
    from deferlearn.teams import (
        AdvantageTriage,
        AssistedPipeline,
        AssistedSVC,
        AssistedSVCCV,
        AssistedTriage,
        CompareConfidence,
        CrossEntropySurrogate,
        DeferralPolicy,
        DifferentiableTriage,
        FullAutomation,
        NoAutomation,
        OneVsAllSurrogate,
        PredictedErrorTriage,
        RealizableSurrogate,
        TeamCV,
        UncertaintyTriage,
        load,
        make_assisted_pipeline,
        save,
    )

__version__ = "0.2.0"

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
    "assistance_report",
    "automation_curve",
    "load",
    "make_assisted_pipeline",
    "make_team_scorer",
    "save",
]


_ROOMS = {
    "assistance_report": "evaluation",
    "automation_curve": "evaluation",
    "make_team_scorer": "metrics",
}
__getattr__ = on_first_use(__name__, {name: _ROOMS.get(name, "teams") for name in __all__})


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
