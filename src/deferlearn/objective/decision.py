r"""Which candidate has the largest score ``scale * gain - cost``, where every sample is in the working set.

One compiled call: on a few hundred samples, what lies between the parts would cost more than they do.
"""

from typing import NamedTuple

import numpy as np

from deferlearn._utils.compiling import compiled, internal
from deferlearn._utils.types import Array
from deferlearn.objective.arrays import Candidates, Ends
from deferlearn.objective.crude import crude
from deferlearn.objective.path import DONE
from deferlearn.objective.removal import removal_paths
from deferlearn.objective.tightening import tighten

# Scores this close to the best, relative, may be ties for the caller: they are solved too.
CLOSE = 1e-8
# Exact solutions in one call; the caller can go on alone.
MOST_SOLVED = 64


class Decision(NamedTuple):
    """Bounds of gains that tell the best score, exact ones where it matters.

    ``end`` is the end of the path of the best candidate, which stands at place ``best`` of the candidates.
    """

    done: bool
    lower: Array
    upper: Array
    n_paths: int
    n_steps: int
    best: int
    end: Ends


@internal
def _alone(candidates, at, count):
    """One of the candidates, or with a count of zero none."""
    rows = slice(at, at + count)
    return Candidates(
        candidates.ks[rows], candidates.local[rows], candidates.mu[rows], candidates.outside
    )


@compiled
def decide(candidates, score, accuracy, most_steps, start, near, snapshot):
    """Find the candidate with the largest score, if that takes few paths."""
    ks, mu_new = candidates.ks, candidates.mu
    scale, cost = score.scale, score.cost
    a, value, slack = snapshot.point.a, snapshot.numbers.value, snapshot.numbers.slack
    n = len(ks)
    lower, higher = crude(ks, mu_new, snapshot)
    floor = np.empty(n)
    solved = np.zeros(n, dtype=np.bool_)
    best, best_at, at = -np.inf, -1, -1
    n_solved, n_steps = 0, 0
    # The end of no path yet, of the type that the compiler must know.
    end = removal_paths(start, None, _alone(candidates, 0, 0), most_steps)
    for c in range(n):
        lower[c] = max(lower[c] - slack, 0.0)
        higher[c] = min(higher[c] + slack, value)
    tightened = False
    for c in range(n):
        if at < 0 or scale * lower[c] - cost[c] > scale * lower[at] - cost[at]:
            at = c
    while n_solved < MOST_SOLVED:
        trial = removal_paths(start, None, _alone(candidates, at, 1), most_steps)
        n_steps += trial.steps[0]
        n_solved += 1
        gap = trial.gap[0] + 2.0 * value * trial.short[0]
        if trial.outcome[0] != DONE or gap > accuracy * mu_new[at]:
            return Decision(False, lower, higher, n_solved, n_steps, -1, end)
        lower[at] = higher[at] = max(trial.gain[0], 0.0)
        solved[at] = True
        if scale * lower[at] - cost[at] > best:
            best, best_at, end = scale * lower[at] - cost[at], at, trial
        # Which scores can still matter?
        goal = best - CLOSE * max(min(1.0, value), abs(best))
        if best <= 0.0:
            goal = max(goal, 0.0)
        elif score.tol > 0.0:
            goal = max(goal, best / (1.0 - score.tol))
        for c in range(n):
            floor[c] = (goal + cost[c]) / scale - slack
        if not tightened:
            tightened = True
            open_ = np.flatnonzero((higher >= floor) & ~solved)
            for i in range(len(open_)):
                if a[ks[open_[i]]] == 0.0:  # many share one path: not for this function
                    return Decision(False, lower, higher, n_solved, n_steps, -1, end)
            if len(open_) > 0:
                bounds = tighten(ks[open_], ks[open_], floor[open_], mu_new[open_], near, snapshot)
                for i in range(len(open_)):
                    c = open_[i]
                    higher[c] = min(higher[c], bounds[i] + slack)
                    lower[c] = min(lower[c], higher[c])
        at, most = -1, -np.inf
        for c in range(n):
            if not solved[c] and higher[c] >= floor[c] and scale * higher[c] - cost[c] > most:
                at, most = c, scale * higher[c] - cost[c]
        if at < 0:
            break
    return Decision(True, lower, higher, n_solved, n_steps, best_at, end)
