"""Which template runs a pass: Gluon's on Hopper, Triton's elsewhere and for what the first cannot take.

attend    y and the totals                 forward, or `decode` where few queries meet many keys
pull      dleft, dright, dv and sums       of rows and of columns, and of i − j where dS is kept
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
        rounded=made.is_shared and not made.is_softmax_like,
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


Balance = Callable[[Any], None]  # of the sums of rows: `launch.balance`


def pull(the: Pass, stats: Any | None, dy: Any, balance: Balance, *, of_total: bool = False) -> launch.Gradients:
    """The gradients of both sides of each product and of v, and the sums for vectors of rows and of columns.

    of_total: whether a gradient comes to Z too, with which rows of dS do not sum to 0

    Where rows have sums, dS is made once for them and dleft, and again for dright and dv; otherwise once, where it can
    be kept.
    """
    is_hopper = template(the.launched(TRITON), the.options, back=True).name == "hopper"
    way = _Hopper(the, stats, dy) if is_hopper else _Triton(the, stats, dy)
    dlefts, sums = way.rows() if the.text.row_pulls else (None, None)
    if the.text.balanced:
        balance(sums)
    rows = () if sums is None else sums.unbind(2)
    offsets = _offsets(the, way.call)
    met = the.centred if dlefts is None and not of_total else None
    found = _pull_once(the, way, offsets, dlefts, met) if dlefts is None or offsets else None
    if found is not None:
        return replace(found, rows=rows)
    dlefts = way.rows()[0] if dlefts is None else dlefts
    return launch.Gradients(dlefts, *way.keys(), rows=rows)


def _offsets(the: Pass, call: launch.Call) -> tuple[int, int] | None:
    """The highest i − j and how many there are, where kept dS gives all sums over them."""
    wanted = offsets_of(the.made, the.text) if call.group == 1 else ()
    return (the.sizes.highest, int(the.vectors[wanted[0].leaf].shape[-1])) if wanted else None


def _pull_once(
    the: Pass, way: _Way, offsets: Any | None, dlefts: Any | None, met: Any | None
) -> launch.Gradients | None:
    """The gradients from dS that is kept, of as many heads at a time as fit; None where none does."""
    tiles = way.tiles_kept()
    if tiles is None:
        return None
    blocks = the.both_lists(*tiles.tile)
    heads = kept.heads_at_once(way.call, blocks[1], tiles.tile, the.options.memory)
    return way.both(blocks, tiles, heads, offsets, dlefts, met) if heads else None


class _Triton:
    """The kernels of the template in Triton."""

    def __init__(self, the: Pass, stats: Any | None, dy: Any) -> None:
        self.the, self.call, self.given = the, the.launched(TRITON), (stats, dy)

    def rows(self) -> tuple[tuple[Any, ...], Any]:
        """dlefts, and the sums of rows (B, H, pulls, N)."""
        tiles = self.the.tiling("rows")
        return launch.of_rows(self.call, *self.given, self.the.lists(tiles.rows, tiles.columns, "rows"), tiles)

    def keys(self) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
        """drights, dv, and the sums of columns."""
        tiles = self.the.tiling("keys")
        return launch.of_keys(self.call, *self.given, self.the.lists(tiles.rows, tiles.columns, "keys"), tiles)

    def tiles_kept(self) -> kept.Way | None:
        return kept.way(self.call, self.the.tiling("kept"), self.the.options.memory)

    def both(self, blocks: Any, tiles: kept.Way, heads: int, *choices: Any) -> launch.Gradients:
        """All gradients, of dS that is kept."""
        return kept.of_both(self.call, *self.given, blocks, tiles, heads, *choices)


class _Hopper:
    """The kernels of the template in Gluon."""

    def __init__(self, the: Pass, stats: Any | None, dy: Any) -> None:
        from .hopper import launch_backward

        self.the, self.call, self.given = the, the.launched(GLUON), (stats, dy)
        self.hopper, self.traits = launch_backward, traits(the)

    def rows(self) -> tuple[tuple[Any, ...], Any]:
        """dlefts, and the sums of rows (B, H, pulls, N)."""
        tiles = self.hopper.tilings_of(self.call, self.traits)[0]
        blocks = self.the.lists(tiles.held, tiles.block, "rows")
        dq, sums = self.hopper.of_rows(self.call, *self.given, blocks, tiles)
        return (dq,), sums

    def keys(self) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
        """drights, dv, and the sums of columns."""
        tiles = self.hopper.tilings_of(self.call, self.traits)[1]
        blocks = self.the.lists(tiles.block, tiles.held, "keys")
        dk, dv, columns = self.hopper.of_keys(self.call, *self.given, blocks, tiles)
        return (dk,), dv, columns

    def tiles_kept(self) -> Any | None:
        return self.hopper.five(self.call, self.traits, self.the.options.memory)

    def both(self, blocks: Any, tiles: Any, heads: int, *choices: Any) -> launch.Gradients:
        """All gradients, of dS that is kept."""
        return self.hopper.of_both(self.call, *self.given, blocks, tiles, heads, *choices)


_Way = _Triton | _Hopper
