"""What humans know, as one loss per sample; and simulated experts.

A human gives a sample the score h, whose sign is the answer and whose size is the confidence. The
loss is the hinge loss ``[1 - y h]_+``, which the machine has too, so the two can be compared. A
human who gives labels only is taken to be sure (h = -1 or +1): a right answer has the loss 0, a wrong
one the loss 2.
"""

from deferlearn.humans.confused import ConfusedHuman
from deferlearn.humans.dirichlet import DirichletDraw, DirichletHuman
from deferlearn.humans.human import NoHumanWarning
from deferlearn.humans.losses import (
    labels_from_scores,
    loss_from_labels,
    loss_from_scores,
    majority_labels,
)
from deferlearn.humans.skilled import SkilledHuman
from deferlearn.humans.tables import answers_from_table, loss_from_table
from deferlearn.humans.uniform import UniformHuman

__all__ = [
    "ConfusedHuman",
    "DirichletDraw",
    "DirichletHuman",
    "NoHumanWarning",
    "SkilledHuman",
    "UniformHuman",
    "answers_from_table",
    "labels_from_scores",
    "loss_from_labels",
    "loss_from_scores",
    "loss_from_table",
    "majority_labels",
]
