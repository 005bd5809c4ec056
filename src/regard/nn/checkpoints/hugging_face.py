"""Checkpoints of Hugging Face in models of ours, and back.

config → model        their names → our names        a list of what did not match
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...algebra.errors import CallError, KindError
from ...attention import Attention
from ...inputs.positions.added import Learned
from ..bert import BERT as BERT_MODEL
from ..gpt import GPT
from ..models import Model
from ..stacks import formulas_of
from .bert import BERT
from .config import Config
from .families import Family, formulas
from .filling import blank, filled, held, shapes
from .gpt2 import GPT2
from .llama import LLAMA, MISTRAL, QWEN2
from .matched import Matched
from .sources import Source, source_of

FAMILIES = {family.name: family for family in (GPT2, LLAMA, MISTRAL, QWEN2, BERT)}
HEAD = "lm_head.weight"

Change = Attention | Sequence[Attention] | Callable[[Attention], Attention]


def from_hugging_face(
    source: str | os.PathLike[str] | Any,
    *,
    attention: Change | None = None,
    strict: bool = True,
    dtype: torch.dtype | None = None,
    device: str | torch.device = "cpu",
) -> Model:
    """A checkpoint of GPT-2, Llama, Mistral or Qwen2 as a GPT; one of BERT as a BERT; in evaluation mode.

    source:    a folder with config.json and model.safetensors, in one file or several; or a model of transformers,
               which may have been read from anything that transformers reads
    attention: another formula than the model's own: one for all layers, a list with one for each, or a function from
               the model's formula to another
    strict:    whether all must match; without, `model.matched` lists what did not, which stays as initialised
    dtype:     of the parameters; that of the checkpoint unless said otherwise

        model = from_hugging_face("SmolLM2-135M", attention=lambda own: Attention(own.score, own.weight, window(64)))

    Its tokenizer, from the same folder: `regard.inputs.BytePairs.wrap(folder)`.
    """
    found = source_of(source)
    family = _family(found.config)
    arguments = family.arguments(found.config)
    if "tied" in arguments:
        arguments["tied"] = bool(arguments["tied"]) and _one_head(found, family)
    if attention is not None:
        arguments["attention"] = _changed(arguments["attention"], attention)
    tensors, matched = family.names.match(shapes(blank(lambda: family.model(**arguments))), found.tensors, family.name)
    if strict and not matched.whole:
        raise CallError(_refusal(found.config, matched))
    dtype = _dtype(tensors) if dtype is None else dtype
    ours = {name: tensor.to(device, dtype).contiguous() for name, tensor in tensors.items()}
    model = filled(lambda: family.model(**arguments), ours)
    model.to(device, dtype)  # what nothing filled
    object.__setattr__(model, "matched", matched)
    return model


def to_hugging_face(model: Model, family: str | None = None) -> dict[str, Tensor]:
    """The parameters of a model under the names and in the layout of Hugging Face: what `load_state_dict` takes there.

    family: "gpt2", "llama", "mistral", "qwen2" or "bert"; that which it came from, or else that of its kind

    Formula, position and style are not among them: the config of their model must say the same.
    """
    names = _named(model, family).names
    theirs = names.theirs({name: tensor.detach() for name, tensor in held(model).items()})
    if isinstance(model, GPT):
        theirs.setdefault(HEAD, theirs[str(names.rows[0].theirs)])  # the embedding again, where they are tied
    return theirs


# -- families --------------------------------------------------------------------------------------------------


def _family(config: Config) -> Family:
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise CallError(
            f"model_type: one of {', '.join(FAMILIES)}; got {kind!r} in {config.place}; "
            "run such a model through regard.hf"
        )
    return FAMILIES[kind]


def _named(model: Model, family: str | None) -> Family:
    """The family by its name, by where the model came from, or by its kind."""
    came_from = getattr(model, "matched", None)
    name = family or (came_from.family if isinstance(came_from, Matched) else _kind(model))
    if name not in FAMILIES:
        raise CallError(f"family: one of {', '.join(FAMILIES)}; got {name!r}")
    if not isinstance(model, FAMILIES[name].model):
        raise KindError(f"model: a {FAMILIES[name].model.__name__} for {name}; got {type(model).__name__}")
    return FAMILIES[name]


def _kind(model: Model) -> str:
    if isinstance(model, BERT_MODEL):
        return "bert"
    if isinstance(model, GPT):
        return "gpt2" if isinstance(model.made_of["position"], Learned) else "llama"
    raise KindError(f"model: a GPT or a BERT, which have a like there; got {type(model).__name__}")


def _one_head(found: Source, family: Family) -> bool:
    """Whether embedding and head are one: a checkpoint that holds both, with other numbers, means two."""
    plain = {family.names.plain(name): tensor for name, tensor in found.tensors.items()}
    embedding = plain.get(family.names.plain(str(family.names.rows[0].theirs)))
    head = plain.get(HEAD)
    return embedding is None or head is None or bool(torch.equal(embedding, head))


# -- formulas, dtypes and refusals -------------------------------------------------------------------------------------


def _changed(own: Attention | list[Attention], attention: Change) -> Attention | list[Attention]:
    """The formulas of the layers, as they were asked for."""
    if isinstance(attention, Attention):
        return attention
    if callable(attention):
        return formulas(attention(formula) for formula in formulas_of(own))
    if not isinstance(attention, list | tuple):
        raise KindError(f"attention: a formula, a list of them, or a function from the model's own; got {attention!r}")
    return list(attention)


def _dtype(tensors: Mapping[str, Tensor]) -> torch.dtype:
    """The dtype that holds all of these without rounding."""
    widest = None
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or tensor.itemsize < 2:
            raise KindError(
                f"source: real numbers of 16 bits or more; got {name} in {tensor.dtype}, which is quantised; "
                "let transformers dequantise it, and pass its model"
            )
        widest = tensor.dtype if widest is None else torch.promote_types(widest, tensor.dtype)
    return widest or torch.get_default_dtype()


def _refusal(config: Config, matched: Matched) -> str:
    return (
        f"source: a checkpoint that matches {config.place}, tensor by tensor; got\n{matched}\n"
        "correct the config, or pass strict=False to take what matches"
    )
