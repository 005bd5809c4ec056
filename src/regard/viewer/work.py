"""Work that may be given up: whoever computes in blocks looks at a `Stop` between two of them."""

from __future__ import annotations

import time
from threading import Event


class Stopped(Exception):  # noqa: N818 - no error: nobody waits for the answer any more
    """The work was given up, because it was asked to stop or its time was over."""


class Stop:
    """Whether work should go on.

    seconds: after which it stops by itself; never, unless said
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._asked = Event()
        self._end = None if seconds is None else time.monotonic() + seconds

    def set(self) -> None:
        """Ask the work to stop; from any thread."""
        self._asked.set()

    @property
    def is_set(self) -> bool:
        """Whether it was asked to stop, or its time is over."""
        return self._asked.is_set() or (self._end is not None and time.monotonic() >= self._end)

    def check(self) -> None:
        """Raise Stopped where the work should not go on."""
        if self.is_set:
            raise Stopped("stopped: nobody waits for this any more")
