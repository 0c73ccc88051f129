"""Versions of things that people edit: `ETag` says which one was read, `If-Match` which one is meant."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header, HTTPException

_FORM = re.compile(r'(?:W/)?"([0-9]{1,18})"')


def etag(version: int) -> str:
    """The header of a version.

    Parameters
    ----------
    version : int
        Counts the changes.

    Returns
    -------
    etag : str

    Examples
    --------
    >>> from deferlearn.desk.api.versions import etag
    >>> etag(3)
    '"3"'
    """
    return f'"{version}"'


async def meant(if_match: Annotated[str | None, Header(max_length=100)] = None) -> int:
    """The version that a change is meant for; a dependency of endpoints that change something.

    Parameters
    ----------
    if_match : str or None
        The header.

    Returns
    -------
    version : int
    """
    if if_match is None:
        raise HTTPException(
            428, 'Send the version that you read as the header If-Match, such as "3".'
        )
    form = _FORM.fullmatch(if_match.strip())
    if form is None:
        raise HTTPException(412, f"If-Match is {if_match!r}, which is no version.")
    return int(form[1])
