"""The lines of somebody's source in which a mistake is usually made."""

from __future__ import annotations

import re

from .report import SourceLine

SHOWN = 4


def suspicious(text: str, first: int, near: str) -> tuple[SourceLine, ...]:
    """Those that the pattern finds, numbered as in the file; comments and docstrings do not count."""
    found = [
        SourceLine(first + at, line.rstrip())
        for at, line in enumerate(_code(text))
        if line.strip() and not line.strip().startswith(("def ", "class ", "@")) and re.search(near, line)
    ]
    return tuple(found[:SHOWN])


def _code(text: str) -> list[str]:
    """The lines with comments taken off and docstrings blanked."""
    lines = text.split("\n")
    for start, end in _strings(text):
        for at in range(start, end + 1):
            lines[at - 1] = ""
    return [line.split("#")[0] if "#" in line and "'" not in line and '"' not in line else line for line in lines]


def _strings(text: str) -> list[tuple[int, int]]:
    import ast

    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
