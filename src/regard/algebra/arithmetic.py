"""The algebra of arrays: what a sum, a product or a function is where numbers are arrays of some library.

The library is handed in; none is imported. Symbols, tables and pairs of vectors are added by those who read a formula
over a call (the engines) or over a corpus (search).
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add, mul
from typing import Any

from .fold import Number
from .functions import Elementary, Where
from .nodes import Node


class Arithmetic:
    """Integers stay integers under + − * // %; all else is real. Plain numbers stay plain until they meet an array."""

    @property
    def xp(self) -> Any:
        """The array library."""
        raise NotImplementedError

    @property
    def real_dtype(self) -> Any:
        """The dtype of real numbers."""
        raise NotImplementedError

    @property
    def integer_dtype(self) -> Any:
        """The dtype of indices."""
        raise NotImplementedError

    @property
    def device(self) -> Any:
        """Where arrays lie."""
        raise NotImplementedError

    # -- the fold ----------------------------------------------------------------------------------------------

    def number(self, value: Number) -> Any:
        return value if isinstance(value, int) and abs(value) < 2**63 else float(value)

    def sum(self, terms: list[Any]) -> Any:
        return reduce(add, self._alike(terms))

    def product(self, coefficient: Number, above: list[Any], below: list[Any]) -> Any:
        coefficient = self.number(coefficient)
        if not below and all(map(self._is_integer, [coefficient, *above])):
            return reduce(mul, self._alike([coefficient, *above]))
        value = reduce(mul, map(self.real, above), 1.0) * float(coefficient)
        return reduce(lambda x, y: _divided(x, self.real(y)), below, value)

    def power(self, base: Any, exponent: Any) -> Any:
        if isinstance(exponent, int) and exponent > 0 and self._is_integer(base):
            return base**exponent
        base, exponent = self.real(base), self.real(exponent)
        if isinstance(base, float) and isinstance(exponent, float):
            base = self.array(base)
        if isinstance(exponent, float) and 0 < exponent < 1:  # no automatic derivative may meet 0 here
            zero = base == 0
            return self.xp.where(zero, self.xp.zeros_like(base), self.xp.where(zero, 1.0, base) ** exponent)
        return base**exponent

    def apply(self, function: type[Node], arguments: list[Any]) -> Any:
        assert issubclass(function, Elementary)
        truths, values = (arguments[:1], arguments[1:]) if function is Where else ([], arguments)
        values = self._alike(values) if function.keeps_integers else [self.real(value) for value in values]
        return function.array(self.xp, *map(self.array, truths), *map(self.array, values))

    def truth(self, value: bool) -> Any:
        return value

    def compare(self, left: Any, relation: str, right: Any) -> Any:
        left, right = (self.array(side) for side in self._alike([left, right]))
        match relation:
            case "<=":
                return left <= right
            case "<":
                return left < right
            case ">=":
                return left >= right
            case ">":
                return left > right
            case _:
                return left == right

    def both(self, parts: list[Any]) -> Any:
        return reduce(lambda x, y: x & y, parts)

    def either(self, parts: list[Any]) -> Any:
        return reduce(lambda x, y: x | y, parts)

    def negation(self, part: Any) -> Any:
        return ~self.array(part)

    # -- helpers -------------------------------------------------------------------------------------------------

    def real(self, value: Any) -> Any:
        if isinstance(value, int | float):
            return float(value)
        return value if self.xp.is_real(value) else self.xp.astype(value, self.real_dtype)

    def array(self, value: Any) -> Any:
        if not isinstance(value, bool | int | float):
            return value
        dtype = self.real_dtype if isinstance(value, float) else None
        return self.xp.full((), value, dtype=dtype, device=self.device)  # made on the device: nothing is copied there

    def _is_integer(self, value: Any) -> bool:
        return isinstance(value, int) if isinstance(value, int | float) else not self.xp.is_real(value)

    def _alike(self, values: list[Any]) -> list[Any]:
        """All integers if all of them are, otherwise all real."""
        if not all(map(self._is_integer, values)):
            return [self.real(value) for value in values]
        return [self._counted(value) for value in values]

    def _counted(self, value: Any) -> Any:
        """An integer as it is, and a truth as 0 or 1."""
        whole = isinstance(value, int) or self.xp.is_integer(value)
        return value if whole else self.xp.astype(value, self.integer_dtype)


def _divided(x: Any, y: Any) -> Any:
    """x / y by the rules of IEEE 754, also for two plain numbers."""
    if isinstance(x, float) and isinstance(y, float) and y == 0:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y
