"""The content of a case: what it may be, its digest, and what the model makes of it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any

from deferlearn.desk.errors import Invalid
from deferlearn.desk.judging import Judge, Judgement
from deferlearn.desk.schema import canonical
from deferlearn.tables import TableError
from deferlearn.tables.errors import CellError

# The id of a case stands in addresses and tables: no control characters, and no halves of characters.
CASE_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,200}")
MOST_FIELDS, LONGEST_NAME, LONGEST_TEXT = 2000, 200, 20_000
LARGEST_WHOLE = 2**53


def check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse what is not a case: a field has a name, and text, a number, true, false or null as its value.

    Parameters
    ----------
    fields : mapping
        The content of a case.
    """
    if not 1 <= len(fields) <= MOST_FIELDS:
        raise Invalid(f"A case has 1 to {MOST_FIELDS} fields; this one has {len(fields)}.")
    for name, value in fields.items():
        if not name or len(name) > LONGEST_NAME or not _is_text(name):
            raise Invalid(
                f"The name of a field has 1 to {LONGEST_NAME} characters, without control characters."
            )
        if isinstance(value, str):
            if len(value) > LONGEST_TEXT:
                raise Invalid(
                    f"Field {name!r} has {len(value)} characters; the most are {LONGEST_TEXT}."
                )
            if "\x00" in value or _has_half(value):
                raise Invalid(f"Field {name!r} holds characters that are not text.")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise Invalid(f"Field {name!r} is not a finite number; use null for a gap.")
        elif isinstance(value, int):
            if abs(value) > LARGEST_WHOLE:
                raise Invalid(f"Field {name!r} is a whole number beyond 2**53; send it as text.")
        elif value is not None:
            raise Invalid(
                f"Field {name!r} is a list or an object; a field is text, a number, true, false or null."
            )


def digest_of(fields: Mapping[str, Any]) -> str:
    """A digest of the content of a case: the same for the same content, however it is written.

    Examples
    --------
    >>> from deferlearn.desk.fields import digest_of
    >>> digest_of({"a": 1, "b": "x"}) == digest_of({"b": "x", "a": 1.0})
    True
    """
    plain = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in fields.items()
    }
    return hashlib.sha256(canonical(plain).encode()).hexdigest()


def judge_fields(judge: Judge, fields: Mapping[str, Any]) -> Judgement:
    """Judge a case; fields that the model cannot read are refused.

    Parameters
    ----------
    judge : Judge
        The model.
    fields : mapping
        The content of the case, which `check_fields` has accepted.

    Returns
    -------
    Judgement
    """
    try:
        return judge.judge(fields)
    except CellError as error:
        raise Invalid(
            f"Field {error.column!r} holds {error.value!r}, which {error.problem}."
        ) from None
    except TableError as error:
        raise Invalid(f"The case cannot be read: {error}.".replace("column", "field")) from None


def _is_text(text: str) -> bool:
    return CASE_ID.fullmatch(text) is not None


def _has_half(text: str) -> bool:
    return any("\ud800" <= one <= "\udfff" for one in text) if not text.isascii() else False
