"""How experts see the fields of a case: which are shown, as what, and in which groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import Connection, select

from deferlearn.desk import audit
from deferlearn.desk.errors import Invalid, Stale
from deferlearn.desk.models import active_card
from deferlearn.desk.rules import hold_configuration, read_setting, store_setting, touch
from deferlearn.desk.schema import case

DISPLAY = "display"
SHOWN, HIDDEN, TEXT, IMAGE = "shown", "hidden", "text", "image"
KINDS = (SHOWN, TEXT, IMAGE, HIDDEN)
LONGEST_GROUP = 60
# Longer values are read as text, whatever the kind.
LONG = 120
# So many of the last cases tell which fields there are.
_RECENT = 20
_SOURCE = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?")


class Shown(NamedTuple):
    """A field of a case as an expert sees it."""

    name: str
    value: Any
    kind: str


@dataclass(frozen=True)
class Display:
    """How the fields of cases are shown.

    Attributes
    ----------
    kinds : dict
        By field: shown, text, image or hidden; other fields are shown.
    groups : dict
        By field, the heading under which it stands; other fields come first, without one.
    image_sources : list of str
        Where images may come from, such as https://images.example.org, besides the desk's own address.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    image_sources: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            if kind not in KINDS:
                raise Invalid(f"Field {name!r} is {kind!r}; use one of {', '.join(KINDS)}.")
        for name, group in self.groups.items():
            if len(group) > LONGEST_GROUP:
                raise Invalid(
                    f"The group of field {name!r} has {len(group)} characters; the most are "
                    f"{LONGEST_GROUP}."
                )
        for source in self.image_sources:
            if not _SOURCE.fullmatch(source):
                raise Invalid(
                    f"{source!r} is not a source of images; use the form https://images.example.org."
                )

    def arranged(self, fields: Mapping[str, Any]) -> list[tuple[str, list[Shown]]]:
        """The fields of a case that experts see, in groups.

        Parameters
        ----------
        fields : mapping
            The content of the case.

        Returns
        -------
        groups : list of (heading, fields)
            Fields without a group first; long texts and images come last within a group.
        """
        found: dict[str, list[Shown]] = {"": []}
        for name, value in fields.items():
            kind = self.kinds.get(name, SHOWN)
            if kind == HIDDEN:
                continue
            found.setdefault(self.groups.get(name, ""), []).append(
                Shown(name, value, self._kind(kind, value))
            )
        order = (SHOWN, TEXT, IMAGE)
        return [
            (heading, sorted(members, key=lambda one: order.index(one.kind)))
            for heading, members in found.items()
            if members
        ]

    def seen(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a case without those that experts do not see.

        Parameters
        ----------
        fields : mapping
            The content of the case.

        Returns
        -------
        fields : dict
        """
        return {name: value for name, value in fields.items() if self.kinds.get(name) != HIDDEN}

    def _kind(self, kind: str, value: Any) -> str:
        """How this value is shown: as an image only if it comes from a source that is allowed."""
        if not isinstance(value, str):
            return SHOWN
        if kind == IMAGE and self.allows(value):
            return IMAGE
        return TEXT if kind == TEXT or len(value) > LONG or "\n" in value else SHOWN

    def allows(self, address: str) -> bool:
        """Whether an image may be loaded from an address.

        Parameters
        ----------
        address : str
            What the field holds.

        Returns
        -------
        allowed : bool

        Examples
        --------
        >>> from deferlearn.desk.display import Display
        >>> display = Display(image_sources=["https://images.example.org"])
        >>> [display.allows(at) for at in ("https://images.example.org/1.png", "https://else.org/1.png")]
        [True, False]
        """
        # Browsers drop control characters and take a backslash for a slash: `/<tab>/` leads elsewhere.
        if "\\" in address or not address.isprintable():
            return False
        if address.startswith("/") and not address.startswith("//"):
            return True
        try:
            parts = urlsplit(address)
        except ValueError:
            return False
        return f"{parts.scheme}://{parts.netloc}".lower() in self.image_sources


def read_display(connection: Connection) -> tuple[Display, int]:
    """How fields are shown, and the version of that.

    Parameters
    ----------
    connection : Connection
        A connection to the database.

    Returns
    -------
    display : Display
    version : int
    """
    value, version = read_setting(connection, DISPLAY)
    return Display(**(value or {})), version


def change_display(connection: Connection, display: Display, *, actor: str, version: int) -> None:
    """Show fields in another way.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    display : Display
        The new way.
    actor : str
        Who changes it.
    version : int
        The version that was seen; if it has another one now, nothing is changed.
    """
    hold_configuration(connection)
    found = read_display(connection)[1]
    if version != found:
        raise Stale(f"The fields have version {found}, not {version}: look at them again.")
    store_setting(connection, DISPLAY, asdict(display))
    touch(connection)
    audit.append(
        connection,
        actor=actor,
        action="display.changed",
        subject="display",
        detail=asdict(display),
    )


def known_fields(connection: Connection) -> list[str]:
    """The fields that cases have: columns of the active model, and those of the last cases.

    Parameters
    ----------
    connection : Connection
        A connection to the database.

    Returns
    -------
    names : list of str
    """
    names = dict.fromkeys(active_card(connection).get("columns", {}))
    recent = select(case.c.content).order_by(case.c.number.desc()).limit(_RECENT)
    for content in connection.execute(recent).scalars():
        names |= dict.fromkeys(content)
    return list(names)
