"""The results page: every claim of the paper with our numbers, and every table, in Markdown."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pandas as pd

from deferlearn._utils.atomic import write_atomically
from deferlearn.experiments.claims import judge_claims
from deferlearn.experiments.config import FEWEST_SPLITS, Config
from deferlearn.experiments.data import TEST_SHARE
from deferlearn.experiments.reproduce import EXPERIMENTS
from deferlearn.experiments.verdicts import MEANING, MEANING_OF_ONE_SPLIT, Claim

PAGE = "results.md"

POLICIES = """\
- "margin" is the paper's policy for medical data, logistic regression on the absolute margin. It may learn
  to defer the cases that the machine is surest of, where the selection took samples far on the wrong side.
  "nearest" always defers the smallest absolute margins first. "mlp" is a perceptron on x.
- Of the test cases, the share that was deferred in training, |S|/|V|, goes to the human: the top ones of
  the policy's ranking. The triage baselines defer n/|V|.
"""


def write_page(out: str | os.PathLike[str], config: Config) -> Path:
    """Write the page about all experiments whose rows are in the folder, with these settings.

    Parameters
    ----------
    out : path-like
        The folder given to `reproduce`.
    config : Config
        What the experiments were run with.

    Returns
    -------
    path : Path
        Of the page.
    """
    folder = Path(out) / config.protocol
    found = {}
    for name, experiment in EXPERIMENTS.items():
        table = folder / f"{name}.parquet"
        if table.exists():
            rows = pd.read_parquet(table)
            # A table that was made with other settings has no place on a page about these.
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
        What they were run with.

    Returns
    -------
    text : str
    """
    tables = {name: EXPERIMENTS[name].tables(rows) for name, rows in found.items()}
    claims = [c for name in found for c in judge_claims(name, tables[name], config)]
    parts = [_head(found, config), _claims(claims, config)]
    for name in found:
        experiment = EXPERIMENTS[name]
        parts.append(f"## {name}: {experiment.title}\n\n![{name}]({name}.png)\n")
        parts.append(f"{experiment.caption(config)}\n\n`{_command([name], config)}`\n")
        for what, table in tables[name].items():
            parts.append(_folded(what.capitalize() or "Means", _markdown(compact(table))))
    return "\n".join(parts)


def compact(table: pd.DataFrame) -> pd.DataFrame:
    """A table for people: "mean [low, high]" in one column, few digits."""
    shown: dict[str, list[str]] = {}
    for column in table.columns:
        if column.endswith(("_low", "_high")) and column.rsplit("_", 1)[0] in table.columns:
            continue
        if f"{column}_low" in table.columns:
            ends = zip(table[column], table[f"{column}_low"], table[f"{column}_high"], strict=True)
            shown[column] = [_interval(*numbers) for numbers in ends]
        else:
            shown[column] = [_cell(value) for value in table[column]]
    return pd.DataFrame(shown)


def _head(found: dict[str, pd.DataFrame], config: Config) -> str:
    some = next(iter(found.values()))
    packages = [name for name in some.columns if name.startswith("version_")]
    wanted = [*packages, "machine", "cores", "job_cpu_seconds"]
    jobs = pd.concat([rows.groupby("job")[wanted].first() for rows in found.values()])
    versions = ", ".join(
        f"{name.removeprefix('version_').replace('_', '-')} {_values(jobs[name])}"
        for name in packages
    )
    few = (
        f"\n**{config.splits} splits are too few for results** (at least {FEWEST_SPLITS}).\n"
        if 1 < config.splits < FEWEST_SPLITS
        else ""
    )
    return f"""# The paper's results, computed anew: protocol "{config.protocol}"

Generated from the tables by `{_command(list(found), config)}`; not written by hand.
{few}
{_protocol(config)}

{_intervals(config)}{POLICIES}
Computed with {versions}, on {_values(jobs["machine"])} with {_values(jobs["cores"])} cores.
The {len(jobs)} jobs took {jobs["job_cpu_seconds"].sum():.0f} s of processor time together.
"""


def _protocol(config: Config) -> str:
    """How the data are split and the settings found, in a paragraph."""
    if config.protocol == "published":
        text = (
            "One split: the first 40% of the rows for the test, the doctors that are stored in the "
            "authors' files (Aptos: another draw than the paper's figure; doctors who guess: drawn "
            "anew), the paper's lambda, and the authors' program's stop at the first round without a "
            f"gain. The synthetic data are one draw of ours (seed {config.seed})."
        )
    else:
        text = (
            f"{config.splits} splits or draws: random stratified splits of 60% for training and 40% for "
            "the test (synthetic data: fresh draws); doctors drawn anew with the parameters of the paper's "
            "appendix; lambda on medical data by cross-validation under full automation, of "
            f"{', '.join(f'{a:g}' for a in config.alphas)} (in `runtime` and `bounds` the paper's)."
        )
    ratio = config.submodularity_ratio
    found = f"by the sweep with step {config.delta:g}" if ratio == "sweep" else f"{ratio:g}"
    return f"{text} Submodularity ratio: {found}; epsilon of the stochastic algorithm: {config.epsilon:g}."


def _intervals(config: Config) -> str:
    """What the intervals mean, and what they do not."""
    if config.splits == 1:
        return ""
    # Theirs: the mean's variance is 1 / splits + n_test / n_train times a split's, not 1 / splits.
    factor = math.sqrt(1 + config.splits * TEST_SHARE / (1 - TEST_SHARE))
    return f"""\
- Intervals are 95% t-intervals over splits or draws; differences are paired, split by split. Of what cannot
  be negative they may reach below zero all the same.
- Splits of one data set share cases. Its intervals say how well the mean over splits of these very cases is
  known, not what new patients would give: for that, the correction of Nadeau and Bengio (2003) would make
  them {factor:.1f} times as wide. Draws of synthetic data are independent.
"""


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


def _claims(claims: list[Claim], config: Config) -> str:
    lines = ["## The paper's claims\n"]
    lines.append((MEANING if config.splits > 1 else MEANING_OF_ONE_SPLIT) + "\n")
    table = pd.DataFrame(
        [(c.experiment, c.text, f"**{c.verdict}**", c.numbers) for c in claims],
        columns=["result", "claim", "verdict", "numbers"],
    )
    return "\n".join([*lines, _markdown(table)])


def _folded(title: str, content: str) -> str:
    """Shut until somebody wants to see it: some tables have hundreds of lines."""
    return f"<details><summary>{title}</summary>\n\n{content}\n</details>\n"


def _values(column: pd.Series) -> str:
    """All values of a column, which is one as long as the jobs were run on one machine."""
    return " and ".join(str(value) for value in column.unique())


def _markdown(table: pd.DataFrame) -> str:
    lines = ["| " + " | ".join(table.columns) + " |", "|" + "---|" * len(table.columns)]
    for row in table.itertuples(index=False):
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines) + "\n"


def _interval(mean: float, low: float, high: float) -> str:
    if pd.isna(low) or low == high:
        return _cell(mean)
    return f"{_cell(mean)} [{_cell(low)}, {_cell(high)}]"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)
