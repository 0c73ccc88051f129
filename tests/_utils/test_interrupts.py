"""A signal that is handled during a fit ends the fit, and never the process."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import walk_packages

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

import deferlearn
from deferlearn.objective import SVMObjective
from deferlearn.selection import distorted_greedy

FITS = """
import random, signal, time
import numpy as np
from deferlearn import AssistedSVC

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

luck = np.random.default_rng(0)
X = luck.normal(size=(200, 4))
X[:, 0] *= 1e6  # some paths are carried in pairs
y = np.where(X[:, 1] + luck.normal(size=200) > 0, 1, -1)
human = np.where(luck.random(200) < 0.1, -y, y)
kinds = [{}, {"kernel": "rbf"}, {"selection": "stochastic"}]
for kind in kinds:  # what is compiled or loaded once is there before the first signal
    AssistedSVC(cv=None, random_state=0, **kind).fit(X, y, human_labels=human)
signal.signal(signal.SIGALRM, stop)
stopped, end, draw = 0, time.monotonic() + 4.0, random.Random(0)
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.001, 0.05))
        AssistedSVC(cv=None, random_state=0, **draw.choice(kinds)).fit(X, y, human_labels=human)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Stop:
        stopped += 1
clf = AssistedSVC(cv=None, random_state=0).fit(X, y, human_labels=human)
print(stopped, int(clf.deferred_.sum()))
"""


def test_a_fit_can_be_interrupted_at_any_moment() -> None:
    ended = subprocess.run([sys.executable, "-c", FITS], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    stopped, deferred = map(int, ended.stdout.split())
    assert stopped > 10
    assert deferred == 40


def test_compiled_functions_return_numbers_to_python() -> None:
    """For an array or a named tuple numba runs code of Python, and does not notice an exception there."""
    luck = np.random.default_rng(0)
    X = luck.normal(size=(60, 3))
    y = np.where(X[:, 0] + luck.normal(size=60) > 0, 1, -1)
    objective = SVMObjective(X, y, alpha=0.5)
    objective.gain_bounds(range(60))
    objective.gains(range(60))
    distorted_greedy(objective, luck.random(60), 10, submodularity_ratio=0.01)
    seen = set()
    for module in walk_packages(deferlearn.__path__, "deferlearn."):
        for name, function in vars(sys.modules.get(module.name, object)).items():
            if (
                not isinstance(function, Dispatcher)
                or "no_cpython_wrapper" in function.targetoptions
            ):
                continue
            for overload in function.overloads.values():
                result = overload.signature.return_type
                named = isinstance(result, numba.types.BaseNamedTuple)
                parts = result.types if isinstance(result, numba.types.BaseTuple) else [result]
                plain = (numba.types.Number, numba.types.Boolean, numba.types.NoneType)
                assert not named, name
                assert all(isinstance(part, plain) for part in parts), name
                seen.add(name)
    assert {"advance", "crude", "measure", "removal_paths", "tally"} <= seen
