"""Source with what is known put in: branches that are never taken go, and so do arguments that nothing reads.

    if F.HAS_SINK: …                    gone, or its body alone
    tiles((a, b, c)[: F.PRODUCTS], …)   tiles((a,), …)
    def blocks(lists, b, length): …     def blocks(length): …        and every call of it alike

Only the places that change are written anew, so comments and layout stay.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

Rule = Callable[[ast.AST, str], str | None]
WIDTH = 120
GONE = ""


def rewritten(source: str, *rules: Rule) -> str:
    """The source, with one change after the other until no rule has another."""
    while True:
        nodes = [node for node in ast.walk(ast.parse(source)) if hasattr(node, "lineno")]
        found = ((node, text) for node in nodes for rule in rules if (text := rule(node, source)) is not None)
        change = next(found, None)
        if change is None:
            return source
        source = _replaced(source, *change)


def _replaced(source: str, node: Any, text: str) -> str:
    """Whole lines in place of a statement, a piece of a line in place of an expression."""
    lines = source.encode().splitlines(keepends=True)  # positions count bytes
    first, last = node.lineno - 1, node.end_lineno - 1
    if isinstance(node, ast.stmt):
        new = textwrap.indent(text, " " * node.col_offset) + "\n" if text else ""
        return b"".join([*lines[:first], new.encode(), *lines[last + 1 :]]).decode()
    before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    return b"".join([*lines[:first], before + text.encode() + after, *lines[last + 1 :]]).decode()


def segment(source: str, node: ast.AST) -> str:
    """The text of an expression."""
    found = ast.get_source_segment(source, node)
    assert found is not None
    return found


# -- what is known ---------------------------------------------------------------------------------------------


def branches(known: Mapping[str, Any]) -> Rule:
    """Takes the branch that is known, and shortens conditions of which a part is; `known` by source text."""

    def rule(node: ast.AST, source: str) -> str | None:
        if not isinstance(node, ast.If | ast.IfExp):
            return None
        truth = _truth(node.test, known, source)
        if isinstance(truth, str):
            text = segment(source, node.test)
            return None if truth == text else segment_with(source, node, node.test, truth)
        if isinstance(node, ast.IfExp):
            return segment(source, node.body if truth else node.orelse)
        return _lines(source, node.body if truth else node.orelse)

    return rule


def segment_with(source: str, node: ast.If | ast.IfExp, part: ast.AST, text: str) -> str:
    """The text of a node with another text in place of a part of it."""
    whole = _lines(source, [node]) if isinstance(node, ast.stmt) else segment(source, node)
    return whole.replace(segment(source, part), text, 1)


def _lines(source: str, body: list[Any]) -> str:
    """Statements as lines that stand alone."""
    lines = source.splitlines()[body[0].lineno - 1 : body[-1].end_lineno] if body else []
    return textwrap.dedent("\n".join(lines)).removeprefix(
        "el" if isinstance(body[0] if body else None, ast.If) else ""
    )  # of elif


def _truth(test: ast.expr, known: Mapping[str, Any], source: str) -> bool | str:
    """What is known of a condition: its truth, or the text that is left of it."""
    text = segment(source, test)
    if text in known:
        return bool(known[text])
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _truth(test.operand, known, source)
        return text if isinstance(inner, str) else not inner
    if isinstance(test, ast.BoolOp):
        decisive = isinstance(test.op, ast.Or)
        parts = [_truth(part, known, source) for part in test.values]
        if decisive in parts:
            return decisive
        left = [part for part in parts if isinstance(part, str)]
        if len(left) == len(parts):
            return text
        return (" or " if decisive else " and ").join(left) if left else not decisive
    return text


def counts(known: Mapping[str, Any]) -> Rule:
    """(a, b, c)[: F.PRODUCTS] with the number that is known."""

    def rule(node: ast.AST, source: str) -> str | None:
        match node:
            case ast.Subscript(value=ast.Tuple(elts=items), slice=ast.Slice(upper=ast.Attribute() as upper)):
                return _tuple([segment(source, item) for item in items[: known[segment(source, upper)]]])
        return None

    return rule


def _tuple(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def by_name(of: str) -> Rule:
    """F.heads becomes heads."""

    def rule(node: ast.AST, _source: str) -> str | None:
        match node:
            case ast.Attribute(value=ast.Name(id=found), attr=name) if found == of:
                return name
        return None

    return rule


def renamed(names: Mapping[str, str]) -> Rule:
    """Other names for functions."""

    def rule(node: ast.AST, source: str) -> str | None:
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, ast.FunctionDef) and node.name in names:
            return _lines(source, [node]).replace(f"def {node.name}(", f"def {names[node.name]}(", 1)
        return None

    return rule


def without(names: frozenset[str]) -> Rule:
    """Tuples without these names, and no line that sets them."""

    def rule(node: ast.AST, source: str) -> str | None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if name in names:
                return GONE
            case ast.Tuple(elts=items) if any(isinstance(item, ast.Name) and item.id in names for item in items):
                kept = [segment(source, x) for x in items if not (isinstance(x, ast.Name) and x.id in names)]
                return _tuple(kept) if segment(source, node).startswith("(") else ", ".join(kept)
        return None

    return rule


# -- arguments that nothing reads ------------------------------------------------------------------------------


def without_unread(sources: dict[str, str]) -> dict[str, str]:
    """Functions by name, without parameters that they do not read, here and where they are called."""
    while True:
        unread = {name: found for name, source in sources.items() if (found := _unread(_function(source)))[1]}
        if not unread:
            return {name: _with_parameters(source, _parameters(source)) for name, source in sources.items()}
        sources = {name: rewritten(_shortened(source), _calls(unread)) for name, source in sources.items()}


def _function(source: str) -> ast.FunctionDef:
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    return node


def parameters(source: str) -> list[str]:
    """The names of a function's parameters."""
    return [argument.arg for argument in _function(source).args.args]


