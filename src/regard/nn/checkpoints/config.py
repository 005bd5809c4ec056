"""What a config.json says, field by field: sizes that must be there, and values that regard can compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...algebra.errors import CallError, KindError

ACTIVATIONS = {  # theirs → ours: the same function
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "relu2": "relu_squared",
}


@dataclass(frozen=True)
class Config:
    """The fields, and where they come from."""

    told: Mapping[str, Any]
    place: str

    def size(self, name: str, default: int | None = None) -> int:
        """An integer of at least 1."""
        value = self.get(name, default)
        if value is None:
            raise CallError(f"{name}: the config says it; got none in {self.place}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise CallError(f"{name}: an integer of at least 1; got {value!r} in {self.place}")
        return value

    def number(self, name: str, default: float) -> float:
        """A number."""
        value = self.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise KindError(f"{name}: a number; got {value!r} in {self.place}")
        return float(value)

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or the default where it is not told."""
        value = self.told.get(name)
        return default if value is None else value

    def activation(self, name: str, default: str) -> str:
        """Our name of an activation."""
        value = self.get(name, default)
        if value not in ACTIVATIONS:
            raise CallError(f"{name}: one of {', '.join(ACTIVATIONS)}; got {value!r} in {self.place}")
        return ACTIVATIONS[value]

    def check(self, **computed: Any) -> None:
        """Refuse what no module of ours computes: each of these fields is not told, or as here."""
        for name, value in computed.items():
            found = self.get(name, value)
            if found != value:
                shown = found if isinstance(found, bool | int | float | str) else type(found).__name__
                raise CallError(
                    f"{name}: {value!r}, the only one that is computed here; got {shown!r} in {self.place}; "
                    "run such a model through regard.hf"
                )
