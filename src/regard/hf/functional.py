"""Whatever calls PyTorch's attention, on a formula: a mode in which F.scaled_dot_product_attention is regard's.

y_i = Σ_j w_ij v_j,  w_i = softmax(scale · q_i·k_j + attn_mask_ij)  over j ≤ i, or where attn_mask is true
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType, TracebackType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

from ..algebra.errors import CallError
from ..algebra.masks import causal
from ..attention import Attention
from .asked import MASK, Asked, read_table, scale_of, split
from .replacement import Choice, Replacement


def rerouted(attention: Choice = None, **tables: Any) -> Rerouted:
    """Run every call of F.scaled_dot_product_attention on a formula: at once, until `restore()` or the end of a block.

        with regard.hf.rerouted():                                      # the same numbers, on regard
        with regard.hf.rerouted(Attention(mask=window(64))) as route:   # another formula
            y = model(x)
        route.calls, route.formulas

    attention: an `Attention`: its score and weight stand in place of softmax(q·k · scale), over the pairs that its mask
               and the call's admit; numbers in attn_mask are added to its score. Or a function from the call's own
               formula to the one that runs. None: the call's own
    tables:    what the formula reads

    It holds in the thread that calls it; of two, the inner one. Leaving it without one call is an error: nothing was
    changed. n in a formula is the number of keys of the call. Layers that run again in the backward pass, as with
    torch.utils.checkpoint, run on what holds then: call backward() inside of the block.
    """
    return Rerouted(Replacement(attention, tables))


class Rerouted(TorchFunctionMode):
    """What `rerouted` gives. `formulas` holds the formulas that ran, each once, `calls` how many calls there were."""

    def __init__(self, replacement: Replacement) -> None:
        super().__init__()
        self.calls = 0
        self.formulas: list[Attention] = []
        self._replacement = replacement
        self._entered = False
        self._is_on = True
        _push_mode(self)

    def restore(self) -> None:
        """Leave F.scaled_dot_product_attention as it was before; an error where nothing called it."""
        self._end()
        if self.calls == 0:
            raise CallError(
                "rerouted: nothing inside called F.scaled_dot_product_attention, so that no formula ran; a model of "
                "transformers goes under regard.hf.use, another one has to be switched to PyTorch's attention"
            )

    def __enter__(self) -> Rerouted:
        if self._entered or not self._is_on:
            raise CallError(
                f"rerouted: one with block for each; this was {'entered' if self._is_on else 'restored'} before, and "
                "nothing would run on its formula; call regard.hf.rerouted again"
            )
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.restore()
        else:
            self._end()

    def __repr__(self) -> str:
        lines = [f"rerouted, {'on regard' if self._is_on else 'restored'}, {self.calls} calls"]
        return "\n".join([*lines, *(f"  {formula!r}" for formula in self.formulas)])

    def _end(self) -> None:
        if self._is_on:
            _take_out(self)
            self._is_on = False

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, arguments: Any = (), options: dict[str, Any] | None = None
    ) -> Any:
        """One call of any function of PyTorch."""
        options = options or {}
        if function is F.scaled_dot_product_attention:
            return self._attended(*arguments, **options)
        if function is F.multi_head_attention_forward:
            _check_weights(arguments, options)
            _push_mode(self)  # a mode does not hold inside of its own functions
            try:
                return unasking(F.multi_head_attention_forward)(*arguments, **options)
            finally:
                _pop_mode()
        return function(*arguments, **options)

    def _attended(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if attn_mask is not None and is_causal:
            raise CallError("attn_mask: stands alone or is_causal does; got both; join them into one mask")
        query, key, value = broadcast(query, key, value, enable_gqa)
        asked, tables = _asked(query, key, attn_mask, is_causal, scale)
        placed = is_causal or query.shape[-2] == key.shape[-2]  # PyTorch counts both from the first
        if not placed and self._replacement.attention is not None and self._replacement.asks_for_places(asked):
            raise CallError(
                f"start: {query.shape[-2]} queries and {key.shape[-2]} keys without is_causal do not say where the "
                "queries stand, so i means nothing there; leave i out of the formula"
            )
        formula = self._replacement.formula(asked)
        self.calls += 1
        if formula not in self.formulas:
            self.formulas.append(formula)
        brought = self._replacement.brought(formula, tables, query.device)
        y: torch.Tensor = formula(query, key, value, start=0, dropout=dropout_p, **brought)
        return y


def _asked(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, is_causal: bool, scale: float | None
) -> tuple[Asked, dict[str, Any]]:
    tables: dict[str, Any] = {}
    truths, added = (None, None) if mask is None else split(mask)
    if truths is not None:
        tables["attention_mask"] = truths
    asked = Asked(
        scale=scale_of(scale, query.shape[-1], tables),
        mask=causal if is_causal else None if truths is None else MASK,
        added=None if added is None else read_table("added", added, query, key.shape[-2], tables),
    )
    return asked, tables


def broadcast(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, grouped: bool) -> list[torch.Tensor]:
    """The three with the same leading axes, as PyTorch takes them: an axis of 1 counts for every other size.

    Heads of keys that several queries share stay as they are, a head alone among them.
    """
    arrays = [query, key, value]
    if query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        return arrays
    fours = min(array.ndim for array in arrays) >= 4
    if fours and (grouped or key.shape[-3] == value.shape[-3] == 1):
        leads = [(*shape[:-3], 1) for shape in (array.shape for array in arrays)]
        lead = _one_shape(leads)[:-1]
        return [array.expand(*lead, *array.shape[-3:]) for array in arrays]
    heads = [array.shape[-3] for array in arrays] if fours else [1]
    if len({1, *heads}) > 2:
        raise CallError(
            f"enable_gqa: heads differ, query {tuple(query.shape)} and key {tuple(key.shape)}; pass enable_gqa=True"
        )
    lead = _one_shape([tuple(array.shape[:-2]) for array in arrays])
    return [array.expand(*lead, *array.shape[-2:]) for array in arrays]


def _one_shape(leads: list[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return tuple(torch.broadcast_shapes(*leads))
    except RuntimeError:
        raise CallError(
            f"query, key, value: leading axes that are equal or 1; got {', '.join(map(str, leads))}"
        ) from None


# -- torch.nn.MultiheadAttention -------------------------------------------------------------------------------


def _check_weights(arguments: Any, options: dict[str, Any]) -> None:
    """With weights PyTorch writes its attention out, and calls no kernel."""
    bound = inspect.signature(F.multi_head_attention_forward).bind(*arguments, **options)
    bound.apply_defaults()
    if bound.arguments["need_weights"]:
        raise CallError(
            "need_weights: nn.MultiheadAttention then writes its attention out and calls no kernel, so that no formula "
            "reaches it; got need_weights=True; pass need_weights=False"
        )


def _take_out(mode: Rerouted) -> None:
    """Take a mode out of PyTorch's stack of them, whatever stands above it."""
    if not any(mode is other for other in _get_current_function_mode_stack()):
        raise CallError("rerouted: restored in the thread that called it; got another; call restore() there")
    above = []
    while (top := _pop_mode()) is not mode:
        above.append(top)
    for other in reversed(above):
        _push_mode(other)


@lru_cache(maxsize=8)
def unasking(function: FunctionType) -> FunctionType:
    """The function without its question whether somebody overrides it, which would lead back here."""
    names = {**function.__globals__, "has_torch_function": lambda tensors: False}
    bare = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    bare.__kwdefaults__ = function.__kwdefaults__
    return bare
