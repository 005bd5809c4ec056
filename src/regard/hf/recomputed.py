"""Gradient checkpointing: a layer that runs once more in the backward pass must run on the same formula.

    forward    h = layer(x)              on the formula; what lies inside is thrown away
    backward   layer(x) again            on whatever the model names then

After the end of a `use` the model names its own attention, and the gradients would be those of neither. So every layer
that a model hands to its checkpointing function looks, when it runs again, whether the `use` still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import torch

from ..algebra.errors import CallError

FUNCTION = "_gradient_checkpointing_func"  # by that name transformers keeps it in each module
Holds = Callable[[], bool]


class Guard:
    """The checkpointing functions of a model, each inside one that looks; weak, as the model may end before us."""

    def __init__(self, model: torch.nn.Module, holds: Holds) -> None:
        self._holds = holds
        self._modules = [ref(module) for module in model.modules() if hasattr(module, "gradient_checkpointing")]
        self.enter()

    def enter(self) -> None:
        """Take hold of the functions, also of those that were set since."""
        for module in filter(None, (kept() for kept in self._modules)):
            function = vars(module).get(FUNCTION)
            if function is not None and not any(one.holds is self._holds for one in _lookers(function)):
                setattr(module, FUNCTION, _looking(function, self._holds))

    def leave(self) -> None:
        """Give back the functions; those of other guards stay around them."""
        for module in filter(None, (kept() for kept in self._modules)):
            around = None
            for one in _lookers(vars(module).get(FUNCTION)):
                if one.holds is not self._holds:
                    around = one
                elif around is None:
                    setattr(module, FUNCTION, one.before)
                else:
                    around.before = one.before


def _lookers(function: Any) -> Iterator[Any]:
    """The functions of guards, each inside the one before."""
    while hasattr(function, "before"):
        yield function
        function = function.before


def _looking(before: Callable[..., Any], holds: Holds) -> Callable[..., Any]:
    """A checkpointing function whose layers look, each time that they run; a function, which a copy shares."""

    def checkpointed(layer: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        inner: Callable[..., Any] = checkpointed.before  # type: ignore[attr-defined]
        return inner(looks_first(layer), *arguments, **options)

    def looks_first(layer: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            if not holds():
                raise CallError(
                    "use: the backward pass runs layers again, as the model checkpoints its gradients, and the model "
                    "was restored since its forward pass; call backward() before restore(), inside the with block"
                )
            return layer(*arguments, **options)

        return run if holds() else layer  # a copy of the model keeps the function

    checkpointed.before, checkpointed.holds = before, holds  # type: ignore[attr-defined]
    return checkpointed
