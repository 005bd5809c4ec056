"""An instance of the target's class, filled with matrices: made in the child process, once for every call."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from ..description import Description, source
from ..reading import Reading
from .construction import construct
from .inspection import facts
from .places import Projections
from .preparation import prepared, set_aside
from .search import projections

_MADE: dict[int, tuple[Any, nn.Module]] = {}  # by the target's identity; the target itself is kept beside


@dataclass(frozen=True)
class Instance:
    """How to make the module that is called: constructor arguments, norms set aside, matrices filled in."""

    init: tuple[tuple[str, Any], ...] = ()
    projections: Projections | None = None
    aside: bool = True
    neutral: bool = False  # parameters that play no role here are made to do nothing

    def of(self, target: Any, matrices: Mapping[str, np.ndarray[Any, Any]], training: bool) -> nn.Module:
        """A fresh module with these matrices."""
        module = deepcopy(_module(target, dict(self.init)))
        if self.aside:
            set_aside(module)
        if self.projections is not None:
            if self.neutral:
                self.projections.silence(module)
            self.projections.write(module, matrices)
        return module.train(training)

    def reading(
        self, reading: Reading, found: Projections | None, heads: int, groups: int | None, neutral: bool = False
    ) -> Reading:
        """The reading with this module's sizes."""
        filled = replace(self, projections=found, neutral=neutral)
        if found is None:
            return replace(reading, instance=filled, sizes=replace(reading.sizes, heads=1, groups=1, model_width=6))
        width = (found.width or found.key_width or found.model_width) // heads
        key_heads = groups or max((found.key_width or heads * width) // width, 1)
        values = (found.value_width or found.model_width) // key_heads
        sizes = replace(
            reading.sizes,
            heads=heads,
            groups=key_heads,
            width=width,
            value_width=max(values, 1),
            model_width=found.model_width,
            merged_width=None if found.sizes("wo") is None else (found.sizes("wo") or (0,))[0],
            out_width=found.out_width,
        )
        present = frozenset(role for role, _ in found.places)
        return replace(reading, instance=filled, sizes=sizes, present=present)


def described(target: Any, init: Mapping[str, Any] | None, names: Mapping[str, str] | None) -> Description:
    """What a module holds, and how to call it."""
    module = _module(target, dict(init or {}))
    known = facts(module)
    found = projections(module, names) if names else projections(module)
    text, line = source(target)
    return Description(
        known.name,
        known.arguments,
        ("torch",),
        text,
        line,
        module=known,
        projections=tuple(found),
        instance=Instance(tuple((init or {}).items())),
        aside=known.norms,
    )


def _module(target: Any, init: dict[str, Any]) -> nn.Module:
    if id(target) not in _MADE:
        made = construct(target, init or None) if isinstance(target, type) else target
        _MADE[id(target)] = target, prepared(made)
    return _MADE[id(target)][1]
