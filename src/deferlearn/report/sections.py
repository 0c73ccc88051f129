"""The sections of the page, in their order: a new one is an entry here and a template of its name."""

from collections.abc import Callable
from typing import Any, NamedTuple


def _always(numbers: dict[str, Any]) -> bool:
    return True


class Section(NamedTuple):
    """A section of the page.

    Attributes
    ----------
    name : str
        Its anchor; the template is ``<name>.html``, which knows all numbers of the report.
    heading : str
        The question that it answers.
    shown : callable
        Gets the numbers and says whether there is anything to show.
    """

    name: str
    heading: str
    shown: Callable[[dict[str, Any]], bool] = _always


SECTIONS = (
    Section("verdict", "Does it pay to ask humans?"),
    Section("compared", "What was compared?"),
    Section("classes", "Which errors remain?"),
    Section("where", "Who errs where?"),
    Section(
        "subgroups", "Are all groups served alike?", lambda found: found["subgroups"] is not None
    ),
    Section("experts", "The experts", lambda found: found["experts"] is not None),
    Section("reliability", "Is the machine as often right as it says?"),
    Section("drift", "Are these cases like those in training?"),
    Section("refits", "Would another budget or retraining help?"),
    Section("cases", "The cases one by one"),
    Section("certificate", "How good was the selection in training?"),
    Section("limits", "What this report cannot say"),
    Section("again", "How to make this report again"),
)


def sections_of(numbers: dict[str, Any]) -> list[Section]:
    """The sections that have something to show."""
    return [section for section in SECTIONS if section.shown(numbers)]
