"""Models that `regard train` has learned: the best one in the folder of a run, on texts or on images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...algebra.errors import CallError, MissingExtra
from .live import Kept, Live, Say
from .seeing import opened


def live_run(folder: Path, kept: Kept) -> Live:
    """The best model of a run, ready to look at what it has learned to read."""
    try:
        from ...nn.storage import load
        from ...train.folder import Folder
    except ImportError as missing:
        raise MissingExtra(missing.name or "torch", "train") from None
    where = Folder(folder)
    settings = where.read_settings()
    if settings.task not in ("text", "images"):
        raise CallError(f"model: a run on text or images; got one on {settings.task} in {str(folder)!r}")
    if not where.best.exists():
        raise CallError(f"model: a run that was measured at least once; got {str(folder)!r}; train it first")
    model = load(where.best)
    return (_texts if settings.task == "text" else _images)(model, where, settings, kept)


def _texts(model: Any, folder: Any, settings: Any, kept: Kept) -> Live:
    from ...inputs.vocabularies import Vocabulary

    vocabulary: Any = Vocabulary.load(folder.vocabulary)
    tokens = int(settings.data.context)

    def look(text: str, say: Say) -> Any:
        count = len(vocabulary.encode(text))
        if not 0 < count <= tokens:
            raise CallError(f"text: from 1 to {tokens:,} tokens, as the run has learned; got {count:,}; shorten it")
        return kept.lens(model, text, say, tokenizer=vocabulary)

    return Live(words=_words(model, folder), text=look, tokens=tokens, how="its model reads texts")


def _images(model: Any, folder: Any, settings: Any, kept: Kept) -> Live:
    import numpy as np
    import torch

    from ...train.tasks.images import Pictures

    task = Pictures.kept(folder, settings)
    channels, height, width = task.images.shape

    def look(image: bytes, say: Say) -> Any:
        seen = opened(image).convert("L" if channels == 1 else "RGB").resize((width, height))
        pixels = torch.from_numpy(np.asarray(seen).reshape(height, width, channels).copy()).permute(2, 0, 1)
        grid = (height // task.patch, width // task.patch)
        return kept.lens(model, task.images.normal(pixels[None]), say, image=np.asarray(seen), grid=grid)

    return Live(words=_words(model, folder), image=look, how="its model reads images")


def _words(model: Any, folder: Any) -> str:
    return f"{type(model).__name__} of {model.count():,} parameters, from {Path(str(folder)).name}"
