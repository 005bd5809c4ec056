"""Somebody's object that is no module: a class with arrays, or lists of numbers, and a method that is called.

class SelfAttention:    __init__(self, d_model)     self.W_Q, self.W_K, self.W_V     forward(self, x)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ...algebra.errors import KindError
from ..description import Description, languages, source
from ..signature import parameters
from ..words import is_bias, words
from .found import Found, said_by, sizes_of
from .instance import PlainInstance, object_of
from .known import Facts, whole
from .search import ways
from .usual import CONFIGS, HEAD_WIDTHS, HEADS, KEY_HEADS, LENGTHS

METHODS = ("forward", "__call__", "call", "attend", "attention", "apply", "compute", "run", "predict")
CAUSAL = {"causal", "masked", "autoregressive"}
DEEPEST = 4


def is_plain(target: Any) -> bool:
    """Whether a target is a class, or an object with a method of its own to call: no function, and of no library."""
    if isinstance(target, type):
        return True
    return hasattr(target, "__dict__") and not isinstance(target, FunctionType) and _method(type(target)) is not None


def described(target: Any, init: Mapping[str, Any] | None, names: Mapping[str, str] | None) -> Description:
    """What an object holds, and how to call it."""
    kind = target if isinstance(target, type) else type(target)
    method = _method(kind)
    if method is None:
        raise KindError(f"target: a class with a method forward or __call__; got {kind.__name__}, which has neither")
    thing = object_of(target, dict(init or {}))
    known = facts(thing, method)
    found = ways(list(arrays(thing)), known, names, None)
    text, line = source(target)
    functions = [one for base in kind.__mro__ for one in vars(base).values() if isinstance(one, FunctionType)]
    return Description(
        kind.__name__,
        known.arguments,
        languages(*functions),
        text,
        line,
        module=known,
        projections=tuple(found),
        instance=PlainInstance(method, tuple((init or {}).items())),
    )


def _method(kind: type) -> str | None:
    """The method that is called; one of a library's own classes is none."""
    own = {name for base in kind.__mro__ for name, part in vars(base).items() if isinstance(part, FunctionType)}
    return next((name for name in METHODS if name in own), None)


def facts(thing: Any, method: str) -> Facts:
    """What an object says of itself by its attributes."""
    holders = [thing, *(vars(thing)[name] for name in CONFIGS if name in vars(thing))]
    says = any(getattr(thing, name, None) is True for name in ("causal", "is_causal", "masked"))
    named = "the class's name" if CAUSAL & set(words(type(thing).__name__)) else ""
    return Facts(
        name=type(thing).__name__,
        heads=whole(holders, HEADS),
        key_heads=whole(holders, KEY_HEADS),
        head_width=whole(holders, HEAD_WIDTHS),
        longest=whole(holders, LENGTHS),
        causal="an attribute" if says else named,
        batch_first=None,
        norms=(),
        dropouts=(),
        resets=(),
        arguments=parameters(getattr(thing, method)),
    )


def arrays(thing: Any) -> Iterator[Found]:
    """Every array of floats that an object holds, itself or through others, in the order of definition."""
    for path, values, owner in _walk(thing, "", thing, set()):
        said, sure = said_by(path, owner)
        bias = is_bias(path.rpartition(".")[2]) or len(values.shape) == 1
        yield Found(path, sizes_of(values.shape, bias), said, bias, sure, "", trained=True)


def _walk(value: Any, path: str, owner: Any, seen: set[int]) -> Iterator[tuple[str, np.ndarray[Any, Any], Any]]:
    values = _numbers(value)
    if values is not None:
        yield path, values, owner
    elif id(value) not in seen and path.count(".") < DEEPEST:
        seen.add(id(value))
        for name, part in _parts(value):
            yield from _walk(part, f"{path}.{name}" if path else name, owner if _is_list(value) else value, seen)


def _numbers(value: Any) -> np.ndarray[Any, Any] | None:
    """The values of an array or of lists of numbers; None of anything else."""
    if not hasattr(value, "__array__") and not _is_list(value):
        return None
    try:
        made = np.array(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    except (ValueError, TypeError, RuntimeError):
        return None
    return made if made.dtype.kind == "f" and made.ndim > 0 and not _holds_arrays(value) else None


def _holds_arrays(value: Any) -> bool:
    """Whether a list holds arrays, one for each head: these are matrices of their own."""
    return _is_list(value) and len(value) > 0 and hasattr(value[0], "__array__")


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _parts(value: Any) -> list[tuple[str, Any]]:
    if _is_list(value):
        return [(str(at), part) for at, part in enumerate(value)] if len(value) < 1000 else []
    if isinstance(value, Mapping):
        return [(name, part) for name, part in value.items() if isinstance(name, str) and "." not in name]
    if isinstance(value, type | ModuleType | FunctionType) or not hasattr(value, "__dict__"):
        return []
    return [(name, part) for name, part in vars(value).items() if not callable(part) or hasattr(part, "__dict__")]
