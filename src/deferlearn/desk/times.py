"""Times as people and programs read them."""

from datetime import UTC, datetime, timedelta

_START = datetime(1970, 1, 1, tzinfo=UTC)


def iso(time: int) -> str:
    """A time in microseconds since 1970, in the form of ISO 8601.

    Examples
    --------
    >>> from deferlearn.desk.times import iso
    >>> iso(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    moment = _START + timedelta(microseconds=time)
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z"
