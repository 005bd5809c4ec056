"""The functions that may stand in a formula. Each class holds all that is known of one function."""

from __future__ import annotations

from .base import Elementary, Interval
from .piecewise import Abs, Floor, FloorDiv, Maximum, Minimum, Mod, Relu, Where
from .smooth import Cos, Erf, Exp, Gelu, Log, Sigmoid, Sin, Softplus, Sqrt, Tanh

FUNCTIONS: dict[str, type[Elementary]] = {
    function.name: function
    for function in (
        Exp, Log, Sqrt, Tanh, Abs, Relu, Sigmoid, Softplus, Gelu, Erf, Cos, Sin, Floor, Minimum, Maximum, Where,
    )
}  # fmt: skip

__all__ = [
    "FUNCTIONS", "Abs", "Cos", "Elementary", "Erf", "Exp", "Floor", "FloorDiv", "Gelu", "Interval", "Log", "Maximum",
    "Minimum", "Mod", "Relu", "Sigmoid", "Sin", "Softplus", "Sqrt", "Tanh", "Where",
]  # fmt: skip
