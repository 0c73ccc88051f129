"""The paper's results from one command: stored jobs, tables with intervals, figures.

- `Config`: all settings that decide the numbers, validated; `load_config` reads it from TOML.
- `reproduce`: one experiment ("fig1" to "fig6", "runtime", "bounds") into a folder.
- `write_page`: each claim of the paper with our numbers, from the rows in that folder.
- `run_jobs`: the runner behind it, which continues where a killed run stopped.

It needs pandas, pyarrow, pydantic, jinja2 and matplotlib: ``pip install 'deferlearn[experiments]'``.
"""

from deferlearn.experiments.config import Config, load_config
from deferlearn.experiments.page import write_page
from deferlearn.experiments.reproduce import EXPERIMENTS, Outcome, reproduce
from deferlearn.experiments.runner import JobError, run_jobs

__all__ = [
    "EXPERIMENTS",
    "Config",
    "JobError",
    "Outcome",
    "load_config",
    "reproduce",
    "run_jobs",
    "write_page",
]
