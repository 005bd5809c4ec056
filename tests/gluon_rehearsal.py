"""Gluon's words in PyTorch, on the CPU: a kernel for Hopper is rehearsed with its warps as threads.

    rehearsed("forward")            the module regard.engines.triton.hopper.forward, its kernels plain Python functions
    run(kernel, grid, *arguments)   every program of the grid, one after another
    whole()                         within it, calls of the fused engine run on these kernels from end to end

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
from collections.abc import Iterator
from contextlib import contextmanager
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
    """The values of products; what else is kept alive until then comes back as it is."""
    while len(HERE.products) > num_outstanding:
        HERE.products.pop(0).finish()
    values = tuple(part.value if isinstance(part, Product) else part for part in deps)
    assert all(value is not None for value in values), "a product is read before it is waited for"
    return values[0] if len(values) == 1 else values


def specialize(partitions: Any, warps: Any, registers: Any) -> None:
    failed: list[BaseException] = []

    def work(function: Any, arguments: Any) -> None:
        HERE.products, HERE.stores = [], []
        try:
            with torch.no_grad():  # which holds for one thread alone
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


class Jitted:
    """A jitted function: jitted[grid](…) takes what the host gives, a plain call what these words know."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments, **_: run(self.program, grid[0], *map(_handed, arguments))

    def program(self, *arguments: Any) -> None:
        """One program of those that were launched."""
        self.function(*arguments)


def _handed(x: Any) -> Any:
    """An argument of a launch as a kernel sees it: pointers count from the first number, constants are plain."""
    if isinstance(x, torch.Tensor):
        return Pointer(x.as_strided((x.untyped_storage().nbytes() // x.element_size() - x.storage_offset(),), (1,)))
    if isinstance(x, tuple):
        return tuple(map(_handed, x))
    values = vars(x) if type(x).__name__ == "Constants" else None
    return x if values is None else types.SimpleNamespace(**{name: _known(value) for name, value in values.items()})


def _known(value: Any) -> Any:
    return getattr(value, "value", value)


ASSEMBLY = {
    "tanh": torch.tanh,
    "lg2": torch.log2,
    "sin": torch.sin,
    "cos": torch.cos,
}


def _asm(text: str, constraints: str, arguments: Any, *_: Any, **__: Any) -> Any:
    return ASSEMBLY[text.split(".")[0]](arguments[0])


def _cast(x: Any, dtype: Any, bitcast: bool = False) -> Any:
    x = torch.as_tensor(x)
    return x.view(dtype) if bitcast else x.to(dtype)


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


def _of_one(function: Any) -> Any:
    return lambda x: function(torch.as_tensor(x, dtype=torch.float32))


ONE = {"abs": abs}
ONE |= {name: _of_one(getattr(torch, name)) for name in "exp exp2 log log2 sqrt sin cos erf floor".split()}
ONE["sqrt_rn"] = ONE["sqrt"]


def _modules() -> dict[str, types.ModuleType]:
    words: dict[str, Any] = {
        "constexpr": _same, "allocate_shared_memory": allocate, "load": load, "store": store, "where": _where,
        "NVMMADistributedLayout": _same, "DotOperandLayout": _same, "SliceLayout": _same, "BlockedLayout": _same,
        "SwizzledSharedLayout": _same, "NVMMASharedLayout": types.SimpleNamespace(get_default_for=_same),
        "arange": lambda start, end, layout=None: torch.arange(start, end, dtype=torch.int32),
        "full": lambda shape, value, dtype, layout=None: torch.full(shape, value, dtype=dtype),
        "zeros": lambda shape, dtype, layout=None: torch.zeros(shape, dtype=dtype),
        "maximum": _both(torch.maximum), "minimum": _both(torch.minimum), "cdiv": lambda x, y: -(-x // y),
        "max": lambda x, axis: x.amax(axis), "sum": lambda x, axis: x.sum(axis), **ONE,
        "fma": lambda x, y, z: (x.double() * y + z).float(), "cast": _cast,
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
        "arrive": lambda barrier, count=1, pred=True: barrier.take(arrivals=count) if bool(pred) else None,
        "wait": lambda barrier, parity: barrier.wait(parity),
    }
    copies = {"async_load": load_tile, "async_store": store_tile, "store_wait": wait_stores}
    language = _module("language", words)
    gluon = _module("gluon", {"jit": Jitted, "constexpr_function": _same, "language": language})
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
        f"{base}.nvidia.hopper": _module("hopper", {"TensorDescriptor": _described}),
    }


def _described(array: Any, _shape: Any, _strides: Any, block: list[int], _layout: Any) -> Descriptor:
    """As the host's side makes them."""
    return Descriptor(array, *block[2:])


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


# -- from end to end -------------------------------------------------------------------------------------------


@contextmanager
def whole(processors: int = 3) -> Iterator[list[str]]:
    """The fused engine takes these kernels for all that Hopper's template takes; gives the names of those that ran.

    processors: of the chip that is played; each takes many tiles where programs are persistent
    """
    from triton.runtime.jit import mangle_type

    from regard.engines import triton as engine
    from regard.engines.triton import choice, operator  # noqa: F401 - loaded here, it stays loaded
    from regard.engines.triton.templates import kept

    mangle_type(torch.zeros(1))  # triton looks for the true Gluon once
    ran: list[str] = []
    with mock.patch.dict(sys.modules, MODULES), mock.patch.dict(vars(engine)), _afresh():
        for name in [name for name in sys.modules if name.startswith(f"{engine.__name__}.hopper")]:
            del sys.modules[name]
        launch = importlib.import_module(f"{engine.__name__}.hopper.launch")
        with (
            mock.patch.object(choice, "INTERPRETED", types.SimpleNamespace(value=False)),
            mock.patch.object(kept, "usual_memory", return_value=2**30),
            mock.patch.object(launch, "_chip", return_value=None),
            mock.patch.object(launch, "_processors", return_value=processors),
            mock.patch.object(Jitted, "program", _told(Jitted.program, ran)),
        ):
            yield ran


@contextmanager
def _afresh() -> Iterator[None]:
    """No function that was jitted outside is taken inside, and none of these outside."""
    from regard.engines.triton import functions, passes

    kept = functions.jitted, passes.constants
    for made in kept:
        made.cache_clear()
    try:
        yield
    finally:
        for made in kept:
            made.cache_clear()


def _told(call: Any, ran: list[str]) -> Any:
    def told(self: Jitted, *arguments: Any) -> None:
        ran.append(self.function.__name__)
        call(self, *arguments)

    return told
