"""How fused kernels compute, where there is a choice: `with fused(exact=True): …`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from ...algebra.errors import CallError

TEMPLATES = ("hopper", "triton")


@dataclass(frozen=True)
class Options:
    """The choices of a call; it keeps those it was made with on its way back."""

    exact: bool = False
    atomics: bool = False
    template: str | None = None
    memory: int | None = None

    def __str__(self) -> str:
        return f"{int(self.exact)} {int(self.atomics)} {self.template} {self.memory}"

    @classmethod
    def read(cls, text: str) -> Options:
        exact, atomics, template, memory = text.split()
        given = None if template == "None" else template
        return cls(exact == "1", atomics == "1", given, None if memory == "None" else int(memory))


USUAL = Options()
_CHOSEN: ContextVar[Options] = ContextVar("options", default=USUAL)


def chosen() -> Options:
    """The choices that hold here."""
    return _CHOSEN.get()


@contextmanager
def fused(
    *,
    exact: bool | None = None,
    atomics: bool | None = None,
    template: str | None = None,
    memory: int | None = None,
) -> Iterator[None]:
    """Choices for the fused kernels of the calls inside.

    exact:    tanh, sigmoid and their like to the last digits of float32, also where q has half precision and the
              chip's approximations are below its rounding
    atomics:  let gradients of tables that are read at any places, as in table("t")[ids[i], ids[j]], be summed in
              whatever order the chip finishes; all other gradients are the same bits every time
    template: "hopper" or "triton", in place of the one that the plan takes
    memory:   bytes that the backward pass may take for a while, where nothing is said 1/64 of the chip's: on Hopper
              it writes down what two kernels need, of as many heads at a time as fit, in place of making it twice;
              0 for none
    """
    if template is not None and template not in TEMPLATES:
        raise CallError(f"template: one of {', '.join(TEMPLATES)}; got {template!r}")
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int) or memory < 0):
        raise CallError(f"memory: a number of bytes, 0 or more; got {memory!r}")
    given: dict[str, Any] = {"exact": exact, "atomics": atomics, "template": template, "memory": memory}
    token = _CHOSEN.set(replace(chosen(), **{name: value for name, value in given.items() if value is not None}))
    try:
        yield
    finally:
        _CHOSEN.reset(token)
