"""What somebody's code may use while it is checked, and what is said when it wants more.

`Limits` guard against accidents, such as a loop that does not end; they are no prison for code that means harm.
"""

from __future__ import annotations

import math
import numbers
import signal
from collections.abc import Iterator
from dataclasses import dataclass, fields

from ...algebra.errors import CallError, KindError, RegardError


class TargetError(RegardError):
    """What was to be checked cannot be found, imported or sent."""


class Stopped(RegardError):  # noqa: N818 - an event, that may be nobody's error
    """The target was stopped, or stopped by itself. `why` is "time", "memory", "crash", "printing" or "exit"."""

    def __init__(self, why: str, text: str) -> None:
        super().__init__(f"stopped: {text}")
        self.why, self.text = why, text

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return Stopped, (self.why, self.text)


@dataclass(frozen=True)
class Limits:
    """What the target may use: time, memory and words.

    >>> Limits(call_seconds=5)
    Limits(seconds=60.0, call_seconds=5, start_seconds=60.0, memory=4294967296, printed=1000000)
    """

    seconds: float = 60.0  # of all calls together, and of starting again after a stop
    call_seconds: float = 15.0  # of one call
    start_seconds: float = 60.0  # of one start: Python, the target's file and what it imports
    memory: int = 4 * 2**30  # bytes, beyond what is in use once the target is loaded
    printed: int = 1_000_000  # bytes of text, in one call

    def __post_init__(self) -> None:
        for field in fields(self):
            kind = numbers.Integral if field.name in ("memory", "printed") else numbers.Real
            _check(field.name, getattr(self, field.name), kind, field.default)


def _check(name: str, given: object, kind: type, default: object) -> None:
    unit, example = ("bytes", "an integer") if kind is numbers.Integral else ("seconds", "a number")
    rule = f"{name}: {example} of {unit} above 0"
    if isinstance(given, bool) or not isinstance(given, kind):
        raise KindError(f"{rule}; got {given!r}; leave it out for {default}, or pass limits=None for no limits")
    if math.isnan(given) or given <= 0:  # type: ignore[arg-type,operator]
        raise CallError(f"{rule}; got {given!r}; leave it out for {default}, or pass limits=None for no limits")


# -- what is said ----------------------------------------------------------------------------------------------

SIGNALS = {
    "SIGSEGV": "it read or wrote memory that is not its own",
    "SIGBUS": "it read or wrote memory that is not there",
    "SIGFPE": "a division by zero in compiled code",
    "SIGILL": "an instruction that this processor does not know",
    "SIGABRT": "compiled code gave up",
    "SIGKILL": "killed from outside, as the system does when its memory runs out",
    "SIGXCPU": "it used up its time on the processor",
}
MEMORY_WORDS = (
    "DefaultCPUAllocator",
    "can't allocate memory",
    "Cannot allocate memory",
    "std::bad_alloc",
    "RESOURCE_EXHAUSTED: Out of memory",
)


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, in the words of Python, NumPy, PyTorch or JAX.

    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("std::bad_alloc")), out_of_memory(ValueError("3"))
    (True, True, False)
    """
    return any(isinstance(one, MemoryError) or _tells_of_memory(one) for one in _chain(error))


def _tells_of_memory(error: BaseException) -> bool:
    return isinstance(error, OSError | RuntimeError) and any(words in str(error) for words in MEMORY_WORDS)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def late_call(limits: Limits, about: str) -> Stopped:
    """One call took too long."""
    return Stopped(
        "time",
        f"one call took more than {limits.call_seconds:g} s ({about}); look for a loop that does not end, "
        f"or allow more with Limits(call_seconds={2 * limits.call_seconds:g})",
    )


def late_session(limits: Limits, about: str) -> Stopped:
    """All calls together took too long."""
    return Stopped(
        "time",
        f"all calls together took more than {limits.seconds:g} s ({about}); "
        f"allow more with Limits(seconds={2 * limits.seconds:g})",
    )


def late_start(limits: Limits, about: str) -> Stopped:
    """Starting took too long."""
    return Stopped(
        "time",
        f"{about} took more than {limits.start_seconds:g} s; keep training and downloads under "
        f"if __name__ == '__main__', or allow more with Limits(start_seconds={2 * limits.start_seconds:g})",
    )


def over_memory(limits: Limits | None, about: str) -> Stopped:
    """It wanted more memory than there is for it."""
    what = "memory ran out" if limits is None else f"it wanted more than {_size(limits.memory)} of memory"
    more = "" if limits is None else f", or allow more with Limits(memory={2 * limits.memory})"
    return Stopped("memory", f"{what} ({about}); look for what grows, as a list that is never emptied{more}")


def over_printed(limits: Limits, about: str, first: str) -> Stopped:
    """It printed too much."""
    return Stopped(
        "printing",
        f"it printed more than {limits.printed} bytes ({about}), beginning with {first[:40]!r}; "
        f"take the print out, or allow more with Limits(printed={2 * limits.printed})",
    )


def left(how: str, about: str) -> Stopped:
    """It ended the program."""
    return Stopped("exit", f"it ended the program by {how} ({about}); return a value or raise an error in its place")


def died(code: int, about: str) -> Stopped:
    """Its process is gone with this exit code; a negative one is a signal."""
    if 0 <= code < 2**16:  # Windows tells of crashes by large numbers
        return left(f"exit code {code}, as os._exit({code}) does", about)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}" if code < 0 else f"code {code:#x}"
    meaning = f": {SIGNALS[name]}" if name in SIGNALS else ""
    return Stopped(
        "crash",
        f"its process crashed with {name}{meaning} ({about}); "
        "look at its compiled parts: extensions, ctypes, kernels, or a recursion without an end",
    )


def _size(count: int) -> str:
    power = min((count.bit_length() - 1) // 10, 4) if count else 0
    return f"{count / 2 ** (10 * power):.3g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
