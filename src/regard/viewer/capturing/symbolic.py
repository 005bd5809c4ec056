"""A function of PyTorch's tensors, run on regard's expressions: what it computes, as a formula.

    lambda score, b, h, i, j: score + slopes[h] * (j - i)        score + slopes[h] · (j − i)

Operators and functions are taken over one by one; a tensor that is indexed by a symbol becomes a table. What has no
counterpart raises, and the caller falls back on numbers.
"""

from __future__ import annotations

import keyword
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...algebra.errors import CallError
from ...algebra.expressions import Expression, Mask, equal
from ...algebra.symbols import NAMED, RESERVED, abs_, maximum, minimum, table, where

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow,
    "true_divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "ge": operator.ge, "le": operator.le, "gt": operator.gt, "lt": operator.lt,
    "eq": equal, "ne": lambda x, y: ~equal(x, y), "minimum": minimum, "maximum": maximum,
    "logical_and": operator.and_, "logical_or": operator.or_, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
}  # fmt: skip
WORDS = {"and": "logical_and", "or": "logical_or", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder"}
UNARY: dict[str, Callable[[Any], Any]] = {
    **{name: NAMED[name] for name in ("tanh", "exp", "log", "sqrt", "relu", "sigmoid", "cos", "sin", "floor")},
    "abs": abs_, "neg": operator.neg, "logical_not": operator.invert, "bitwise_not": operator.invert,
    "invert": operator.invert, "square": lambda x: x * x, "exp2": lambda x: 2**x,
}  # fmt: skip
SAME = ("to", "float", "double", "type_as", "clone", "detach", "view", "reshape", "long", "int", "bool")


class Symbol:
    """An expression, a mask, or a tensor of which some indices are known, in place of a tensor."""

    def __init__(self, value: Any, run: Symbolic, indices: tuple[Any, ...] = ()) -> None:
        self.value, self.run, self.indices = value, run, indices

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        """A function of PyTorch, of which an argument is a symbol."""
        one = next(part for part in _flat(arguments) if isinstance(part, Symbol))
        return one.run.applied(function.__name__, arguments, options or {})

    def __getitem__(self, index: Any) -> Symbol:
        return self.run.read(self.value, (*self.indices, *(index if isinstance(index, tuple) else (index,))))

    def __getattr__(self, name: str) -> Any:
        if name in SAME:
            return lambda *arguments, **options: self
        if name in BINARY or name in UNARY or name in ("where", "clamp", "masked_fill"):
            return lambda *arguments, **options: self.run.applied(name, (self, *arguments), options)
        raise CallError(f"{name}: has no counterpart in a formula")

    def __bool__(self) -> bool:
        raise CallError("a branch of Python hangs on an index")

    def __hash__(self) -> int:
        return id(self)


def _operator(name: str, swapped: bool) -> Any:
    def run(self: Symbol, *others: Any) -> Any:
        arguments = (*others, self) if swapped else (self, *others)
        return self.run.applied(name, arguments, {})

    return run


for _name in "add sub mul truediv floordiv mod pow and or ge le gt lt eq ne neg invert abs".split():
    setattr(Symbol, f"__{_name}__", _operator(WORDS.get(_name, _name), swapped=False))
for _name in "add sub mul truediv floordiv mod pow and or".split():
    setattr(Symbol, f"__r{_name}__", _operator(WORDS.get(_name, _name), swapped=True))


class Symbolic(TorchFunctionMode):
    """Runs functions on symbols. `tables` holds the tensors that were read, `masks` where a score was kept."""

    def __init__(self, names: Mapping[int, str]) -> None:
        super().__init__()
        self.tables: dict[str, torch.Tensor] = {}
        self.masks: list[Mask] = []
        self._names = names
        self._sources: dict[str, torch.Tensor] = {}

    def __call__(self, function: Callable[..., Any], *values: Any) -> Any:
        """What the function makes of expressions."""
        with self:
            return self.value(function(*(Symbol(value, self) for value in values)))

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        """One function; those without symbols run as they are."""
        if not any(isinstance(part, Symbol) for part in _flat(arguments)):
            return function(*arguments, **(options or {}))
        return self.applied(function.__name__, arguments, options or {})

    def applied(self, name: str, arguments: Any, options: Mapping[str, Any]) -> Any:
        """A function of symbols, by its name in PyTorch."""
        bare = name.strip("_")
        bare = WORDS.get(bare, bare)
        if bare in ("getitem", "index"):
            index = arguments[1]
            return self.read(arguments[0], index if isinstance(index, tuple) else (index,))
        if bare in SAME and bare not in BINARY:
            return arguments[0]
        if bare[:1] == "r" and bare[1:] in BINARY and bare not in UNARY:  # rsub, rmul
            bare, arguments = bare[1:], arguments[::-1]
        if bare == "where":
            return self._where(*arguments)
        if bare == "clamp":
            return self._clamped(*arguments, **options)
        if bare == "masked_fill":
            return self._where(arguments[1], arguments[2], arguments[0])
        values = [self.value(part) for part in arguments]
        if bare in BINARY and len(values) == 2 and not options:
            return Symbol(BINARY[bare](*values), self)
        if bare in UNARY and len(values) == 1:
            return Symbol(UNARY[bare](*values), self)
        raise CallError(f"{name}: has no counterpart in a formula")

    def _clamped(self, value: Any, min: Any = None, max: Any = None) -> Symbol:  # noqa: A002 - PyTorch's names
        made = self.value(value)
        made = made if min is None else maximum(made, self.value(min))
        return Symbol(made if max is None else minimum(made, self.value(max)), self)

    def _where(self, truths: Any, kept: Any, other: Any) -> Symbol:
        condition = self.value(truths)
        for value, admits in ((other, condition), (kept, ~condition)):
            if _is_lowest(value):
                self.masks.append(admits)
                return Symbol(self.value(kept if value is other else other), self)
        return Symbol(where(condition, self.value(kept), self.value(other)), self)

    def read(self, tensor: Any, indices: tuple[Any, ...]) -> Symbol:
        """An entry of a tensor, or what is known of it so far."""
        if isinstance(tensor, Symbol):
            return tensor[indices]
        if not isinstance(tensor, torch.Tensor) or any(isinstance(one, slice) or one is None for one in indices):
            raise CallError("a part of a tensor that is no single entry")
        if len(indices) < tensor.ndim:
            return Symbol(tensor, self, indices)
        places = tuple(one if type(one) is int else self.value(one) for one in indices)
        places = tuple(
            place % size if type(place) is int else place for place, size in zip(places, tensor.shape, strict=True)
        )
        entry = table(self._name(tensor))[places]
        return Symbol(entry >= 1 if tensor.dtype == torch.bool else entry, self)

    def value(self, part: Any) -> Any:
        """A symbol's expression, or the number that stands in a tensor."""
        if isinstance(part, Symbol):
            if not isinstance(part.value, Expression | Mask):
                raise CallError("a tensor of which not every index is known")
            return part.value
        if isinstance(part, torch.Tensor):
            if part.numel() != 1 or part.dtype == torch.bool:
                raise CallError("a tensor that is not indexed")
            return part.item()
        if isinstance(part, bool) or not isinstance(part, int | float) or not math.isfinite(part):
            raise CallError(f"{part!r}: no number of a formula")
        return part

    def _name(self, tensor: torch.Tensor) -> str:
        kept = tensor.long() if tensor.dtype == torch.bool else tensor
        said = self._names.get(id(tensor), "")
        plain = said.isascii() and said.isidentifier() and not said.startswith("_") and not keyword.iskeyword(said)
        stem = said if plain and said not in RESERVED else "entries"
        for name in (stem, *(f"{stem}{count}" for count in range(2, 99))):
            if name not in self.tables:
                self.tables[name] = kept
                self._sources[name] = tensor
                return name
            if self._sources.get(name) is tensor:
                return name
        raise CallError("more tables than names")


def closed_over(*functions: Any) -> dict[int, str]:
    """The names by which functions know tensors, by the tensor's id."""
    found: dict[int, str] = {}
    waiting, seen = list(functions), set()
    while waiting:
        function = waiting.pop()
        code = getattr(function, "__code__", None)
        if code is None or id(function) in seen:
            continue
        seen.add(id(function))
        cells = zip(code.co_freevars, function.__closure__ or (), strict=False)
        known = {name: cell.cell_contents for name, cell in cells if _is_full(cell)}
        known |= {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
        for name, value in known.items():
            if isinstance(value, torch.Tensor):
                found[id(value)] = name
            elif callable(value):
                waiting.append(value)
    return found


def _is_full(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _is_lowest(value: Any) -> bool:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    return isinstance(value, float) and value == -math.inf


def _flat(arguments: Any) -> Any:
    for part in arguments:
        if isinstance(part, list | tuple):
            yield from _flat(part)
        else:
            yield part
