"""What was made of tensors, kept for as long as they are alive and unchanged."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

from torch.multiprocessing.reductions import StorageWeakRef

Made = TypeVar("Made")


class Kept(Generic[Made]):
    """The last few things that were made of tensors, by what PyTorch knows of these: where they lie, how often written.

    What writes past PyTorch (`x.data`, a kernel of one's own) is not seen, as autograd does not see it either.
    """

    def __init__(self, most: int) -> None:
        self.most, self.lock = most, Lock()
        self.found: OrderedDict[Hashable, tuple[Made, list[StorageWeakRef]]] = OrderedDict()

    def get(self, key: Hashable, tensors: list[Any], make: Callable[[], Made]) -> Made:
        """What `make` gives for these tensors, perhaps of an earlier call."""
        if any(x.is_inference() for x in tensors):  # they count no writing
            return make()
        whole = (key, *map(_looks, tensors))
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
