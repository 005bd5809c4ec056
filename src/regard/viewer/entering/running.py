"""A model run once while it is watched, and what stood along the axes of its calls.

inputs     a tensor, a tuple, a dict; a text or several, with a tokenizer; an image
standing   tokens from the texts or the ids, those of a decoder by themselves; patches from the model's own config
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from textwrap import shorten
from typing import Any

from ...algebra.errors import CallError, KindError
from ..arrays import numpy_of
from ..lenses import Lens
from ..looking import Told, looked
from .preparing import patch_of
from .progress import shown_progress
from .reading import Inputs, is_ids, read, torch_module
from .standing import Patches, Standing, Text
from .tokens import of_ids, of_text

OPTIONS = ("layers", "heads", "values", "half", "folder", "limit")
TITLE = 48  # letters of a text in a title


def lens_of_model(model: Any, inputs: Any, told: Told, options: Mapping[str, Any]) -> Lens:
    """Run a model under `capture`, as it is: no gradients, no dropout, and its own mode again afterwards."""
    torch, options = torch_module(), dict(options)
    if not isinstance(model, torch.nn.Module):
        raise KindError(f"model: a module of PyTorch; got {type(model).__name__}; pass arrays as q=, k= or weights=")
    unknown = sorted(set(options) - {*OPTIONS, "progress"})
    if unknown:
        raise CallError(f"lens: of a model, {', '.join(OPTIONS)} and progress can be said; got {', '.join(unknown)}")
    progress = options.pop("progress", None)
    ready = _moved(model, read(model, inputs, told))
    from ..capturing import capture

    bar = shown_progress(model, ready.tokens, options, progress)
    with bar as said, capture(model, progress=said, **options) as seen, evaluated(model), torch.no_grad():
        model(*ready.args, **ready.named)
    return lens_of_capture(model, seen, ready, told)


def lens_of_capture(model: Any, seen: Any, ready: Inputs = Inputs(), told: Told = Told()) -> Lens:  # noqa: B008
    """The lens of what was captured; where it went to a folder, that folder is a lens.

    ready: what the model was called with, as far as it is known
    """
    if not seen.layers:
        why = "; ".join(f"{one.name}: {one.why}" for one in seen.missing[:3]) or "it called none"
        raise CallError(f"model: one that calls attention; got {type(model).__name__}, of which nothing is kept: {why}")
    standing = standing_of(model, ready, told)
    told = replace(told, title=told.title or title_of(model, ready))
    image = told.picture() if told.grid is not None else _picture(ready, standing, told.image)
    notes = (*ready.notes, *seen.notes)
    made = looked(seen.layers, replace(told, image=None), words_of(model, seen.layers), standing, missing=seen.missing,
                  notes=notes, image=image)  # fmt: skip
    if seen.folder is not None:
        from ..keeping.store import write_about

        write_about(seen.folder, made)
    return made


# -- the run ---------------------------------------------------------------------------------------------------------


def _moved(model: Any, ready: Inputs) -> Inputs:
    """Tensors where the model's weights are, pixels in their dtype."""
    weight = next(model.parameters(), None)
    if weight is None:
        return ready

    def move(one: Any) -> Any:
        moved = one.to(weight.device) if hasattr(one, "detach") else one
        made = ready.shown is not None and hasattr(moved, "is_floating_point") and moved.is_floating_point()
        return moved.to(weight.dtype) if made else moved

    return replace(
        ready, args=tuple(map(move, ready.args)), named={name: move(one) for name, one in ready.named.items()}
    )


@contextmanager
def evaluated(model: Any) -> Iterator[None]:
    """Every module in its evaluating mode, and in its own again afterwards."""
    were = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in were:
            module.training = training


# -- what stands where -----------------------------------------------------------------------------------------------


def standing_of(model: Any, ready: Inputs, told: Told) -> list[Standing]:
    """Tokens and patches that the inputs tell of."""
    found: list[Standing] = []
    if told.tokens is None:
        found += _texts(ready, told.tokenizer)
    patch = patch_of(model)
    if told.grid is None and patch is not None:
        for one in ready.tensors.values():
            if one.ndim == 4 and one.dtype.is_floating_point:
                rows, columns = int(one.shape[2]) // patch[0], int(one.shape[3]) // patch[1]
                behind = getattr(getattr(model, "config", None), "num_detection_tokens", 0)
                found += [Patches((rows, columns), behind)] if rows and columns else []
    return found


def _texts(ready: Inputs, tokenizer: Any) -> list[Standing]:
    """The tokens of a text, and those of a decoder: by the text where it is known, else by the ids."""
    found: list[Standing] = []
    ids = {name: one for name, one in ready.tensors.items() if is_ids(one) and name not in NO_IDS}
    for place, (name, one) in enumerate(ids.items()):
        decodes = name.startswith("decoder") or (place > 0 and name.startswith("input "))
        if ready.encodings and not decodes:
            tokens = [of_text(text, one) for text, one in zip(ready.texts, ready.encodings, strict=True)]
        elif tokenizer is not None:
            masks = ready.named.get(f"{'decoder_' if decodes else ''}attention_mask")
            admitted = [None] * len(one) if masks is None or masks.ndim != 2 else numpy_of(masks).tolist()
            rows = zip(numpy_of(one).tolist(), admitted, strict=True)
            tokens = [of_ids(row, tokenizer, mask) for row, mask in rows]
        else:
            continue
        found.append(Text(tokens, "decoder tokens" if decodes else "tokens", decodes))
    return found


NO_IDS = {"attention_mask", "token_type_ids", "position_ids", "decoder_attention_mask", "labels", "cache_position"}


def _picture(ready: Inputs, standing: list[Standing], image: Any) -> bytes | None:
    """The image as the model was given it, cropped to its patches; one that was handed in only where it is as large."""
    from .pictures import colours, cropped, png

    grids = [one.grid for one in standing if isinstance(one, Patches)]
    pixels = [one for one in ready.tensors.values() if one.ndim == 4 and one.shape[1] in (1, 3)]
    if not grids or not pixels:
        return None if image is None else png(colours(image))
    handed = ready.shown if ready.shown is not None or image is None else colours(image)
    fits = handed is not None and tuple(handed.shape[:2]) == tuple(pixels[0].shape[2:])
    return png(cropped(handed if fits else colours(pixels[0][0].float()), grids[0]))


# -- in words --------------------------------------------------------------------------------------------------------


def words_of(model: Any, layers: Any) -> str:
    """A model in words.

    "BertModel, 6 layers of 12 heads"
    """
    heads = sorted({int(one.q.shape[1]) for one in layers})
    counted = f"{heads[0]}" if len(heads) == 1 else f"{heads[0]} to {heads[-1]}"
    called = "layer" if len(layers) == 1 else "layers"
    return f"{_name(model)}, {len(layers)} {called} of {counted} head{'' if counted == '1' else 's'}"


def title_of(model: Any, ready: Inputs) -> str:
    """The model, and the beginning of its text."""
    if not ready.texts:
        return _name(model)
    return f"{_name(model)}: {shorten(ready.texts[0], TITLE, placeholder='…')}"


def _name(model: Any) -> str:
    return type(getattr(model, "_orig_mod", model)).__name__
