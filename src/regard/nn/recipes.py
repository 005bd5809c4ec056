"""What a model is made of, as plain data that JSON can hold, and back.

formulas             their text, which is read and never evaluated        {"Attention": "softmax(dot / sqrt(d))"}
positions, styles    their kind and their fields                          {"Rotary": {"base": 10000.0, …}}
norms and the like   their name                                           {"named": "RMSNorm"}
arrays               their shape: the numbers are stored beside           {"array": {"shape": [512, 64], …}}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..algebra.errors import KindError, RegardError
from ..algebra.expressions import Expression
from ..attention import Attention, parse
from ..inputs import positions
from .feed_forward import FeedForward, GatedFeedForward
from .norms import LayerNorm, RMSNorm
from .style import Style, post_norm, pre_norm

Plain = Any  # None, bool, int, float, str, and lists and dicts of these

RECORDS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (
        positions.NoPosition, positions.Sum, positions.Sinusoidal, positions.Learned, positions.Rotary,
        positions.ALiBi, positions.Relative, positions.Offsets, positions.Buckets,
        positions.Scaling, positions.Linear, positions.NTK, positions.DynamicNTK, positions.YaRN, positions.Llama3,
        positions.Stretched, positions.LongRoPE,
        Style,
    )
}  # fmt: skip
NAMED: dict[str, Any] = {
    part.__name__: part for part in (LayerNorm, RMSNorm, FeedForward, GatedFeedForward, pre_norm, post_norm)
}
ROLES = ("learned", "fixed", "given")  # a Parameter, one without gradient, a plain array


# -- values to data --------------------------------------------------------------------------------------------


def plain(value: Any, name: str = "made_of") -> Plain:
    """A value as data. `name` is where it stands, for the reader of an error."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    if isinstance(value, list):
        return [plain(part, f"{name}[{n}]") for n, part in enumerate(value)]
    return {_tag(value): _inside(value, name)}


def _tag(value: Any) -> str:
    """The kind of a value, as its data is marked with."""
    if isinstance(value, tuple):
        return "tuple"
    if isinstance(value, Mapping):
        return "dict"
    if isinstance(value, Tensor | np.ndarray):
        return "array"
    return "named" if _is_named(value) else type(value).__name__


def _inside(value: Any, name: str) -> Plain:
    if isinstance(value, tuple):
        return plain(list(value), name)
    if isinstance(value, Mapping):
        return {str(key): plain(part, f"{name}[{key!r}]") for key, part in value.items()}
    if isinstance(value, Tensor | np.ndarray):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"shape": list(value.shape), "dtype": dtype, "role": _role(value)}
    if _is_named(value):
        return value.__name__
    if type(value) in (Attention, Expression):
        return _text(value, name)
    if type(value) in RECORDS.values():
        return {field.name: plain(getattr(value, field.name), f"{name}.{field.name}") for field in fields(value)}
    raise KindError(
        f"{name}: numbers, formulas, and positions, norms, feed-forwards and residuals of regard; got {value!r}, "
        "which a file cannot describe; store model.state_dict() with safetensors.torch.save_file and make it in code"
    )


def _is_named(value: Any) -> bool:
    return any(value is part for part in NAMED.values())


def _text(value: Attention | Expression, name: str) -> str:
    text = repr(value)
    try:
        read = parse(text)
    except RegardError:
        read = None
    if read != value:
        raise KindError(f"{name}: a formula that can be read from its own text; got {text}")
    return text


def _role(array: Any) -> str:
    if isinstance(array, nn.Parameter):
        return ROLES[0] if array.requires_grad else ROLES[1]
    return ROLES[2]


# -- data to values --------------------------------------------------------------------------------------------


def value(data: Plain) -> Any:
    """The value that `plain` made the data from; arrays hold zeros."""
    if isinstance(data, list):
        return [value(part) for part in data]
    if not isinstance(data, dict):
        return data
    ((kind, inside),) = data.items()
    if kind in READERS:
        return READERS[kind](inside)
    if kind not in RECORDS:
        raise KindError(f"{kind}: one of {', '.join([*READERS, *RECORDS])}")
    return RECORDS[kind](**{name: value(part) for name, part in inside.items()})


def _formula(text: str) -> Any:
    return parse(text)


def _array(told: Mapping[str, Any]) -> Tensor:
    """Zeros of that shape, which take no memory."""
    dtype = getattr(torch, told["dtype"])
    zeros = torch.zeros((), dtype=dtype).expand(told["shape"])
    return zeros if told["role"] == "given" else nn.Parameter(zeros, told["role"] == "learned")


READERS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda inside: tuple(value(inside)),
    "dict": lambda inside: {name: value(part) for name, part in inside.items()},
    "array": _array,
    "named": NAMED.__getitem__,
    "Attention": _formula,
    "Expression": _formula,
}
