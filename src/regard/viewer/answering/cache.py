"""What was found, kept as long as it fits: the bytes are counted, and what was asked for least lately goes first."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """What knows its bytes, which may grow."""

    @property
    def nbytes(self) -> int: ...


S = TypeVar("S", bound=Sized)
EACH = 4096  # bytes that anything costs at least


class Cache(Generic[S]):
    """At most so many bytes; the newest stays, however large. Many threads may ask; two may make the same at once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._found: dict[Hashable, S] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: Hashable, make: Callable[[], S]) -> S:
        """What is kept by a key; made where it is not there."""
        with self._lock:
            if key in self._found:
                self._found[key] = self._found.pop(key)
                return self._found[key]
        made = make()
        with self._lock:
            value = self._found.setdefault(key, made)
            self._shrink()
            return value

    @property
    def nbytes(self) -> int:
        """Of all that is kept."""
        return sum(EACH + value.nbytes for value in self._found.values())

    def _shrink(self) -> None:
        while len(self._found) > 1 and self.nbytes > self.most:
            del self._found[next(iter(self._found))]
