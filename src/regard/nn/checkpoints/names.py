"""Names of ours and of theirs, as a table that is read in both directions.

    Row("blocks.{n}.attention.(query|key|value).{w}", "h.{n}.attn.c_attn.{w}", transposed)

{n}       the number of a layer
{w}       weight, and bias where there is one
(a|b|c)   several of ours that lie in one of theirs, below each other, in this order
None      there is none of theirs: zeros
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import count

import torch
from torch import Tensor

from ...algebra.errors import CallError
from .matched import Matched, Misfit

Form = Callable[[Tensor], Tensor]
Shapes = Mapping[str, tuple[int, ...]]


def same(x: Tensor) -> Tensor:
    """x itself."""
    return x


def transposed(x: Tensor) -> Tensor:
    """A matrix with its axes exchanged, as those of Conv1D are; a vector stays."""
    return x.mT if x.ndim == 2 else x


@dataclass(frozen=True)
class Row:
    """One line of the table: theirs = form(ours below each other). A form is its own inverse.

    axes: the fields of the config that tell the shape of theirs, for the reader of an error
    """

    ours: str
    theirs: str | None
    form: Form = same
    axes: str = ""


@dataclass(frozen=True)
class Pair:
    """A row for one layer."""

    ours: tuple[str, ...]
    theirs: str | None
    row: Row


@dataclass(frozen=True)
class Names:
    """All rows of a family.

    prefix: what the names of theirs may begin with, or not
    older:  endings that older files have in place of others
    known:  patterns of theirs that no model of ours needs: buffers, and heads for other tasks
    """

    rows: tuple[Row, ...]
    prefix: str
    older: tuple[tuple[str, str], ...] = ()
    known: tuple[str, ...] = ()

    def pairs(self, ours: Shapes) -> Iterator[Pair]:
        """The rows that speak of tensors which are there, layer by layer."""
        for row in self.rows:
            for layer in count():
                made = list(_of_layer(row, layer, ours))
                yield from made
                if not made or "{n}" not in row.ours:
                    break

    def plain(self, theirs: str) -> str:
        """A name without prefix, as newer files write it."""
        name = theirs.removeprefix(self.prefix)
        for old, new in self.older:
            name = name.removesuffix(old) + new if name.endswith(old) else name
        return name

    def match(self, ours: Shapes, tensors: Mapping[str, Tensor], family: str) -> tuple[dict[str, Tensor], Matched]:
        """The tensors under our names, and what did not match."""
        there: dict[str, str] = {}
        for one in tensors:
            there.setdefault(self.plain(one), one)
        twice = [name for name in tensors if name not in there.values()]  # with the prefix and without
        found: dict[str, Tensor] = {}
        missing: dict[str, str] = dict.fromkeys(ours, "")  # and what was looked for
        misfits: list[Misfit] = []
        for pair in self.pairs(ours):
            name = None if pair.theirs is None else there.pop(self.plain(pair.theirs), None)
            if pair.theirs is not None and name is None:
                missing |= dict.fromkeys(pair.ours, pair.theirs)
                continue
            for one in pair.ours:
                del missing[one]
            read = _zeros(pair, ours, tensors) if name is None else _read(pair, ours, name, tensors[name])
            misfits += [read] if isinstance(read, Misfit) else []
            found |= {} if isinstance(read, Misfit) else read
        known = [name for plain, name in there.items() if self._is_known(plain)]
        unused = [name for name in there.values() if name not in known] + twice
        return found, Matched(family, len(found), tuple(missing.items()), tuple(unused), tuple(misfits), tuple(known))

    def theirs(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of ours under their names, copied."""
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        made, told = {}, set()
        for pair in self.pairs(shapes):
            told |= {*pair.ours}
            if pair.theirs is not None:
                made[pair.theirs] = pair.row.form(torch.cat([tensors[name] for name in pair.ours])).contiguous()
            elif tensors[pair.ours[0]].any():
                raise CallError(f"model: {pair.ours[0]} has no place in such a checkpoint and must be 0; got others")
        rest = [name for name in tensors if name not in told]
        if rest:
            raise CallError(f"model: made of what such a checkpoint can hold; got {', '.join(rest)} beside it")
        return made

    def _is_known(self, plain: str) -> bool:
        return any(fnmatchcase(plain, pattern) for pattern in self.known)


def _of_layer(row: Row, layer: int, ours: Shapes) -> Iterator[Pair]:
    for w in ("weight", "bias") if "{w}" in row.ours else ("",):
        names = [name.replace("{n}", str(layer)).replace("{w}", w) for name in _each(row.ours)]
        theirs = None if row.theirs is None else row.theirs.replace("{n}", str(layer)).replace("{w}", w)
        if all(name in ours for name in names):
            yield Pair(tuple(names), theirs, row)


def _each(ours: str) -> list[str]:
    """a.(b|c).d as a.b.d and a.c.d."""
    several = re.search(r"\((.*)\)", ours)
    return [ours] if several is None else [ours.replace(several[0], one) for one in several[1].split("|")]


def _read(pair: Pair, ours: Shapes, name: str, theirs: Tensor) -> dict[str, Tensor] | Misfit:
    """The tensors of ours that lie in one of theirs."""
    rows = [ours[one][0] for one in pair.ours]
    expected = (sum(rows), *ours[pair.ours[0]][1:])
    tensor = pair.row.form(theirs)
    if tuple(tensor.shape) == expected:
        return dict(zip(pair.ours, tensor.split(rows), strict=True))
    as_theirs = tuple(pair.row.form(torch.empty(expected, device="meta")).shape)
    return Misfit(", ".join(pair.ours), name, as_theirs, tuple(theirs.shape), tuple(pair.row.axes.split()))


def _zeros(pair: Pair, ours: Shapes, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Zeros of the dtype of the others."""
    like = next((tensor for tensor in tensors.values() if tensor.is_floating_point()), torch.zeros(()))
    return {one: like.new_zeros(ours[one]) for one in pair.ours}
