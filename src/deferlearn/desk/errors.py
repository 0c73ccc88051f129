"""What the desk refuses, and the status that says so over HTTP."""


class DeskError(Exception):
    """Something was asked that the desk does not do; the message says why, without content of cases.

    Attributes
    ----------
    status : int
        The status of the answer over HTTP.
    """

    status = 400


class Invalid(DeskError):
    """A value is wrong."""

    status = 422


class Forbidden(DeskError):
    """The one who asks may not do this."""

    status = 403


class NotFound(DeskError):
    """There is no such thing, or not for the one who asks."""

    status = 404


class Conflict(DeskError):
    """The state does not allow it."""

    status = 409


class Stale(DeskError):
    """The thing was changed since it was read."""

    status = 412
