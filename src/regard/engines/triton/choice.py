"""Which template runs a pass: Gluon's on Hopper, Triton's elsewhere and for what the first cannot take.

attend    y and the totals                 forward, or `decode` where few queries meet many keys
pull      dleft, dright, dv and sums       of rows and of columns, and of i − j where dS is kept
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy

from ...algebra.errors import EngineError
from ...algebra.fold import fold
from ...algebra.functions import Abs, Maximum, Minimum, Relu, Where
from ...algebra.intervals import Intervals
from ...algebra.laws import Kind
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, Given, I, J, Read, walk
from .functions import GLUON, TRITON
from .options import Options
from .passes import Pass, loads, offsets_of
from .program import Program
from .templates import decode, kept, launch
from .templates.common import INTERPRETED
from .tilings import Tiling

PLAIN = (Read, Abs, Maximum, Minimum, Relu, Where)  # no special functions
FAR = 2**24  # positions apart: beyond any window
LONG = 512  # keys from which few queries are split over the chip
FEW = 16


@dataclass(frozen=True)
class Choice:
    """A template, and why it is not the other one (None for the one that is preferred)."""

    name: str
    why: str | None = None


def template(call: launch.Call, options: Options, *, back: bool = False) -> Choice:
    """The template of a pass; one that was asked for is taken or refused."""
    if not back and options.template != "hopper" and _is_few(call):
        return Choice("decode")
    if options.template == "triton":
        return Choice("triton", "it was asked for")
    why = "Gluon has no interpreter" if INTERPRETED.value else _hopper_refusal(call, back)
    if why is not None and options.template == "hopper":
        raise EngineError(f"template: hopper cannot run this call: {why}")
    return Choice("hopper") if why is None else Choice("triton", why)


def _is_few(call: launch.Call) -> bool:
    """Whether a few queries meet so many keys that these are split over the chip."""
    return call.shape[2] <= FEW and int(call.v.shape[2]) >= LONG and decode.takes(call)


def _hopper_refusal(call: launch.Call, back: bool) -> str | None:
    try:
        from .hopper import launch as forward
        from .hopper import launch_backward as backward
    except (ImportError, AttributeError) as problem:  # Gluon is young: its names move
        return f"Gluon does not load here: {problem}"
    if back:
        return backward.refusal(call)
    return forward.refusal(call.lefts, call.rights, call.v, dropout=call.drop is not None)


# -- forth -----------------------------------------------------------------------------------------------------


def attend(the: Pass) -> tuple[Any, Any | None]:
    """y (B, H, N, E), and L = log₂ Z or Z of each row; None where no weight is shared."""
    call = the.launched(TRITON)
    match template(call, the.options).name:
        case "decode":
            tiles = decode.tiling_for(call)
            return decode.decode(call, the.lists(128, tiles.columns, "rows"), tiles)
        case "hopper":
            return _attend_on_hopper(the)
    tiles = the.tiling("forward")
    return launch.forward(call, the.lists(tiles.rows, tiles.columns, "rows"), tiles)


def _attend_on_hopper(the: Pass) -> tuple[Any, Any | None]:
    from .hopper import launch as hopper

    call = the.launched(GLUON)
    tiles = hopper.tiling_of(call, traits(the))
    return hopper.forward(call, the.lists(tiles.rows, tiles.columns, "rows"), tiles)


def traits(the: Pass) -> Any:
    """What the tiles for Hopper depend on (hopper.tilings.Traits)."""
    from .hopper.tilings import Traits

    made = the.made
    kinds = [kind for kind, _ in made.vectors.values()]
    mask = () if made.mask is None else walk(made.mask)
    return Traits(
        exponential=made.is_exponential,
        masked=made.mask is not None,
        even=made.mask is None or _is_even(made.mask),
        uses_j=the.text.uses_j or any(isinstance(part, Read) for part in mask),
        columns=Kind.COLUMN in kinds,
        offsets=Kind.OFFSET in kinds,
        pairs=loads(made) > kinds.count(Kind.OFFSET),
        curved=_is_curved(made),
    )


@lru_cache(maxsize=1024)
def _is_curved(made: Program) -> bool:
    """Whether the score is a function of its product that the chip's special units compute."""
    found = (part for term in made.terms if term.exponent is not None for part in term.exponent.atoms(sympy.Function))
    return any(not isinstance(part, PLAIN) for part in found)


@lru_cache(maxsize=1024)
def _is_even(mask: Any) -> bool:
    """Whether rows surely read about equally many keys: in a window; not all keys up to their own, or as tables say."""
    if any(isinstance(part, Read | Given) for part in walk(mask)):
        return False
    ends = {I: (FAR, FAR), J: (0, 0), HEAD: (0, FAR), BATCH: (0, FAR), HEADS: (1, FAR), KEYS: (1, FAR), WIDTH: (1, FAR)}
    _sure, possible = fold(mask, Intervals(ends))
    return not possible


# -- back ------------------------------------------------------------------------------------------------------


def pull(the: Pass, stats: Any | None, dy: Any) -> launch.Gradients:
    """The gradients of both sides of each product and of v, and the sums for vectors of rows and of columns."""
    call = the.launched(TRITON)
    if template(call, the.options, back=True).name == "hopper":
        return _pull_on_hopper(the, stats, dy)
    tiles: tuple[Tiling, Tiling] = the.tiling("rows"), the.tiling("keys")
    found = _pull_once(the, call, stats, dy, kept.way(call, the.tiling("kept"), the.options.memory), kept.of_both)
    if found is not None:
        return found
    held = (("rows", tiles[0]), ("keys", tiles[1]))
    by_rows, by_keys = (the.lists(tile.rows, tile.columns, side) for side, tile in held)
    return launch.backward(call, stats, dy, (by_rows, by_keys), tiles)


def _pull_on_hopper(the: Pass, stats: Any | None, dy: Any) -> launch.Gradients:
    from .hopper import launch_backward as hopper

    call = the.launched(GLUON)
    seen = traits(the)
    found = _pull_once(the, call, stats, dy, hopper.five(call, seen, the.options.memory), hopper.of_both)
    if found is not None:
        return found
    for_rows, for_keys = hopper.tilings_of(call, seen)
    by_rows = the.lists(for_rows.held, for_rows.block, "rows")
    by_keys = the.lists(for_keys.block, for_keys.held, "keys")
    dleft, rows = hopper.of_rows(call, stats, dy, by_rows, for_rows)
    dright, dv, columns = hopper.of_keys(call, stats, dy, by_keys, for_keys)
    return launch.Gradients((dleft,), (dright,), dv, rows, columns)


def _pull_once(
    the: Pass, call: launch.Call, stats: Any | None, dy: Any, way: Any, of_both: Any
) -> launch.Gradients | None:
    """The gradients from dS that is made once and kept, of as many heads at a time as fit; None where none does."""
    if way is None:
        return None
    blocks = the.both_lists(*way.tile)
    heads = kept.heads_at_once(call, blocks[1], way.tile, the.options.memory)
    wanted = offsets_of(the.made, the.text) if call.group == 1 else ()
    offsets = (the.sizes.highest, int(the.vectors[wanted[0].leaf].shape[-1])) if wanted else None
    found: launch.Gradients | None = of_both(call, stats, dy, blocks, way, heads, offsets) if heads else None
    return found
