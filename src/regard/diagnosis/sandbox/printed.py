"""What a target prints: counted, its beginning kept, the rest let go."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

KEPT = 4096  # bytes of the beginning


@dataclass(frozen=True)
class Printed:
    """How much was printed, to standard output and standard error together, and how it began."""

    bytes: int = 0
    lines: int = 0
    first: str = ""


class Tally:
    """Counts text as it comes.

    >>> tally = Tally()
    >>> tally.take(b"one\\ntwo")
    >>> tally.read()
    Printed(bytes=7, lines=2, first='one\\ntwo')
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes, self._breaks, self._first, self._last = 0, 0, b"", b"\n"

    def take(self, data: bytes) -> None:
        """Count what was printed next."""
        if not data:
            return
        with self._lock:
            self._bytes += len(data)
            self._breaks += data.count(b"\n")
            self._first += data[: KEPT - len(self._first)]
            self._last = data[-1:]

    def read(self) -> Printed:
        """What has been printed up to now."""
        with self._lock:
            lines = self._breaks + (self._last != b"\n")
            return Printed(self._bytes, lines, self._first.decode("utf-8", "replace"))


class _Sink(io.RawIOBase):
    """A stream into a tally."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._tally.take(bytes(data))
        return len(data)


@contextmanager
def captured(tally: Tally) -> Iterator[None]:
    """What Python prints inside goes to the tally, and who asks for input finds none."""
    sink = io.TextIOWrapper(io.BufferedWriter(_Sink(tally)), "utf-8", "backslashreplace", write_through=True)
    stdin = sys.stdin
    with redirect_stdout(sink), redirect_stderr(sink):
        sys.stdin = io.StringIO()
        try:
            yield
        finally:
            sys.stdin = stdin
            sink.flush()
