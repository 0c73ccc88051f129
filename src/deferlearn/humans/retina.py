"""Parameters of the doctors in the paper's experiments on retina images."""

from __future__ import annotations

Rows = tuple[tuple[float, ...], ...]

# Row: the true grade; column: the grade answered. "paper" is the appendix, "code" the authors' own
# program; they differ in one row each.
MESSIDOR_PAPER: Rows = ((3, 3, 1, 1), (2, 3, 2, 1), (0.5, 0.5, 5, 4), (0.1, 0.1, 4, 6))
MESSIDOR_CODE: Rows = ((3, 3, 1, 1), (3, 2, 2, 1), (0.5, 0.5, 5, 4), (0.1, 0.1, 4, 6))
STARE_PAPER: Rows = (
    (3, 3, 2, 1, 1),
    (2, 7, 0.5, 0.5, 0.1),
    (0.1, 0.1, 4, 3, 2),
    (1, 2, 3, 3, 1),
    (0.1, 0.1, 5, 5, 5),
)
STARE_CODE: Rows = (
    (3, 3, 2, 1, 1),
    (2, 7, 0.5, 0.5, 0.1),
    (0.1, 1, 4, 3, 2),
    (1, 2, 3, 3, 1),
    (0.1, 0.1, 5, 5, 5),
)
APTOS_PAPER: Rows = (
    (4, 2, 1, 1, 1),
    (4, 1, 1, 0.5, 0.5),
    (0.1, 0.1, 5, 4, 4),
    (0.1, 0.1, 4, 5, 4),
    (0.1, 0.1, 4, 4, 5),
)
APTOS_CODE: Rows = (
    (4, 2, 1, 1, 1),
    (4, 4, 1, 0.5, 0.5),
    (0.1, 0.1, 5, 4, 4),
    (0.1, 0.1, 4, 5, 4),
    (0.1, 0.1, 4, 4, 5),
)
# Score h of each grade answered. The paper says only that they lie in [-1, 1].
MESSIDOR_SCORES = (-1.0, -0.5, 0.5, 1.0)
STARE_SCORES = (-1.0, -0.3, 0.3, 0.6, 1.0)
APTOS_SCORES = (-1.0, -0.5, 0.3, 0.6, 1.0)
# Stare's grades are stored as fifths; the others count from 0.
STARE_GRADES = (0.2, 0.4, 0.6, 0.8, 1.0)
