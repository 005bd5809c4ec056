"""A model around tensors that are there already: no number is drawn that would be thrown away."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from ..models import Model

Make = Callable[[], Model]
Shapes = dict[str, tuple[int, ...]]


def blank(make: Make) -> Model:
    """The model without numbers: shapes alone, and the random state stays as it was."""
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        return make()


def held(model: Model) -> dict[str, Tensor]:
    """What a model holds, by name: parameters and tables. One that is used twice comes once, under its first name."""
    state = model.state_dict(keep_vars=True)
    first: dict[int, str] = {}
    for name, tensor in state.items():
        first.setdefault(id(tensor), name)
    return {name: state[name] for name in first.values()}


def shapes(model: Model) -> Shapes:
    """The shape of each, by name."""
    return {name: tuple(tensor.shape) for name, tensor in held(model).items()}


def filled(make: Make, tensors: Mapping[str, Tensor]) -> Model:
    """The model with these in it, ready to be used; what is not among them stays as it is made.

    They are taken as they are, with their dtype and device.
    """
    model = blank(make)
    if held(model).keys() - tensors.keys():
        model = make()
    _put(model, tensors)
    model.eval()
    return model


def _put(model: Model, tensors: Mapping[str, Tensor]) -> None:
    names = {id(tensor): name for name, tensor in held(model).items()}
    made: dict[str, Tensor] = {}
    for path, old in model.state_dict(keep_vars=True).items():
        name = names[id(old)]
        if name in tensors:
            module, _, attribute = path.rpartition(".")
            new = made.setdefault(name, _like(old, tensors[name]))
            setattr(model.get_submodule(module), attribute, new)


def _like(old: Tensor, new: Tensor) -> Tensor:
    return nn.Parameter(new, old.requires_grad) if isinstance(old, nn.Parameter) else new
