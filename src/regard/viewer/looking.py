"""A lens from what one has: a model and its inputs, or arrays, or weights.

regard.lens(model, inputs)              q, k, v and formula of every call while the model runs
regard.lens(model, "a text", tokenizer=tokenizer)
regard.lens(model, image="cat.png")
regard.lens(q=q, k=k, v=v, tokens=…)    a formula on arrays: softmax(q·k / √d) unless said otherwise
regard.lens(weights=w, tokens=…)        weights that were found elsewhere: s_ij = w_ij, and ψ(s) = s
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._arrays import is_array, library, numbers
from ..algebra.errors import CallError, KindError
from ..algebra.symbols import b, h, i, j, s, table
from ..algebra.weights import each
from ..attention import Attention
from .arrays import four_axes, held
from .entering.standing import Patches, Side, Standing, Text, placed, refuse_unused
from .entering.tokens import given
from .lenses import Lens
from .record import Captured, Seen

WEIGHTS = "(queries, keys), (heads, queries, keys) or (batch, heads, queries, keys)"
AS_THEY_ARE = Attention(score=table("weights")[b, h, i, j], weight=each(s))


@dataclass(frozen=True)
class Told:
    """What someone says of what stands along the axes."""

    tokens: Any = None
    tokenizer: Any = None
    image: Any = None
    grid: tuple[int, int] | None = None
    title: str = ""

    def standing(self) -> list[Standing]:
        """Tokens and patches that were handed in."""
        found: list[Standing] = []
        if isinstance(self.tokens, Mapping):
            if not self.tokens or not set(self.tokens) <= {"query", "key"}:
                raise CallError(f'tokens: by "query" and "key"; got {", ".join(map(str, self.tokens))}')
            found += [Side(Text(given(one), name), name == "key") for name, one in self.tokens.items()]
        elif self.tokens is not None:
            found.append(Text(given(self.tokens)))
        return found if self.grid is None else [*found, Patches(checked_grid(self.grid))]

    def check(self, layers: Sequence[Captured], standing: Sequence[Standing]) -> None:
        """Refuse what fits no call."""
        for one in standing:
            text = one.text if isinstance(one, Side) else one
            if isinstance(text, Text):
                refuse_unused(layers, one, "tokens", f"{len(text.tokens)} × {len(text.tokens[0])}")
            else:
                refuse_unused(layers, one, "grid", self.grid)

    def picture(self) -> bytes | None:
        """The image as a PNG, cropped to whole patches."""
        if self.image is None:
            return None
        from .entering.pictures import colours, cropped, png

        shown = colours(self.image)
        return png(shown if self.grid is None else cropped(shown, self.grid))


def lens(
    model: Any = None,
    inputs: Any = None,
    *,
    q: Any = None,
    k: Any = None,
    v: Any = None,
    weights: Any = None,
    attention: Attention | None = None,
    tokens: Any = None,
    tokenizer: Any = None,
    image: Any = None,
    grid: tuple[int, int] | None = None,
    title: str = "",
    **options: Any,
) -> Lens:
    """See the attention of a model on its inputs, or of arrays.

    model, inputs: a module of PyTorch with a tensor, a tuple or a dict of what it is called with; a text or several,
                   with tokenizer=; nothing, with image=; or what `capture` gave, with nothing
    q, k, v:       arrays of two to four axes, (batch, heads, positions, width), under attention= and its tables by name
    weights:       an array of two to four axes, (batch, heads, queries, keys); or a list or dict of them by layer
    tokens:        a text, a list of strings, one such list for each input, or {"query": …, "key": …}
    image, grid:   the image behind the patches, and (rows, columns) of them
    options:       of a model: layers=, heads=, values=, half=, folder=, limit=, as in `capture`, and progress=
    """
    told = Told(tokens, tokenizer, image, None if grid is None else checked_grid(grid), title)
    _check_ways(model, inputs, q, k, weights, image)
    if model is not None:
        if attention is not None:
            raise CallError("attention: of q and k; got it with a model, which has its own; see regard.hf.use")
        from .entering.running import lens_of_capture, lens_of_model

        if isinstance(model, Seen):
            return lens_of_capture(model.model, model, told=told)
        return lens_of_model(model, inputs, told, options)
    if weights is not None:
        _refuse_more(options, "weights", v=v, attention=attention)
        return lens_of_weights(weights, told)
    return lens_of_arrays(q, k, v, Attention() if attention is None else attention, told, options)


def lens_of_arrays(q: Any, k: Any, v: Any, attention: Attention, told: Told, options: Mapping[str, Any]) -> Lens:
    """One layer: a formula on arrays. options: start= and the tables of the formula."""
    if not isinstance(attention, Attention):
        raise KindError(f"attention: an Attention, as in Attention(mask=causal); got {attention!r}")
    arrays = [None if one is None else four_axes(one, name) for one, name in ((q, "q"), (k, "k"), (v, "v"))]
    tables = {name: value for name, value in options.items() if name != "start"}
    start = options.get("start")
    called = attention.parts(*arrays, start=start, **_tables(tables, arrays[0])).call  # all checks, and one batch
    first = called.first if called.first is not None else called.start
    read = {name: called.given[name] for name in attention.ranks}
    captured = Captured("attention", attention, called.q, called.k, called.v, read, first)
    return looked([captured], told, "arrays")


def lens_of_weights(weights: Any, told: Told) -> Lens:
    """One layer for each array of weights, which are kept as they are."""
    layers = []
    for name, one in _named(weights):
        four = four_axes(_real(one, name), name, WEIGHTS)
        xp, (batch, heads, queries, keys) = library(four), four.shape
        place = {"dtype": four.dtype, "device": xp.device(four)} if xp.name == "torch" else {"dtype": four.dtype}
        ends = [xp.zeros((batch, heads, size, 1), **place) for size in (queries, keys)]
        layers.append(Captured(name, AS_THEY_ARE, ends[0], ends[1], None, {"weights": four}))
    return looked(layers, told, "weights")


def looked(layers: Sequence[Captured], told: Told, model: str, standing: Sequence[Standing] = (), **more: Any) -> Lens:
    """A lens of captured calls, with what is known and what was told of their axes."""
    handed = told.standing()
    told.check(layers, handed)
    named, axes = placed(layers, [*handed, *standing])
    picture = told.picture()
    return Lens(named, axes, **{"title": told.title or model, "model": model, "image": picture, **more})


# -- the door --------------------------------------------------------------------------------------------------------


def _check_ways(model: Any, inputs: Any, q: Any, k: Any, weights: Any, image: Any) -> None:
    """One of the three ways, and all that it needs."""
    if model is not None and (is_array(model) or isinstance(model, list | tuple | str)):
        raise KindError(f"model: a module of PyTorch; got {type(model).__name__}; pass arrays as q=, k= or weights=")
    arrays = q is not None or k is not None
    if (model is not None) + arrays + (weights is not None) != 1:
        got = [name for name, one in (("model", model), ("q", q), ("k", k), ("weights", weights)) if one is not None]
        shown = " and ".join(got) or "none of them"
        raise CallError(f"lens: a model with inputs, or q= and k=, or weights=; got {shown}")
    if arrays and (q is None or k is None):
        raise CallError(f"lens: both q= and k=; got {'q' if k is None else 'k'} alone")
    if model is None and inputs is not None:
        raise CallError("inputs: of a model; got them with arrays; leave them out")
    if model is not None and inputs is None and image is None and not isinstance(model, Seen):
        raise CallError("inputs: what the model is called with, or image=; got neither")


def _refuse_more(options: Mapping[str, Any], way: str, **others: Any) -> None:
    got = [*options, *(name for name, one in others.items() if one is not None)]
    if got:
        raise CallError(f"{way}: alone, with tokens=, image=, grid= and title=; got {', '.join(got)}; leave it out")


def checked_grid(grid: Any) -> tuple[int, int]:
    """(rows, columns) of patches."""
    sides = tuple(grid) if isinstance(grid, list | tuple) else ()
    if len(sides) != 2 or not all(type(side) is int and side > 0 for side in sides):
        raise KindError(f"grid: (rows, columns) of patches, as in (14, 14); got {grid!r}")
    return sides[0], sides[1]


def _named(weights: Any) -> list[tuple[str, Any]]:
    """Weights by the name of their layer."""
    if isinstance(weights, Mapping):
        found = [(str(name), one) for name, one in weights.items()]
    elif isinstance(weights, list | tuple) and not _is_nested(weights):
        found = [(f"layer {place}", one) for place, one in enumerate(weights)]
    else:
        found = [("weights", weights)]
    if not found or any(one is None for _, one in found):
        raise CallError(
            "weights: at least one array, and no None among them; got none; a model of transformers gives weights only "
            'with attn_implementation="eager"; pass the model itself, which needs no such thing'
        )
    return found


def _is_nested(value: Any) -> bool:
    """Whether lists hold numbers, and not arrays."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, int | float) and not is_array(value)


def _real(one: Any, name: str) -> Any:
    array = held(one) if is_array(one) else numbers(one, name)
    xp = library(array)
    return array if xp.is_real(array) else xp.astype(array, xp.float32)


def _tables(tables: Mapping[str, Any], q: Any) -> dict[str, Any]:
    """Tables in the library of q: those of JAX have become NumPy with it."""
    own = library(q).name
    both = {own, "jax"} if own == "numpy" else {own}
    return {name: held(one) if is_array(one) and library(one).name in both else one for name, one in tables.items()}
