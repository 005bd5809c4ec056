"""How kernels are started: at once, or, the first time, after those of one pass were compiled side by side."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import triton


class Start(NamedTuple):
    """A kernel with all that it is started with."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def run(self) -> None:
        self.kernel[self.grid](*self.arguments, **self.options)

    def compile(self) -> None:
        self.kernel.warmup(*self.arguments, grid=self.grid, **self.options)


_WAITING: ContextVar[list[Start] | None] = ContextVar("waiting", default=None)
_MET: set[Hashable] = set()


def start(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Start a kernel: now, or at the end of `together`."""
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
