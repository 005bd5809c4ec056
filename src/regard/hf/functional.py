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
from torch.overrides import TorchFunctionMode

from ..algebra.errors import CallError
from ..algebra.masks import causal
from ..attention import Attention
from .asked import MASK, Asked, read_table, scale_of, split
from .replacement import Choice, Replacement


def rerouted(attention: Choice = None, **tables: Any) -> Rerouted:
    """A context in which every call of F.scaled_dot_product_attention runs on a formula.

        with regard.hf.rerouted():                                      # the same numbers, on regard
        with regard.hf.rerouted(Attention(mask=window(64))) as route:   # another formula
            y = model(x)
        route.calls, route.formulas

    attention: an `Attention`: its score and weight stand in place of softmax(q·k · scale), over the pairs that its mask
               and the call's admit; numbers in attn_mask are added to its score. Or a function from the call's own
               formula to the one that runs. None: the call's own
    tables:    what the formula reads

    It holds in the thread that enters it. Leaving it without one call is an error: nothing was changed.
    """
    return Rerouted(Replacement(attention, tables))


class Rerouted(TorchFunctionMode):
    """What `rerouted` gives. `formulas` holds the formulas that ran, each once, `calls` how many calls there were."""

    def __init__(self, replacement: Replacement) -> None:
        super().__init__()
        self.calls = 0
        self.formulas: list[Attention] = []
        self._replacement = replacement

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, arguments: Any = (), options: dict[str, Any] | None = None
    ) -> Any:
        """One call of any function of PyTorch."""
        options = options or {}
        if function is F.scaled_dot_product_attention:
            return self._attended(*arguments, **options)
        if function is F.multi_head_attention_forward:
            _check_weights(arguments, options)
            with self:  # a mode does not hold inside of its own functions
                return _unasking(F.multi_head_attention_forward)(*arguments, **options)
        return function(*arguments, **options)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        if kind is None and self.calls == 0:
            raise CallError(
                "rerouted: nothing inside called F.scaled_dot_product_attention, so that no formula ran; a model of "
                "transformers goes under regard.hf.use, another one has to be switched to PyTorch's attention"
            )

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
        if query.ndim >= 4 and not enable_gqa and query.shape[-3] != key.shape[-3]:
            raise CallError(
                f"enable_gqa: heads differ, query {tuple(query.shape)} and key {tuple(key.shape)}; pass enable_gqa=True"
            )
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


@lru_cache(maxsize=8)
def _unasking(function: FunctionType) -> FunctionType:
    """The function without its question whether somebody overrides it, which would lead back here."""
    names = {**function.__globals__, "has_torch_function": lambda tensors: False}
    bare = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    bare.__kwdefaults__ = function.__kwdefaults__
    return bare
