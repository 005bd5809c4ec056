"""A model of transformers on a formula, until it is restored."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any
from weakref import ref

import torch
from transformers import PreTrainedModel

from ..algebra.errors import CallError, KindError, RegardError
from ..attention import Attention
from .call import Call
from .habits import habits
from .interface import SERVING, switch, switch_back
from .options import check_options, wants_weights
from .proof import prove
from .replacement import Choice, Replacement
from .verify import Watch


def use(
    model: PreTrainedModel, attention: Choice = None, *, where: Callable[[str], bool] | None = None, **tables: Any
) -> Use:
    """Run a model of transformers on a formula: at once, until `restore()` or the end of a `with` block.

        with regard.hf.use(model):                                      # its own attention, on regard
        with regard.hf.use(model, Attention(mask=window(64))):          # another formula
        with regard.hf.use(model, lambda own: Attention(own.score, sigmoid, own.mask)):

    attention: an `Attention`: its score and weight stand in place of the model's (scale, soft-cap, sink and position
               bias included), over the pairs that its mask *and* the model's own admit (causality, padding, window).
               Or a function from the model's own formula to the one that runs, mask included. None: the model's own
    where:     which attention modules the formula is for, by name; others run the model's own, or what they have
    tables:    what the formula reads beside the model's own: `position_bias`, `sink`, `attention_mask`

    i and j count along the keys as the model holds them: from its first key, padding included. n, the length of the
    text, is refused with a cache or padding. Where layers are checkpointed, backward() stands inside of the block.
    """
    return Use(model, attention, where, tables)


class Use:
    """What `use` gives back. `formulas` holds what each module ran last, `calls` how often any of them ran."""

    def __init__(
        self, model: PreTrainedModel, attention: Choice, where: Callable[[str], bool] | None, tables: dict[str, Any]
    ) -> None:
        if not isinstance(model, PreTrainedModel):
            raise KindError(
                f"model: a model of transformers; got {type(model).__name__}; "
                "for other code that calls F.scaled_dot_product_attention take regard.hf.rerouted"
            )
        if not (where is None or callable(where)):
            raise KindError(
                f"where: a function of the names of modules, true for those that it chooses; got {where!r}; "
                'for example lambda name: "layers.1." in name'
            )
        self.formulas: dict[str, Attention] = {}
        self.calls = 0
        self._entered = False
        self._name = type(model).__name__
        self._own, self._other = Replacement(None, {}), Replacement(attention, tables, ("attention", "where"))
        self._where = where or (lambda name: True)
        self._watch: Watch | None = Watch(model, self, self._where)
        self.habits = habits(model)
        self._modules = [ref(module) for module in model.modules()]  # whoever serves a model does not keep it alive
        for name, module in model.named_modules():
            SERVING.setdefault(module, []).append((self, name))
        switch(self, model, self.habits)

    def restore(self) -> None:
        """Leave the model as it was before."""
        if self._watch is None:
            return
        self._watch.remove()
        self._watch = None
        for module in filter(None, (kept() for kept in self._modules)):
            SERVING[module] = [entry for entry in SERVING[module] if entry[0] is not self]
            if not SERVING[module]:
                del SERVING[module]
        switch_back(self)

    @property
    def is_on(self) -> bool:
        """Whether the model runs on regard: until it is restored."""
        return self._watch is not None

    def __enter__(self) -> Use:
        if self._entered or not self.is_on:
            raise CallError(
                f"use: one with block for each; {self._name} was {'entered' if self.is_on else 'restored'} before, and "
                "would run on its own attention; call regard.hf.use again"
            )
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.restore()

    def __repr__(self) -> str:
        lines = [f"{self._name}, {'on regard' if self.is_on else 'restored'}, {self.calls} calls"]
        for formula in dict.fromkeys(self.formulas.values()):
            names = [name for name, ran in self.formulas.items() if ran == formula]
            lines.append(f"  {formula!r}: {', '.join(names)}")
        return "\n".join(lines)

    def saw(self, name: str) -> None:
        """A module has asked for its attention, of us or of a use inside this one."""
        self.calls += 1
        if self._watch is not None:
            self._watch.calls[name] += 1

    def left_out(self, module: torch.nn.Module) -> set[tuple[int, int]]:
        """The lengths for which a module's causal mask was left out."""
        habit = self.habits.get(id(getattr(module, "config", None)))
        return set() if habit is None else habit.left_out

    def attend(self, name: str, call: Call) -> tuple[torch.Tensor, torch.Tensor | None]:
        """One call of one module, by its name in the model."""
        try:
            return self._attend(name, call)
        except RegardError:
            self.restore()
            raise

    def _attend(self, name: str, call: Call) -> tuple[torch.Tensor, torch.Tensor | None]:
        check_options(name, call)
        replacement = self._other if self._where(name) else self._own
        first = 0 if replacement.attention is None else call.first_query()
        asked = call.asked(first)
        prove(name, call, asked)
        if first is None and replacement.asks_for_places(asked):
            raise CallError(
                f"start: {name} hands over {call.queries} queries and {call.keys} keys and does not say where the "
                "queries stand, so i means nothing there; leave i out of the formula, or the module out by where="
            )
        formula = replacement.formula(asked)
        if replacement.attention is not None and not call.is_whole_text and formula.uses("n"):
            raise CallError(_no_length(name, formula, call))
        self.formulas[name] = formula
        options = {
            "start": first or 0,
            "dropout": call.dropout,
            **replacement.brought(formula, call.tables, call.query.device),
        }
        weights = wants_weights(call) or (self._watch is not None and self._watch.wants_weights)
        return _attended(formula, call, options, weights=weights)


def _no_length(name: str, formula: Attention, call: Call) -> str:
    held = "a mask" if call.queries == call.keys else f"{call.keys} keys for {call.queries} queries"
    return (
        f"n: the length of the text, where its keys are all there and no others; {name} got {held}, as with a cache or "
        f"padding, and {formula!r} reads n; write i + 1 where the keys up to the query are meant, or pass "
        "use_cache=False and texts of one length, or leave the module out by where="
    )


def _attended(
    formula: Attention, call: Call, options: dict[str, Any], *, weights: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """y as (batch, queries, heads, width), and the weights where they are asked for."""
    if weights and call.dropout:
        options["seed"] = int(torch.randint(2**63 - 1, ()))  # the same weights are dropped twice
    y = formula(call.query, call.key, call.value, **options).transpose(1, 2).contiguous()
    return y, formula.weights(call.query, call.key, **options).to(call.query.dtype) if weights else None
