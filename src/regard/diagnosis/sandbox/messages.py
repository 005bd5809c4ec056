"""What this process and the child say to each other: frames of a length and a pickle.

here  → child    Start, then a job, a job, …
child → here     Ready after Start;  Begun and then Answer, Raised or Ended for each job
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Start:
    """The target, and what the child must know of its limits."""

    source: bytes  # the pickle of a Source
    memory: int
    seconds: float  # of the processor
    mark: bytes  # printed by the child when a job is done, so that its text can be told from that of the next


class Ready:
    """The target is loaded."""


class Begun:
    """The job has arrived, with all that it imports; from here on the time is the target's."""


@dataclass(frozen=True)
class Answer:
    """What the job returned."""

    value: Any


@dataclass(frozen=True)
class Raised:
    """An exception: as a pickle where it has one, and as text."""

    error: bytes | None
    text: str

    def unpacked(self) -> BaseException:
        """The exception itself where its class is known here, or a RuntimeError that tells of it."""
        try:
            error = pickle.loads(self.error) if self.error is not None else None  # noqa: S301 - from our own child
        except Exception:  # noqa: BLE001 - its class may live in the target's file alone
            error = None
        return error if isinstance(error, BaseException) else RuntimeError(self.text)


@dataclass(frozen=True)
class Ended:
    """The target ran out of memory, or left by sys.exit."""

    why: str
    how: str = ""


def write(stream: BinaryIO, data: bytes) -> None:
    """One frame."""
    stream.write(LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read(stream: BinaryIO) -> bytes | None:
    """The next frame; None when the other side has gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None
