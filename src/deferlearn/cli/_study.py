"""What the demo measures: errors of the machine, the human and two teams on the same splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deferlearn._utils.types import Index

MACHINE, HUMAN, TEAM, TRIAGE = "machine alone", "human alone", "team", "uncertainty triage"
EVERYONE = (MACHINE, HUMAN, TEAM, TRIAGE)

# Budgets of the picture, and of the tables.
BUDGETS = (0.0, 0.1, 0.2)
SHOWN = (0.1, 0.2)

# The paper's share of test cases.
TEST_SIZE = 0.4
# The same for all settings and splits. One submodularity ratio instead of the sweep over many saves time.
# Policies are those of the paper: the margin for real data, a network otherwise.
ALPHA = 0.03
RATIO = 0.5


@dataclass(frozen=True)
class Setting:
    """Data with a human, and how they are split.

    Attributes
    ----------
    name : str
        Name in JSON.
    title : str
        Title of the table.
    story : str
        What the human and the machine are.
    load : callable
        Returns data sets for a seed, one per human; results are averaged over them.
    simulated : bool
        Whether the human is simulated.
    policy : str
        The policy of the team.
    n_splits : int
        Number of random splits.
    """

    name: str
    title: str
    story: str
    load: Callable[[int], list[Any]]
    simulated: bool = False
    policy: str = "margin"
    n_splits: int = 10


@dataclass(frozen=True)
class Estimate:
    """A mean over splits with its 95% interval."""

    mean: float
    lower: float
    upper: float

    @property
    def sign(self) -> int:
        """-1 or +1 if the interval lies on one side of zero, else 0."""
        return int(self.lower > 0) - int(self.upper < 0)


@dataclass(frozen=True)
class Findings:
    """Results of a setting; curves are those of `deferlearn.evaluation.curves`."""

    setting: Setting
    curves: dict[str, Any]
    n_cases: int
    seconds: float = field(default=0.0, compare=False)

    def error(self, who: str, budget: float) -> Estimate:
        """Error of one of the four."""
        return _at(self.curves[who], budget)

    def difference(self, who: str, other: str, budget: float) -> Estimate:
        """Paired difference of two errors, split by split."""
        return _at(self.curves[who].difference(self.curves[other]), budget)


def _nodules(seed: int, **options: Any) -> list[Any]:
    """Four data sets: in each of them another reader is the human. The seed is not used."""
    from deferlearn.datasets import load_lidc

    return [load_lidc(reader=reader, **options) for reader in range(4)]


def _digits(seed: int) -> list[Any]:
    from deferlearn.datasets import load_digits_parity

    return [load_digits_parity(random_state=seed)]


SETTINGS = (
    Setting(
        name="nodules",
        title="Lung nodules, real radiologists",
        story="Is a nodule malignant? One of four radiologists is the human, the majority of the other "
        "three is the truth; the machine sees the outlines they drew. Mean over the four.",
        load=partial(_nodules, labels="majority"),
    ),
    Setting(
        name="nodules_decided",
        title="The same, undecided ratings left out",
        story="Nodules that neither the human nor the median of the others rates 'indeterminate'.",
        load=partial(_nodules, labels="decided", drop_undecided=True),
    ),
    Setting(
        name="digits",
        title="Even or odd digits, SIMULATED expert",
        story="Real images; the simulated expert errs with probability 0.02 on digits drawn with much "
        "ink, and 0.3 on the others.",
        load=_digits,
        simulated=True,
        policy="mlp",
        n_splits=5,
    ),
)


def study(setting: Setting, seed: int, n_jobs: int | None) -> Findings:
    """Measure all four on the same splits."""
    # Imported here because `--help` does not need them, and must not wait for them.
    import numpy as np
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from deferlearn import AssistedSVC
    from deferlearn.evaluation import AutomationCurve, automation_curve
    from deferlearn.teams import FullAutomation, NoAutomation, UncertaintyTriage

    start = perf_counter()
    sets = setting.load(seed)
    splits = shared_splits([data.groups for data in sets], setting.n_splits, seed)
    # The batch rule needs no threshold: cv=None.
    options: dict[str, Any] = {"alpha": ALPHA, "cv": None, "random_state": seed}
    teams: dict[str, Any] = {
        MACHINE: FullAutomation(alpha=ALPHA, cv=None),
        HUMAN: NoAutomation(),
        TEAM: AssistedSVC(submodularity_ratio=RATIO, policy=setting.policy, **options),
        TRIAGE: UncertaintyTriage(**options),
    }
    runs = [
        automation_curve(
            {who: make_pipeline(StandardScaler(), team) for who, team in teams.items()},
            data.data,
            data.target,
            human_labels=data.human_labels,
            budgets=BUDGETS,
            cv=own,
            metrics="error",
            n_jobs=n_jobs,
        )
        for data, own in zip(sets, splits, strict=True)
    ]
    # The mean over humans comes first, because their results on the same patients are not independent.
    curves = {
        who: AutomationCurve(
            np.array(BUDGETS),
            {"error": np.mean([run[who].values["error"] for run in runs], axis=0)},
            np.mean([run[who].deferred for run in runs], axis=0),
        )
        for who in EVERYONE
    }
    n_cases = round(np.mean([len(data.target) for data in sets]))
    return Findings(setting, curves, n_cases, perf_counter() - start)


def shared_splits(
    groups: list[NDArray[Any]], n_splits: int, seed: int
) -> list[list[tuple[Index, Index]]]:
    """The same random splits of the groups for each data set: a patient is always on one side."""
    import numpy as np
    from sklearn.model_selection import GroupShuffleSplit

    names = np.unique(np.concatenate(groups))
    splitter = GroupShuffleSplit(n_splits, test_size=TEST_SIZE, random_state=seed)
    tests = [names[test] for _, test in splitter.split(names, groups=names)]
    return [
        [
            (np.flatnonzero(~np.isin(own, test)), np.flatnonzero(np.isin(own, test)))
            for test in tests
        ]
        for own in groups
    ]


def compile_engine() -> None:
    """Fit a few samples, so that compilation is not part of the measured time."""
    import numpy as np

    from deferlearn import AssistedSVC

    X = np.array([[0.0], [1.0], [2.0], [3.0], [0.5], [2.5]])
    team = AssistedSVC(cv=None, budget=2, submodularity_ratio=RATIO)
    team.fit(X, [0, 0, 1, 1, 1, 0], human_labels=[0, 0, 1, 1, 1, 1])


def verdict(findings: Findings) -> str:
    """What the intervals say about the team at each budget."""
    return " ".join(_sentence(findings, budget) for budget in SHOWN)


def _sentence(findings: Findings, budget: float) -> str:
    machine = findings.difference(TEAM, MACHINE, budget)
    triage = findings.difference(TEAM, TRIAGE, budget)
    size = f"{abs(machine.mean):.3f}"
    first = {
        -1: f"the team errs {size} less than the machine alone: assistance pays",
        0: "the team does not clearly differ from the machine alone",
        1: f"the team errs {size} more than the machine alone: let the machine answer",
    }[machine.sign]
    second = {
        -1: "It also errs less than uncertainty triage.",
        0: "It does not clearly differ from uncertainty triage.",
        1: "Uncertainty triage errs less.",
    }[triage.sign]
    return f"At a budget of {budget:.0%}, {first}. {second}"


def _at(curve: Any, budget: float) -> Estimate:
    place = BUDGETS.index(budget)
    return Estimate(
        *(float(part["error"][place]) for part in (curve.mean, curve.lower, curve.upper))
    )
