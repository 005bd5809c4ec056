"""What is kept of the calls that are seen: copies in the model's dtype, of chosen layers and heads, within bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ...algebra.errors import CallError, RegardError
from ...algebra.symbols import b, h, i, j, s, table
from ...algebra.weights import each
from ...attention import Attention
from ..record import Captured, Missing
from .bounds import free_memory, shown
from .heads import chosen_heads
from .masks import identity
from .places import Places

Layers = Collection[int | str] | Callable[[str], bool] | None
Progress = Callable[[int, int], None]
LARGEST = 65504.0  # of float16
SLOT = "slot"
Call = Any  # what an attention makes of its arguments: arrays in one shape, and tables


@dataclass(frozen=True)
class Choice:
    """What of each call is kept."""

    layers: Layers = None
    heads: tuple[int, ...] | None = None
    values: bool = True
    half: bool = False
    limit: int | None = None

    def takes(self, index: int, name: str, label: str) -> bool:
        """Whether a call is among the chosen, by its place in the order of calls or by its module's name."""
        if self.layers is None:
            return True
        if callable(self.layers):
            return bool(self.layers(name))
        return any(one in self.layers for one in (index, name, label))


class Recorder:
    """Keeps calls. `layers` and `missing` grow as the model runs, `bytes` counts what was kept."""

    def __init__(self, places: Places, choice: Choice, folder: Path | None, progress: Progress | None) -> None:
        self.layers: list[Captured] = []
        self.missing: list[Missing] = []
        self.notes: list[str] = []
        self.calls = self.bytes = self._told = 0
        self._places, self._choice, self._folder, self._progress = places, choice, folder, progress
        self._limit = choice.limit
        self._seen: Counter[str] = Counter()
        self._tables: dict[Any, tuple[torch.Tensor, torch.Tensor]] = {}

    def keep(
        self,
        formula: Attention,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        tables: Mapping[str, Any],
        start: Any = None,
    ) -> None:
        """One call, of the module that runs now."""
        try:
            call = formula.parts(q.detach(), k.detach(), v.detach(), start=start, **tables).call
        except RegardError as problem:
            self.refuse(f"its call cannot be said as a formula: {problem}")
        else:
            self.keep_call(call)

    def keep_weights(self, weights: torch.Tensor, v: torch.Tensor, why: str) -> None:
        """A call of which only the weights (b, h, i, j) are known."""
        batch, heads, queries, keys = weights.shape
        chosen = self._heads(heads)
        formula, tables = Attention(table("weights")[b, h, i, j], each(s)), {"weights": weights.detach()}
        if chosen is not None:
            slots = torch.zeros(heads, dtype=torch.int64, device=weights.device)
            slots[list(chosen)] = torch.arange(len(chosen), device=weights.device)
            formula = Attention(table("weights")[b, table(SLOT)[h], i, j], each(s))
            tables = {"weights": weights.detach()[:, list(chosen)], SLOT: slots}
        q, k = (weights.new_zeros((batch, heads, size, 1)).detach() for size in (queries, keys))
        before = len(self.layers)
        self.keep(formula, q, k, v.to(weights.dtype), tables, start=0)
        if len(self.layers) > before:
            self.notes.append(f"{self.layers[-1].name}: its weights themselves are kept, not q and k: {why}")

    def refuse(self, why: str) -> None:
        """The call of the module that runs now is seen, and not kept."""
        self._places.serve()
        label = self._label()
        if self._choice.takes(self.calls, self._name, label):
            self.missing.append(Missing(label, why))
        self.calls += 1

    def keep_call(self, call: Call) -> None:
        """One call in its one shape, of the module that runs now."""
        if call.xp.name != "torch" or call.q.is_meta:
            return self.refuse("its arrays are not those of PyTorch, or hold no numbers")
        self._places.serve()
        label, index = self._label(), self.calls
        self.calls += 1
        if not self._choice.takes(index, self._name, label):
            return None
        heads = self._heads(call.heads)
        if heads == ():
            why = f"it has {call.heads} heads, and none of those that were chosen"
            return self.missing.append(Missing(label, why))
        with torch.no_grad():
            self._keep(call, label, heads)
        return None

    def report(self) -> None:
        """Tell how far it is, where something was kept since."""
        if self._progress is not None and len(self.layers) > self._told:
            self._told = len(self.layers)
            self._progress(self._told, self.bytes)

    def room(self, device: torch.device) -> int:
        """The bytes that may still be kept."""
        if self._limit is None:
            self._limit = free_memory(device) // 4
        return self._limit - (0 if self._folder is not None else self.bytes)

    def end(self, unread: Mapping[str, str]) -> None:
        """Let go of the model's own tables. unread: why steps of modules were not followed, by name."""
        self._tables.clear()
        for name, why in unread.items():
            if self._choice.takes(-1, name, name):
                self.missing.append(Missing(name, why))

    # -- one call --------------------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return self._places.name or "outside of the model"

    def _label(self) -> str:
        self._seen[self._name] += 1
        count = self._seen[self._name]
        return self._name if count == 1 else f"{self._name} ({count})"

    def _heads(self, count: int) -> tuple[int, ...] | None:
        """The chosen heads of a call; None where all are."""
        if self._choice.heads is None or self._choice.heads == tuple(range(count)):
            return None
        return tuple(head for head in self._choice.heads if head < count)

    def _keep(self, call: Call, label: str, heads: tuple[int, ...] | None) -> None:
        formula, tables = _as_attention(call), {name: _table(call, name) for name in call.formula.ranks}
        q, k, v = call.q, call.k, call.v if self._choice.values else None
        if heads is not None:
            formula, tables = chosen_heads(formula, tables, heads, call.heads, q)
            q, k, v = (x if x is None else _some(x, heads, call.heads) for x in (q, k, v))
        size = self._size([q, k, v], tables)
        if not self._fits(label, size, q.device):
            return
        halved = self._choice.half and all(_halves(x) for x in (q, k, v) if x is not None)
        if self._choice.half and not halved and q.dtype != torch.bfloat16:
            self.notes.append(f"{label}: kept in {q.dtype}, since its numbers are too large for float16")
        q, k, v = (x if x is None else _copy(x, halved) for x in (q, k, v))
        kept = {name: self._kept(value) for name, value in tables.items()}
        start = call.first if call.first is not None else call.start.detach().clone()
        captured = Captured(label, formula, q, k, v, kept, start, heads=heads)
        self.layers.append(captured if self._folder is None else self._written(captured))
        self.bytes += size

    def _written(self, captured: Captured) -> Captured:
        from ..keeping.store import write_layer

        assert self._folder is not None
        self._tables.clear()
        return write_layer(self._folder, len(self.layers), captured)

    def _kept(self, value: torch.Tensor) -> torch.Tensor:
        """A copy of a table; layers that share one share its copy."""
        key = identity(value)
        if key not in self._tables:
            self._tables[key] = (value, value.detach().clone())
        return self._tables[key][1]

    def _size(self, arrays: list[torch.Tensor | None], tables: Mapping[str, torch.Tensor]) -> int:
        kept = [x for x in arrays if x is not None]
        size = sum(x.numel() * (2 if self._choice.half else x.element_size()) for x in kept)
        new = [x for x in tables.values() if identity(x) not in self._tables]
        return int(size + sum(x.numel() * x.element_size() for x in new))

    def _fits(self, label: str, size: int, device: torch.device) -> bool:
        room = self.room(device)
        if size <= room:
            return True
        self.missing.append(
            Missing(
                label,
                f"it takes {shown(size)}, and {shown(max(room, 0))} are left of limit=; choose layers= or "
                "heads=, keep less by half=True or values=False, stream to disk by folder=, or raise limit=",
            )
        )
        return False


