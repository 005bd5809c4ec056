"""`generate`: whole texts. `stream`: one text, piece by piece. Both are the same steps."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from ..._arrays import is_array
from ...algebra.errors import CallError, KindError
from ...inputs.vocabularies import Vocabulary
from .drafts import Draft, drafts
from .loop import written
from .progress import shown
from .prompts import read_ending, read_prompts, read_vocabulary
from .rows import Cached, Feed, Model, Whole, at_rest
from .sampling import Sampling, greedy


def generate(
    model: Model,
    prompts: Any,
    *,
    new: int = 64,
    sampling: Sampling = greedy,
    stop: str | tuple[str, ...] = (),
    end: str | int | tuple[str | int, ...] | None = None,
    vocabulary: Vocabulary | None = None,
    seed: int | None = None,
    cache: bool = True,
    progress: bool = False,
) -> Any:
    """What the model writes after each prompt: one `Generation` for one prompt, a list for a list.

    model:      called on ids (B, N), with lengths=(B) where prompts are unequal (else None) and cache=Cache(…), it
                gives logits (B, N, V); it may say by `longest` how many positions it has
    prompts:    a text or a list of texts, with a vocabulary; or ids: a list, a list of lists, an array (N) or (B, N).
                Prompts may be of unequal length
    new:        how many tokens to write at most
    sampling:   how each is drawn: `greedy`, or for example Sampling(temperature=0.8, top_k=50, top_p=0.95)
    stop:       texts at which to stop; they are cut off
    end:        end tokens, by id or by the name of a special token
    vocabulary: turns ids into text and back
    seed:       for draws that can be repeated. A prompt is written the same by itself as in any batch, up to the
                rounding of the model; a prompt that comes twice is written twice. None: PyTorch's own state
    cache:      whether the model keeps keys and values, so that a step costs one row
    progress:   whether to show a bar

        generate(model, "Once upon a time", vocabulary=words, sampling=Sampling(0.8), stop="\\n", seed=1).text
    """
    known = read_vocabulary(vocabulary)
    rows, single = read_prompts(prompts, known, "prompts")
    texts = list(drafts(rows, read_ending(new, stop, end, known), known, _read_seed(seed)))
    feed = _feed(model, texts, cache, prompts)
    with at_rest(model), shown(progress) as tell:
        for _ in written(feed, texts, _read_sampling(sampling)):
            tell(sum(len(text.ids) for text in texts), sum(text.most for text in texts))
    results = [text.result() for text in texts]
    return results[0] if single else results


def stream(
    model: Model,
    prompt: Any,
    *,
    new: int = 64,
    sampling: Sampling = greedy,
    stop: str | tuple[str, ...] = (),
    end: str | int | tuple[str | int, ...] | None = None,
    vocabulary: Vocabulary | None = None,
    seed: int | None = None,
    cache: bool = True,
) -> Iterator[Any]:
    """What the model writes after one prompt, as it writes: pieces of text, or ids without a vocabulary.

    A piece comes as soon as it is certain: never half a character, nor the beginning of what may become a stop text.
    Together they are what `generate` gives with the same arguments: "".join(stream(…)) = generate(…).text
    """
    known = read_vocabulary(vocabulary)
    rows, _ = read_prompts(prompt, known, "prompt")
    if len(rows) > 1:
        raise CallError(f"prompt: one at a time; got {len(rows)}; call stream on each, or generate on all")
    texts = list(drafts(rows, read_ending(new, stop, end, known), known, _read_seed(seed)))
    steps = written(_feed(model, texts, cache, prompt), texts, _read_sampling(sampling))
    if known is None:
        return (texts[0].ids[-1] for _ in steps)
    return (piece for (piece,) in steps if piece)


def _feed(model: Model, texts: list[Draft], cache: bool, prompts: Any) -> Feed:
    if not callable(model):
        raise KindError(f"model: called on ids it gives logits; got {type(model).__name__}")
    if not isinstance(cache, bool):
        raise KindError(f"cache: True or False; got {cache!r}; each call makes its own Cache")
    _check_signature(model, ("lengths", "cache") if cache else ("lengths",))
    _check_ends(model, texts[0].ending.ends)
    _check_room(model, texts)
    rows, device = [text.prompt for text in texts], _device(model, prompts)
    return Cached(model, rows, texts[0].ending.new, device) if cache else Whole(model, rows, device)


def _check_signature(model: Model, told: tuple[str, ...]) -> None:
    """Refuse a function that cannot be called as a model is."""
    try:
        signature = inspect.signature(getattr(model, "forward", model), follow_wrapped=False)
    except (TypeError, ValueError):  # built in: it has none to look at
        return
    try:
        signature.bind(None, **dict.fromkeys(told))
    except TypeError as error:
        asked = "".join(f", {name}=None" for name in told)
        raise KindError(
            f"model: called as model(ids{asked}); got {signature}: {error}; "
            "pass lambda ids, **_: …, with cache=False where it keeps none"
        ) from None


def _check_ends(model: Model, ends: Mapping[int, str | int]) -> None:
    """Refuse an end that no draw can reach."""
    tokens = getattr(model, "tokens", None)
    for number, told in ends.items():
        if isinstance(tokens, int) and number >= tokens:
            raise CallError(
                f"end: one of the model's tokens, 0 to {tokens - 1}; got {told!r}; is it of its vocabulary?"
            )


def _check_room(model: Model, texts: list[Draft]) -> None:
    longest = getattr(model, "longest", None)
    if longest is None:
        return
    number, text = max(enumerate(texts), key=lambda entry: len(entry[1].prompt))
    given, new = len(text.prompt), text.ending.new
    if given + new > longest:
        which = f"prompts[{number}]" if len(texts) > 1 else "prompt"
        shorter = [f"shorten it to {longest - new} tokens"] if new < longest else []
        fewer = [f"pass new={longest - given}"] if given < longest else []
        raise CallError(
            f"{which}: {given} tokens + {new} new exceed the model's {longest} positions; "
            f"{', or '.join(shorter + fewer) or 'shorten it and pass a smaller new='}"
        )


def _device(model: Model, prompts: Any) -> torch.device:
    """Where the model lies; where the prompts lie, if that is not known."""
    held = next(iter(model.parameters()), None) if isinstance(model, nn.Module) else None
    known = held if held is not None else prompts if is_array(prompts) else None
    return known.device if isinstance(known, torch.Tensor) else torch.device("cpu")


def _read_sampling(sampling: object) -> Sampling:
    if isinstance(sampling, Sampling):
        return sampling
    raise KindError(f"sampling: greedy or a Sampling, such as Sampling(temperature=0.8, top_p=0.95); got {sampling!r}")


def _read_seed(seed: object) -> int | None:
    if seed is None or (isinstance(seed, int) and not isinstance(seed, bool)):
        return seed
    raise KindError(f"seed: an integer, or None to draw from PyTorch's own state; got {seed!r}")
