"""From classes to what machines should say, and from decision values to answers.

numpy alone, since stored models decide by it.
"""

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array


def right_votes(codes: NDArray[np.integer], n_classes: int, graded: bool) -> Array:
    """What each machine should say of samples: -1 or +1.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        The places of the classes of samples.
    n_classes : int
        Number of classes.
    graded : bool
        Whether there is a machine per step from a grade to the next, and not one per class.

    Returns
    -------
    votes : ndarray of shape (n_machines, n_samples)
    """
    places = np.arange(n_classes)[:, None]
    return np.where(codes >= places[1:] if graded else codes == places, 1.0, -1.0)


def answers_by_votes(decision: Array, n_classes: int) -> NDArray[np.int64]:
    """The places of answers: of one machine, of one per class, or of one per step of a grade.

    Parameters
    ----------
    decision : ndarray of shape (n_samples,) or (n_samples, n_machines)
        Decision values.
    n_classes : int
        Number of classes.

    Returns
    -------
    codes : ndarray of int of shape (n_samples,)
    """
    if decision.ndim == 1:
        return (decision > 0).astype(np.int64)
    if decision.shape[1] == n_classes:
        return np.asarray(decision.argmax(axis=1))
    # Where a machine contradicts those below it, as many count as say yes.
    return np.asarray((decision > 0).sum(axis=1))
