"""What a server asks of a model: a lens of a text, or of an image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Say = Callable[[str], object]
EXTRA = ("torch", "transformers")  # what regard[hf] brings


@dataclass(frozen=True)
class Live:
    """What can be looked at while a server runs: each reader makes a lens, and tells what it does.

    words:  the model in words;  tokens: how long a text may be;  how: what to do where a reader is missing
    """

    words: str = ""
    text: Callable[[str, Say], Any] | None = None
    image: Callable[[bytes, Say], Any] | None = None
    tokens: int | None = None
    how: str = "start the server with a model that does: regard lens --model PATH"


@dataclass(frozen=True)
class Kept:
    """What is kept of a look, as `regard.lens` takes it."""

    layers: tuple[int, ...] | None = None
    half: bool = False
    patch: int | None = None  # pixels of a raw patch, where no model should look

    def lens(self, model: Any, inputs: Any, say: Say, **told: Any) -> Any:
        """The lens of a model on inputs; every call that was kept is told."""
        from ..looking import lens

        say("running the model")
        return lens(model, inputs, layers=self.layers, half=self.half, progress=_telling(say), **told)


def _telling(say: Say) -> Callable[[int, int], None]:
    def tell(calls: int, kept: int) -> None:
        say(f"running the model: {calls} calls of attention, {kept / 1e6:,.1f} MB kept")

    return tell


@dataclass(frozen=True)
class Absent:
    """A model that cannot be had here: what is missing, and how to get it."""

    name: str
    packages: tuple[str, ...]

    def __str__(self) -> str:
        extra = [one for one in self.packages if one in EXTRA]
        alone = [one for one in self.packages if one not in EXTRA]
        steps = ['pip install "regard[hf]"'] * bool(extra) + [f"pip install --no-deps {' '.join(alone)}"] * bool(alone)
        return f"{self.name} needs {' and '.join(self.packages)}: make run, or {' and '.join(steps)}"