def _as_attention(call: Call) -> Attention:
    formula = call.formula
    return formula if isinstance(formula, Attention) else Attention(formula.score, formula.weight, formula.mask)


def _table(call: Call, name: str) -> torch.Tensor:
    """A table as it was given; a mask with four axes, of size 1 where it does not vary."""
    if call.formula.ranks[name] >= 0:
        given: torch.Tensor = call.given[name]
        return given.detach()
    four: torch.Tensor = call.tables[name].detach()
    for axis, stride in enumerate(four.stride()):
        if stride == 0:
            four = four.narrow(axis, 0, 1)
    return four


def _some(array: torch.Tensor, heads: tuple[int, ...], of: int) -> torch.Tensor:
    """The chosen heads; those of keys that several queries share are repeated, since the choice may be uneven."""
    group = of // array.shape[1]
    return array[:, [head // group for head in heads]]


def _halves(array: torch.Tensor) -> bool:
    return array.dtype != torch.bfloat16 and (array.numel() == 0 or float(array.abs().max()) <= LARGEST)


def _copy(array: torch.Tensor, half: bool) -> torch.Tensor:
    array = array.detach()
    if half and array.dtype != torch.float16:
        return array.to(torch.float16, memory_format=torch.contiguous_format)
    return array.clone(memory_format=torch.contiguous_format)


def checked_heads(heads: Any) -> tuple[int, ...] | None:
    """Heads as numbers."""
    if heads is None:
        return None
    found = tuple(heads) if isinstance(heads, Collection) and not isinstance(heads, str) else (heads,)
    if not found or not all(type(head) is int and head >= 0 for head in found) or len(set(found)) < len(found):
        raise CallError(f"heads: different numbers from 0 on, at least one; got {heads!r}")
    return found
