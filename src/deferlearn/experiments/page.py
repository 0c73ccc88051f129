"""The results page: every claim of the paper with our numbers, and every table, in Markdown."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from deferlearn._atomic import write_atomically
from deferlearn.experiments.claims import Claim, judge_claims
from deferlearn.experiments.config import FEWEST_SPLITS, Config
from deferlearn.experiments.reproduce import EXPERIMENTS

PAGE = "results.md"

PROTOCOLS = {
    "repeated": "random stratified splits of 60% for training and 40% for the test (synthetic data: "
    "fresh draws); doctors drawn anew with the parameters of the paper's appendix; lambda by "
    "cross-validation under full automation on medical data; the submodularity ratio by the sweep",
    "published": "one split, the first 40% of the rows for the test, the doctors that are stored in "
    "the authors' files (Aptos: another draw than the paper's figure), the paper's lambda, "
    "the ratio 0.01 of the authors' program, and its stop at the first round without a gain",
}
NOTES = """\
- Intervals are 95% t-intervals over splits or draws; differences are paired, split by split. Splits of one
  data set share cases, so intervals on medical data are a little narrower than those over new patients.
- Of the test cases, the share that was deferred in training, |S|/|V|, goes to the human: the top ones of
  the policy's ranking. The triage baselines defer n/|V|.
- "margin" is the paper's policy for medical data, logistic regression on the absolute margin. It may learn
  to defer the cases that the machine is surest of, where the selection took samples far on the wrong side.
  "nearest" always defers the smallest absolute margins first. "mlp" is a perceptron on x.
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
    parts = [_head(found, config), _claims(claims)]
    for name in found:
        parts.append(f"## {name}: {EXPERIMENTS[name].title}\n\n![{name}]({name}.png)\n")
        parts.append(f"`deferlearn reproduce {name}{_options(config)}`\n")
        for what, table in tables[name].items():
            title = f"\n{what.capitalize()}:\n\n" if what else ""
            parts.append(title + _markdown(compact(table)))
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
    first = next(iter(found.values())).iloc[0]
    versions = ", ".join(
        f"{name.removeprefix('version_').replace('_', '-')} {first[name]}"
        for name in first.index
        if name.startswith("version_")
    )
    seconds = sum(
        float(rows.groupby("job")["job_seconds"].first().sum()) for rows in found.values()
    )
    splits = f"{config.splits} splits or draws" if config.splits > 1 else "One split"
    few = (
        f"\n**{config.splits} splits are too few for results** (at least {FEWEST_SPLITS}).\n"
        if 1 < config.splits < FEWEST_SPLITS
        else ""
    )
    return f"""# The paper's results, computed anew: protocol "{config.protocol}"

Generated from the tables by `deferlearn reproduce all{_options(config)}`; not written by hand.
{few}
{splits}: {PROTOCOLS[config.protocol]}.

{NOTES}
Computed with {versions}, on {first["machine"]} with {first["cores"]} cores; {seconds:.0f} s in
all jobs together, one after the other.
"""


def _options(config: Config) -> str:
    """Options of the command that differ from the defaults of this protocol."""
    text = "" if config.protocol == "repeated" else f" --protocol {config.protocol}"
    if config == Config.preset(config.protocol):
        return text
    if config == Config.preset(config.protocol, quick=True):
        return f"{text} --quick"
    if config == Config.preset(config.protocol, splits=config.splits):
        return f"{text} --splits {config.splits}"
    return f"{text} --config ..."


def _claims(claims: list[Claim]) -> str:
    lines = ["## The claims of Sections 4 and 5\n", "| result | claim | verdict | numbers |"]
    lines.append("|---|---|---|---|")
    for claim in claims:
        cells = (claim.experiment, claim.text, f"**{claim.verdict}**", claim.numbers)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


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
