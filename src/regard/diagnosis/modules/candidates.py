"""Which tensors of a module hold the projections: those the user names, those that names tell, or the first ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from ...algebra.errors import CallError
from ..words import words
from .found import Found, as_named

LAYERS = set("layer layers block blocks stage stages encoder decoder".split())  # lists of these are no heads


@dataclass(frozen=True)
class Chosen:
    """The tensors that hold the projections: for "q", "kv", "qkv", "o" …, one tensor or one for each head."""

    weights: Mapping[str, tuple[Found, ...]]
    biases: Mapping[str, tuple[Found, ...]]
    guessed: bool = False


def given_tensors(found: list[Found], names: Mapping[str, str]) -> Chosen:
    """Those that the user names."""
    at = {one.path: one for one in found}
    for role, path in names.items():
        if path not in at:
            raise CallError(f"names: paths of the module's tensors, {', '.join(at)}; got {role}: {path}")
    given = {role: at[path] for role, path in names.items()}
    plain = {role: role.removeprefix("w") for role in given if not role.startswith("b")}
    weights = {letter: (as_named(given[role], letter),) for role, letter in plain.items()}
    stated = {role[1:]: (as_named(one, role[1:]),) for role, one in given.items() if role.startswith("b")}
    return Chosen(weights, {**_beside(found, weights), **stated})


def named_tensors(found: list[Found]) -> Chosen | None:
    """Those that names tell: a matrix for each of q, k, v where all are there, else what lies in one parameter."""
    groups = {letters: _group(found, letters) for letters in dict.fromkeys(one.letters for one in found if one.letters)}
    groups = {letters: group for letters, group in groups.items() if group}
    wanted, weights = set("qkv"), dict[str, tuple[Found, ...]]()
    for letters in sorted(groups, key=len):
        if letters != "o" and set(letters) <= wanted and (len(letters) > 1 or not _is_whole(groups, letters)):
            weights[letters] = groups[letters]
            wanted -= set(letters)
    return _finished(found, weights) if weights else None


def _is_whole(groups: Mapping[str, tuple[Found, ...]], letter: str) -> bool:
    """Whether a single letter is better read as part of a fused one: both q and qkv are there, but not k."""
    fused = [letters for letters in groups if len(letters) > 1 and letter in letters]
    return any(not set(letters) <= set(groups) for letters in fused)


def _finished(found: list[Found], weights: dict[str, tuple[Found, ...]], *, guessed: bool = False) -> Chosen:
    if out := _output(found, weights):
        weights = {**weights, "o": out}
    return Chosen(weights, _beside(found, weights), guessed)


def _group(found: list[Found], letters: str, *, sure: bool = True) -> tuple[Found, ...]:
    """The first tensor with these letters, or the list of heads that it belongs to."""
    fit = [one for one in found if one.letters == letters and not one.bias and len(one.shape) > 1 and one.sure is sure]
    trained = [one for one in fit if one.trained] or fit
    if not trained:
        return ()
    alike = tuple(one for one in trained if one.template == trained[0].template and one.shape == trained[0].shape)
    is_list = "*" in trained[0].template and not any(LAYERS & set(words(step)) for step in _lists(trained[0]))
    return alike if is_list else alike[:1]


def _lists(one: Found) -> list[str]:
    steps = one.template.split(".")
    return [before for before, step in pairwise(steps) if step == "*"]


def _output(found: list[Found], weights: Mapping[str, tuple[Found, ...]]) -> tuple[Found, ...]:
    """The output projection: a sure name, or one that says "a matrix" and takes in what the values give."""
    if sure := _group(found, "o"):
        return sure
    used = {one.path for group in weights.values() for one in group}
    free = [one for one in found if one.letters == "o" and not one.sure and not one.bias and one.path not in used]
    fit = [one for one in free if len(one.shape) > 1 and _takes(one, weights)]
    return tuple(fit[:1])


def _takes(one: Found, weights: Mapping[str, tuple[Found, ...]]) -> bool:
    """Whether one of its sides is as wide as all heads, or as the values, may be."""
    groups = [(letters, group) for letters, group in weights.items() if set("qv") & set(letters)]
    sides = {len(group) * size // len(letters) for letters, group in groups for size in group[0].shape}
    whole = {prod(group[0].shape[:at] + group[0].shape[at + 1 :]) for _, group in groups for at in range(3)}
    grouped = any(len(letters) > 1 for letters, _ in groups)  # fewer keys than queries: no third of it
    return grouped or bool({*one.shape, prod(one.shape[:2]), prod(one.shape[1:])} & (sides | whole))


def first_tensors(found: list[Found]) -> Chosen | None:
    """Those that come first, where names tell nothing."""
    free = [one for one in found if one.trained and not one.bias and len(one.shape) > 1 and _is_free(one)]
    if not free:
        return None
    tall = next((one for one in free if max(one.shape) == 3 * min(one.shape)), None)
    if tall is not None:
        letters, rest = {"qkv": (as_named(tall, "qkv"),)}, [one for one in free if one is not tall]
    elif len(free) >= 2:
        letters = {letter: (as_named(one, letter),) for letter, one in zip("qkv", free, strict=False)}
        rest = free[3:]
    else:
        return None
    out = {"o": (as_named(rest[0], "o"),)} if rest else {}
    weights = {**letters, **out}
    lists = {one.template for group in weights.values() for one in group}
    return Chosen(weights, _beside(found, weights), guessed=len(lists) > 1 or "*" not in next(iter(lists)))


def _is_free(one: Found) -> bool:
    return not one.letters or not one.sure


def _beside(found: list[Found], weights: Mapping[str, tuple[Found, ...]]) -> dict[str, tuple[Found, ...]]:
    """The bias of each weight: `a.bias` beside `a.weight`, or a bare one whose name says the same."""
    biases = [one for one in found if one.bias and one.trained]
    matched = {}
    for letters, group in weights.items():
        own = tuple(bias for one in group for bias in biases if _is_pair(one, bias))
        named = tuple(bias for bias in biases if bias.letters == letters and bias.sure)
        packed = tuple(
            bias for bias in biases if len(letters) == 1 and len(bias.letters) > 1 and letters in bias.letters
        )
        chosen = own or named or packed
        if len(chosen) == len(group):
            matched[letters] = chosen
    return matched


def _is_pair(weight: Found, bias: Found) -> bool:
    home, _, last = weight.path.rpartition(".")
    mine, _, name = bias.path.rpartition(".")
    return home == mine and name == _bias_name(last)


def _bias_name(name: str) -> str:
    return {"weight": "bias", "W": "b", "w": "b", "kernel": "bias"}.get(name) or name.replace("weight", "bias")
