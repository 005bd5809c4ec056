"""The readings of a target that its signature allows, best first.

forms     q, k, v as they are (vectors), or made of inputs by matrices (inputs)
layouts   those with most axes first: a function that takes heads is to be right with heads
sizes     different in every axis, as far as a module lets them be
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..algebra.errors import CallError, KindError
from .description import Description
from .layouts import INPUT_LAYOUTS, LAYOUTS, VECTOR_LAYOUTS, Layout
from .libraries import LIBRARIES
from .masks import masks_for
from .matrices import FUSED, IN_OUT, PLAIN, Written, written
from .problem import MATRICES, Sizes
from .reading import MASKS, Reading
from .signature import ROLES, Parameter

HANDED = {"wo", "bq", "bk", "bv", "bo", "heads", "kv_heads"}  # handed over though they need not be
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16)  # of heads, where a module does not say


class Unreadable(CallError):  # noqa: N818 - a statement about the target
    """No way was found to call the target."""


ROLE_NAMES = ("q", "k", "v", *MATRICES, "wqkv", "wkv", "metric", "other", *ROLES)
"""What an argument may be said to be."""


@dataclass(frozen=True)
class Said:
    """What the user says of the target; None is found by trying."""

    roles: tuple[str, ...] | None = None
    language: str | None = None
    layout: str | None = None
    heads: int | None = None
    groups: int | None = None
    causal: bool | None = None
    mask: str | None = None

    def __post_init__(self) -> None:
        _known("library", self.language, LIBRARIES)
        _known("layout", self.layout, LAYOUTS)
        _known("mask", self.mask, ("admits", "hides"))
        for role in self.roles or ():
            _known("roles", role, ROLE_NAMES)
        _count("heads", self.heads)
        _count("groups", self.groups)
        if self.heads and self.groups and self.heads % self.groups:
            raise KindError(f"groups: a divisor of heads={self.heads}; got {self.groups}")
        if self.causal is not None and not isinstance(self.causal, bool):
            raise KindError(f"causal: True, False, or None to find it by trying; got {self.causal!r}")


def _count(option: str, value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise KindError(f"{option}: a whole number above 0; got {value!r}")


def _known(option: str, value: str | None, values: Iterable[str]) -> None:
    if value is not None and value not in values:
        raise KindError(f"{option}: one of {', '.join(values)}; got {value!r}")


def candidates(description: Description, said: Said) -> list[Reading]:
    """Every reading that the signature allows, best first."""
    taken = tuple(one for one in _roles(description, said) if _is_taken(description, one))
    made = []
    for language in (said.language,) if said.language else description.languages:
        for layout, form in _layouts(description, taken, said):
            blank = Reading(form, language, layout, taken, Sizes(), instance=description.instance)
            for reading in _sized(description, said, blank):
                made += _masked(reading, said.mask)
    return made


def _is_taken(description: Description, one: Parameter) -> bool:
    """What must be given is; matrices and the count of heads are even where they need not be."""
    return one.required or (one.role in HANDED and description.module is None)


def _roles(description: Description, said: Said) -> tuple[Parameter, ...]:
    if said.roles is None:
        return description.parameters
    if len(said.roles) > len(description.parameters):
        names = ", ".join(one.name for one in description.parameters)
        raise KindError(f"as: at most as many roles as arguments, ({names}); got {', '.join(said.roles)}")
    pairs = zip(description.parameters, said.roles, strict=False)
    first = [replace(one, role=role, required=True) for one, role in pairs]
    return (*first, *description.parameters[len(first) :])


def _layouts(description: Description, taken: tuple[Parameter, ...], said: Said) -> Iterator[tuple[Layout, str]]:
    roles = {one.role for one in taken}
    three, counted = {"q", "k", "v"} <= roles, "heads" in roles
    vectors = three and not roles & {"wq", "wk", "wv"} and not description.projections
    # a count of heads beside q, k, v: they lie on an axis of their own, or side by side in the columns
    forms = [("vectors", layout) for layout in VECTOR_LAYOUTS if vectors and (layout.has("h") or not counted)]
    if "x" in roles or (three and (counted or not vectors)):
        forms += [("inputs", layout) for layout in INPUT_LAYOUTS]
    if not forms:
        raise Unreadable(misread(description))
    refused = {"bn": "nbd", "nb": "bnd"}.get(description.order)  # it says itself what comes first
    for form, layout in forms:
        if layout.name == said.layout or (said.layout is None and layout.name != refused):
            yield layout, form


def misread(description: Description) -> str:
    """What to say of arguments that are none of an attention."""
    names = ", ".join(one.name for one in description.parameters)
    known = ", ".join(f"{one.name} ({one.role})" for one in description.parameters if one.role != "other")
    got = (
        f"only these were understood: {known}"
        if known
        else f"nothing says what {names} are"
        if names
        else "it takes none"
    )
    advice = "say what they are, in order: roles='q k v mask' or 'x wq wk wv', on the command line --as q,k,v,mask"
    return (
        f"{description.name}({names}): an attention takes q, k, v, or x with its matrices; {got}; "
        f"{advice if names else 'give it arguments'}"
    )


# -- sizes ---------------------------------------------------------------------------------------------------------


def _sized(description: Description, said: Said, reading: Reading) -> Iterator[Reading]:
    """The reading with its sizes; for modules one for each way to read the projections and count the heads."""
    batch = 2 if reading.layout.has("b") else 1
    if reading.form == "vectors":
        heads, groups = _counts(said, reading) if reading.layout.has("h") else (1, 1)
        for width in (6, 24) if description.module is not None else (6,):  # a class may keep the width it was made with
            sizes = Sizes(batch=batch, heads=heads, groups=groups, width=width, value_width=width)
            yield replace(reading, sizes=sizes)
    elif description.module is not None:
        yield from _of_module(description, said, replace(reading, sizes=Sizes(batch=batch)))
    else:
        yield from _of_function(said, reading, batch)


def _counts(said: Said, reading: Reading) -> tuple[int, int]:
    """Heads of queries, and of keys: fewer where a count of them is taken."""
    fewer = "kv_heads" in reading.roles
    groups = said.groups or (2 if fewer else None)
    heads = said.heads or (2 * groups if groups else 3)
    return heads, groups or heads


def _of_function(said: Said, reading: Reading, batch: int) -> Iterator[Reading]:
    """One for each way to write the matrices; heads that are counted cut the width of the input."""
    counted = "heads" in reading.roles
    fused = {f"w{letter}" for role in reading.roles & set(FUSED) for letter in FUSED[role]}
    present = frozenset((reading.roles & set(MATRICES)) | fused)
    for way in _written(reading, counted) if present else (IN_OUT,):
        heads, groups = _counts(said, reading) if counted or said.heads or "h" in way.inside else (1, 1)
        for width in (heads * 6,) if counted or "wq" not in present else (11, heads * 6):
            sizes = Sizes(batch=batch, heads=heads, groups=groups, model_width=width)
            out = width if "wo" in present else None
            yield replace(reading, sizes=replace(sizes, out_width=out), present=present, written=way)


def _written(reading: Reading, counted: bool) -> tuple[Written, ...]:
    ways = written(reading.roles, counted)
    return (PLAIN[1], PLAIN[0]) if reading.layout.axes == "dn" else ways


def _of_module(description: Description, said: Said, reading: Reading) -> Iterator[Reading]:
    longest = description.module.longest or reading.sizes.queries
    n = min(reading.sizes.queries, longest)
    sized = replace(reading, sizes=replace(reading.sizes, queries=n, keys=n))
    for projections in description.projections or (None,):
        for heads in _head_counts(description, projections, said):
            for neutral in (True, False) if projections is not None and projections.others else (False,):
                yield _filled(sized, projections, heads, said.groups, neutral)


def _head_counts(description: Description, projections: Any, said: Said) -> tuple[int, ...]:
    facts = description.module
    known = said.heads or facts.heads or (projections.heads if projections is not None else None)
    if known:
        return (known,)
    width = projections.width if projections is not None else 1
    return tuple(heads for heads in COUNTS if width % heads == 0)


def _filled(reading: Reading, found: Any, heads: int, groups: int | None, neutral: bool) -> Reading:
    """The reading of a module with these projections, and their sizes."""
    instance = replace(reading.instance, projections=found, neutral=neutral)
    if found is None:
        return replace(reading, instance=instance, sizes=replace(reading.sizes, heads=1, groups=1, model_width=6))
    width = (found.width or found.key_width or found.model_width) // heads
    key_heads = groups or max((found.key_width or heads * width) // width, 1)
    values = (found.value_width or found.model_width) // key_heads
    out = found.sizes("wo")
    sizes = replace(
        reading.sizes,
        heads=heads,
        groups=key_heads,
        width=width,
        value_width=max(values, 1),
        model_width=found.model_width,
        merged_width=None if out is None else out[0],
        out_width=found.out_width,
    )
    return replace(reading, instance=instance, sizes=sizes, present=frozenset(role for role, _ in found.places))


def _masked(reading: Reading, meaning: str | None) -> list[Reading]:
    """A mask that must be given: None first, then one that admits everything, by the meaning that was said."""
    roles = [role for role in MASKS if role in reading.roles]
    if not roles:
        return [reading]
    masks = [mask for mask in masks_for(roles[0], reading.layout) if meaning in (None, mask.meaning)]
    return [reading, *(replace(reading, mask=mask) for mask in masks)]
