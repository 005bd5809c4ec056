"""Options of a check that are written as text, in a terminal or in the first line of a notebook's cell.

--init         "d_model=32, n_heads=4, config={'dropout': 0.0}"      literals alone; nothing is evaluated
--projections  "q=attn.wq.weight, k=attn.wk.weight"
--memory       "512M", "2G", or a number of bytes
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from ..algebra.errors import KindError
from .sandbox.limits import Limits

HELP = {
    "roles": 'What its arguments are, in order: "q,k,v,mask", "x,wq,wk,wv".',
    "causal": "Whether it should be causal; found by trying unless said.",
    "heads": "How many heads it has.",
    "groups": "How many heads of keys and values it has.",
    "layout": "The order of its axes: bhnd, bnhd, bnd, nd …",
    "library": "Whose arrays it takes: torch, numpy, jax or python (lists).",
    "formula": 'What it should compute, as in "softmax(dot / sqrt(d), mask=j <= i)", or a name of the zoo.',
    "mask": "What True means in its mask: admits or hides.",
    "init": 'Arguments that make an instance of a class, as in "d_model=32, n_heads=4".',
    "projections": 'Where its matrices are, as in "q=attn.wq.weight, k=attn.wk.weight".',
    "seconds": "Time for all calls together.",
    "memory": "Memory beyond what is in use once it is loaded, as in 512M or 2G.",
    "strict": "Count warnings too.",
}
"""What each option says, in the help of the command and of the magic."""

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
MEANINGS = ("admits", "hides")


def arguments(
    *,
    init: str | None = None,
    projections: str | None = None,
    seconds: float | None = None,
    memory: str | None = None,
    mask: str | None = None,
    **others: Any,
) -> dict[str, Any]:
    """The keyword arguments of `check`, from options as texts; those that were not given are left out.

    >>> arguments(causal=True, heads=None, init="d_model=32, bias=False")
    {'causal': True, 'init': {'d_model': 32, 'bias': False}}
    """
    given = {name: value for name, value in others.items() if value is not None}
    if mask is not None:
        given["mask"] = one_of("--mask", mask, MEANINGS)
    if init is not None:
        given["init"] = literals(init)
    if projections is not None:
        given["projections"] = pairs(projections)
    if seconds is not None or memory is not None:
        given["limits"] = limits(seconds, memory)
    return given


def literals(text: str) -> dict[str, Any]:
    """Names and literals, as they stand in a call; nothing in the text is evaluated.

    >>> literals("d_model=32, config={'bias': False}")
    {'d_model': 32, 'config': {'bias': False}}
    """
    rule = f"--init: names and literals, as in d_model=32, n_heads=4; got {text!r}"
    try:
        call = ast.parse(f"call({text})", mode="eval").body
    except (SyntaxError, ValueError):
        raise KindError(rule) from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise KindError(rule)
    if call.args or not all(part.arg for part in call.keywords):
        raise KindError(f"{rule}; each value needs a name")
    return {part.arg: _literal(part.value, rule) for part in call.keywords if part.arg}


def _literal(node: ast.expr, rule: str) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise KindError(f"{rule}; {ast.unparse(node)} is no literal; pass such an instance to rg.check") from None


def pairs(text: str) -> dict[str, str]:
    """Roles and paths.

    >>> pairs("q=attn.wq.weight, v = attn.wv.weight")
    {'q': 'attn.wq.weight', 'v': 'attn.wv.weight'}
    """
    found = [part.partition("=") for part in text.split(",") if part.strip()]
    if not found or not all(role.strip() and path.strip() for role, _, path in found):
        raise KindError(f"--projections: roles and paths, as in q=attn.wq.weight, k=attn.wk.weight; got {text!r}")
    return {role.strip(): path.strip() for role, _, path in found}


def limits(seconds: float | None, memory: str | None) -> Limits:
    """Limits with these two changed; one call may take no longer than all together."""
    usual = Limits()
    total = usual.seconds if seconds is None else seconds
    size = usual.memory if memory is None else bytes_of(memory)
    one = usual.call_seconds if seconds is None else total
    return Limits(seconds=total, call_seconds=one, memory=size)


def bytes_of(text: str) -> int:
    """A size in bytes, from a number with or without a unit.

    >>> bytes_of("512M"), bytes_of("1.5 GiB"), bytes_of("1000")
    (536870912, 1610612736, 1000)
    """
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise KindError(f"--memory: a size, as in 512M or 2G; got {text!r}")
    return int(float(found[1]) * UNITS[found[2].lower()])


def one_of(option: str, value: str, values: Iterable[str]) -> str:
    """The value, where it is one of these; else a sentence that names the nearest.

    >>> one_of("--mask", "hide", ("admits", "hides"))
    Traceback (most recent call last):
        ...
    regard.algebra.errors.KindError: --mask: one of admits, hides; got 'hide'; did you mean 'hides'?
    """
    known = list(values)
    if value in known:
        return value
    near = get_close_matches(value, known, n=1, cutoff=0.5)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    raise KindError(f"{option}: one of {', '.join(known)}; got {value!r}{guess}")
