"""Lines as a formatter writes them: no brackets too many, and long ones broken at operators and arguments."""

from __future__ import annotations

import ast
import re

WIDTH = 120
TIGHT = {ast.BitOr: 1, ast.BitAnd: 2, ast.Add: 3, ast.Sub: 3, ast.Mult: 4, ast.Div: 4, ast.FloorDiv: 4, ast.Mod: 4}
SIGNS = {
    ast.BitOr: "|", ast.BitAnd: "&", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//",
    ast.Mod: "%", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
STATEMENT = re.compile(r"( *)(return |\w+ = )(.*)")


def laid_out(source: str) -> str:
    """The source, with no statement wider than the page if it can be broken."""
    lines = []
    for line in source.splitlines():
        found = STATEMENT.fullmatch(line)
        lines += [line] if found is None else _broken(_bare(found[3]), len(found[1]), found[2], "")
    return "\n".join(lines) + "\n"


def _bare(text: str) -> str:
    """An expression without brackets around the whole, and a tuple without a comma at its end."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Tuple):
        return re.sub(r"(?<=[^,(]),\)$", ")", text) if len(node.elts) > 1 else text
    return text[1:-1] if text.startswith("(") and _text(text, node) == text[1:-1] else text


def _broken(text: str, indent: int, before: str, after: str) -> list[str]:
    """`before text after`, on as many lines as it takes."""
    line = " " * indent + before + text + after
    if len(line) <= WIDTH:
        return [line]
    node = ast.parse(text, mode="eval").body
    inner = indent + 4
    match node:
        case ast.Call(func=function, args=arguments, keywords=[]):
            parts = [part for x in arguments for part in _broken(_text(text, x), inner, "", ",")]
            return [f"{' ' * indent}{before}{_text(text, function)}(", *parts, f"{' ' * indent}){after}"]
        case ast.Tuple(elts=items):
            parts = [part for x in items for part in _broken(_text(text, x), inner, "", ",")]
            return [f"{' ' * indent}{before}(", *parts, f"{' ' * indent}){after}"]
        case ast.BinOp() | ast.Compare(ops=[_]):
            chain = _chain(text, node)
            parts = [part for sign, x in chain for part in _broken(x, inner, sign and f"{sign} ", "")]
            return [f"{' ' * indent}{before}(", *parts, f"{' ' * indent}){after}"]
    return [line]


def _chain(text: str, node: ast.BinOp | ast.Compare) -> list[tuple[str, str]]:
    """Operands that one kind of operator joins, each behind its sign."""
    if isinstance(node, ast.Compare):
        return [("", _text(text, node.left)), (SIGNS[type(node.ops[0])], _text(text, node.comparators[0]))]
    bond, sign = TIGHT[type(node.op)], SIGNS[type(node.op)]
    last = (sign, _braced(node.right, _text(text, node.right), bond + 1))
    if isinstance(node.left, ast.BinOp) and TIGHT[type(node.left.op)] == bond:
        return [*_chain(text, node.left), last]
    return [("", _braced(node.left, _text(text, node.left), bond)), last]


def _braced(node: ast.expr, text: str, bond: int) -> str:
    """The operand in the brackets that its segment has lost."""
    loose = isinstance(node, ast.Compare) or (isinstance(node, ast.BinOp) and TIGHT[type(node.op)] < bond)
    return f"({text})" if loose else text


def _text(text: str, node: ast.expr) -> str:
    found = ast.get_source_segment(text, node)
    assert found is not None
    return found
