"""From an experiment's name to its rows, tables and figure in a folder."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from deferlearn._utils.atomic import write_atomically
from deferlearn.experiments import bounds, fig1, fig2, fig3, fig4, fig5, fig6, runtime, style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import RETINA, published_run, retina
from deferlearn.experiments.experiment import Experiment
from deferlearn.experiments.runner import run_jobs
from deferlearn.experiments.store import write_table

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in map(Experiment.of, (fig1, fig2, fig3, fig4, fig5, fig6, runtime, bounds))
}


@dataclass(frozen=True)
class Outcome:
    """The results of one experiment.

    Attributes
    ----------
    name : str
        The experiment's id.
    rows : DataFrame
        One row per run.
    tables : dict of str to DataFrame
        Means with intervals (under the name ""), differences, and further tables.
    files : list of Path
        The files that were written.
    """

    name: str
    rows: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    files: list[Path]


def reproduce(
    name: str,
    config: Config | None = None,
    out: str | os.PathLike[str] = "results",
    *,
    n_jobs: int = 1,
    on_done: Callable[[int], Any] | None = None,
) -> Outcome:
    """Run one of the paper's experiments and write its rows, tables and figure.

    Jobs that a stopped run had finished are not computed again.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`: "fig1" to "fig6", "runtime", "bounds".
    config : Config, default=None
        Settings of the experiment; None means ``Config.preset("repeated")``.
    out : path-like, default="results"
        Folder, made if it does not exist. The files go to a subfolder named after the protocol.
    n_jobs : int, default=1
        Number of jobs that run at a time. Jobs that measure time always run one at a time.
    on_done : callable, default=None
        Called with the number of jobs that have become ready, see `run_jobs`.

    Returns
    -------
    outcome : Outcome

    Examples
    --------
    >>> import tempfile
    >>> from deferlearn.experiments import Config, reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = reproduce("fig1", Config.preset(splits=2), folder)
    ...     sorted(path.name for path in outcome.files)
    ['fig1.csv', 'fig1.parquet', 'fig1.pdf', 'fig1.png', 'fig1.svg']
    >>> int(outcome.rows["s"].max())
    20
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"no experiment is named {name!r}; there are {', '.join(EXPERIMENTS)}")
    config = Config.preset() if config is None else config
    experiment = EXPERIMENTS[name]
    folder = Path(out) / config.protocol
    rows = run_jobs(
        experiment.jobs(config),
        experiment.work,
        folder / "parts",
        n_jobs=1 if experiment.alone else n_jobs,
        on_done=on_done,
    )
    tables = experiment.tables(rows)
    files = [folder / f"{name}.parquet"]
    write_table(files[0], rows)
    for what, table in tables.items():
        files.append(folder / f"{name}{'_' + what if what else ''}.csv")
        write_table(files[-1], table)
    files += style.save(draw(experiment, rows, config), folder, name)
    return Outcome(name, rows, tables, files)


def draw(experiment: Experiment, rows: pd.DataFrame, config: Config) -> Any:
    """The experiment's figure, in the common style."""
    with style.look():
        return experiment.draw(rows, config)


def prepare(names: Sequence[str], config: Config, out: str | os.PathLike[str]) -> float:
    """Make the folder, fetch the data and store the settings, before any work is done.

    Parameters
    ----------
    names : sequence of str
        Experiments that will be run.
    config : Config
        Their settings.
    out : path-like
        As in `reproduce`.

    Returns
    -------
    cost : float
        Rough seconds that all jobs take on one core.
    """
    folder = Path(out) / config.protocol
    folder.mkdir(parents=True, exist_ok=True)
    jobs = {name: EXPERIMENTS[name].jobs(config) for name in names}
    asked = {job.parameters.get("dataset") for todo in jobs.values() for job in todo}
    for dataset in RETINA:
        if dataset in asked:
            retina(dataset)
            if config.protocol == "published":
                published_run(dataset)
    content = config.model_dump_json(indent=2) + "\n"
    write_atomically(folder / "config.json", content.encode())
    return sum(EXPERIMENTS[name].cost * len(todo) for name, todo in jobs.items())
