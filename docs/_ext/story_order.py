"""The order of the gallery: from a first look to the engine."""

from __future__ import annotations

from pathlib import Path

FIRST = (
    "first_look",
    "whom_to_defer",
    "choose_budget",
    "real_radiologists",
    "sleep",
    "policies",
    "tuning",
    "several_readers",
    "several_experts",
    "desk",
    "own_machine",
    "grades",
    "probabilities",
    "costs",
    "images_to_features",
    "one_at_a_time",
    "distortion",
    "guarantee",
    "ratio_zero",
    "hardness",
    "bounds_of_gains",
)


class StoryOrder:
    """Key by which examples are sorted; those that are not listed come last, by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        """Place of an example."""
        name = Path(filename).stem.removeprefix("plot_")
        return (FIRST.index(name) if name in FIRST else len(FIRST), name)
