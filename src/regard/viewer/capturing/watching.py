"""A model, watched while it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from ...algebra.errors import CallError, KindError
from ...attention import watched
from ..record import Captured, Missing, Seen
from .absent import absent
from .asking import Asking
from .mode import Mode
from .places import Places
from .recorder import Choice, Layers, Progress, Recorder, checked_heads
from .shared import as_written, unhindered

if TYPE_CHECKING:
    from ..lenses import Lens


def capture(
    model: torch.nn.Module,
    *,
    layers: Layers = None,
    heads: Collection[int] | int | None = None,
    values: bool = True,
    half: bool = False,
    folder: Any = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Capture:
    """Keep q, k, v and the formula of every call of attention while a model runs.

        with capture(model) as seen:
            model(**inputs)
        seen.layers, seen.missing, seen.notes
        seen.lens                       # to look at; regard.lens(seen, tokens=…) says what stands along its axes

    layers:   which calls, by their place in the order of calls or the names of modules; or a function of names
    heads:    which heads, by number; all unless said otherwise
    values:   whether v is kept too
    half:     keep float16 in place of wider numbers
    folder:   write each call there as soon as it was seen, so that memory holds one at a time
    limit:    most bytes to keep, of one call where they go to a folder; a quarter of the free memory unless said
    progress: a function of the number of calls and of bytes that were kept so far
    """
    return Capture(model, Choice(_checked_layers(layers), checked_heads(heads), values, half, limit), folder, progress)


class Capture(Seen):
    """What `capture` gives: `layers` were kept, `missing` were not; `notes` say what a reader should know of layers."""

    def __init__(
        self, model: torch.nn.Module, choice: Choice, folder: Any = None, progress: Progress | None = None
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise KindError(f"model: a torch.nn.Module; got {type(model).__name__}")
        self.model = model
        self.model_name = type(getattr(model, "_orig_mod", model)).__name__
        self.folder = None if folder is None else _begun(folder)
        self._places = Places(model)
        self._recorder = Recorder(self._places, choice, self.folder, progress)
        self._mode = Mode(self._recorder, self._places)
        self._choice = choice
        self._absent: list[Missing] = []
        self._stack: ExitStack | None = None
        self._entered = False

    @property
    def layers(self) -> list[Captured]:
        """The calls that were kept, in order."""
        return self._recorder.layers

    @property
    def missing(self) -> list[Missing]:
        """Modules and calls that were not kept, and why; complete after the block."""
        return [*self._recorder.missing, *self._absent]

    @property
    def notes(self) -> list[str]:
        """What to know of the calls that were kept."""
        return self._recorder.notes

    @cached_property
    def lens(self) -> Lens:
        """What was seen, to be looked at, after the block."""
        if not self._entered or self._stack is not None:
            raise CallError("lens: of a model that has run; got it before the end of the with block; ask afterwards")
        from ..entering.running import lens_of_capture

        return lens_of_capture(self.model, self)

    @property
    def bytes(self) -> int:
        """The bytes that were kept."""
        return self._recorder.bytes

    def __enter__(self) -> Capture:
        if self._entered:
            raise CallError("capture: one with block for each; this was entered before; call regard.capture again")
        self._entered = True
        mode = self._mode
        with ExitStack() as stack:
            for part in (self._places, Asking(mode), as_written, watched(mode.told), unhindered, mode):
                stack.enter_context(part)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._stack is not None
        self._stack.__exit__(kind, error, traceback)
        self._stack = None
        self._recorder.end(self._mode.written.unread())
        if kind is None:
            self._absent = absent(self._places, self._choice, bool(self._recorder.calls or self._recorder.missing))
        self._places.modules.clear()

    def __repr__(self) -> str:
        return f"{self.model_name}, {len(self.layers)} calls kept, {len(self.missing)} missing"


def _begun(folder: Any) -> Path:
    from ..keeping.store import begin

    return begin(folder)


def _checked_layers(layers: Any) -> Layers:
    if layers is None:
        return None
    if callable(layers):
        chosen: Callable[[str], bool] = layers
        return chosen
    found = (layers,) if isinstance(layers, int | str) else tuple(layers) if isinstance(layers, Collection) else None
    if not found or not all(isinstance(one, str) or (type(one) is int and one >= 0) for one in found):
        raise KindError(
            f"layers: numbers from 0 on, names of modules, or a function of names; got {layers!r}; for example "
            "layers=[0, 5]"
        )
    return frozenset(found)
