"""Text to formula, from a whitelisted syntax tree. No part of the text is ever evaluated."""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable
from difflib import get_close_matches
from threading import Lock
from typing import Any, NoReturn

from . import masks, weights
from .canonical import LARGEST_BITS
from .errors import ParseError, RegardError
from .expressions import Expression, Mask, equal, expression, operand
from .formula import Formula
from .symbols import NAMED, H, PairExpression, Table, b, cosine, d, dot, h, i, j, n, s, sqdist, table
from .weights import Weight

_PARSING = Lock()  # Python 3.11 loses count of its recursion where two threads parse at once
LONGEST, DEEPEST, LARGEST_NUMBER = 100_000, 80, 2**LARGEST_BITS  # every repr stays within them

Value = Expression | Mask | Weight | Formula

WORDS: dict[str, Any] = {
    "dot": dot, "sqdist": sqdist, "cosine": cosine, "i": i, "j": j, "h": h, "b": b, "H": H, "d": d, "n": n, "s": s,
    "causal": masks.causal, "everywhere": masks.everywhere, "softmax": weights.softmax, **NAMED,
}  # fmt: skip
NAMES_TABLE: dict[str, Callable[[str], Any]] = {
    "table": table, "given": masks.given, "documents": masks.documents, "padding": masks.padding,
}  # fmt: skip
CALLS: dict[str, Callable[..., Any]] = {
    **NAMED, "share": weights.share, "each": weights.each, "equal": equal, "window": masks.window,
    "prefix": masks.prefix, "Attention": Formula,
}  # fmt: skip
KEYWORDS = {"share": {"sink", "over", "among"}, "Attention": {"score", "weight", "mask"}}
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
    ast.LtE: operator.le, ast.Lt: operator.lt, ast.GtE: operator.ge, ast.Gt: operator.gt,
}  # fmt: skip
HINTS: dict[type[ast.AST], str] = {
    ast.Eq: "== is not a relation here; write equal(a, b)",
    ast.NotEq: "!= is not a relation here; write ~equal(a, b)",
    ast.BoolOp: "write & and | for and and or",
    ast.Not: "write ~ for not",
    ast.Attribute: "names have no attributes here",
    ast.Lambda: "write ψ as an expression in s, as in share(relu(s) ** 2)",
    ast.IfExp: "write where(condition, a, b)",
    ast.BitXor: "^ has no meaning here; powers are written **",
    ast.MatMult: "@ has no meaning here; q·k is written dot",
    ast.Starred: "arguments are written one by one, without *",
}
WRITTEN = {
    "−": "-", "–": "-", "×": "*", "·": "dot for q·k, * for a product", "≤": "<=", "≥": ">=", "²": "** 2",
    "√": "sqrt(…)", "∧": "&", "∨": "|", "¬": "~", "“": '"', "”": '"',
}  # fmt: skip


def _meant(word: str) -> str:
    """What somebody may have meant by a word that is none."""
    if word in ("q", "k", "v"):
        return "q·k is written dot, and values need no word"
    if word == "inf":
        return "what must not count belongs in mask="
    known = sorted({*WORDS, *CALLS, *NAMES_TABLE})
    near = get_close_matches(word, known, n=2)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f'table("{word}") reads an array; the words are {", ".join(known)}'


