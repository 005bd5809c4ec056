"""Models on disk: one safetensors file with the parameters and, in its metadata, what the model is made of.

    {"version": 1, "kind": "GPT", "made_of": {"tokens": 100, "attention": {"Attention": "softmax(…)"}, …}}

No pickle is written or read, and no text is evaluated.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

from ..algebra.errors import CallError, KindError
from .bert import BERT
from .checkpoints.filling import Make, Shapes, blank, filled, held, shapes
from .checkpoints.tensors import PICKLES, read, write
from .encoder_decoder import EncoderDecoder
from .gpt import GPT
from .models import Model
from .recipes import plain, value
from .stacks import Decoder, Encoder
from .vit import ViT

ENTRY, VERSION = "regard", 1
KINDS: dict[str, type[Model]] = {kind.__name__: kind for kind in (GPT, BERT, ViT, Encoder, Decoder, EncoderDecoder)}


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as one file, which replaces an older one when it is whole.

    A parameter that is used twice is stored once. Every tensor keeps its dtype, bit for bit.
    """
    if type(model) not in KINDS.values():
        raise KindError(f"model: one of {', '.join(KINDS)}; got {type(model).__name__}; {_instead(model)}")
    told = {"version": VERSION, "kind": type(model).__name__, "made_of": _described(model)}
    text = json.dumps(told, ensure_ascii=False, allow_nan=False)
    _check_as_made(model, _make(json.loads(text)))
    write(_written(path), held(model), {ENTRY: text})


def load(path: str | os.PathLike[str], *, device: str | torch.device = "cpu") -> Model:
    """The model that `save` wrote, in evaluation mode; `model.train()` to learn on."""
    metadata, tensors = read(_file(path))
    make, expected = _described_in(metadata, repr(os.fspath(path)))
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if found != expected:
        wrong = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
        raise KindError(
            f"path: tensors as the file describes them; got {wrong[0]} of shape {found.get(wrong[0])} and not "
            f"{expected.get(wrong[0])}, {len(wrong)} such in {os.fspath(path)!r}"
        )
    return filled(make, {name: tensor.to(device) for name, tensor in tensors.items()})


def _file(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise KindError(f"path: the name of a file, such as 'model.safetensors'; got {path!r}")
    return Path(path)


def _written(path: Any) -> Path:
    """A name that tells what is written."""
    file = _file(path)
    if file.suffix in PICKLES:
        better = file.with_suffix(".safetensors")
        raise CallError(f"path: a safetensors file is written, no pickle; got {str(file)!r}; name it {str(better)!r}")
    return file


# -- descriptions ----------------------------------------------------------------------------------------------


def _described(model: Model) -> dict[str, Any]:
    return {name: plain(part, name) for name, part in model.made_of.items()}


def _make(told: dict[str, Any]) -> Make:
    made_of = {name: value(part) for name, part in told["made_of"].items()}
    return lambda: KINDS[told["kind"]](**made_of)


def _described_in(metadata: dict[str, str], where: str) -> tuple[Make, Shapes]:
    """The model that a file describes, and the shapes of its tensors."""
    told = _told(metadata, where)
    try:
        make = _make(told)
        return make, shapes(blank(make))
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise KindError(f"path: a description that can be read; got another in {where}: {error}") from error


def _told(metadata: dict[str, str], where: str) -> dict[str, Any]:
    """What a file says of the model in it."""
    if ENTRY not in metadata:
        raise KindError(
            f"path: a file that save wrote; got {where}, which another library wrote; "
            "checkpoints of Hugging Face: regard.nn.from_hugging_face(folder)"
        )
    told = _json(metadata[ENTRY], where)
    if told.get("version") != VERSION or told.get("kind") not in KINDS:
        raise KindError(
            f"path: a file of version {VERSION}, with one of {', '.join(KINDS)}; got version {told.get('version')!r} "
            f"with {told.get('kind')!r} in {where}; read it with the regard that wrote it"
        )
    return told


def _json(text: str, where: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise KindError(f"path: a description in JSON; got another in {where}; copy the file again")
    return told


def _check_as_made(model: Model, make: Make) -> None:
    """Refuse a model whose parts were exchanged after it was made: its file would describe another."""
    made, found = shapes(blank(make)), shapes(model)
    if made != found:
        wrong = sorted(name for name in {*made, *found} if made.get(name) != found.get(name))
        raise KindError(
            f"model: as its constructor made it; got {wrong[0]} of shape {found.get(wrong[0])} and not "
            f"{made.get(wrong[0])}, {len(wrong)} such; {_instead(model)}"
        )


def _instead(model: Any) -> str:
    if hasattr(model, "_orig_mod"):
        return "save the model that was compiled"
    return "store its state_dict() with safetensors.torch.save_file, and make it in code"
