"""Passwords: hashed by argon2id, and verified in the same time whether the user exists or not."""

from __future__ import annotations

from threading import BoundedSemaphore

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

# Shorter ones can be guessed; longer ones only keep the processor busy.
MIN_LENGTH, MAX_LENGTH = 12, 200
# So many are hashed at a time: each takes the memory of `memory_kib`.
AT_A_TIME = 2


class PasswordError(ValueError):
    """A password that is too easy to guess."""


class Passwords:
    """Hashes passwords and checks them.

    Parameters
    ----------
    time_cost : int, default=3
        Passes over the memory.
    memory_kib : int, default=65536
        Memory that a hash takes, in KiB. Both defaults are those of RFC 9106 for little memory.

    Examples
    --------
    >>> from deferlearn.desk.passwords import Passwords
    >>> passwords = Passwords(time_cost=1, memory_kib=8)
    >>> stored = passwords.hashed("correct horse battery")
    >>> passwords.matches(stored, "correct horse battery"), passwords.matches(stored, "wrong")
    (True, False)
    """

    def __init__(self, time_cost: int = 3, memory_kib: int = 65536) -> None:
        self._hasher = PasswordHasher(time_cost, memory_kib, parallelism=1, type=Type.ID)
        self._free = BoundedSemaphore(AT_A_TIME)
        # What the password of a user who does not exist is compared with.
        self._nobody = self._hasher.hash("nobody has this password")

    def hashed(self, password: str) -> str:
        """The hash that is stored.

        Parameters
        ----------
        password : str
            The password.

        Returns
        -------
        hash : str
            With its salt and parameters.
        """
        with self._free:
            return self._hasher.hash(password)

    def matches(self, stored: str | None, password: str) -> bool:
        """Whether a password is the one whose hash is stored.

        Parameters
        ----------
        stored : str or None
            The hash; None or the mark of an invitation if there is none, which takes as long to find out.
        password : str
            What was entered.

        Returns
        -------
        matches : bool
        """
        known = stored is not None and stored.startswith("$argon2")
        with self._free:
            try:
                right = self._hasher.verify(stored if known and stored else self._nobody, password)
            except (VerificationError, InvalidHashError):
                return False
        return right and known

    def is_outdated(self, stored: str) -> bool:
        """Whether a hash has other parameters than today's, so that it should be made again.

        Parameters
        ----------
        stored : str
            The hash.

        Returns
        -------
        outdated : bool
        """
        return self._hasher.check_needs_rehash(stored)


def check_password(password: str, name: str) -> None:
    """Refuse a password that is too easy to guess.

    Parameters
    ----------
    password : str
        The new password.
    name : str
        Name of the user, which the password may not contain.

    Raises
    ------
    PasswordError
        With the reason.

    Examples
    --------
    >>> from deferlearn.desk.passwords import check_password
    >>> check_password("the cat of anna", "anna")
    Traceback (most recent call last):
    deferlearn.desk.passwords.PasswordError: The password contains the name of the user: choose another one.
    """
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise PasswordError(
            f"The password has {len(password)} characters: use {MIN_LENGTH} to {MAX_LENGTH}, such as four "
            "words that do not belong together."
        )
    if len(set(password)) < 5:
        raise PasswordError("The password repeats the same few characters: choose another one.")
    if len(name) > 2 and name.casefold() in password.casefold():
        raise PasswordError("The password contains the name of the user: choose another one.")
