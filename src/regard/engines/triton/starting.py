"""How kernels are started: at once, or, the first time, after those of one pass were compiled side by side.

A kernel is compiled for lengths that are multiples of 16, and once more for all others, and so for the steps of tables.
Beside them it knows how many heads share keys, and how many few queries are. Other numbers are left open: by itself,
Triton compiles anew for every number in a tuple that becomes 1 or a multiple of 16, or is so no longer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import triton

OPEN, FAR = 3, 2**40  # a number that nothing is known of, and one that 32 bits do not hold


class Known(int):
    """A number of which a compiled kernel knows whether it is 1, or a multiple of 16: steps in memory, lengths."""


def sixteens(*numbers: int) -> tuple[int, ...]:
    """Numbers that grow with a call: Known where all are multiples of 16, so that there are two cases and no more."""
    return tuple(map(Known, numbers)) if all(number % 16 == 0 for number in numbers) else numbers


def steps(*strides: int) -> tuple[int, ...]:
    """Steps in memory, one of which may be 1; the others are Known as `sixteens` are."""
    large = sixteens(*(stride for stride in strides if stride != 1))
    known = not large or isinstance(large[0], Known)
    return tuple(Known(stride) if known or stride == 1 else stride for stride in strides)


class Start(NamedTuple):
    """A kernel with all that it is started with."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def run(self) -> None:
        if triton.knobs.runtime.interpret:
            self.kernel[self.grid](*self.arguments, **self.options)
            return
        made = self.compile()
        made = made.result() if hasattr(made, "result") else made
        made[(*self.grid, 1, 1)[:3]](*self.arguments)

    def compile(self) -> Any:
        """The compiled kernel, or in `together` the promise of one."""
        return self.kernel.warmup(*map(hint, self.arguments), grid=self.grid, **self.options)


def hint(argument: Any) -> Any:
    """What a kernel is told of an argument when it is compiled; of a number its width, and what is Known."""
    kind = type(argument)  # asked for every argument of every launch
    if kind is int:
        return OPEN if -(2**31) <= argument < 2**31 else FAR + OPEN
    if kind is tuple:
        return tuple([hint(part) for part in argument])
    if kind is not Known:
        return argument
    wide = 0 if -(2**31) <= argument < 2**31 else FAR
    return 1 if argument == 1 else wide + (16 if argument % 16 == 0 else OPEN)


_WAITING: ContextVar[list[Start] | None] = ContextVar("waiting", default=None)
_MET: set[Hashable] = set()


def start(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Start a kernel: now, or at the end of `together`. All its parameters stand in `arguments`."""
    made, waiting = Start(kernel, grid, arguments, options), _WAITING.get()
    if waiting is None:
        made.run()
    else:
        waiting.append(made)


@contextmanager
def together(key: Hashable) -> Iterator[None]:
    """The first time with this key, kernels within are compiled side by side and start, in their order, at the end."""
    if key in _MET or triton.knobs.runtime.interpret:
        yield
        return
    waiting: list[Start] = []
    token = _WAITING.set(waiting)
    try:
        yield
    finally:
        _WAITING.reset(token)
    with ThreadPoolExecutor(len(waiting) or 1) as threads, triton.AsyncCompileMode(threads, ignore_errors=True):
        for made in waiting:
            made.compile()
    for made in waiting:
        made.run()
    _MET.add(key)
