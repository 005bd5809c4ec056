"""Every function of PyTorch that a model calls, looked at: kernels of attention are noted, and all run as they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch.overrides import _pop_mode, _push_mode

from ...algebra.errors import CallError
from ...hf.call import Call as Asked
from ...hf.functional import broadcast, unasking
from ...hf.options import check_options
from ...hf.proof import prove
from . import fast, flexible
from .masks import Masks
from .places import Places
from .reading import Kernel, formula_of, fours
from .recorder import Recorder
from .shared import Looking
from .written import Written

Function = Callable[..., Any]


class Mode(Looking):
    """Sees every function; `told` is what regard's own attention tells of its calls."""

    def __init__(self, recorder: Recorder, places: Places) -> None:
        super().__init__()
        self.recorder, self.places, self.masks = recorder, places, Masks()
        self.written = Written(self)
        self._resting = 0
        self.heads: int | None = None  # of the nn.MultiheadAttention that runs
        self.sink: torch.Tensor | None = None  # that a function of transformers adds to FlexAttention
        self._seers: dict[str, Function] = {
            "scaled_dot_product_attention": self._kernel,
            "multi_head_attention_forward": self._multi_head,
            "_transformer_encoder_layer_fwd": self._encoder_layer,
            "_native_multi_head_attention": self._native,
            "flex_attention": self._flex,
        }

    def __torch_function__(self, function: Function, types: Any, arguments: Any = (), options: Any = None) -> Any:
        """One call of any function of PyTorch."""
        options = options or {}
        name = getattr(function, "__name__", "")
        seer, steps = self._seers.get(name), name in self.written.seers
        is_seen = (seer is not None or steps) and self._is_on
        if seer is not None and is_seen:
            return seer(function, arguments, options)
        made = function(*arguments, **options)
        if steps and is_seen:
            self.written.look(function, arguments, options, made)
            self.recorder.report()
        elif name.endswith("_") and not name.startswith("__") and arguments:
            self.written.forget(arguments[0])
        return made

    @property
    def _is_on(self) -> bool:
        return not self._resting and self.places.is_here

    def told(self, call: Any) -> None:
        """A call of regard's own attention, before it runs."""
        if not self._resting and self.places.is_here:
            self._look(lambda: self.recorder.keep_call(call))

    def _look(self, look: Callable[[], None]) -> None:
        """Look at a call; whatever is odd about it, the model goes on."""
        try:
            with self.rest():
                look()
        except Exception as problem:  # noqa: BLE001 - it is told among what is missing
            self.recorder.refuse(f"its call cannot be said as a formula: {type(problem).__name__}: {problem}")
        self.recorder.report()

    @contextmanager
    def rest(self) -> Iterator[None]:
        """Let what runs inside pass unseen: it was noted already."""
        self._resting += 1
        try:
            yield
        finally:
            self._resting -= 1

    # -- transformers ------------------------------------------------------------------------------------------------

    def owns(self, module: torch.nn.Module) -> bool:
        """Whether a module's call is ours to note."""
        return not self._resting and self.places.is_here and self.places.knows(module)

    @contextmanager
    def interface(self, kind: str, module: Any, arrays: Any, mask: Any, options: dict[str, Any]) -> Iterator[None]:
        """A call of a function of transformers, noted where it can be read here."""
        try:
            with self.rest():
                kernel, arrays = _asked(kind, module, arrays, mask, options)
                self.keep(kernel, *arrays)
        except Exception:  # noqa: BLE001 - what it calls is looked at instead
            self.sink = options.get("s_aux") if kind == "flex" else None
            try:
                yield
            finally:
                self.sink = None
        else:
            self.recorder.report()
            with self.rest():
                yield

    # -- kernels -----------------------------------------------------------------------------------------------------

    def keep(self, kernel: Kernel, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """One call of a kernel whose arrays share their leading axes, but for the heads of keys."""
        formula, tables, start = formula_of(kernel, q, int(k.shape[-2]), self.masks)
        read = {name: value for name, value in tables.items() if name in formula.ranks}
        q, k, v = fours(q, k, v)
        self.recorder.keep(formula, q, k, v, read, start)

    def _kernel(self, function: Function, arguments: Any, options: dict[str, Any]) -> Any:
        self._look(lambda: self._note(*arguments, **options))
        return function(*arguments, **options)

    def _note(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> None:
        if query.is_nested:
            return flexible.note_nested(self, query, key, value, is_causal, scale)
        q, k, v = broadcast(query, key, value, enable_gqa)
        heads = self.places.heads(int(q.shape[-1])) if q.ndim == 3 and attn_mask is None else 1
        if heads > 1 and q.shape[0] % heads == 0:
            q, k, v = (x.unflatten(0, (-1, heads)) for x in (q, k, v))
        self.keep(Kernel(scale, is_causal, attn_mask), q, k, v)
        return None

    # -- torch.nn.MultiheadAttention -------------------------------------------------------------------------------

    def _multi_head(self, function: Any, arguments: Any, options: dict[str, Any]) -> Any:
        """Its own steps are looked at: it calls the kernel, or writes its weights out where they are asked for."""
        bound = inspect.signature(F.multi_head_attention_forward).bind(*arguments, **options)
        self.heads = bound.arguments["num_heads"]
        _push_mode(self)  # a mode does not hold inside of its own functions
        try:
            return unasking(F.multi_head_attention_forward)(*arguments, **options)
        finally:
            _pop_mode()
            self.heads = None

    def _encoder_layer(self, function: Function, arguments: Any, options: dict[str, Any]) -> Any:
        with self.places.within("self_attn"):
            self._look(lambda: fast.note_encoder_layer(self, arguments))
        return function(*arguments, **options)

    def _native(self, function: Function, arguments: Any, options: dict[str, Any]) -> Any:
        self._look(lambda: fast.note_native(self, arguments))
        return function(*arguments, **options)

    def _flex(self, function: Function, arguments: Any, options: dict[str, Any]) -> Any:
        self._look(lambda: flexible.note(self, *arguments, **options))
        return function(*arguments, **options)


def _asked(
    kind: str, module: Any, arrays: Any, mask: Any, options: dict[str, Any]
) -> tuple[Kernel, tuple[torch.Tensor, ...]]:
    """What a call through transformers' interface asks for; an error where only its kernels tell."""
    q, k, v = arrays
    if kind == "sdpa" and options.get("cache") is None:
        said = options.get("is_causal")
        causal = bool(getattr(module, "is_causal", True) if said is None else said)
        causal = causal and mask is None and q.shape[2] > 1
        bias = options.get("position_bias")
        if causal and k.shape[2] > q.shape[2]:  # an empty cache of fixed length
            k, v = k[:, :, : q.shape[2]], v[:, :, : q.shape[2]]
            bias = None if bias is None else bias[..., : q.shape[2]]
        return Kernel(options.get("scaling"), causal, mask, position_bias=bias), (q, k, v)
    if kind != "eager":
        raise CallError(f"interface: eager or SDPA attention; got {kind}; its kernels are looked at instead")
    own = mask.detach() if isinstance(mask, torch.Tensor) else mask  # what is noted on a mask stays here
    asked = Asked(module, q, k, v, own, options, ())
    check_options("capture", asked)
    prove("capture", asked, asked.asked())
    take = options.get
    kernel = Kernel(take("scaling"), False, mask, take("softcap"), take("s_aux"), take("position_bias"))
    return kernel, (q, k, v)
