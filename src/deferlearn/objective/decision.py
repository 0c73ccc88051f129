r"""Whose score ``scale * gain - cost`` is largest, where every sample is in the working set.

One compiled call: on a few hundred samples, what lies between the parts would cost more than they do.
"""

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn.objective.crude import crude
from deferlearn.objective.path import DONE
from deferlearn.objective.removal import removal_paths
from deferlearn.objective.response import tighten

# Scores this close to the best, relative, may be ties for whoever asks: they are solved too.
CLOSE = 1e-8
# Exact solutions in one call; whoever asks can go on alone.
MOST_SOLVED = 64


@compiled
def decide(
    ks, scale, cost, tol, mu_new, accuracy, most_steps,
    Q, buffers, nobody, response, samples, state, numbers,
):  # fmt: skip
    """Bounds of the gains of ks that tell the best score, exact ones where it matters.

    Returns whether that succeeded, lower and upper bounds, how many paths were followed with how many
    steps, and the place in ks and the end of the best candidate's path.
    """
    y, _, upper, root, _, _, offset, _ = samples
    a, a_lo, G, status, _, _, _ = state
    members, R, p = buffers
    beta, mu, _, quadratic, _, value, _, _, slack = numbers
    n = len(ks)
    lower, higher = crude(ks, mu_new, samples, state, numbers)
    floor = np.empty(n)
    solved = np.zeros(n, dtype=np.bool_)
    best, best_at, at = -np.inf, -1, -1
    n_solved, n_steps = 0, 0
    # Nobody's end yet, of the type that the compiler must know.
    end = removal_paths(
        Q, None, y, upper, root, offset, a, a_lo, G, beta, status, members, p, R, mu, quadratic,
        ks[:0], nobody, nobody, nobody, mu_new[:0], most_steps,
    )  # fmt: skip
    for c in range(n):
        lower[c] = max(lower[c] - slack, 0.0)
        higher[c] = min(higher[c] + slack, value)
    tightened = False
    for c in range(n):
        if at < 0 or scale * lower[c] - cost[c] > scale * lower[at] - cost[at]:
            at = c
    while n_solved < MOST_SOLVED:
        trial = removal_paths(
            Q, None, y, upper, root, offset, a, a_lo, G, beta, status, members, p, R, mu, quadratic,
            ks[at : at + 1], nobody, nobody, nobody, mu_new[at : at + 1], most_steps,
        )  # fmt: skip
        outcome, gain, steps, _, gap, short, _ = trial[0][0]
        n_steps += int(steps)
        n_solved += 1
        if outcome != DONE or gap + 2.0 * value * short > accuracy * mu_new[at]:
            return False, lower, higher, n_solved, n_steps, -1, end
        lower[at] = higher[at] = max(gain, 0.0)
        solved[at] = True
        if scale * lower[at] - cost[at] > best:
            best, best_at, end = scale * lower[at] - cost[at], at, trial
        # Whose score can still matter?
        goal = best - CLOSE * max(min(1.0, value), abs(best))
        if best <= 0.0:
            goal = max(goal, 0.0)
        elif tol > 0.0:
            goal = max(goal, best / (1.0 - tol))
        for c in range(n):
            floor[c] = (goal + cost[c]) / scale - slack
        if not tightened:
            tightened = True
            open_ = np.flatnonzero((higher >= floor) & ~solved)
            for i in range(len(open_)):
                if a[ks[open_[i]]] == 0.0:  # many share one path: not for this function
                    return False, lower, higher, n_solved, n_steps, -1, end
            if len(open_) > 0:
                bounds = tighten(
                    ks[open_], ks[open_], floor[open_], mu_new[open_],
                    response, samples, state, numbers,
                )  # fmt: skip
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
    return True, lower, higher, n_solved, n_steps, best_at, end
