"""Which engine runs a call, why not the others, and what it costs.

Each engine is a module that answers

    GIVES             what it can be asked for: "y", "totals", "matrices" (whole scores and weights), "gradients" (vjp)
    refusal(call)     why it cannot run a call, in one clause; None where it can
    cost(call)        operations, bytes and seconds
    attend(call)      the forward pass;  scores(call), vjp(steps, dy) where it gives them
    reserve(call)     why it runs a call when it is asked for by name alone; not every engine has it

`auto` takes, of the engines that hold O(N) numbers, the one that should be the fastest; whole matrices only where no
other engine can run the call, or where they are what was asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ..algebra.errors import EngineError
from . import dense, python, sdpa, tiled, triton
from .call import Call
from .costs import Cost, is_on_gpu, learns, rates

ENGINES: dict[str, ModuleType] = {
    "sdpa": sdpa, "triton": triton, "tiled": tiled, "dense": dense, "python": python,
}  # fmt: skip
STREAMING = ("sdpa", "triton", "tiled")  # O(N) numbers
WANTS = {
    "totals": "it keeps no totals",
    "matrices": "it never holds whole matrices of scores or weights",
    "gradients": "its gradients come from PyTorch's own derivative: call backward()",
}


@dataclass(frozen=True)
class Option:
    """One engine: its cost, and why it was not taken (None for the one that was)."""

    engine: str
    cost: Cost
    against: str | None

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return self.cost.operations

    @property
    def bytes(self) -> int:
        """Bytes held beside the arguments."""
        return self.cost.bytes

    @property
    def seconds(self) -> float:
        """The time to expect of a forward pass; on a GPU of both passes where gradients are asked for."""
        return self.cost.seconds


@dataclass(frozen=True)
class Plan:
    """The chosen engine and the others. Prints as a table."""

    engine: str
    options: tuple[Option, ...]
    shapes: str
    notes: tuple[str, ...] = ()

    @property
    def operations(self) -> int:
        """Multiplications and additions of the chosen engine."""
        return self._chosen.operations

    @property
    def bytes(self) -> int:
        """Bytes that the chosen engine holds beside the arguments."""
        return self._chosen.bytes

    @property
    def seconds(self) -> float:
        """The time to expect of the chosen engine, as its option has it."""
        return self._chosen.seconds

    def __getitem__(self, engine: str) -> Option:
        """One engine's option."""
        for option in self.options:
            if option.engine == engine:
                return option
        raise KeyError(f"{engine}: the engines are {', '.join(option.engine for option in self.options)}")

    @property
    def _chosen(self) -> Option:
        return self[self.engine]

    def __str__(self) -> str:
        rows = [("engine", "operations", "memory", "time", "")]
        for option in self.options:
            verdict = "chosen" if option.engine == self.engine else f"not: {option.against}"
            sizes = _short(option.operations), _bytes(option.bytes), _time(option.seconds)
            rows.append((option.engine, *sizes, verdict))
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.shapes, *lines, *self.notes])


# -- the choice ------------------------------------------------------------------------------------------------

_TAKEN: dict[Any, str] = {}  # what auto took, by all that its choice depends on
_MOST = 4096


def engine_for(call: Call, engine: str = "auto", want: str = "y") -> ModuleType:
    """The engine of a call; one asked for by name is taken or refused, never replaced."""
    if engine != "auto":
        _check_name(engine)
        why = _refusal(engine, call, want)
        if why is not None:
            raise EngineError(f"engine: {engine} cannot run this call: {why}")
        return ENGINES[engine]
    if not call.xp.known(call.q):  # a compiler's shapes may stay open: no costs to compare
        return ENGINES[_candidates(call, want)[0]]
    key = _key(call, want)
    name = _TAKEN.get(key)
    if name is None:
        if len(_TAKEN) >= _MOST:
            _TAKEN.clear()
        name = _TAKEN[key] = _fastest(call, want)
    module = ENGINES[name]
    if name == "sdpa" and sdpa.refusal_by_value(call) is not None:  # numbers are looked at every time
        return ENGINES[_fastest(call, want)]
    return module