def parse(text: str) -> Value:
    """The formula, weight, expression or mask that `text` writes; `parse(repr(f)) == f`."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ParseError(repr(text)[:60], 0, f"a formula is read from a string; got {type(text).__name__}")
        self.text = "".join(c if c.isprintable() else " " for c in text[: LONGEST + 1]).strip()
        self._refuse_foreign(text)

    def read(self) -> Value:
        tree = self._tree()
        try:
            value = self._value(tree, 0)
        except RecursionError:
            self._refuse(tree, f"nested at most {DEEPEST} deep")
        if isinstance(value, int | float):
            value = expression(operand(value, "number"))
        if not isinstance(value, Value):
            self._refuse(tree, f"{value!r} alone is no formula; call it, as in {value!r}(dot)")
        return value

    def _tree(self) -> ast.expr:
        self._refuse_deep_brackets()
        try:
            with _PARSING:
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as problem:
            column = min(
                (problem.offset or len(self.text) + 1) - 1, len(self.text)
            )  # no offset: the text ends too early
            raise ParseError(self.text, column, f"not an expression: {problem.msg}") from None
        except (ValueError, RecursionError, MemoryError):
            raise ParseError(self.text, 0, "not an expression that can be read; write it in smaller parts") from None

    def _refuse_foreign(self, text: str) -> None:
        """Formulas are plain text: Python would read look-alikes of a letter as that letter, and skip a comment."""
        if len(text) > LONGEST:
            raise ParseError(self.text, len(self.text), f"a formula has at most {LONGEST} characters; got {len(text)}")
        if not self.text:
            raise ParseError("", 0, "the text is empty; write a formula, as in softmax(dot / sqrt(d))")
        for column, c in enumerate(text.strip()):
            if not c.isascii() or not (c.isprintable() or c.isspace()) or c == "#":
                hint = f"write {WRITTEN[c]}" if c in WRITTEN else "leave it out"
                raise ParseError(
                    self.text, column, f"a formula is plain text; got {c if c.isprintable() else ascii(c)}; {hint}"
                )

    def _refuse_deep_brackets(self) -> None:
        depth = 0
        for column, character in enumerate(self.text):
            depth += (character in "([{") - (character in ")]}")
            if depth > DEEPEST:
                raise ParseError(self.text, column, f"brackets nest at most {DEEPEST} deep")

    def _value(self, node: ast.AST, depth: int) -> Any:
        if depth > DEEPEST:
            self._refuse(node, f"nested at most {DEEPEST} deep")
        match node:
            case ast.Constant():
                return self._number(node)
            case ast.Name():
                return self._word(node)
            case ast.BinOp() if type(node.op) in OPERATORS:
                return self._chain(node, depth)
            case ast.UnaryOp() if type(node.op) in OPERATORS:
                return self._apply(node, OPERATORS[type(node.op)], self._values([node.operand], depth))
            case ast.Compare():
                return self._compare(node, depth)
            case ast.Subscript():
                return self._entry(node, depth)
            case ast.Call():
                return self._call(node, depth)
        operation = getattr(node, "op", node)
        name = type(operation).__name__
        unknown = f"{name} has no place in a formula; use words, numbers, + - * / // % **, & | ~ and calls"
        self._refuse(node, HINTS.get(type(operation), HINTS.get(type(node), unknown)))

    def _chain(self, node: ast.BinOp, depth: int) -> Any:
        """a + b - c + …, from the left; a long sum is not a deep one."""
        links, left = [node], node.left
        while isinstance(left, ast.BinOp) and type(left.op) in OPERATORS:
            links.append(left)
            left = left.left
        value = self._value(left, depth + 1)
        for link in reversed(links):
            value = self._apply(link, OPERATORS[type(link.op)], [value, self._value(link.right, depth + 1)])
        return value

    def _values(self, nodes: list[Any], depth: int) -> list[Any]:
        return [self._value(node, depth + 1) for node in nodes]

    def _number(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, str):
            self._refuse(node, 'a string stands only inside table("…")')
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(node, f"{value!r} is no number; numbers are int and float")
        if not abs(value) < LARGEST_NUMBER:
            self._refuse(node, f"a number has at most {LARGEST_BITS} bits")
        return self._apply(node, lambda: expression(operand(value, "number")), [])

    def _word(self, node: ast.Name) -> Any:
        if node.id in CALLS.keys() - NAMED or node.id in NAMES_TABLE:
            self._refuse(node, f"{node.id} is called, as in {node.id}(…)")
        if node.id not in WORDS:
            self._refuse(node, f"{node.id[:40]} is not a word of formulas; {_meant(node.id[:40])}")
        return WORDS[node.id]

    def _compare(self, node: ast.Compare, depth: int) -> Any:
        if len(node.ops) > 1:
            self._refuse(node, "one comparison at a time; write (a <= b) & (b <= c)")
        relation = type(node.ops[0])
        if relation not in OPERATORS:
            self._refuse(node, HINTS.get(relation, f"{relation.__name__} is not a relation here"))
        return self._apply(node, OPERATORS[relation], self._values([node.left, *node.comparators], depth))

    def _entry(self, node: ast.Subscript, depth: int) -> Any:
        owner = self._value(node.value, depth + 1)
        if not isinstance(owner, Table):
            self._refuse(node, 'only a table has entries, as in table("bias")[h, i - j]')
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self._apply(node, lambda *indices: owner[indices], self._values(list(places), depth))

    def _call(self, node: ast.Call, depth: int) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id in NAMES_TABLE:
            return self._apply(node, NAMES_TABLE[node.func.id], [self._name(node)])
        function, allowed = self._function(node.func, depth)
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg not in allowed or keyword.arg in named:
                told = ", ".join(f"{name}=" for name in sorted(allowed)) or "none by name"
                self._refuse(keyword, f"the arguments here, each once: {told}; got {(keyword.arg or '**')[:40]}")
            named[keyword.arg] = self._value(keyword.value, depth + 1)
        arguments = self._values(list(node.args), depth)
        signature = inspect.signature(function)
        try:
            signature.bind(*arguments, **named)
        except TypeError as problem:
            self._refuse(node, f"{problem}; the arguments are {', '.join(signature.parameters)}")
        return self._apply(node, function, arguments, named)

    def _function(self, node: ast.expr, depth: int) -> tuple[Callable[..., Any], set[str]]:
        if isinstance(node, ast.Name) and node.id in CALLS:
            return CALLS[node.id], KEYWORDS.get(node.id, set())
        if not isinstance(node, ast.Name | ast.Call):
            self._refuse(node, HINTS.get(type(node), "this cannot be called"))
        owner = self._value(node, depth + 1)
        if isinstance(owner, Weight):
            return lambda score, mask=None: Formula(score, owner, mask), {"mask"}  # as in softmax(dot, mask=j <= i)
        if isinstance(owner, PairExpression):
            return owner, set()
        self._refuse(node, "this cannot be called")

    def _name(self, node: ast.Call) -> str:
        match node.args, node.keywords:
            case [ast.Constant(value=str() as name)], []:
                return name
        self._refuse(node, 'one name in quotes, as in table("bias")')

    def _apply(
        self, node: ast.AST, function: Callable[..., Any], arguments: list[Any], named: dict[str, Any] | None = None
    ) -> Any:
        """The function's value; what it refuses is refused at this place of the text."""
        try:
            return function(*arguments, **(named or {}))
        except ParseError:
            raise
        except RegardError as problem:
            self._refuse(node, str(problem))
        except TypeError as problem:
            self._refuse(node, f"{problem}; numbers have signs and powers, where(mask, 1, 0) makes a number of a mask")

    def _refuse(self, node: ast.AST, problem: str) -> NoReturn:
        raise ParseError(self.text, self._column(node), problem) from None

    def _column(self, node: Any) -> int:
        """Where a part stands: its operator if it has two sides, the dot of an attribute, otherwise its beginning."""
        left = {ast.BinOp: "left", ast.Compare: "left", ast.Attribute: "value"}.get(type(node))
        if left is None:
            return int(node.col_offset)
        after = self.text[getattr(node, left).end_col_offset :]
        return len(self.text) - len(after.lstrip(" )"))
