"""What a disk refuses, in words: which rule, why not, and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from .errors import TrainingError

REFUSALS = (OSError, SafetensorError)  # safetensors has a kind of its own, for a full disk too


@contextmanager
def spoken(rule: str, advice: str) -> Iterator[None]:
    """A refusal of the disk as an error of training."""
    try:
        yield
    except REFUSALS as error:
        raise TrainingError(f"{rule}; got this: {reason(error)}; {advice}") from error


def reason(error: Exception) -> str:
    """Why, in one line.

    >>> reason(OSError(errno.ENOSPC, "No space left on device"))
    'the disk is full'
    """
    full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
    return "the disk is full" if full else (str(error).splitlines() or [type(error).__name__])[0]
