"""Columns of a table that are probably not features: answers of a forgotten reader, or the truth."""

import re
from collections.abc import Collection

import numpy as np

from deferlearn._utils.types import Labels
from deferlearn._utils.words import listed
from deferlearn.tables.cases import Cases
from deferlearn.tables.cells import label_text
from deferlearn.tables.errors import TableError

# Classes like these are common values of features as well, such as 0 and 1.
COMMON = re.compile(r"-?\d+(\.\d+)?|true|false|yes|no|y|n", re.IGNORECASE)
# A feature with such values is taken for a reader if it agrees with the truth this much beyond chance.
AGREEMENT = 0.5
# Names of columns that say which cases belong together.
GROUP = re.compile(
    r"(?i:(patient|subject|person|participant|proband|client|customer|user|family|household)"
    r"[_ .\-]?(id|nr|no|number|name|code|key)?)"
)
# With more cases per value on average, it is a category rather than a name.
MOST_ALIKE = 20
# A column that tells this share of the truth by itself is suspicious.
TELLS = 0.98


def check_forgotten_readers(cases: Cases, keep: Collection[str]) -> None:
    """Refuse columns that look like answers of a reader, and would become features.

    Parameters
    ----------
    cases : Cases
        The cases.
    keep : collection of str
        Columns that the user has said something about.

    Raises
    ------
    TableError
        If the values of a column are the classes. If these are numbers, or yes and no, as many features
        are, it must also agree with the truth.
    """
    found = [
        name
        for name in cases.features.column_names
        if name not in keep and _is_reader(_texts(cases, name), cases)
    ]
    if found:
        names = listed([repr(name) for name in found], most=5)
        options = " ".join(f"--human {_quoted(name)}" for name in found[:3])
        raise TableError(
            f"the values of {names} are the classes {listed([repr(c) for c in cases.classes], most=5)}: "
            f"is this what a reader answered? Then pass {options}. Otherwise pass --keep to use it as a "
            "feature, or --drop to leave it out"
        )


def telling_columns(cases: Cases, used: Collection[str]) -> list[str]:
    """Notes about features that tell the truth almost by themselves.

    Parameters
    ----------
    cases : Cases
        The cases.
    used : collection of str
        The columns that are features.

    Returns
    -------
    notes : list of str
    """
    notes = []
    for name in used:
        share = _told(_texts(cases, name), cases.truth)
        if share >= TELLS:
            notes.append(
                f"Column {name!r} by itself tells the truth in {share:.1%} of the cases. Is it known "
                "before the truth is? Otherwise leave it out (--drop), or name it as a reader (--human)."
            )
    return notes


def group_hints(cases: Cases) -> list[str]:
    """Notes about columns that seem to say which cases belong together, if no groups are given.

    Parameters
    ----------
    cases : Cases
        The cases.

    Returns
    -------
    notes : list of str
    """
    if cases.groups is not None:
        return []
    notes = []
    for name in cases.features.column_names:
        values = [value for value in _texts(cases, name).tolist() if value is not None]
        distinct = len(set(values))
        if GROUP.fullmatch(name) and len(values) / MOST_ALIKE < distinct < len(values):
            notes.append(
                f"Column {name!r} has {distinct} values in {len(values)} cases. If cases with the same "
                f"value belong together, pass --group {_quoted(name)}: otherwise the errors are too low."
            )
    return notes


def _texts(cases: Cases, name: str) -> Labels:
    return np.array(label_text(cases.features.column(name)).to_pylist(), dtype=object)


def _is_reader(values: Labels, cases: Cases) -> bool:
    given = np.array([value is not None for value in values])
    said, truth = values[given], cases.truth[given]
    distinct = set(said.tolist())
    if len(distinct) < 2 or not distinct <= set(cases.classes):
        return False
    if not all(COMMON.fullmatch(label) for label in cases.classes):
        return True
    chance = sum(np.mean(said == label) * np.mean(truth == label) for label in cases.classes)
    return bool(np.mean(said == truth) - chance >= AGREEMENT * (1 - chance))


def _told(values: Labels, truth: Labels) -> float:
    """The share of the truth that the values tell, if each stands for the class it occurs with most.

    Numbers with many values tell nothing in this sense.
    """
    codes = np.unique([str(value) for value in values], return_inverse=True)[1]
    classes, labels = np.unique(truth, return_inverse=True)
    if codes.max() + 1 > 2 * len(classes) or codes.max() == 0:
        return 0.0
    counts = np.zeros((codes.max() + 1, len(classes)))
    np.add.at(counts, (codes, labels), 1)
    told = float(counts.max(axis=1).sum() / len(truth))
    most = float(counts.sum(axis=0).max() / len(truth))
    # Where one class is nearly all there is, every column is right.
    return told if 1 - told < (1 - most) / 5 else 0.0


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name
