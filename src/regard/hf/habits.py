"""What a model does with the masks that it makes for one of its configs, read from its modules.

adds         it never ran on truths, and makes other masks of those that it gets: it needs numbers to add
leaves_out   every module of the config says that it is causal: a plain causal mask need not be made
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from transformers import PretrainedConfig, PreTrainedModel

from .sources import source


@dataclass
class Habit:
    """How the modules of one config take their masks, and the lengths for which one was left out."""

    config: PretrainedConfig
    adds: bool = False
    leaves_out: bool = False
    left_out: set[tuple[int, int]] = field(default_factory=set)


def habits(model: PreTrainedModel) -> dict[int, Habit]:
    """The habits of a model, for every config that a part of it may ask, by the config's id."""
    found = {id(config): Habit(config) for config in _configs(model)}
    asking = [module for module in model.modules() if source(module).asking is not None]
    for key, habit in found.items():
        own = [module for module in asking if id(getattr(module, "config", None)) == key]
        habit.leaves_out = bool(own) and all(getattr(module, "is_causal", False) for module in own)
    for part in model.modules():
        if isinstance(part, PreTrainedModel) and not getattr(part, "_supports_sdpa", True):
            found[id(part.config)].adds |= any(source(module).rewrites_mask for module in part.modules())
    return found


def _configs(model: torch.nn.Module) -> list[PretrainedConfig]:
    """Every config that a part of the model holds, and those inside, each once."""
    found: dict[int, PretrainedConfig] = {}
    waiting = [value for module in model.modules() for value in vars(module).values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, PretrainedConfig) and id(value) not in found:
            found[id(value)] = value
            waiting.extend(vars(value).values())
    return list(found.values())