def _unread(node: ast.FunctionDef) -> tuple[int, list[int]]:
    """How many parameters a function has, and the places of those that it does not read."""
    read = {part.id for statement in node.body for part in ast.walk(statement) if isinstance(part, ast.Name)}
    arguments = node.args.args
    return len(arguments), [place for place, argument in enumerate(arguments) if argument.arg not in read]


def _shortened(source: str) -> str:
    """A function without the parameters that it does not read."""
    _, places = _unread(_function(source))
    for name in [parameters(source)[place] for place in places]:  # in the words of a decorator
        source = source.replace(f'"{name}", ', "").replace(f', "{name}"', "")
    return _with_parameters(source, [text for place, text in enumerate(_parameters(source)) if place not in places])


def _calls(unread: Mapping[str, tuple[int, list[int]]]) -> Rule:
    """Calls of shortened functions: those with as many arguments as before."""

    def rule(node: ast.AST, source: str) -> str | None:
        match node:
            case ast.Call(func=ast.Name(id=name), args=given) if name in unread and len(given) == unread[name][0]:
                kept = [segment(source, x) for place, x in enumerate(given) if place not in unread[name][1]]
                return f"{name}({', '.join(kept)})"
        return None

    return rule


def _parameters(source: str) -> list[str]:
    return [segment(source, argument) for argument in _function(source).args.args]


def _with_parameters(source: str, kept: list[str]) -> str:
    """A function with these parameters, on one line where they fit."""
    node, lines, together = _function(source), source.splitlines(keepends=True), ", ".join(kept)
    line = f"def {node.name}({together}):\n"
    line = line if len(line) <= WIDTH + 1 else f"def {node.name}(\n    {together}\n):\n"
    return "".join([*lines[: node.lineno - 1], line, *lines[node.body[0].lineno - 1 :]])
