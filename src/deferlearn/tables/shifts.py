"""Whether the new cases of a table, taken together, are like the training cases, column by column.

Each new case may be usual by itself although something has happened to a column: it is newly empty, it has
one value only, its sign or its unit has changed. The shares of the new cases up to each value are compared
with those in training (the distance of Kolmogorov and Smirnov; of categories the largest difference of a
share). A column is named if the distance is at least `CLEAR` and larger than chance allows: of tables with
cases like those of training, at most a share `FALSE_ALARMS` gets any such note. This holds if the cases are
independent; a table with the cases of one day or one patient may differ from training for that reason.
"""

from itertools import combinations

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.tables.guard import Guard

# The share of tables like the training cases that get a note.
FALSE_ALARMS = 0.001
# Smaller differences are of no interest, however significant.
CLEAR = 0.2
# An explanation, such as another unit, must leave at most this part of the distance.
EXPLAINED = 0.4
# A factor between these is no change of unit.
SAME_UNIT = (0.8, 1.25)
# Cells of new cases that are kept to be compared; of larger tables it is a random sample of the rows.
MAX_CELLS = 1_000_000


class CaseSample:
    """Keeps a random sample of the rows that pass by, up to a number of cells.

    Parameters
    ----------
    max_cells : int, default=1000000
        The most cells that are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.shifts import CaseSample
    >>> sample = CaseSample(max_cells=6)
    >>> for _ in range(5):
    ...     sample.add(np.zeros((4, 2)))
    >>> sample.codes.shape
    (3, 2)
    """

    def __init__(self, max_cells: int = MAX_CELLS) -> None:
        self._max_cells = max_cells
        self._rng = np.random.default_rng(0)
        self._keys = np.empty(0)
        self.codes = np.empty((0, 0))

    def add(self, codes: Array) -> None:
        """Take more rows into account."""
        most = max(self._max_cells // max(codes.shape[1], 1), 1)
        keys = self._rng.random(len(codes))
        if len(self._keys) == most:
            better = keys < self._keys.max()
            keys, codes = keys[better], codes[better]
        rows = codes if not len(self._keys) else np.concatenate([self.codes, codes])
        keys = np.concatenate([self._keys, keys])
        if len(keys) > most:
            first = np.argpartition(keys, most - 1)[:most]
            keys, rows = keys[first], rows[first]
        self._keys, self.codes = keys, rows


def shift_notes(guard: Guard, codes: Array) -> list[str]:
    """What is different about new cases as a whole, one sentence per column.

    Parameters
    ----------
    guard : Guard
        What the training cases looked like.
    codes : ndarray of shape (n_cases, n_columns)
        New cases.

    Returns
    -------
    notes : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.guard import learn_guard
    >>> from deferlearn.tables.shifts import shift_notes
    >>> cases = np.random.default_rng(0).lognormal(size=(500, 1))
    >>> guard = learn_guard(["dose"], {}, cases)
    >>> shift_notes(guard, cases[:100] * 10)
    ["Column 'dose' looks as if its values were multiplied by about 10: its median is ..."]
    """
    notes: list[str] = []
    categories = guard.categories
    elsewhere: list[int] = []
    n_new, n_columns = codes.shape
    if not n_new or not guard.rows:
        return []
    tests = 3 * n_columns  # gaps, a single value, the distribution
    for place in range(n_columns):
        values = codes[~np.isnan(codes[:, place]), place]
        gap = 1 - len(values) / n_new
        if gap - guard.gaps[place] > _least_distance(guard.rows, n_new, tests):
            notes.append(
                f"Column {guard.columns[place]!r} is empty in {gap:.0%} of the cases, and was in "
                f"{guard.gaps[place]:.0%} of the training cases."
            )
        known = round(guard.rows * (1 - guard.gaps[place]))
        if not len(values) or not known:
            continue
        name, marks = guard.columns[place], guard.marks[place]
        chance = guard.commonest[place] ** (len(values) - 1)
        if len(values) > 1 and np.all(values == values[0]) and chance < FALSE_ALARMS / tests:
            value = categories[name][int(values[0])] if name in categories else f"{values[0]:.6g}"
            if (
                values[0] >= 0 or name not in categories
            ):  # unknown categories have notes of their own
                notes.append(
                    f"Column {name!r} is {value} in every case; in training it had many values."
                )
            continue
        least = _least_distance(known, len(values), tests)
        if name in categories:
            notes += _category_note(guard, place, values, least)
        elif _distance(values, marks, guard.shares[place]) > least:
            elsewhere.append(place)
    return notes + _explained(guard, codes, elsewhere)


def _least_distance(known: int, new: int, tests: int) -> float:
    """A distance that chance exceeds too rarely, and that matters."""
    by_chance = np.sqrt(np.log(2 * tests / FALSE_ALARMS) / 2 * (1 / known + 1 / new))
    return max(float(by_chance), CLEAR)


def _distance(values: Array, marks: Array, shares: Array) -> float:
    """The largest difference of the shares up to a mark."""
    found = np.searchsorted(np.sort(values), marks, side="right") / len(values)
    return float(np.abs(found - shares).max())


def column_distance(guard: Guard, place: int, codes: Array) -> float:
    """How far the new values of a column are from those in training.

    Parameters
    ----------
    guard : Guard
        What the training cases looked like.
    place : int
        Position of the column.
    codes : ndarray of shape (n_cases,)
        The column of new cases, NaN for gaps.

    Returns
    -------
    distance : float
        Of numbers, the largest difference of the shares up to a value (Kolmogorov and Smirnov); of
        categories, the largest difference of a share, where all unknown ones are one category; of gaps, the
        difference of their shares if it is the largest.
    """
    missing = np.isnan(codes)
    gap = abs(float(missing.mean()) - float(guard.gaps[place]))
    values = codes[~missing]
    if not len(values) or not len(guard.marks[place]):
        return gap
    if guard.columns[place] not in guard.categories:
        return max(gap, _distance(values, guard.marks[place], guard.shares[place]))
    found, shares = _category_shares(guard, place, values)
    return max(gap, float(np.mean(values < 0)), float(np.abs(found - shares).max()))


def _category_shares(guard: Guard, place: int, codes: Array) -> tuple[Array, Array]:
    """The share of each category of a column, in new cases and in training."""
    categories = guard.categories[guard.columns[place]]
    shares = np.zeros(len(categories))
    shares[guard.marks[place].astype(int)] = guard.shares[place]
    found = np.array([np.mean(codes == code) for code in range(len(categories))])
    return found, shares


def _category_note(guard: Guard, place: int, codes: Array, least: float) -> list[str]:
    categories = guard.categories[guard.columns[place]]
    found, shares = _category_shares(guard, place, codes)
    widest = int(np.abs(found - shares).argmax())
    if abs(found[widest] - shares[widest]) <= least:
        return []
    return [
        f"Column {guard.columns[place]!r} is {categories[widest]!r} in {found[widest]:.0%} of the cases, "
        f"and was in {shares[widest]:.0%} of the training cases."
    ]


def _explained(guard: Guard, codes: Array, places: list[int]) -> list[str]:
    """Sentences about columns of numbers that are elsewhere, with the likely cause if there is one."""
    values = {place: codes[~np.isnan(codes[:, place]), place] for place in places}

    def left(place: int, changed: Array) -> float:
        """The part of the distance that is left if the values of a column are changed."""
        own = _distance(values[place], guard.marks[place], guard.shares[place])
        return _distance(changed, guard.marks[place], guard.shares[place]) / own

    notes: dict[int, str] = {}
    for one, other in combinations(places[:20], 2):
        if max(left(one, values[other]), left(other, values[one])) < EXPLAINED:
            notes[one] = (
                f"Columns {guard.columns[one]!r} and {guard.columns[other]!r} look as if they were "
                "swapped."
            )
            notes[other] = notes[one]
    for place in places:
        name, own = guard.columns[place], values[place]
        usual, now = _median_of(guard, place), float(np.median(own))
        size = _median_of(guard, place, sizes=True)
        factor = float(np.median(np.abs(own))) / size if size else 0.0
        described = f"its median is {now:.6g}, and was {usual:.6g} in training"
        if place in notes:
            continue
        if left(place, -own) < EXPLAINED:
            notes[place] = f"Column {name!r} looks as if its sign were changed: {described}."
        elif (
            factor > 0
            and not SAME_UNIT[0] < factor < SAME_UNIT[1]
            and left(place, own / factor) < EXPLAINED
        ):
            notes[place] = (
                f"Column {name!r} looks as if its values were multiplied by about {_plain(factor)}: "
                f"{described}. You may want to check its unit."
            )
        else:
            notes[place] = f"Column {name!r} is unlike training: {described}."
    return list(dict.fromkeys(notes[place] for place in places))


def _plain(factor: float) -> str:
    """A factor in words, as a power of ten if it is close to one: medians of samples are not exact."""
    power = float(10.0 ** np.round(np.log10(factor)))
    factor = power if SAME_UNIT[0] < factor / power < SAME_UNIT[1] else factor
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


def _median_of(guard: Guard, place: int, sizes: bool = False) -> float:
    """The median of a column in training, or that of its sizes without the sign."""
    marks = np.abs(guard.marks[place]) if sizes else guard.marks[place]
    order = np.argsort(marks, kind="stable")
    up_to = np.cumsum(np.diff(guard.shares[place], prepend=0.0)[order])
    middle = min(int(np.searchsorted(up_to, 0.5)), len(marks) - 1)
    return float(marks[order][middle])
