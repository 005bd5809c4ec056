"""What is called, made from a class and filled with matrices: in the child process, anew for every call.

The values themselves need no library: the other side reads them without PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from .construction import construct, made_from_names
from .places import Projections

Matrices = Mapping[str, np.ndarray[Any, Any]]
_MADE: dict[int, tuple[Any, Any]] = {}  # by the target's identity; the target itself is kept beside


@dataclass(frozen=True)
class Instance:
    """How to make the module that is called: constructor arguments, norms set aside, matrices filled in."""

    init: tuple[tuple[str, Any], ...] = ()
    projections: Projections | None = None
    aside: bool = True
    neutral: bool = False  # parameters that play no role here are made to do nothing

    def of(self, target: Any, matrices: Matrices, training: bool) -> Any:
        """A fresh module with these matrices."""
        from .preparation import set_aside

        module = deepcopy(module_of(target, dict(self.init)))
        if self.aside:
            set_aside(module)
        if self.projections is not None:
            if self.neutral:
                self.projections.silence(module)
            self.projections.write(module, matrices)
        return module.train(training)


@dataclass(frozen=True)
class PlainInstance:
    """How to make an object that is no module, and which of its methods is called."""

    method: str
    init: tuple[tuple[str, Any], ...] = ()
    projections: Projections | None = None
    neutral: bool = False

    def of(self, target: Any, matrices: Matrices, training: bool) -> Any:
        """The method of a fresh object with these matrices."""
        thing = deepcopy(object_of(target, dict(self.init)))
        if self.projections is not None:
            self.projections.write(thing, matrices)
        return getattr(thing, self.method)


def module_of(target: Any, init: dict[str, Any]) -> Any:
    """The module itself, prepared; of a class, one that is made once."""
    if id(target) not in _MADE:
        from .preparation import prepared

        made = construct(target, init or None) if isinstance(target, type) else target
        _MADE[id(target)] = target, prepared(made)
    return _MADE[id(target)][1]


def object_of(target: Any, init: dict[str, Any]) -> Any:
    """The object itself; of a class, one that is made once."""
    if id(target) not in _MADE:
        _MADE[id(target)] = target, made_from_names(target, init or None) if isinstance(target, type) else target
    return _MADE[id(target)][1]
