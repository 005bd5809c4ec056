"""The words of a formula: pairs, indices, sizes, tables and functions."""

from __future__ import annotations

import keyword
from typing import Any

from .errors import FormulaError, KindError
from .expressions import Expression, described, expression, index, mask, operand
from .functions import FUNCTIONS, Elementary, Where
from .nodes import BATCH, HEAD, HEADS, KEYS, SCORE, WIDTH, I, J, Pair, Read, read, symbols

# -- pairs of a query and a key --------------------------------------------------------------------------------


class PairExpression(Expression):
    """`dot` is q·k; `dot(table("M"))` is qᵀ M k, and `dot(table("M")[h])` has one M for each head."""

    __slots__ = ()

    def __call__(self, metric: object, *more: object) -> Expression:
        kind = self.node.word
        if more:
            raise FormulaError(
                f"{kind}: takes a metric or nothing; got {1 + len(more)} arguments; {kind} alone is of q and k"
            )
        if kind == "cosine":
            raise FormulaError("cosine: takes no metric; got one; write dot(M) / sqrt(…) with your own norms")
        if not isinstance(metric, Expression) or not isinstance(metric.node, Read):
            shown = repr(metric) if isinstance(metric, Expression) else described(metric)
            raise KindError(f'{kind}: the metric is a table, as in {kind}(table("M")); got {shown}')
        outside = symbols(metric.node) - {HEAD, BATCH}
        if outside:
            named = ", ".join(sorted(symbol.name for symbol in outside))
            raise FormulaError(f"{kind}: a metric may differ by h and b only; got {metric!r}, which depends on {named}")
        return Expression(Pair(kind, metric.node))


dot = PairExpression(Pair("dot"))
sqdist = PairExpression(Pair("sqdist"))
cosine = PairExpression(Pair("cosine"))

# -- indices, sizes, and the variable of ψ -----------------------------------------------------------------------

i, j, h, b = Expression(I), Expression(J), Expression(HEAD), Expression(BATCH)
H, d, n = Expression(HEADS), Expression(WIDTH), Expression(KEYS)
s = Expression(SCORE)

# -- tables ------------------------------------------------------------------------------------------------------

ARGUMENTS = frozenset("self q k v dy x Wq Wk Wv attention start totals engine dropout seed".split())
WORDS = frozenset("s i j h b H d n dot sqdist cosine table share each softmax equal".split()) | frozenset(FUNCTIONS)
RESERVED = ARGUMENTS | WORDS


class Table(Expression):
    """An array of the call, by name. `table("scale")` is a number; `table("bias")[h, i - j]` an entry."""

    __slots__ = ()

    def __getitem__(self, indices: Any) -> Expression:
        given = indices if isinstance(indices, tuple) else (indices,)
        place = f'table("{self.node.table}")[…]'
        for part in given:
            if isinstance(part, slice) or part is Ellipsis or part is None:
                raise KindError(
                    f"{place}: one integer for each axis; got {part!r}; leave out no axis and write j for it"
                )
        return Expression(read(self.node.table, *(index(part, place) for part in given)))


def table(name: str) -> Table:
    """An array that the call brings: `att(q, k, v, bias=array)` for `table("bias")`."""
    if not isinstance(name, str):
        raise KindError(
            f'table: the name of an argument, as in table("bias"); got {name!r}; pass the array with the call'
        )
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_") or not name.isascii():
        raise FormulaError(f"table: a plain identifier names it; got {name!r}")
    if name in RESERVED:
        raise FormulaError(
            f'table: "{name}" has a meaning of its own; choose another name, as in table("{name}_table")'
        )
    return Table(read(name))


# -- functions ---------------------------------------------------------------------------------------------------


class Function:
    """A function of expressions, such as `tanh`. Also the ψ of a weight: `share(relu)`, `weight=sigmoid`."""

    def __init__(self, node: type[Elementary]) -> None:
        self.node = node
        self.__name__ = node.name
        self.__doc__ = node.__doc__

    def __call__(self, *arguments: object) -> Expression:
        name, count = self.node.name, int(self.node.nargs.args[0])
        if len(arguments) != count:
            raise FormulaError(f"{name}: takes {count} argument{'s' * (count > 1)}; got {len(arguments)}")
        if self.node is Where:
            condition, *values = arguments
            return expression(Where(mask(condition, name).node, *(operand(value, name) for value in values)))
        return expression(self.node(*(operand(argument, name) for argument in arguments)))

    def __repr__(self) -> str:
        return self.node.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return function, (self.node.name,)


def function(name: str) -> Function:
    """The function of that name."""
    return NAMED[name]


NAMED = {name: Function(node) for name, node in FUNCTIONS.items()}
exp, log, sqrt, tanh, abs_, relu, sigmoid, softplus, gelu, erf, cos, sin, floor, minimum, maximum, where = (
    NAMED.values()
)
