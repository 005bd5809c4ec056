"""The arguments of a constructor: those that it knows, and those that it needs."""

from __future__ import annotations

from difflib import get_close_matches
from inspect import BoundArguments, Parameter, Signature
from typing import Any

from ..algebra.errors import KindError

OPTIONS = ("width", "bias", "dropout", "tables")  # of the attention in every block, which `**options` stands for
ELSEWHERE = {  # what other libraries call an argument → what it is called here
    "tokens": ("vocab_size", "n_vocab", "num_embeddings"),
    "dim": ("hidden_size", "d_model", "n_embd", "embed_dim"),
    "depth": ("num_layers", "n_layer", "n_layers", "layers", "num_hidden_layers"),
    "heads": ("num_heads", "n_head", "n_heads", "nhead", "num_attention_heads"),
    "kv_heads": ("num_key_value_heads", "n_kv_heads", "num_kv_heads"),
    "image": ("image_size", "img_size"),
    "patch": ("patch_size",),
    "classes": ("num_classes", "num_labels"),
}
HERE = {theirs: ours for ours, names in ELSEWHERE.items() for theirs in names}


def bound_to(signature: Signature, kind: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> BoundArguments:
    """The arguments by name, with defaults; one that is unknown or missing is refused in the name of `kind`."""
    known = [name for name in signature.parameters if name not in ("self", "options")]
    known += OPTIONS if "options" in signature.parameters else ()
    for name in options:
        if name not in known:
            raise KindError(f"{name}: no argument of {kind}; got one; {_advice(name, known)}")
    try:
        bound = signature.bind(*arguments, **options)
    except TypeError as error:
        needed = [name for name in known if name not in OPTIONS and _is_needed(signature.parameters[name])]
        raise KindError(f"{kind}: called as {kind}({', '.join(needed)}, …); got another call: {error}") from None
    bound.apply_defaults()
    return bound


def _is_needed(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty


def _advice(name: str, known: list[str]) -> str:
    near = [HERE[name]] if HERE.get(name) in known else get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}=?" if near else f"it takes {', '.join(known)}"
