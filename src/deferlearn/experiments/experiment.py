"""What an experiment consists of, and the jobs that it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments.config import Config
from deferlearn.experiments.jobs import Job, Work

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One result of the paper: what to run, how to put it into tables, how to draw it.

    Attributes
    ----------
    name : str
        Its id, such as "fig3".
    title : str
        What it shows, in one line.
    jobs : callable
        Config -> list of Job.
    work : callable
        Parameters of a job -> its rows.
    tables : callable
        All rows -> tables by name; the name "" is the main one.
    draw : callable
        All rows and the Config -> matplotlib Figure.
    cost : float
        Rough seconds per job under the protocol "repeated", to estimate the remaining time.
    alone : bool, default=False
        Whether its jobs must run one at a time, because they measure time.
    """

    name: str
    title: str
    jobs: Callable[[Config], list[Job]]
    work: Work
    tables: Callable[[pd.DataFrame], Tables]
    draw: Callable[[pd.DataFrame, Config], Figure]
    cost: float
    alone: bool = False

    @classmethod
    def of(cls, module: Any) -> Experiment:
        """The experiment of a module that has a function for each step, a TITLE and a COST."""
        steps = {step: getattr(module, step) for step in ("jobs", "work", "tables", "draw")}
        return cls(
            name=module.__name__.rpartition(".")[2],
            title=module.TITLE,
            cost=module.COST,
            alone=getattr(module, "ALONE", False),
            **steps,
        )


def jobs_of(name: str, axes: Mapping[str, Iterable[Any]], **common: Any) -> list[Job]:
    """One job for every combination of the values on the axes, with the common parameters.

    Examples
    --------
    >>> from deferlearn.experiments.experiment import jobs_of
    >>> [job.parameters for job in jobs_of("toy", {"a": [1, 2], "seed": [0]}, n=5)]
    [{'a': 1, 'seed': 0, 'n': 5}, {'a': 2, 'seed': 0, 'n': 5}]
    """
    combinations = product(*axes.values())
    return [Job(name, dict(zip(axes, values, strict=True)) | common) for values in combinations]


def selection_parameters(config: Config) -> dict[str, Any]:
    """The settings that decide how samples are selected, for the parameters of a job."""
    return {
        "protocol": config.protocol,
        "submodularity_ratio": config.submodularity_ratio,
        "delta": config.delta,
        "epsilon": config.epsilon,
    }
