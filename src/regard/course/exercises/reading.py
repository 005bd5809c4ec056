"""What can be said of an answer before it is run: it is there, parses, is finished, does the work itself."""

from __future__ import annotations

import ast

from .exercise import Exercise, Found, Verdict


def refusal_of(exercise: Exercise, answer: str) -> Verdict | None:
    """A verdict where nothing needs to be run for it."""
    if not answer.strip():
        says = "There is nothing in the editor. What it began with stands below, to go on from."
        return Verdict(False, "The answer is empty.", (Found("empty", says, exercise.start),))
    try:
        tree = ast.parse(answer)
    except SyntaxError as problem:
        line = (problem.text or "").strip()
        says = f"Line {problem.lineno}: {problem.msg}." + (f" It reads: {line}" if line else "")
        return Verdict(False, "Python cannot read it yet.", (Found("not Python", says),))
    if exercise.function not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}:
        says = f"The answer defines a function called {exercise.function}; this text has none of that name."
        return Verdict(False, "The function is not there yet.", (Found("no function", says, exercise.start),))
    dotted = _dotted(tree)
    if dotted:
        says = f"Three dots are left in line {', '.join(map(str, dotted))}: write there what the task asks for."
        return Verdict(False, "It is not finished yet.", (Found("dots left", says),))
    for name in _names(tree):
        if name in exercise.refused:
            says = f"{name} is {exercise.refused[name]}: it would do the work. Write the steps yourself."
            return Verdict(False, "Ready-made functions are not allowed here.", (Found("ready-made", says),))
    return None


def _dotted(tree: ast.AST) -> list[int]:
    """The lines that give or return three dots: those of an index, x[..., 0], are no gap."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            if any(isinstance(part, ast.Constant) and part.value is Ellipsis for part in parts):
                found.append(node.lineno)
    return sorted(set(found))


def _names(tree: ast.AST) -> list[str]:
    """Every name that a program speaks of."""
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.append(name)
            case ast.Import(names=names):
                found += [part for alias in names for part in alias.name.split(".")]
            case ast.ImportFrom(module=module, names=names):
                found += [*(module or "").split("."), *(alias.name for alias in names)]
            case ast.Constant(value=str() as text):
                found.append(text)  # getattr(F, "…")
    return found
