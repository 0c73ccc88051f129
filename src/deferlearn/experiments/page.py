"""The results page: every claim of the paper with our numbers, and every table, in Markdown."""

import math
import os
from pathlib import Path

import pandas as pd

from deferlearn._utils.atomic import write_atomically
from deferlearn.experiments import bounds, fig1, fig5, runtime
from deferlearn.experiments.claims import judge_claims
from deferlearn.experiments.config import FEWEST_SPLITS, Config
from deferlearn.experiments.data import TEST_SHARE
from deferlearn.experiments.pages import fill_template
from deferlearn.experiments.recipe import agreement
from deferlearn.experiments.reproduce import EXPERIMENTS
from deferlearn.experiments.selecting import ALGORITHMS

PAGE = "results.md"


def write_page(out: str | os.PathLike[str], config: Config) -> Path:
    """Write the page about all experiments whose rows are in the folder, with these settings.

    Parameters
    ----------
    out : path-like
        The folder given to `reproduce`.
    config : Config
        The settings of the experiments.

    Returns
    -------
    path : Path
        The page.
    """
    folder = Path(out) / config.protocol
    found = {}
    for name, experiment in EXPERIMENTS.items():
        table = folder / f"{name}.parquet"
        if table.exists():
            rows = pd.read_parquet(table)
            # A table that was made with other settings does not belong on this page.
            if list(rows["job"].unique()) == [job.key for job in experiment.jobs(config)]:
                found[name] = rows
    if not found:
        raise FileNotFoundError(f"{folder} has no table of these settings; run `reproduce` first")
    path = folder / PAGE
    write_atomically(path, render(found, config).encode())
    return path


def render(found: dict[str, pd.DataFrame], config: Config) -> str:
    """The page's text.

    Parameters
    ----------
    found : dict of str to DataFrame
        Rows by experiment.
    config : Config
        The settings of the experiments.

    Returns
    -------
    text : str
    """
    tables = {name: EXPERIMENTS[name].tables(rows) for name, rows in found.items()}
    claims = [claim for name in found for claim in judge_claims(name, tables[name], config)]
    packages = [name for name in next(iter(found.values())) if name.startswith("version_")]
    wanted = [*packages, "machine", "cores", "job_cpu_seconds"]
    jobs = pd.concat([rows.groupby("job", sort=False)[wanted].first() for rows in found.values()])
    # If jobs were run on several machines, all values are shown.
    values = {name: " and ".join(map(str, jobs[name].unique())) for name in wanted}
    return fill_template(
        PAGE,
        config=config,
        fig1=fig1,
        fig5=fig5,
        runtime=runtime,
        bounds=bounds,
        names=list(found),
        experiments={name: EXPERIMENTS[name] for name in found},
        claims=[(c.experiment, c.text, f"**{c.verdict}**", c.numbers) for c in claims],
        tables={
            name: {what: compact(table) for what, table in own.items()}
            for name, own in tables.items()
        },
        command=lambda names: _command(names, config),
        numbers=lambda given: ", ".join(f"{number:g}" for number in given),
        fewest_splits=FEWEST_SPLITS,
        # The mean's variance is 1 / splits + n_test / n_train times that of one split, not 1 / splits.
        widening=math.sqrt(1 + config.splits * TEST_SHARE / (1 - TEST_SHARE)),
        versions=", ".join(
            f"{name.removeprefix('version_').replace('_', '-')} {values[name]}" for name in packages
        ),
        machines=values["machine"],
        cores=values["cores"],
        agreement=_agreement(tables.get("fig5", {}).get("points")),
        n_jobs=len(jobs),
        seconds=jobs["job_cpu_seconds"].sum(),
    )


def _agreement(points: pd.DataFrame | None) -> dict[str, str] | None:
    """How many points and picks agree with the published ones; None if there is nothing to compare."""
    if points is None:
        return None
    return {
        "greedy": agreement(points, ALGORITHMS, "same_point"),
        "uncertainty": agreement(points, ["uncertainty"], "same_point"),
        "predicted": agreement(points, ["predicted"], "same_point"),
        "picks": agreement(points, ["distorted"], "same_picks"),
    }


def compact(table: pd.DataFrame) -> pd.DataFrame:
    """A table for readers: "mean [low, high]" in one column, few digits."""
    shown: dict[str, list[str]] = {}
    for column in table.columns:
        if column.endswith(("_low", "_high")) and column.rsplit("_", 1)[0] in table.columns:
            continue
        shown[column] = [_cell(value) for value in table[column]]
        if f"{column}_low" in table.columns:
            ends = zip(table[f"{column}_low"], table[f"{column}_high"], strict=True)
            shown[column] = [
                mean if pd.isna(low) or low == high else f"{mean} [{_cell(low)}, {_cell(high)}]"
                for mean, (low, high) in zip(shown[column], ends, strict=True)
            ]
    return pd.DataFrame(shown)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _command(names: list[str], config: Config) -> str:
    """The command that makes these results."""
    what = "all" if names == list(EXPERIMENTS) else " ".join(names)
    options = "" if config.protocol == "repeated" else f" --protocol {config.protocol}"
    if config == Config.preset(config.protocol):
        pass
    elif config == Config.preset(config.protocol, quick=True):
        options += " --quick"
    elif config == Config.preset(config.protocol, splits=config.splits):
        options += f" --splits {config.splits}"
    else:
        options += " --config ..."
    return f"deferlearn reproduce {what}{options}"
