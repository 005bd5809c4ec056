"""Whether the attention of a model really went through us, looked at each time that a module has run.

A module that asks transformers for its attention must have called us. One that writes its own softmax, or calls
PyTorch's kernel itself, never will: it is named as soon as it runs. Recurrent and linear layers have no softmax.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch

from ..algebra.errors import CallError
from .recomputed import Guard
from .sources import source

if TYPE_CHECKING:
    from .handle import Use

Hook = Callable[..., None]


class Watch:
    """Hooks on a model and on its attention modules: functions, which a copy of the model shares and does not copy."""

    def __init__(self, model: torch.nn.Module, user: Use, where: Callable[[str], bool]) -> None:
        self.calls: Counter[str] = Counter()
        self._user, self._model = user, type(model).__name__
        asking = {name: module for name, module in model.named_modules() if source(module).asking is not None}
        others = {name: module for name, module in model.named_modules() if _goes_its_own_way(module)}
        if not asking:
            raise CallError(_none_asks(self._model, others))
        if not any(where(name) for name in asking):
            raise CallError(
                f"where: true for one of the attention modules of {self._model} at least, by name; got a function that "
                f"is false for all of them: {_listed(asking)}"
            )
        hooks = [(module, self._after_asking(name)) for name, module in asking.items() if where(name)]
        hooks += [(module, self._after_own_way(name)) for name, module in others.items() if where(name)]
        self._handles = [module.register_forward_hook(hook) for module, hook in [*hooks, (model, self._after_all())]]
        self._handles += [model.register_forward_pre_hook(self._before_all(), with_kwargs=True)]
        self._forward = threading.local()  # of the forward that runs in a thread
        self._guard = Guard(model, lambda: user.is_on)

    def remove(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()
        self._guard.leave()

    def _after_asking(self, name: str) -> Hook:
        seen = 0

        def hook(module: torch.nn.Module, *_: Any) -> None:
            nonlocal seen
            if self.calls[name] == seen:
                self._refuse(
                    f"use: {name} ({type(module).__name__}) of {self._model} ran without asking for its attention, "
                    "which an option of its config or of the call decides; change that, or leave it out by where="
                )
            seen = self.calls[name]

        return hook

    def _after_own_way(self, name: str) -> Hook:
        def hook(module: torch.nn.Module, *_: Any) -> None:
            self._refuse(
                f"use: {name} ({type(module).__name__}) of {self._model} computes its attention itself and does not "
                "ask transformers for it, so that no formula reaches it; leave it as it is by where=, a function of "
                "names that is false for it"
            )

        return hook

    @property
    def wants_weights(self) -> bool:
        """Whether the forward that runs was asked for its weights: not every model hands that on."""
        return bool(getattr(self._forward, "wants_weights", False))

    def _before_all(self) -> Hook:
        def hook(model: torch.nn.Module, _arguments: Any, options: dict[str, Any]) -> None:
            if model.training:
                self._guard.enter()
            self._forward.calls = self._user.calls
            self._forward.wants_weights = options.get("output_attentions")

        return hook

    def _after_all(self) -> Hook:
        def hook(*_: Any) -> None:
            self._forward.wants_weights = False
            if self._user.calls == getattr(self._forward, "calls", None):
                self._refuse(
                    f"use: no attention module of {self._model} ran; its forward took a way without attention; "
                    "run it without regard.hf.use"
                )

        return hook

    def _refuse(self, text: str) -> None:
        self._user.restore()
        raise CallError(text)


def _goes_its_own_way(module: torch.nn.Module) -> bool:
    """Whether this is an attention with a softmax of its own, and no part of it asks for another."""
    return source(module).has_softmax and not any(source(part).asking for part in module.modules())


def _listed(names: Iterable[str], most: int = 8) -> str:
    """Names, the first of them where there are many."""
    found = list(names)
    return ", ".join(found[:most]) + (f", … ({len(found)} in all)" if len(found) > most else "")


def _none_asks(model: str, others: dict[str, torch.nn.Module]) -> str:
    classes = (
        ", ".join(sorted({type(module).__name__ for module in others.values()}))
        or "no module that is known as an attention"
    )
    return (
        f"model: one whose attention modules ask transformers' AttentionInterface; {model} has {classes}; "
        "where it calls F.scaled_dot_product_attention, take regard.hf.rerouted"
    )