def choose(call: Call, engine: str = "auto", want: str = "y") -> Plan:
    """The plan of a call, with every engine's cost and the reason against it."""
    if engine != "auto":
        _check_name(engine)
    refusals = {name: _refusal(name, call, want) for name in ENGINES}
    taken = engine if engine != "auto" else _fastest(call, want)
    if refusals[taken] is not None:
        raise EngineError(f"engine: {taken} cannot run this call: {refusals[taken]}")
    costs = {name: module.cost(call) for name, module in ENGINES.items()}
    against = {name: refusals[name] or _preference(call, name, taken, engine) for name in ENGINES if name != taken}
    options = tuple(Option(name, costs[name], against.get(name)) for name in ENGINES)
    v = "" if call.v is None else f", v {tuple(call.given['v'].shape)}"
    shapes = f"q {tuple(call.given['q'].shape)}, k {tuple(call.given['k'].shape)}{v}, {call.dtype}, {call.xp.name}"
    shapes += ", time with the way back" if is_on_gpu(call) and learns(call) else ""
    return Plan(taken, options, shapes, tuple(getattr(ENGINES[taken], "notes", lambda _: ())(call)))


def _fastest(call: Call, want: str) -> str:
    if call.from_lists:
        return "python"
    able = _candidates(call, want)
    streaming = [name for name in able if name in STREAMING]
    return _cheapest(call, streaming) if streaming else able[0]


def _cheapest(call: Call, names: list[str]) -> str:
    """The one of least seconds; the blocks of one whose bare call takes longer already are not counted."""
    taken, least = "", math.inf
    for name in sorted(names, key=lambda name: rates(name, call).call):
        if rates(name, call).call < least and (seconds := ENGINES[name].cost(call).seconds) < least:
            taken, least = name, seconds
    return taken


def _candidates(call: Call, want: str) -> list[str]:
    """The engines that `auto` may take for a call, those that stream first."""
    return [name for name in ENGINES if _refusal(name, call, want) is None and _reserve(name, call) is None]


def _refusal(name: str, call: Call, want: str) -> str | None:
    module = ENGINES[name]
    if want not in module.GIVES:
        return WANTS[want]
    why: str | None = module.refusal(call)
    return why


def _reserve(name: str, call: Call) -> str | None:
    """Why `auto` leaves a call alone that the engine can run."""
    asked = getattr(ENGINES[name], "reserve", None)
    return None if asked is None else asked(call)


def _check_name(engine: str) -> None:
    if engine not in ENGINES:
        raise EngineError(f"engine: one of auto, {', '.join(ENGINES)}; got {engine!r}")


def _key(call: Call, want: str) -> tuple[Any, ...]:
    """All that a choice depends on but for the numbers in the arrays."""
    arrays = [call.q, call.k, call.v, *call.tables.values()]
    sizes = tuple((tuple(x.shape), x.dtype) for x in arrays if x is not None)
    kind = (call.xp.name, call.xp.device(call.q), call.from_lists, call.dropout is None, call.first)
    return (call.formula, want, kind, sizes, sdpa.circumstances(call), triton.circumstances(call))


def _preference(call: Call, name: str, taken: str, engine: str) -> str:
    if engine != "auto":
        return f"{taken} was asked for"
    if call.from_lists:
        return "lists go to the engine that reads lists"
    reserve = _reserve(name, call)
    if reserve is not None:
        return reserve
    if name in STREAMING:
        return f"{taken} should be faster"
    if name == "python":
        return f"it loops in Python, where {taken} does not"
    return f"it holds whole matrices, where {taken} streams"


# -- numbers as people read them -------------------------------------------------------------------------------


def _short(value: float) -> str:
    return _scaled(value, 1000, ("", " k", " M", " G", " T", " P"))


def _bytes(value: float) -> str:
    return _scaled(value, 1024, (" B", " KiB", " MiB", " GiB", " TiB", " PiB"))


def _time(seconds: float) -> str:
    if seconds < 1:
        return _scaled(seconds * 1e6, 1000, (" µs", " ms"))
    return next(
        f"{seconds / size:.3g} {unit}" for size, unit in ((3600, "h"), (60, "min"), (1, "s")) if seconds >= size
    )


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    amount, place = float(value), 0
    while amount >= base and place < len(units) - 1:
        amount, place = amount / base, place + 1
    return f"{amount:.3g}{units[place]}"
