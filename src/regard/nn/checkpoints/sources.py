"""Where config and tensors come from: a folder, or a model of transformers in memory. Nothing is downloaded."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ...algebra.errors import CallError, KindError
from .config import Config
from .tensors import PICKLES, read

CONFIG, WHOLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
READ_BY = "let transformers read it and pass its model: from_hugging_face(AutoModelForCausalLM.from_pretrained(…))"


@dataclass(frozen=True)
class Source:
    """A checkpoint: what it says of itself, and its tensors, which are nobody else's."""

    config: Config
    tensors: dict[str, Tensor]


def source_of(source: Any) -> Source:
    """The checkpoint in a folder, or in a model."""
    if isinstance(source, str | os.PathLike):
        return _in_folder(Path(source))
    if not hasattr(getattr(source, "config", None), "to_dict") or not callable(getattr(source, "state_dict", None)):
        raise KindError(
            f"source: a folder with {CONFIG} and {WHOLE}, or a model of transformers; got {type(source).__name__}"
        )
    config = Config(source.config.to_dict(), f"the config of {type(source).__name__}")
    return Source(config, {name: tensor.detach().clone() for name, tensor in source.state_dict().items()})


def _in_folder(folder: Path) -> Source:
    if not folder.is_dir():
        what = (
            "a file; name its folder" if folder.is_file() else f"which is none; nothing is downloaded: {_fetch(folder)}"
        )
        raise CallError(f"source: a folder with {CONFIG} and {WHOLE}; got {str(folder)!r}, {what}")
    config = folder / CONFIG
    if not config.is_file():
        _check_format(folder)
        raise CallError(f"source: a folder with {CONFIG}; got {str(folder)!r}, which has {_shown(folder)}")
    return Source(Config(_json(config), repr(str(config))), _tensors(folder))


def _fetch(folder: Path) -> str:
    return f"fetch it with `hf download {folder.as_posix()} --local-dir …`"


def _tensors(folder: Path) -> dict[str, Tensor]:
    if (folder / WHOLE).is_file():
        return read(folder / WHOLE, "source")[1]
    if (folder / INDEX).is_file():
        return _sharded(folder)
    _check_format(folder)
    raise CallError(f"source: a folder with {WHOLE}; got {str(folder)!r}, which has {_shown(folder)}")


def _check_format(folder: Path) -> None:
    """Refuse a folder whose checkpoint is of another format, and say who reads it."""
    others = sorted(path.name for path in folder.iterdir() if path.suffix in (*PICKLES, ".gguf"))
    if any(name.endswith(".gguf") for name in others):
        raise KindError(f"source: {WHOLE}; got {', '.join(others)} in {str(folder)!r}; {READ_BY[:-2]}, gguf_file=…))")
    if others:
        raise KindError(
            f"source: {WHOLE}; got {', '.join(others)} in {str(folder)!r}; pickles may run any code and are never "
            f"loaded; where you trust it, {READ_BY}"
        )


def _sharded(folder: Path) -> dict[str, Tensor]:
    """The tensors of all files that the index names."""
    files = _json(folder / INDEX).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(file, str) for file in files.values()):
        raise KindError(f"source: {INDEX} with a weight_map from names to files; got another in {str(folder)!r}")
    tensors: dict[str, Tensor] = {}
    for file in sorted(set(files.values())):
        if Path(file).name != file:
            raise CallError(f"source: {INDEX} names files of its own folder; got {file!r} in {str(folder)!r}")
        tensors |= read(folder / file, "source")[1]
    absent = [name for name in files if name not in tensors]
    if absent:
        raise CallError(f"source: every tensor where {INDEX} says; got none of {absent[0]!r} in {files[absent[0]]!r}")
    return tensors


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # of the encoding, or of JSON
        raise KindError(f"source: {path.name} is JSON; got {str(path)!r}, which is none: {error}") from None
    if not isinstance(found, dict):
        raise KindError(f"source: {path.name} holds an object; got {type(found).__name__} in {str(path)!r}")
    return found


def _shown(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") if names else "nothing"
