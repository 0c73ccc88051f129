"""What users do with their tables, on a table of sleep: fit on some nights, report on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deferlearn.cli._study import ALPHA, shared_splits

if TYPE_CHECKING:
    from deferlearn.report import CaseReport

# Names of columns.
TRUTH, HUMAN, NIGHT, EPOCH, SLEEPER = "truth", "expert", "night", "epoch", "sleeper"
# What the network says of the epochs around the one to be judged.
AROUND = ("2 epochs before", "1 epoch before", "this epoch", "1 epoch after", "2 epochs after")
SLEEPERS = {"dodh": "healthy", "dodo": "with apnoea"}
EXPERT, NETWORK = 2, "Tsinalis"
# Epochs of one night are alike: some of each say as much as all.
EPOCHS_PER_NIGHT = 24
# Fits on more cases would take most of the demo's time.
REFIT_CASES = 300
BUDGET = 0.2
TITLE = "A model that finds REM sleep, and its report"
SOURCE = "Epochs of sleep: is it REM?"
NOTES = (
    "A case is an epoch of 30 seconds. The machine sees how a published network (Tsinalis, 2016) stages it "
    "and the epochs around it. The truth is the majority of four experts, and the human is a fifth one.",
    "Expert and network were chosen to show a case in which asking pays. The demo's tables show others.",
    "Data: Dreem Open Datasets (MIT licence). deferlearn.datasets.load_sleep().DESCR describes how the "
    "table was made, and what to cite.",
)


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

    data = load_sleep(expert=EXPERT)
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
        EPOCH: [
            f"night {night}, epoch {epoch}"
            for night, epoch in zip(data.groups[rows], data.epochs[rows], strict=True)
        ],
        NIGHT: data.groups[rows],
        SLEEPER: np.array([SLEEPERS[name] for name in data.sets[rows]]),
        **{name: staged[:, place] for place, name in enumerate(AROUND)},
        TRUTH: names[np.int64(data.target[rows] > 0)],
        HUMAN: names[np.int64(data.human_labels[rows] > 0)],
    }


def measured_report(seed: int, n_jobs: int | None, command: str) -> CaseReport:
    """Fit a model on the epochs of some nights, and evaluate it on those of the others.

    Parameters
    ----------
    seed : int
        Random seed of the split, of the model and of the report.
    n_jobs : int or None
        Number of fits that run at the same time.
    command : str
        The command that the report names to repeat it.

    Returns
    -------
    CaseReport
    """
    import numpy as np

    from deferlearn.report import case_report, select_report_cases
    from deferlearn.tables import fit_table, select_cases

    table = sleep_table(seed)
    ((train, test),) = shared_splits([table[NIGHT]], 1, seed)[0]

    def part(rows: Any) -> dict[str, Any]:
        return {name: np.asarray(column)[rows] for name, column in table.items()}

    known = select_cases(part(train), TRUTH, humans=[HUMAN], identifier=EPOCH, group=NIGHT)
    model = fit_table(known, budget=BUDGET, alpha=ALPHA, seed=seed, drop=[SLEEPER])
    return case_report(
        model,
        select_report_cases(part(test), model, subgroup=SLEEPER),
        quick=True,
        refit_cases=REFIT_CASES,
        seed=seed,
        n_jobs=n_jobs,
        version="demo",
        notes=NOTES,
        provenance={"command": command, "source": SOURCE},
    )
