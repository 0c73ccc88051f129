"""A bar for long work that can be stopped and goes on where it was."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

KEPT = "stopped; what is done is kept, the same command goes on"


def progress_bar(console: Console) -> Progress:
    """What is being done, how much of it is done, and the time left; silent where nobody looks."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class Advance:
    """Moves the bar. Jobs that were ready at the start are taken off it: they say nothing of speed."""

    def __init__(self, progress: Progress, task: Any, cost: float) -> None:
        self.progress, self.task, self.cost = progress, task, cost
        self.started = False

    def __call__(self, count: int) -> None:
        if self.started:
            self.progress.advance(self.task, count * self.cost)
            return
        self.started = True
        total = self.progress.tasks[0].total or 0.0
        self.progress.update(self.task, total=total - count * self.cost)
