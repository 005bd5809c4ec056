"""Which engine runs a call, why not the others, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from ..algebra.errors import EngineError
from . import dense, python
from .call import Call

ENGINES: dict[str, ModuleType] = {"dense": dense, "python": python}  # in order of preference for arrays


@dataclass(frozen=True)
class Option:
    """One engine: its cost, and why it was not taken (None for the one that was)."""

    engine: str
    operations: int
    bytes: int
    against: str | None


@dataclass(frozen=True)
class Plan:
    """The chosen engine and the others. Prints as a table."""

    engine: str
    options: tuple[Option, ...]
    shapes: str

    @property
    def operations(self) -> int:
        """Multiplications and additions of the chosen engine."""
        return self._chosen.operations

    @property
    def bytes(self) -> int:
        """Bytes that the chosen engine holds beside the arguments."""
        return self._chosen.bytes

    @property
    def _chosen(self) -> Option:
        return next(option for option in self.options if option.engine == self.engine)

    def __str__(self) -> str:
        rows = [("engine", "operations", "memory", "")]
        for option in self.options:
            verdict = "chosen" if option.engine == self.engine else f"not: {option.against}"
            rows.append((option.engine, _short(option.operations), _bytes(option.bytes), verdict))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.shapes, *lines])


def choose(call: Call, engine: str = "auto") -> Plan:
    """The plan for a call; an engine asked for by name is taken or refused, never replaced."""
    if engine != "auto" and engine not in ENGINES:
        raise EngineError(f"engine: one of auto, {', '.join(ENGINES)}; got {engine!r}")
    refusals = {name: module.refusal(call) for name, module in ENGINES.items()}
    if engine != "auto":
        if refusals[engine] is not None:
            raise EngineError(f"engine: {engine} cannot run this call: {refusals[engine]}")
        taken = engine
    else:
        taken = "python" if call.from_lists else next(name for name, why in refusals.items() if why is None)
    against = {name: refusals[name] or _preference(call, taken, engine) for name in ENGINES if name != taken}
    options = tuple(_option(name, call, against.get(name)) for name in ENGINES)
    v = "" if call.v is None else f", v {tuple(call.given['v'].shape)}"
    shapes = f"q {tuple(call.given['q'].shape)}, k {tuple(call.given['k'].shape)}{v}, {call.dtype}, {call.xp.name}"
    return Plan(taken, options, shapes)


def _option(name: str, call: Call, against: str | None) -> Option:
    operations, held = ENGINES[name].cost(call)
    return Option(name, operations, held, against)


def _preference(call: Call, taken: str, engine: str) -> str:
    if engine != "auto":
        return f"{taken} was asked for"
    if call.from_lists:
        return "lists go to the engine that reads lists"
    return f"it loops in Python, where {taken} does not"


def _short(value: int) -> str:
    return _scaled(value, 1000, ("", " k", " M", " G", " T", " P"))


def _bytes(value: int) -> str:
    return _scaled(value, 1024, (" B", " KiB", " MiB", " GiB", " TiB", " PiB"))


def _scaled(value: int, base: int, units: tuple[str, ...]) -> str:
    amount, place = float(value), 0
    while amount >= base and place < len(units) - 1:
        amount, place = amount / base, place + 1
    return f"{amount:.3g}{units[place]}"
