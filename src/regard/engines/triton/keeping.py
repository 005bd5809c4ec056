"""What was made of tensors, kept for as long as they are alive and unchanged."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, TypeVar

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ...algebra.formula import Formula
from ...algebra.nodes import Given, Read, walk
from ..call import Call
from ..operators import is_transformed

Made = TypeVar("Made")
LARGEST = 2**20  # entries of a table of which a copy is kept


class Kept(Generic[Made]):
    """The last few things that were made of tensors, by what PyTorch knows of these: where they lie, how often written.

    What writes past PyTorch (`x.data`, a kernel of one's own) is not seen, as autograd does not see it either. Each
    stream of a device has its own, since nobody waits for what another one makes.
    """

    def __init__(self, most: int) -> None:
        self.most, self.lock = most, Lock()
        self.found: OrderedDict[Hashable, tuple[Made, list[StorageWeakRef]]] = OrderedDict()

    def get(self, key: Hashable, device: Any, tensors: list[Any], make: Callable[[], Made]) -> Made:
        """What `make` gives on a device for these tensors, perhaps of an earlier call."""
        if is_transformed() or any(x.is_inference() for x in tensors):  # the latter count no writing
            return make()
        stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        whole = (key, device, stream, *map(_looks, tensors))
        with self.lock:
            if whole in self.found:
                self.found.move_to_end(whole)
                return self.found[whole][0]
        made = make()
        with self.lock:
            self.found[whole] = made, [StorageWeakRef(x.untyped_storage()) for x in tensors]
            self._forget()
        return made

    def _forget(self) -> None:
        gone = [key for key, (_, held) in self.found.items() if any(storage.expired() for storage in held)]
        for key in gone:
            del self.found[key]
        while len(self.found) > self.most:
            self.found.popitem(last=False)


def _looks(x: Any) -> Hashable:
    """A tensor by its memory, whose address no other takes while a weak reference is held, and by its version."""
    return x.untyped_storage()._cdata, x.storage_offset(), x.shape, x.stride(), x.dtype, x._version


def starts(call: Call) -> list[Any]:
    """The tensor of where batches start, if a number does not say it: every call makes another one of a number."""
    return [call.start] if call.first is None else []


def is_captured(device: Any) -> bool:
    """Whether a CUDA graph is recorded, which must make all that it will be replayed with."""
    return bool(device.type == "cuda" and torch.cuda.is_current_stream_capturing())


# -- tables ----------------------------------------------------------------------------------------------------

COPIES: Kept[Any] = Kept(16)


def with_kept_tables(call: Call) -> Call:
    """The call with the very tables of an earlier one, where a mask reads integers that the door has copied again.

    The lists of a mask are kept by the tensor that they were made of: by the copy, which would be another every time.
    """
    copied = {name: call.given[name] for name in of_mask(call.formula) if _is_copied(call, name)}
    if not copied or not call.xp.known(call.q) or is_captured(call.q.device):
        return call
    kept = {name: _kept(call.tables[name], given) for name, given in copied.items()}
    return replace(call, tables=call.tables | kept)


@lru_cache(maxsize=512)
def of_mask(formula: Formula) -> tuple[str, ...]:
    """The tables that the mask reads."""
    return tuple(sorted({part.table for part in walk(formula.admitted) if isinstance(part, Read | Given)}))


def _is_copied(call: Call, name: str) -> bool:
    table, given = call.tables[name], call.given[name]
    is_wider = bool(table.dtype == torch.int64 != given.dtype) and table.numel() <= LARGEST
    return is_wider and not table.is_inference()  # such a copy would be of no use to a call that is differentiated


def _kept(table: Any, given: Any) -> Any:
    return COPIES.get(table.shape, table.device, [given], lambda: table)
