"""Parameters of the doctors in the paper's experiments on retina images."""

from dataclasses import dataclass

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Doctors:
    """What the doctors of one experiment do.

    Attributes
    ----------
    paper, code : tuple of tuples
        Dirichlet parameters by the paper's appendix and by the authors' program, which differ in one
        row. Row: the true grade; column: the grade answered.
    scores : tuple
        Score h of each grade answered. The paper says only that scores lie in [-1, 1].
    grades : tuple or None
        Values that stand for the grades in the data; with None they are 0, 1, 2, ...
    """

    paper: Rows
    code: Rows
    scores: tuple[float, ...]
    grades: tuple[float, ...] | None = None

    def parameters(self, source: str) -> Rows:
        """Parameters by the "paper" or by the "code"."""
        if source not in ("paper", "code"):
            raise ValueError(f"source={source!r} is not known; use 'paper' or 'code'")
        return self.paper if source == "paper" else self.code


def _with_row(rows: Rows, place: int, row: tuple[float, ...]) -> Rows:
    return (*rows[:place], row, *rows[place + 1 :])


_MESSIDOR: Rows = ((3, 3, 1, 1), (2, 3, 2, 1), (0.5, 0.5, 5, 4), (0.1, 0.1, 4, 6))
_STARE: Rows = (
    (3, 3, 2, 1, 1),
    (2, 7, 0.5, 0.5, 0.1),
    (0.1, 0.1, 4, 3, 2),
    (1, 2, 3, 3, 1),
    (0.1, 0.1, 5, 5, 5),
)
_APTOS: Rows = (
    (4, 2, 1, 1, 1),
    (4, 1, 1, 0.5, 0.5),
    (0.1, 0.1, 5, 4, 4),
    (0.1, 0.1, 4, 5, 4),
    (0.1, 0.1, 4, 4, 5),
)

MESSIDOR = Doctors(_MESSIDOR, _with_row(_MESSIDOR, 1, (3, 2, 2, 1)), (-1.0, -0.5, 0.5, 1.0))
STARE = Doctors(
    _STARE,
    _with_row(_STARE, 2, (0.1, 1, 4, 3, 2)),
    (-1.0, -0.3, 0.3, 0.6, 1.0),
    grades=(0.2, 0.4, 0.6, 0.8, 1.0),
)
APTOS = Doctors(_APTOS, _with_row(_APTOS, 1, (4, 4, 1, 0.5, 0.5)), (-1.0, -0.5, 0.3, 0.6, 1.0))
