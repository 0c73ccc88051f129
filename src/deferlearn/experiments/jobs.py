"""A job: the smallest piece of an experiment, which is run once and whose rows are kept."""

import hashlib
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from time import perf_counter, process_time
from typing import Any

from threadpoolctl import threadpool_limits

Row = dict[str, Any]
Work = Callable[[dict[str, Any]], list[Row]]

# Change it if rows of the same parameters get another meaning: then all are computed again.
FORMAT = 2


@dataclass(frozen=True)
class Job:
    """What to compute: an experiment and its parameters, all plain values.

    Attributes
    ----------
    experiment : str
        Name of the experiment.
    parameters : dict
        Numbers, strings and lists of them; they decide the rows, except for the seconds.

    Examples
    --------
    >>> from deferlearn.experiments.jobs import Job
    >>> Job("fig4", {"seed": 1}).key == Job("fig4", {"seed": 2}).key
    False
    """

    experiment: str
    parameters: dict[str, Any]

    @property
    def key(self) -> str:
        """Name of the job's file, from its parameters and the version of the package."""
        said = json.dumps(
            [FORMAT, version("deferlearn"), self.experiment, self.parameters], sort_keys=True
        )
        return f"{self.experiment}-{hashlib.sha256(said.encode()).hexdigest()[:20]}"

    def run(self, work: Work) -> list[Row]:
        """The rows of the job, each with the parameters, the versions and the machine."""
        start, start_cpu = perf_counter(), process_time()
        # One thread: sums in another order would change the last digits with the number of cores.
        with threadpool_limits(limits=1):
            rows = work(self.parameters)
        common = {
            "experiment": self.experiment,
            "job": self.key,
            **{k: v for k, v in self.parameters.items() if not isinstance(v, list | tuple)},
        }
        ends = {
            "job_seconds": perf_counter() - start,
            # The time that the job would take with a processor of its own.
            "job_cpu_seconds": process_time() - start_cpu,
            **surroundings(),
        }
        return [{**common, **row, **ends} for row in rows]


@cache
def surroundings() -> Row:
    """Versions and machine, which every row has.

    Examples
    --------
    >>> from deferlearn.experiments.jobs import surroundings
    >>> sorted(surroundings())[:3]
    ['cores', 'machine', 'version_deferlearn']
    """
    packages = ("deferlearn", "numpy", "scipy", "scikit-learn", "numba")
    versions = {f"version_{name.replace('-', '_')}": version(name) for name in packages}
    return {
        **versions,
        "version_python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
        "cores": os.cpu_count() or 1,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"
