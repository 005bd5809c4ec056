"""Gluon's words in PyTorch, on the CPU: a kernel for Hopper is rehearsed with its warps as threads.

    rehearsed("forward")            the module regard.engines.triton.hopper.forward, its kernels plain Python functions
    run(kernel, grid, *arguments)   every program of the grid, one after another

Everything asynchronous happens as late as the kernel allows: products are computed when they are waited for, tiles are
written to arrays when a store is waited for. So memory that is given back too early, a barrier that never completes
(an error after some seconds) and a block that is read before it came all show. Reads and writes outside an array raise.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any
from unittest import mock

import torch

SOURCE = Path(__file__).parents[1] / "src" / "regard" / "engines" / "triton" / "hopper"
PATIENCE = 20.0  # seconds until a wait counts as one without end
HERE = threading.local()  # what is in flight in one partition
GRID: dict[str, int] = {}


# -- memory ----------------------------------------------------------------------------------------------------


class Pointer:
    """An array and offsets into it, counted from its first number."""

    def __init__(self, array: Any, offset: Any = 0) -> None:
        self.array, self.offset = array, offset

    def __add__(self, other: Any) -> Pointer:
        return Pointer(self.array, self.offset + other)

    def places(self, mask: Any) -> tuple[Any, Any]:
        offset = torch.as_tensor(self.offset).long()
        mask = torch.as_tensor(True if mask is None else mask)
        offset, mask = torch.broadcast_tensors(offset, mask)
        inside = (offset >= 0) & (offset < self.array.numel())
        if bool((mask & ~inside).any()):
            raise IndexError(f"offset {int(offset[mask & ~inside][0])} of an array of {self.array.numel()}")
        return offset, mask


def load(pointer: Pointer, mask: Any = None, other: Any = 0) -> Any:
    offset, mask = pointer.places(mask)
    flat = pointer.array.reshape(-1)
    return torch.where(mask, flat[torch.where(mask, offset, 0)], torch.as_tensor(other, dtype=flat.dtype))


def store(pointer: Pointer, value: Any, mask: Any = None) -> None:
    offset, mask = pointer.places(mask)
    pointer.array.view(-1)[offset[mask]] = torch.broadcast_to(value, offset.shape)[mask].to(pointer.array.dtype)


class Memory:
    """A view of shared memory."""

    def __init__(self, data: Any) -> None:
        self.data = data

    shape = property(lambda self: list(self.data.shape))
    dtype = property(lambda self: self.data.dtype)

    def index(self, place: Any) -> Memory:
        return Memory(self.data[int(place)])

    def reshape(self, shape: Any) -> Memory:
        return Memory(self.data.view([int(size) for size in shape]))

    def permute(self, order: Any) -> Memory:
        return Memory(self.data.permute(order))

    def store(self, value: Any) -> None:
        assert value.dtype == self.data.dtype
        self.data.copy_(value)

    def load(self, layout: Any) -> Any:
        return self.data.clone()


class Barrier:
    """Complete when its arrivals and its bytes have come; it then counts anew."""

    def __init__(self) -> None:
        self.changed, self.count, self.left, self.bytes, self.done = threading.Condition(), 0, 0, 0, 0

    def take(self, arrivals: int = 0, size: int = 0) -> None:
        with self.changed:
            self.left, self.bytes = self.left - arrivals, self.bytes + size
            assert self.left >= 0, "more arrivals than the barrier counts"
            complete = self.left == 0 and self.bytes == 0
            if complete:
                self.left, self.done = self.count, self.done + 1
                self.changed.notify_all()
        if complete:
            time.sleep(0.0005)  # whoever waited goes first: what this one still reads or writes may be gone

    def wait(self, parity: Any) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: self.done % 2 != int(parity), PATIENCE):
                raise TimeoutError("a barrier that never completes")


class Barriers:
    def __init__(self, number: int) -> None:
        self.all = [Barrier() for _ in range(number)]

    def index(self, place: Any) -> Barrier:
        return self.all[int(place)]


def allocate(dtype: Any, shape: Any, layout: Any) -> Any:
    shape = [int(size) for size in shape]
    if dtype == torch.int64:
        return Barriers(shape[0])
    return Memory(torch.full(shape, float("nan"), dtype=dtype))


class Descriptor:
    """An array (B, heads, length, width) in tiles (1, 1, rows, padded width)."""

    def __init__(self, array: Any, rows: int, width: int) -> None:
        self.array, self.dtype, self.layout, self.block_shape = array, array.dtype, None, [1, 1, rows, width]
        self.block_type = types.SimpleNamespace(nbytes=rows * width * array.element_size())

    def part(self, at: Any) -> Any:
        b, h, first, column = map(int, at)
        assert 0 <= b < self.array.shape[0]
        assert 0 <= h < self.array.shape[1]
        assert first >= 0
        return self.array[b, h, first : first + self.block_shape[2], column:]


def load_tile(descriptor: Descriptor, at: Any, barrier: Barrier, memory: Memory) -> None:
    part = descriptor.part(at)
    memory.data.zero_()
    memory.data[0, 0, : part.shape[0], : part.shape[1]] = part
    barrier.take(size=-descriptor.block_type.nbytes)


def store_tile(descriptor: Descriptor, at: Any, memory: Memory) -> None:
    def late() -> None:
        part = descriptor.part(at)
        part.copy_(memory.data[0, 0, : part.shape[0], : part.shape[1]])

    HERE.stores.append(late)


def wait_stores(pendings: int) -> None:
    while len(HERE.stores) > pendings:
        HERE.stores.pop(0)()


# -- products --------------------------------------------------------------------------------------------------


class Product:
    def __init__(self, left: Any, right: Memory, acc: Any, use_acc: bool) -> None:
        self.left, self.right, self.acc, self.use_acc, self.value = left, right, acc, use_acc, None

    def finish(self) -> None:
        left = self.left.data if isinstance(self.left, Memory) else self.left
        found = left.float() @ self.right.data.float()
        self.value = found + self.acc if self.use_acc else found


def multiply(left: Any, right: Memory, acc: Any, use_acc: bool = True, is_async: bool = False) -> Any:
    HERE.products.append(Product(left, right, acc, use_acc))
    return HERE.products[-1] if is_async else wait_products(0, (HERE.products[-1],))


def wait_products(num_outstanding: int, deps: Any) -> Any:
    while len(HERE.products) > num_outstanding:
        HERE.products.pop(0).finish()
    values = tuple(product.value for product in deps)
    assert all(value is not None for value in values), "a product is read before it is waited for"
    return values[0] if len(values) == 1 else values


def specialize(partitions: Any, warps: Any, registers: Any) -> None:
    failed: list[BaseException] = []

    def work(function: Any, arguments: Any) -> None:
        HERE.products, HERE.stores = [], []
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001  (told below, in the thread of the test)
            failed.append(error)

    threads = [threading.Thread(target=work, args=partition) for partition in partitions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


# -- the language ----------------------------------------------------------------------------------------------


def _same(x: Any, *_: Any, **__: Any) -> Any:
    return x


def _jit(function: Any = None, **_: Any) -> Any:
    return function if callable(function) else _same


def _asm(text: str, constraints: str, arguments: Any, **_: Any) -> Any:
    assert text.startswith("tanh.approx.f32"), text
    return torch.tanh(arguments[0])


def _number(value: int) -> Any:
    return torch.tensor(value, dtype=torch.int32)


def _both(function: Any) -> Any:
    """A function of two numbers or blocks of numbers."""

    def of(x: Any, y: Any) -> Any:
        dtype = next((z.dtype for z in (x, y) if isinstance(z, torch.Tensor)), torch.int32)
        return function(torch.as_tensor(x, dtype=dtype), torch.as_tensor(y, dtype=dtype))

    return of


def _where(condition: Any, x: Any, y: Any) -> Any:
    return torch.where(torch.as_tensor(condition), x, y)


def _modules() -> dict[str, types.ModuleType]:
    words: dict[str, Any] = {
        "constexpr": _same, "allocate_shared_memory": allocate, "load": load, "store": store, "where": _where,
        "NVMMADistributedLayout": _same, "DotOperandLayout": _same, "SliceLayout": _same, "BlockedLayout": _same,
        "SwizzledSharedLayout": _same, "NVMMASharedLayout": types.SimpleNamespace(get_default_for=_same),
        "arange": lambda start, end, layout=None: torch.arange(start, end, dtype=torch.int32),
        "full": lambda shape, value, dtype, layout=None: torch.full(shape, value, dtype=dtype),
        "zeros": lambda shape, dtype, layout=None: torch.zeros(shape, dtype=dtype),
        "maximum": _both(torch.maximum), "minimum": _both(torch.minimum), "cdiv": lambda x, y: -(-x // y),
        "max": lambda x, axis: x.amax(axis), "sum": lambda x, axis: x.sum(axis), "abs": torch.abs,
        "exp2": torch.exp2, "log2": torch.log2, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
        "convert_layout": _same, "multiple_of": _same, "max_contiguous": _same, "inline_asm_elementwise": _asm,
        "program_id": lambda axis: _number(GRID["own"]), "num_programs": lambda axis: _number(GRID["all"]),
        "static_range": range, "static_assert": _same, "warp_specialize": specialize, "barrier": lambda: None,
        "int1": torch.bool, "int32": torch.int32, "int64": torch.int64, "float32": torch.float32,
        "float16": torch.float16, "bfloat16": torch.bfloat16,
    }  # fmt: skip
    barriers = {
        "MBarrierLayout": lambda: None,
        "init": lambda barrier, count: barrier.__dict__.update(count=count, left=count),
        "expect": lambda barrier, size: barrier.take(arrivals=1, size=size),
        "arrive": lambda barrier, count=1: barrier.take(arrivals=count),
        "wait": lambda barrier, parity: barrier.wait(parity),
    }
    copies = {"async_load": load_tile, "async_store": store_tile, "store_wait": wait_stores}
    language = _module("language", words)
    gluon = _module("gluon", {"jit": _jit, "constexpr_function": _same, "language": language})
    hopper = {
        "mbarrier": _module("mbarrier", barriers), "tma": _module("tma", copies), "fence_async_shared": lambda: None,
        "warpgroup_mma": multiply, "warpgroup_mma_wait": wait_products,
    }  # fmt: skip
    base = "triton.experimental.gluon"
    return {
        "triton.experimental": _module("experimental", {"gluon": gluon}),
        base: gluon,
        f"{base}.language": language,
        f"{base}.language.nvidia.hopper": _module("hopper", hopper),
        f"{base}.nvidia.hopper": _module("hopper", {"TensorDescriptor": Descriptor}),
    }


def _module(name: str, words: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(words)
    return module


MODULES = _modules()


def rehearsed(name: str) -> types.ModuleType:
    """A module of the kernels for Hopper, over these words."""
    package = _module("rehearsed_hopper", {"__path__": [str(SOURCE)]})
    with mock.patch.dict(sys.modules, {**MODULES, package.__name__: package}):
        return importlib.import_module(f"{package.__name__}.{name}")


def rehearsed_file(path: Path) -> types.ModuleType:
    """A file with functions jitted for Gluon, over these words."""
    spec = importlib.util.spec_from_file_location(f"rehearsed_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, MODULES):
        spec.loader.exec_module(module)
    return module


def run(kernel: Any, grid: int, *arguments: Any) -> None:
    """Every program of a grid."""
    for own in range(grid):
        GRID.update(own=own, all=grid)
        kernel(*arguments)
