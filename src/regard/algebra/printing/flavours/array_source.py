"""The formula read as source on whole arrays, for NumPy and PyTorch.

Kinds keep the numbers right. Indices are integer arrays, and are cast to the dtype of q where they meet a real number,
a division, a power or a function: `2 ** (-h - 1)` on integers would be 0, and an integer tensor over an integer is
float32 whatever q is. Functions of plain numbers, as in sqrt(d), come from `math`, so that no dtype is forced on q.

A table that stands in a comparison, in an index or under // and % may hold integers: it stays as it came, and is
cast like an index where it meets a real number. Every other table becomes an array of the dtype of q at the door.

Where a mask is there, `guard` names it: what is divided by, or has a logarithm or a root taken, is 1 at pairs that do
not count, so that no NaN arises there, nor its gradient.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar

from ...functions import Elementary, Log, Maximum, Minimum, Mod, Sqrt
from ...nodes import SCORE, Index, Node, Pair, Read
from .parts import (
    AND,
    ATOM,
    OR,
    POWER,
    PRODUCT,
    SIGN,
    SUM,
    TERNARY,
    WHOLE,
    Kind,
    Part,
    atom,
    joined,
    raised,
)  # fmt: skip
from .source import WHOLE_HELPERS, Source, is_tame, needs_help

_NAME = re.compile(r"(?<![\w.‹])[^\W\d]\w*(?![\w=])")  # not attributes, keywords and tables


class ArraySource(Source):
    """The algebra of pieces of NumPy source."""

    flavour = "numpy"
    cast: ClassVar[str] = "{}.astype(q.dtype)"
    to_index: ClassVar[str] = "{}.astype(int)"
    constant: ClassVar[str] = "np.asarray({}, dtype=q.dtype)"
    choice: ClassVar[str] = "np.where({}, {}, {})"
    filled: ClassVar[str] = "np.full_like"
    clipped: ClassVar[str] = "np.clip({}, 0, {})"

    def __init__(self, pairs: dict[Pair, str], kept: frozenset[str], guard: str | None = None) -> None:
        super().__init__("")
        self.pairs, self.kept, self.guard = pairs, kept, guard
        self.constants = {"h", "b", "H", "d", "n", "q", "np", "torch", "math"}

    def symbol(self, symbol: Any) -> Part:
        if symbol == SCORE:
            return atom("scores", Kind.REAL)
        kind = Kind.INDEX if isinstance(symbol, Index) else Kind.INT
        return replace(super().symbol(symbol), kind=kind)

    def pair(self, pair: Pair) -> Part:
        return atom(self.pairs[pair], Kind.REAL, self.intervals.pair(pair))

    def divisor(self, part: Part, above: list[Part]) -> Part:
        if not part.may_be_zero:
            return part
        if part.is_scalar:  # Python would raise an exception at 0
            return self.array(part) if all(factor.is_scalar for factor in above) else part
        return self.guarded(part)

    def power(self, base: Part, exponent: Part) -> Part:
        bounds = self.intervals.power(base.bounds, exponent.bounds)
        if not is_tame(base, exponent, bounds):
            base = self.guarded(self.array(base) if exponent.is_scalar else self.real(base))
        elif base.is_scalar and exponent.is_scalar:
            return super().power(base, exponent)
        text = raised(self.real(base).within(ATOM), self.real(exponent).within(SIGN))
        return Part(text, POWER, Kind.REAL, bounds)

    # -- functions -----------------------------------------------------------------------------------------------

    def apply(self, function: type[Node], arguments: list[Part]) -> Part:
        assert issubclass(function, Elementary)
        if all(argument.is_scalar for argument in arguments):
            if not needs_help(function, arguments) and "python" not in function.helpers:
                return super().apply(function, arguments)
            arguments = [self.array(argument) for argument in arguments]
        if function.nargs.args[0] > 1:
            return (
                super().apply(function, arguments)
                if function not in (Minimum, Maximum)
                else self.extreme(function, arguments)
            )
        return self.elementwise(function, arguments[0])

    def elementwise(self, function: type[Elementary], argument: Part) -> Part:
        bounds = self.intervals.apply(function, [argument.bounds])
        if function.keeps_integers and argument.kind in WHOLE:
            return atom(function.source[self.flavour].format(argument.text), argument.kind, bounds)
        argument = self.real(argument)
        if needs_help(function, [argument]) and function in (Log, Sqrt):
            argument = self.guarded(argument)
        return atom(self.template(function, argument).format(argument.text), Kind.REAL, bounds)

    def template(self, function: type[Elementary], argument: Part) -> str:
        return function.source[self.flavour]

    def extreme(self, function: type[Elementary], arguments: list[Part]) -> Part:
        kind = self.alike(arguments)
        texts = [self.as_kind(argument, kind).text for argument in arguments]
        bounds = self.intervals.apply(function, [argument.bounds for argument in arguments])
        return atom(function.source[self.flavour].format(*texts), kind, bounds)

    def where(self, condition: Part, a: Part, b: Part) -> Part:
        kind = self.alike([a, b])
        if condition.kind is Kind.FLAG:
            if kind is Kind.REAL:  # sizes alone choose: both branches are arrays of one shape
                a, b = self.like(a, b), self.like(b, a)
            return replace(super().where(condition, self.as_kind(a, kind), self.as_kind(b, kind)), kind=kind)
        if kind is Kind.FLOAT:
            a, kind = self.array(a), Kind.REAL
        kind = Kind.INDEX if kind is Kind.INT else kind
        texts = (condition.text, self.as_kind(a, kind).text, self.as_kind(b, kind).text)
        return atom(self.choice.format(*texts), kind)

    def like(self, part: Part, other: Part) -> Part:
        """The part as an array of the shape of the other, if it is a plain number."""
        return part if not part.is_scalar else atom(f"{self.filled}({other.text}, {part.text})", Kind.REAL)

    def whole_quotient(self, function: type[Elementary], a: Part, b: Part) -> Part:
        kind = self.alike([a, b])
        if not b.may_be_zero:
            return joined([a.within(PRODUCT), b.within(SIGN)], function.name, SUM, kind, a.bounds)
        if kind is Kind.INT:
            divided = f"{a.within(PRODUCT)} {'%' if function is Mod else '//'} {b.within(SIGN)}"
            return Part(f"{divided} if {b.within(SUM)} != 0 else 0", TERNARY, kind)
        return atom(f"{WHOLE_HELPERS[function]}({a.text}, {b.text})", kind)

    # -- tables --------------------------------------------------------------------------------------------------

    def read(self, node: Read, indices: list[Part]) -> Part:
        places = ", ".join(self.place(f"‹{node.table}›", axis, index) for axis, index in enumerate(indices))
        kind = Kind.TABLE if node.table in self.kept else Kind.REAL
        return atom(f"‹{node.table}›" + (f"[{places}]" if indices else ""), kind)

    def place(self, table: str, axis: int, index: Part) -> str:
        """One index of a read, kept inside the table: pairs that do not count may point elsewhere."""
        if index.text in ("i", "j", "h", "b") or index.bounds[0] == index.bounds[1]:
            return index.text
        if index.is_scalar:
            return f"min(max({index.text}, 0), {table}.shape[{axis}] - 1)"
        text = index.text if index.kind is not Kind.REAL else self.to_index.format(index.within(ATOM))
        return self.clipped.format(text, f"{table}.shape[{axis}] - 1")

    # -- truths --------------------------------------------------------------------------------------------------

    def countable(self, term: Part) -> Part:
        if term.kind is not Kind.TABLE or term.unsigned is not None:
            return term
        return Part(f"1 * {term.within(SIGN)}", PRODUCT, term.kind, term.bounds)

    def compare(self, left: Part, relation: str, right: Part) -> Part:
        kind = self.alike([left, right])
        return super().compare(self.as_kind(left, kind), relation, self.as_kind(right, kind))

    def given(self, name: str) -> Part:
        return atom(f"‹{name}›", Kind.MASK, (False, True))

    def both(self, parts: list[Part]) -> Part:
        return self._joined(super().both(parts), parts, "&", AND)

    def either(self, parts: list[Part]) -> Part:
        return self._joined(super().either(parts), parts, "|", OR, SUM)

    def _joined(self, plain: Part, parts: list[Part], operator: str, bond: int, inner: int = AND) -> Part:
        if all(part.is_scalar for part in parts):
            return plain
        return joined([part.within(inner) for part in parts], operator, bond, Kind.MASK, plain.bounds)

    def negation(self, part: Part) -> Part:
        if part.is_scalar or part.inverse is not None:
            return super().negation(part)
        return Part(f"~{part.within(SIGN)}", SIGN, Kind.MASK, self.intervals.negation(part.bounds))

    # -- kinds ---------------------------------------------------------------------------------------------------

    def alike(self, parts: list[Part], *, real: bool = False) -> Kind:
        kinds = {part.kind for part in parts}
        if not real and kinds <= WHOLE:
            return Kind.TABLE if Kind.TABLE in kinds else Kind.INDEX if Kind.INDEX in kinds else Kind.INT
        return Kind.FLOAT if kinds <= {Kind.INT, Kind.FLOAT} else Kind.REAL

    def as_kind(self, part: Part, kind: Kind) -> Part:
        return self.real(part) if kind in (Kind.REAL, Kind.FLOAT) else part

    def real(self, part: Part) -> Part:
        if part.kind not in (Kind.INDEX, Kind.TABLE):
            return part
        return part.atom(self.cast.format(part.within(ATOM)), Kind.REAL)

    def array(self, part: Part) -> Part:
        """The part as an array, also where it is a plain number."""
        return part.atom(self.constant.format(part.text), Kind.REAL) if part.is_scalar else self.real(part)

    def mask(self, part: Part) -> Part:
        """The truth as an array, also where it is a plain bool."""
        return part.atom(f"np.asarray({part.text})", Kind.MASK) if part.is_scalar else part

    def guarded(self, part: Part) -> Part:
        """The part where pairs count, and 1 elsewhere; as it is where it does not differ from pair to pair."""
        if self.guard is None or part.is_scalar or set(_NAME.findall(part.text)) <= self.constants:
            return part
        return part.atom(self.choice.format(self.guard, part.text, "1.0"))


class TorchSource(ArraySource):
    """The algebra of pieces of PyTorch source."""

    flavour = "torch"
    cast = "{}.to(q.dtype)"
    to_index = "{}.long()"
    constant = "q.new_tensor({})"
    choice = "torch.where({}, {}, {})"
    filled = "torch.full_like"
    clipped = "torch.clamp({}, 0, {})"

    def template(self, function: type[Elementary], argument: Part) -> str:
        if function is Sqrt and not argument.bounds[0] > 0:
            return "sqrt({0})"  # PyTorch's has an infinite slope at 0
        return super().template(function, argument)

    def extreme(self, function: type[Elementary], arguments: list[Part]) -> Part:
        if not any(argument.is_scalar for argument in arguments):
            return super().extreme(function, arguments)
        kind = self.alike(arguments)
        limit, value = sorted(
            (self.as_kind(argument, kind) for argument in arguments), key=lambda part: not part.is_scalar
        )
        side = "max" if function is Minimum else "min"
        bounds = self.intervals.apply(function, [argument.bounds for argument in arguments])
        return atom(f"{value.within(ATOM)}.clamp({side}={limit.text})", kind, bounds)

    def mask(self, part: Part) -> Part:
        return part.atom(f"torch.tensor({part.text}, device=q.device)", Kind.MASK) if part.is_scalar else part
