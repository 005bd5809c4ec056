"""Where W_Q, W_K, W_V and W_O lie among the parameters of a module, best reading first.

    names     q_proj, W_q, to_q, wq, query …;  qkv, c_attn, in_proj_weight …;  out_proj, c_proj, to_out.0, fc …
    lists     heads.0.key, heads.1.key … are one matrix, beside each other;  linears.0 … 3 are q, k, v, o
    order     where names tell nothing: the first three are q, k, v, the fourth is the output (`guessed`)

What names leave open (which axis is which, in what order the columns lie) gives several readings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod

from ..words import words
from . import layouts
from .candidates import Chosen, first_tensors, given_tensors, named_tensors
from .found import Found
from .known import Facts
from .layouts import IN_HEADS, OUT_HEADS, SIDE_BY_SIDE, Cuts, Heads
from .places import BIASES, MATRICES, Place, Projections, Slot

READINGS = 32  # no more than these are worth trying


def ways(found: list[Found], read: Facts, names: Mapping[str, str] | None, heads: int | None) -> list[Projections]:
    """The ways to read tensors as projections, best first; empty where there are none."""
    chosen = given_tensors(found, names) if names else named_tensors(found) or first_tensors(found)
    if chosen is None:
        return []
    made = dict.fromkeys(_readings(chosen, _heads(chosen, read, heads)))
    used = {one.path for group in (*chosen.weights.values(), *chosen.biases.values()) for one in group}
    others = tuple(one.path for one in found if one.trained and one.path not in used)
    least = min(map(_misfits, made), default=0)
    return [replace(one, others=others) for one in made if _misfits(one) == least][:READINGS]


# -- how they are read -------------------------------------------------------------------------------------------


def _heads(chosen: Chosen, read: Facts, given: int | None) -> Heads:
    """How many heads, from what the user or the module says, from a list of them, or from their width."""
    listed = max((len(group) for group in chosen.weights.values()), default=1)
    count = given or (listed if listed > 1 else None) or read.heads
    return Heads(count, read.key_heads, read.head_width)


def _readings(chosen: Chosen, heads: Heads) -> Iterator[Projections]:
    """Every way to lay out what the names leave open, the usual ones first."""
    for axes in _orientations(chosen):
        for inside, outside in product(_in_axes(chosen, heads), _out_axes(chosen, heads)):
            for title, cuts in _columns(chosen, axes, heads):
                places = _places(chosen, axes, inside, outside, cuts)
                if places is not None:
                    count = _axis(chosen, inside) or heads.query
                    yield _shared(_counted(Projections(places, title, count, chosen.guessed), heads.width))


def _axis(chosen: Chosen, inside: str) -> int | None:
    """The count of heads where it is the size of an axis."""
    shapes = [_inner(group[0]) for letters, group in chosen.weights.items() if "q" in letters]
    return next((shape[inside.index("h")] for shape in shapes if len(shape) == 3), None)


def _counted(read: Projections, depth: int | None) -> Projections:
    """With the count of heads that their width gives, where nothing else does."""
    known = read.heads is not None or not depth or not read.width or read.width % depth
    return read if known else replace(read, heads=(read.width or 0) // (depth or 1))


def _shared(read: Projections) -> Projections:
    """Small matrices that all heads go through, each with its own columns of x, before wo takes all heads."""
    heads, out, inner = read.heads or 1, read.sizes("wo"), read.sizes("wv")
    small = bool(out and inner and heads > 1 and inner[0] * heads == out[1] and inner[1] * heads == out[0])
    return replace(read, shared=heads, layout="one matrix for all heads") if small else read


def _orientations(chosen: Chosen) -> list[str]:
    """(in, out) and (out, in) for bare parameters; those called a weight are mostly (out, in), as in a Linear."""
    bare = [one for group in chosen.weights.values() for one in group if not one.axes]
    if not bare:
        return ["oi"]
    return ["oi", "io"] if all("weight" in words(one.path) for one in bare) else ["io", "oi"]


def _in_axes(chosen: Chosen, heads: Heads) -> list[str]:
    found = next((group[0] for letters, group in chosen.weights.items() if letters != "o"), None)
    return _with_heads(IN_HEADS, () if found is None else _inner(found), heads)


def _out_axes(chosen: Chosen, heads: Heads) -> list[str]:
    return _with_heads(OUT_HEADS, chosen.weights["o"][0].shape if "o" in chosen.weights else (), heads)


def _with_heads(candidates: tuple[str, ...], shape: tuple[int, ...], heads: Heads) -> list[str]:
    """The letters of three axes whose h is the count of heads and d their width, as far as these are known."""
    if len(shape) != 3:
        return [candidates[0]]
    known = {"h": heads.query, "d": heads.width}
    fit = [axes for axes in candidates if all(shape[axes.index(a)] == size for a, size in known.items() if size)]
    return fit or list(candidates)


def _inner(one: Found) -> tuple[int, ...]:
    """The shape without the axis that counts q, k, v."""
    at = _part_axis(one)
    return one.shape if at is None else one.shape[:at] + one.shape[at + 1 :]


def _part_axis(one: Found) -> int | None:
    parts = len(one.letters)
    stacked = parts > 1 and len(one.shape) > 2 and parts in one.shape
    return one.shape.index(parts) if stacked else None


def _columns(chosen: Chosen, axes: str, heads: Heads) -> Iterator[tuple[str, dict[str, Cuts]]]:
    """The layouts of the columns of all parameters, named by that of the fused one."""
    options: list[list[tuple[str, Cuts]]] = []
    for letters, group in chosen.weights.items():
        one = group[0]
        size = one.shape[(one.axes or axes).index("o")] if len(one.shape) == 2 else 0
        if letters == "o" or not size:
            options.append([(SIDE_BY_SIDE, {letter: layouts.whole(size) for letter in letters})])
        elif len(letters) > 1:
            options.append(list(layouts.fused(letters, size, heads)))
        else:
            count = (heads.key or heads.query) if letters in "kv" else heads.query
            options.append(list(layouts.single(letters, size, count if len(group) == 1 else None)))
    for choice in product(*options):
        titles = {title for title, _ in choice} - {SIDE_BY_SIDE}
        mixed = any(title.startswith("(") for title in titles) and _is_mixed(choice)
        if len(titles) < 2 and not mixed:
            yield next(iter(titles), SIDE_BY_SIDE), dict(zip(chosen.weights, (cuts for _, cuts in choice), strict=True))


def _is_mixed(choice: tuple[tuple[str, Cuts], ...]) -> bool:
    """Whether one of q, k, v counts its columns in another order than the next."""
    return len({title for title, cuts in choice if "o" not in cuts}) > 1


def _places(
    chosen: Chosen, axes: str, inside: str, outside: str, cuts: Mapping[str, Cuts]
) -> tuple[tuple[str, Place], ...] | None:
    made: dict[str, Place] = {}
    for letters, group in chosen.weights.items():
        for letter in letters:
            slots = tuple(
                _slot(one, letter, axes, outside if letters == "o" else inside, cuts[letters]) for one in group
            )
            made[f"w{letter}"] = Place(slots, axis=0 if letter == "o" else -1)
            if letters in chosen.biases:
                held = chosen.biases[letters]
                made[f"b{letter}"] = Place(tuple(_bias(one, letters, letter, cuts[letters]) for one in held))
    if not _biases_fit(chosen, made):
        return None
    return tuple((role, made[role]) for role in (*MATRICES, *BIASES) if role in made)


def _biases_fit(chosen: Chosen, made: Mapping[str, Place]) -> bool:
    """Whether each bias is cut as its parameter allows, and is as wide as its matrix."""
    sizes = {one.path: prod(one.shape) for group in chosen.biases.values() for one in group}
    biases = {role: place for role, place in made.items() if role in BIASES}
    whole = all(prod(slot.shape) == sizes[slot.parameter] for place in biases.values() for slot in place.slots)
    return whole and all(place.sizes[0] == made[f"w{role[1]}"].sizes[1] for role, place in biases.items())


def _slot(one: Found, letter: str, axes: str, in_heads: str, cuts: Cuts) -> Slot:
    at = _part_axis(one)
    inner = _inner(one)
    own = (one.axes or axes) if len(inner) == 2 else in_heads
    pattern = own if at is None else f"{own[:at]}p{own[at:]}"
    cut = cuts[letter] if len(one.shape) == 2 else None
    return layouts.slot(one.path, one.shape, pattern, cut=cut, part=one.letters.find(letter))


def _bias(one: Found, letters: str, letter: str, cuts: Cuts) -> Slot:
    """The bias of the same columns; one with several axes is laid out like its matrix: heads, then width."""
    if letters != one.letters and len(one.letters) > 1:  # three biases in one, beside matrices of their own
        cut = dict(layouts.fused(one.letters, one.shape[0], Heads()))[" | ".join(one.letters)][letter]
        return layouts.slot(one.path, one.shape, "o", cut=cut)
    if len(one.shape) == 1 and cuts[letter].shape != (0,):
        return layouts.slot(one.path, one.shape, "o", cut=cuts[letter])
    stacked = len(letters) > 1 and one.shape[0] == len(letters)
    axes = ("p" if stacked else "") + ("o" if len(one.shape) - stacked == 1 else "hd")
    slot = layouts.slot(one.path, one.shape, axes, part=letters.index(letter))
    return replace(slot, rows=0)


def _misfits(read: Projections) -> int:
    """How many widths do not fit each other: heads give wo what it takes, and one input gives q, k and v."""
    inputs = {sizes[0] for role in MATRICES[:3] if (sizes := read.sizes(role)) is not None}
    width, key, value, out = read.width, read.key_width, read.value_width, read.sizes("wo")
    wrong = len(inputs) - 1
    if width and key:
        wrong += width % key != 0
    if out and value:
        wrong += out[0] * (key or 1) != value * (width or 1) if key and width else out[0] != value
        wrong += out[1] != read.model_width
    if width and len({slot.parameter for _, place in read.places[:3] for slot in place.slots}) == 1:
        wrong += width < read.model_width and read.layout != SIDE_BY_SIDE
    return wrong
