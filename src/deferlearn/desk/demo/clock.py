"""The time of the laboratory: all that comes to the desk from outside comes so much faster."""

from __future__ import annotations

import threading


class Clock:
    """A clock that runs faster than the real one.

    Parameters
    ----------
    speed : float
        Seconds of the laboratory per second.
    """

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.stopped = threading.Event()

    def wait(self, minutes: float) -> bool:
        """Wait for so many minutes of the laboratory.

        Parameters
        ----------
        minutes : float
            How long.

        Returns
        -------
        goes_on : bool
            False if the demonstration ends.
        """
        return not self.stopped.wait(max(minutes, 0.0) * 60 / self.speed)
