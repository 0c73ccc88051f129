"""What an experiment consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments.config import Config
from deferlearn.experiments.jobs import Job, Work

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True)
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
        A job's parameters -> its rows.
    tables : callable
        All rows -> tables by name; the name "" is the main one.
    draw : callable
        All rows and the Config -> matplotlib Figure.
    caption : callable
        Config -> what a reader of the figure must know besides, in a sentence or two.
    alone : bool
        Whether its jobs must not run side by side, because they measure time.
    cost : float
        Rough seconds a job under the protocol "repeated", for the estimate of the time left.
    """

    name: str
    title: str
    jobs: Callable[[Config], list[Job]]
    work: Work
    tables: Callable[[pd.DataFrame], Tables]
    draw: Callable[[pd.DataFrame, Config], Figure]
    caption: Callable[[Config], str]
    alone: bool = False
    cost: float = 1.0


def selection_parameters(config: Config) -> dict[str, Any]:
    """What decides how samples are selected, for a job's parameters."""
    return {
        "protocol": config.protocol,
        "submodularity_ratio": config.submodularity_ratio,
        "delta": config.delta,
        "epsilon": config.epsilon,
    }
