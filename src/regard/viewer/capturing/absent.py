"""Modules that look like attention and made no call that could be seen."""

from __future__ import annotations

import re

import torch

from ...hf.sources import source
from ..record import Missing
from .places import Places
from .recorder import Choice

NAMES = re.compile("attention|attn", re.IGNORECASE)


def absent(places: Places, choice: Choice, seen: bool) -> list[Missing]:
    """What a reader would look for and not find, with the reason; the innermost of modules inside each other."""
    unserved = {key: module for key, module in places.modules.items() if key not in places.served}
    found = {key: module for key, module in unserved.items() if _attends(module, ran=key in places.ran)}
    inner = [
        key for key, module in found.items()
        if not any(id(part) in found for part in module.modules() if part is not module)
    ]  # fmt: skip
    listed = [Missing(places.names[key], _why(places, key)) for key in inner if choice.takes(-1, places.names[key], "")]
    if not seen and not listed:
        root = next(iter(places.modules.values()))
        why = "no call of attention was seen in it; recurrent, convolutional and linear layers have no weights to show"
        listed.append(Missing(type(root).__name__, why))
    return listed


def _attends(module: torch.nn.Module, *, ran: bool) -> bool:
    if isinstance(module, torch.nn.MultiheadAttention | torch.jit.ScriptModule):
        return True
    known = source(module)
    return known.asking is not None or known.has_softmax or (ran and NAMES.search(type(module).__name__) is not None)


def _why(places: Places, key: int) -> str:
    module = places.modules[key]
    kind = type(module).__name__
    if isinstance(module, torch.jit.ScriptModule):
        return "it is compiled by TorchScript, whose calls cannot be seen; take the module that it was made from"
    if key not in places.ran:
        return f"{kind} did not run"
    if not source(module).has_softmax:
        return f"{kind} ran, and takes no softmax of its own: it may be linear, hashed, or no attention but by name"
    return f"{kind} ran, and no call of attention, and no softmax multiplied with values, was seen in it"
