"""What a model is called with, from whatever was handed in: tensors, texts, an image."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...algebra.errors import CallError, KindError, MissingExtra
from ..looking import Told
from .preparing import prepared

SAME = "the decoder reads the same text, one token later"


@dataclass(frozen=True)
class Inputs:
    """What a model is called with, and the texts and the image that it was made from."""

    args: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    encodings: tuple[Any, ...] = ()
    shown: Any = None
    notes: tuple[str, ...] = ()

    @property
    def tensors(self) -> dict[str, Any]:
        """Tensors by name; those without one by their place."""
        found = {f"input {place}": one for place, one in enumerate(self.args)} | self.named
        return {name: one for name, one in found.items() if hasattr(one, "ndim") and hasattr(one, "detach")}

    @property
    def tokens(self) -> int:
        """How long the longest sequence of ids is."""
        return max((int(one.shape[1]) for one in self.tensors.values() if is_ids(one)), default=0)


def read(model: Any, inputs: Any, told: Told) -> Inputs:
    """Whatever was handed in, as what the model is called with."""
    if inputs is None:
        return _of_image(model, told.image)
    if isinstance(inputs, str) or (isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], str)):
        return _of_texts(model, (inputs,) if isinstance(inputs, str) else tuple(inputs), told)
    if isinstance(inputs, Mapping):
        return Inputs(named={str(name): one for name, one in inputs.items()})
    if isinstance(inputs, list | tuple):
        return Inputs(args=tuple(inputs))
    if hasattr(inputs, "ndim") and hasattr(inputs, "detach"):
        return Inputs(args=(inputs,))
    if type(inputs).__module__.partition(".")[0] == "PIL":
        return _of_image(model, inputs)
    raise KindError(
        f"inputs: a tensor, a tuple or a dict of them, or a text with tokenizer=; got {type(inputs).__name__}; "
        "torch.as_tensor makes a tensor of an array"
    )


def _of_texts(model: Any, texts: tuple[str, ...], told: Told) -> Inputs:
    tokenizer = told.tokenizer
    if tokenizer is None:
        raise CallError("tokenizer: needed for a text; got none; pass tokenizer=, or ids as inputs with tokens=")
    if not all(isinstance(text, str) for text in texts):
        raise KindError("inputs: texts alone; got some that are not")
    if not callable(tokenizer):
        return _by_vocabulary(tokenizer, texts)
    if len(texts) > 1 and getattr(tokenizer, "pad_token", "") is None:
        raise CallError("tokenizer: with a pad token, for several texts; got one without; set tokenizer.pad_token")
    encoded = tokenizer(list(texts), return_tensors="pt", padding=len(texts) > 1)
    if not encoded["input_ids"].shape[1]:
        raise CallError("inputs: a text of at least one token; got one without")
    taken = _parameters(model)
    if "input_ids" not in taken and all(one.kind is not one.VAR_KEYWORD for one in taken.values()):
        return Inputs((encoded["input_ids"],), {}, texts, tuple(getattr(encoded, "encodings", None) or ()))
    named = {name: one for name, one in encoded.items() if name in taken or "input_ids" not in taken}
    notes: tuple[str, ...] = ()
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False) and "decoder_input_ids" not in named:
        named["decoder_input_ids"], notes = _shifted(model, named["input_ids"]), (SAME,)
    unseen = {"use_cache": False, "logits_to_keep": 1}  # nobody will look at more
    named |= {name: value for name, value in unseen.items() if name in taken}
    return Inputs((), named, texts, tuple(getattr(encoded, "encodings", None) or ()), notes=notes)


def _by_vocabulary(vocabulary: Any, texts: tuple[str, ...]) -> Inputs:
    """Ids of a vocabulary of regard.inputs, or of the package tokenizers."""
    torch = torch_module()
    found = [vocabulary.encode(text) for text in texts]
    encodings = tuple(found) if all(hasattr(one, "offsets") for one in found) else ()
    ids = [list(one.ids) if hasattr(one, "ids") else list(one) for one in found]
    if len({len(one) for one in ids}) > 1:
        raise CallError(f"inputs: texts of one length in tokens; got {[len(one) for one in ids]}; look at one by one")
    return Inputs((torch.tensor(ids),), {}, texts, encodings)


def _of_image(model: Any, image: Any) -> Inputs:
    ready = prepared(image, model)
    values = torch_module().from_numpy(ready.values)
    named = "pixel_values" in _parameters(model)
    return Inputs(() if named else (values,), {"pixel_values": values} if named else {}, shown=ready.shown)


def _shifted(model: Any, ids: Any) -> Any:
    """What a decoder that writes these tokens has read so far: its start, then all but the last."""
    config = model.config
    start = next((one for one in (config.decoder_start_token_id, config.pad_token_id) if one is not None), 0)
    return torch_module().cat([ids.new_full((ids.shape[0], 1), start), ids[:, :-1]], dim=1)


def _parameters(model: Any) -> Mapping[str, Any]:
    return inspect.signature(model.forward).parameters


def is_ids(one: Any) -> bool:
    """Whether a tensor holds the ids of tokens."""
    return bool(one.ndim == 2 and not one.dtype.is_floating_point and str(one.dtype) != "torch.bool")


def torch_module() -> Any:
    """PyTorch."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "torch") from None
    return torch
