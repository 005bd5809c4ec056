"""Where a module keeps its projections: plain values, without tensors and without torch.

    q = x wq + bq      k = x wk + bk      v = x wv + bv      y = heads wo + bo

Matrices are (in, out); columns h·D … h·D + D of wq belong to head h, and so do these rows of wo. A parameter may hold
them transposed, cut into heads, or beside each other: a `Slot` says how, a `Place` joins slots to one matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...algebra.errors import CallError

MATRICES = ("wq", "wk", "wv", "wo")
BIASES = ("bq", "bk", "bv", "bo")


@dataclass(frozen=True)
class Slot:
    """One matrix, or one vector, inside one parameter.

    matrix = parameter.reshape(shape)[keep].transpose(order).reshape(the first `rows` axes, the others)
    """

    parameter: str
    shape: tuple[int, ...]
    keep: tuple[tuple[int, int], ...]  # of each axis, from where to where
    order: tuple[int, ...]
    rows: int  # 0 for a bias, which is a vector

    @property
    def sizes(self) -> tuple[int, ...]:
        """(in, out) of a matrix, (out,) of a bias."""
        ordered = [self.keep[axis][1] - self.keep[axis][0] for axis in self.order]
        columns = prod(ordered[self.rows :])
        return (prod(ordered[: self.rows]), columns) if self.rows else (columns,)

    def read(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The matrix inside the parameter's values."""
        return self._seen(values).reshape(self.sizes)

    def write(self, values: np.ndarray[Any, Any], matrix: np.ndarray[Any, Any]) -> None:
        """Sets the matrix inside the parameter's values, which must be contiguous."""
        seen = self._seen(values)
        seen[...] = matrix.reshape(seen.shape)

    def _seen(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        kept = tuple(slice(*ends) for ends in self.keep)
        return values.reshape(self.shape)[kept].transpose(self.order)


@dataclass(frozen=True)
class Place:
    """One matrix, as slots beside each other: a parameter for each head, or one for all."""

    slots: tuple[Slot, ...]
    axis: int = -1  # heads are joined along columns; the rows of wo are theirs

    @property
    def sizes(self) -> tuple[int, ...]:
        """(in, out) of the whole."""
        sizes = [list(slot.sizes) for slot in self.slots]
        joined = sizes[0]
        joined[self.axis] = sum(one[self.axis] for one in sizes[1:]) + joined[self.axis]
        return tuple(joined)

    @property
    def shown(self) -> str:
        """The parameters' names, for a reader."""
        names = list(dict.fromkeys(slot.parameter for slot in self.slots))
        return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


@dataclass(frozen=True)
class Projections:
    """One way to read a module's parameters as projections; `places` holds those that are there."""

    places: tuple[tuple[str, Place], ...]  # "wq" … "bo", in this order
    layout: str = "heads side by side"
    heads: int | None = None  # as far as the module, or the axes of its parameters, say it
    guessed: bool = False  # read by the order of definition, because names tell nothing
    others: tuple[str, ...] = ()  # parameters that play no part in it
    shared: int = 1  # how many heads go through the same small matrices, each with its own columns of x

    def sizes(self, role: str) -> tuple[int, ...] | None:
        """(in, out) of `wq`, (out,) of `bq`, None for what is not there."""
        place = dict(self.places).get(role)
        return None if place is None else place.sizes

    def _columns(self, role: str) -> int | None:
        sizes = self.sizes(role)
        return None if sizes is None else sizes[1] * (self.shared if role != "wo" else 1)

    @property
    def model_width(self) -> int:
        """How wide an input row is."""
        return next(sizes[0] * self.shared for role in MATRICES[:3] if (sizes := self.sizes(role)) is not None)

    @property
    def width(self) -> int | None:
        """How wide a row of queries is, all heads together."""
        return self._columns("wq")

    @property
    def key_width(self) -> int | None:
        """How wide a row of keys is, all heads together."""
        return self._columns("wk")

    @property
    def value_width(self) -> int | None:
        """How wide a row of values is, all heads together."""
        return self._columns("wv")

    @property
    def out_width(self) -> int | None:
        """How wide an output row is; None without an output projection."""
        return self._columns("wo")

    @property
    def key_heads(self) -> int | None:
        """How many heads of keys there are: fewer than of queries where these share them."""
        if self.heads is None or not self.width or not self.key_width:
            return self.heads
        return max(self.heads * self.key_width // self.width, 1)

    @property
    def biases(self) -> frozenset[str]:
        """Which of bq, bk, bv, bo are there."""
        return frozenset(role for role, _ in self.places if role in BIASES)

    @property
    def names(self) -> dict[str, str]:
        """The parameter of each role, for a reader."""
        return {role: place.shown for role, place in self.places}

    def effective(self, matrices: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """What x is multiplied by in the end: where heads share a small matrix, that matrix once for each head."""
        heads = np.eye(self.shared)
        small = {role: np.asarray(matrix) for role, matrix in matrices.items()}
        inside = {role: matrix for role, matrix in small.items() if role[1] != "o"}
        grown = {
            role: np.kron(heads, one) if one.ndim == 2 else np.tile(one, self.shared) for role, one in inside.items()
        }
        return {**small, **(grown if self.shared > 1 else {})}

    def small(self, matrices: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """What the module holds, from what x is multiplied by in the end: the block of the first head."""
        held = {role: self.sizes(role) or () for role in matrices}
        return {role: np.asarray(one)[tuple(map(slice, held[role]))] for role, one in matrices.items()}

    def silence(self, module: Any) -> list[str]:
        """Makes square matrices of the others the identity, and biases 0: a second projection after the output's.

        Returns the names of those that it changed.
        """
        others = [(path, tensor_at(module, path).detach()) for path in self.others]
        added = [(path, one) for path, one in others if _is_added(path, one)]
        square = [(path, one) for path, one in others if one.ndim == 2 and one.shape[0] == one.shape[1]]
        changed = [(path, one) for path, one in square if not _is_added(path, one)]
        for _, matrix in changed:
            matrix.copy_(matrix.new_tensor(np.eye(matrix.shape[0])))
        for _, bias in added:
            bias.zero_()
        return [path for path, _ in (*changed, *added)]

    def read(self, module: Any) -> dict[str, np.ndarray[Any, Any]]:
        """The matrices that a module holds, (in, out), by role."""
        return {role: _joined(module, place) for role, place in self.places}

    def write(self, module: Any, matrices: Mapping[str, Any]) -> None:
        """Sets the given matrices, so that the module's projections are x @ wq + bq and so on."""
        places = dict(self.places)
        for role, matrix in matrices.items():
            if role not in places:
                there = ", ".join(places)
                raise CallError(f"matrices: this module has {there}; got {role}; leave it out")
            _set(module, role, places[role], np.asarray(matrix))


def _is_added(path: str, tensor: Any) -> bool:
    """Whether a parameter is one that is added to scores or outputs: a bias, or a table of them."""
    name = path.lower()
    if tensor.ndim == 1:
        return name.rpartition(".")[2] == "bias"
    return "bias" in name or "rel" in name or (tensor.ndim == 2 and tensor.shape[0] != tensor.shape[1])


# -- parameters by path --------------------------------------------------------------------------------------------


def tensor_at(module: Any, path: str) -> Any:
    """The tensor at a path such as `heads.0.key.weight`: attributes, and items of lists and dictionaries."""
    found = module
    for step in path.split("."):
        if isinstance(found, list | tuple):
            found = found[int(step)]
        elif isinstance(found, Mapping):
            found = found[step]
        else:
            found = getattr(found, step)
    return found


def _joined(module: Any, place: Place) -> np.ndarray[Any, Any]:
    return np.concatenate([slot.read(_values(module, slot.parameter)) for slot in place.slots], axis=place.axis)


def _set(module: Any, role: str, place: Place, matrix: np.ndarray[Any, Any]) -> None:
    if matrix.shape != place.sizes:
        raise CallError(f"matrices: {role} is {_times(place.sizes)} here, (in, out); got {_times(matrix.shape)}")
    ends = np.cumsum([slot.sizes[place.axis] for slot in place.slots])[:-1]
    for slot, part in zip(place.slots, np.split(matrix, ends, axis=place.axis), strict=True):
        values = _values(module, slot.parameter)
        slot.write(values, part)
        _put(module, slot.parameter, values)


def _put(module: Any, path: str, values: np.ndarray[Any, Any]) -> None:
    """Sets a tensor in its own memory, so that no graph sees it; an array or list, in whatever holds it."""
    held = tensor_at(module, path)
    if hasattr(held, "detach"):
        tensor = held.detach()
        tensor.copy_(tensor.new_tensor(values))
        return
    home, _, last = path.rpartition(".")
    holder = tensor_at(module, home) if home else module
    if isinstance(holder, list):
        holder[int(last)] = _alike(held, values)
    elif isinstance(holder, MutableMapping):
        holder[last] = _alike(held, values)
    else:
        object.__setattr__(holder, last, _alike(held, values))


def _alike(held: Any, values: np.ndarray[Any, Any]) -> Any:
    """The values in the library and precision of what was there."""
    if isinstance(held, list | tuple):
        return values.tolist()
    return held.__array_namespace__().asarray(values, dtype=held.dtype)


def _values(module: Any, path: str) -> np.ndarray[Any, Any]:
    """A contiguous copy of a parameter's values, as float32 or float64."""
    held = tensor_at(module, path)
    if not hasattr(held, "detach"):
        return np.array(held, dtype=np.float64, order="C")
    tensor = held.detach().cpu()
    wide = tensor if str(tensor.dtype) in {"torch.float32", "torch.float64"} else tensor.float()
    return np.array(wide.numpy(), order="C", copy=True)


def _times(sizes: Iterable[int]) -> str:
    return " × ".join(map(str, sizes))
