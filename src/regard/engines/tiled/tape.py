"""A list of PyTorch calls that write into a few buffers: expressions, compiled for blocks of pairs.

Folding an expression records one step for each operation; a step writes over an argument that nothing reads later,
so that a block needs as many buffers as values live at once (one for softmax, two for its gradient).

A truth is a pattern of bits, all ones or all zeros, as wide as a number: `x & truth` is x or 0 exactly, whatever
stood there, NaN too, and costs a tenth of `torch.where`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ...algebra.fold import Number, fold
from ...algebra.functions import Elementary, Where
from ...algebra.nodes import Node, Pair, Read
from . import calls

Kernel = Callable[..., Any]


@dataclass(frozen=True)
class Value:
    """A number or truth for every pair of a block: the result of a step, or something brought to the block."""

    place: int


@dataclass(frozen=True)
class Step:
    """out = kernel(arguments)."""

    kernel: Kernel
    out: int
    arguments: tuple[int, ...]
    options: dict[str, Any]

    def run(self, registers: list[Any]) -> None:
        self.kernel(*[registers[place] for place in self.arguments], out=registers[self.out], **self.options)


class Tape:
    """Steps over registers: constants and what is brought first, then buffers."""

    def __init__(self) -> None:
        self.brought: dict[Any, int] = {}  # symbol: register
        self.constants: dict[float, int] = {}  # number: register
        self.steps: list[Step] = []
        self.sections: list[int] = []  # where the engine acts between steps
        self.kept: set[int] = set()  # values that are read after the last step
        self.filled: set[int] = set()  # brought values that are buffers
        self.whole_blocks: set[int] = set()  # values with a number for every pair, not vectors
        self.memo: dict[Any, Any] = {}
        self._count = 0

    # -- recording ----------------------------------------------------------------------------------------------

    def value(self, node: Any) -> Value:
        """The value of an expression, as a register of its own."""
        return self.register(self.plain(fold(node, self, self.memo)))

    def bring(self, symbol: Any) -> Value:
        """A register that the engine sets before the steps run."""
        if symbol not in self.brought:
            self.brought[symbol] = self._next()
        return Value(self.brought[symbol])

    def fill(self, symbol: Any) -> Value:
        """A buffer that the engine writes, such as a product of matrices."""
        value = self.bring(symbol)
        self.filled.add(value.place)
        self.whole_blocks.add(value.place)
        return value

    def record(self, kernel: Kernel, *arguments: Any, **options: Any) -> Value:
        """One more step."""
        out = self._next()
        places = tuple(self.register(argument).place for argument in arguments)
        if self.whole_blocks.isdisjoint(places):  # of vectors alone: the result is spread over the block
            kernel, options = calls.spread, {"kernel": kernel, "options": options}
        self.whole_blocks.add(out)
        self.steps.append(Step(kernel, out, places, options))
        return Value(out)

    def section(self, *read_later: Value) -> None:
        """End a section: the engine may read these values now."""
        self.sections.append(len(self.steps))
        for value in read_later:
            self.steps.append(
                Step(calls.nothing, value.place, (value.place,), {})
            )  # a reader, so that it lives until here

    def keep(self, *values: Value) -> None:
        """Values that the engine reads after the last step."""
        self.kept |= {value.place for value in values}

    def register(self, value: Any) -> Value:
        if isinstance(value, Value):
            return value
        number = float(value)
        if number not in self.constants:
            self.constants[number] = self._next()
        return Value(self.constants[number])

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def __getattr__(self, name: str) -> Any:
        """`tape.tanh(x)` records torch.tanh."""
        if name.startswith("_"):
            raise AttributeError(name)
        kernel = getattr(torch, name)
        return lambda *arguments, **options: self.record(kernel, *arguments, **options)

    # -- the fold -----------------------------------------------------------------------------------------------

    def number(self, value: Number) -> Any:
        return float(value)

    def symbol(self, symbol: Any) -> Any:
        return self.bring(symbol)

    def pair(self, pair: Pair) -> Any:
        raise NotImplementedError(f"{pair} has no symbol")

    def sum(self, terms: list[Any]) -> Any:
        numbers = sum(term for term in terms if isinstance(term, float))
        values = [_split(term) for term in terms if not isinstance(term, float)]
        if numbers:
            values.append((1.0, numbers))
        values.sort(key=lambda term: term[0] != 1.0)  # one that is not scaled begins
        (factor, total), *others = values
        total = total if factor == 1.0 else self.mul(total, factor)
        for factor, value in others:
            total = self.add(total, value, alpha=factor) if factor != 1.0 else self.add(total, value)
        return total

    def product(self, coefficient: Number, above: list[Any], below: list[Any]) -> Any:
        number, values = float(coefficient), []
        for factor in above:
            scale, value = (factor, None) if isinstance(factor, float) else _split(factor)
            number *= scale
            values += [] if value is None else [value]
        divisors = []
        for factor in below:
            scale, value = (factor, None) if isinstance(factor, float) else _split(factor)
            number = number / scale if scale else number * float("inf")
            divisors += [] if value is None else [value]
        if not values and not divisors:
            return number
        if not values:
            values, divisors = [self.reciprocal(divisors[0])], divisors[1:]
        total = values[0]
        for value in values[1:]:
            total = self.mul(total, value)
        for value in divisors:
            total = self.div(total, value)
        return total if number == 1.0 else Multiple(number, total)

    def power(self, base: Any, exponent: Any) -> Any:
        base, exponent = self.plain(base), self.plain(exponent)
        if isinstance(exponent, float) and exponent in (2.0, 3.0, 4.0):
            square = self.mul(base, base)
            return square if exponent == 2.0 else self.mul(square, base if exponent == 3.0 else square)
        if isinstance(base, float) and base == 2.0:
            return self.exp2(exponent)
        return self.pow(base, exponent)

    def apply(self, function: type[Node], arguments: list[Any]) -> Any:
        assert issubclass(function, Elementary)
        plain = [self.plain(argument) for argument in arguments]
        if function is Where:
            return self._choice(*plain)
        return function.block(self, *plain)

    def whole(self, function: type[Elementary], *arguments: Any) -> Value:
        """A function without kernels of its own: computed as on any array, then copied."""
        return self.record(calls.whole, *arguments, function=function)

    def read(self, node: Read, indices: list[Any]) -> Any:
        table = self.bring(Table(node.table))
        return self.record(calls.gather, table, *(self.plain(index) for index in indices))

    def truth(self, value: bool) -> Any:
        return self.compare(0.0, "==", 0.0 if value else 1.0)

    def compare(self, left: Any, relation: str, right: Any) -> Any:
        compared = {"<=": torch.le, "<": torch.lt, ">=": torch.ge, ">": torch.gt}.get(relation, torch.eq)
        return self.record(calls.compare, self.plain(left), self.plain(right), relation=compared)

    def given(self, name: str) -> Any:
        raise NotImplementedError(f"{name}: masks of the call are free of vectors")

    def both(self, parts: list[Any]) -> Any:
        return self._chained(calls.both, parts)

    def either(self, parts: list[Any]) -> Any:
        return self._chained(calls.either, parts)

    def negation(self, part: Any) -> Any:
        return self.record(calls.negation, part)

    # -- helpers ------------------------------------------------------------------------------------------------

    def plain(self, value: Any) -> Any:
        """A value with its factor multiplied in."""
        return self.mul(value.value, value.factor) if isinstance(value, Multiple) else value

    def masked(self, value: Value, truth: Value) -> Value:
        """The value where the truth holds, 0 elsewhere."""
        return self.record(calls.both, value, truth)

    def hidden(self, value: Value, truth: Value) -> Value:
        """The value where the truth holds, −∞ elsewhere."""
        return self.record(calls.hide, value, truth)

    def _chained(self, kernel: Kernel, parts: list[Any]) -> Any:
        first, *others = parts
        for part in others:
            first = self.record(kernel, first, part)
        return first

    def _choice(self, condition: Any, a: Any, b: Any) -> Any:
        taken = None if a == 0.0 else self.masked(self.register(a), condition)
        other = None if b == 0.0 else self.masked(self.register(b), self.negation(condition))
        if taken is None or other is None:
            return other if taken is None else taken
        return self.record(calls.either, taken, other)


@dataclass(frozen=True)
class Multiple:
    """factor · value, not yet multiplied: a sum takes the factor for nothing."""

    factor: float
    value: Value


@dataclass(frozen=True)
class Table:
    """A table of the call, brought whole."""

    name: str


def _split(value: Any) -> tuple[float, Any]:
    return (value.factor, value.value) if isinstance(value, Multiple) else (1.0, value)
