"""Models that transformers reads, from a folder with safetensors or from a .gguf file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...algebra.errors import CallError, MissingExtra
from .finding import config_of
from .live import Kept, Live, Say
from .seeing import opened

DECODERS = ("ForCausalLM", "LMHeadModel")
ENDLESS = 10**9  # a tokenizer without a limit says this, or more


def live_pretrained(place: Path, kept: Kept) -> Live:
    """The model at a place, ready to look at texts, or at images where its config speaks of patches."""
    config = {} if place.suffix == ".gguf" else config_of(place)
    if "patch_size" in config or "patch_size" in (config.get("vision_config") or {}):
        return _viewer(place, kept)
    return _reader(pretrained(place), kept)


# -- texts -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pretrained:
    """A model of texts, and what cuts a text into its tokens."""

    model: Any
    tokenizer: Any


def pretrained(place: Path) -> Pretrained:
    """The model of texts at a place: a folder of transformers, or a .gguf file."""
    library, gguf = _transformers(), {"gguf_file": place.name} if place.suffix == ".gguf" else {}
    folder = place.parent if gguf else place
    names = ["ForCausalLM"] if gguf else config_of(place).get("architectures") or [""]
    kind = library.AutoModelForCausalLM if str(names[0]).endswith(DECODERS) else library.AutoModel
    return Pretrained(_loaded(kind, folder, **gguf), _read(library.AutoTokenizer, folder, **gguf))


def _reader(read: Pretrained, kept: Kept) -> Live:
    model, tokenizer = read.model, read.tokenizer
    tokens = _context(model.config, tokenizer)

    def look(text: str, say: Say) -> Any:
        count = len(tokenizer(text)["input_ids"])
        if not 0 < count <= tokens:
            raise CallError(
                f"text: from 1 to {tokens:,} tokens, which is all that this model reads at once; got {count:,}; "
                "look at a part of it"
            )
        return kept.lens(model, text, say, tokenizer=tokenizer)

    return Live(words=_words(model), text=look, tokens=tokens, how="its model reads texts")


def _context(config: Any, tokenizer: Any) -> int:
    """How many tokens a model reads at once: the least that it or its tokenizer says."""
    told = (getattr(config, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None))
    return int(min((one for one in told if one is not None and 0 < one < ENDLESS), default=8192))


# -- images ----------------------------------------------------------------------------------------------------


def _viewer(folder: Path, kept: Kept) -> Live:
    whole = _loaded(_transformers().AutoModel, folder)
    model = getattr(whole, "vision_model", whole)

    def look(image: bytes, say: Say) -> Any:
        return kept.lens(model, None, say, image=opened(image))

    return Live(words=_words(model), image=look, how="its model reads images")


# -- transformers ----------------------------------------------------------------------------------------------


def _transformers() -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import transformers
    except ImportError as missing:
        raise MissingExtra(missing.name or "transformers", "hf") from None
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _loaded(kind: Any, folder: Path, **gguf: str) -> Any:
    """A model that only reads, on the fastest device; half precision is left to a GPU, which is made for it."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    told = {"dtype": "auto" if device == "cuda" else torch.float32, **({} if gguf else {"use_safetensors": True})}
    return _read(kind, folder, **told, **gguf).eval().to(device)


def _read(kind: Any, folder: Path, **told: Any) -> Any:
    try:
        return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **told)
    except (ImportError, KeyError, OSError, RuntimeError, ValueError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise CallError(
            f"model: what {kind.__name__} of transformers reads, without code of its own; got {str(folder)!r}: {reason}"
        ) from None


def _words(model: Any) -> str:
    """A model in a few words."""
    config, count = model.config, sum(one.numel() for one in model.parameters())
    layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    return f"{type(model).__name__}, {layers} layers of {heads} heads, {count / 1e6:,.1f} M parameters"
