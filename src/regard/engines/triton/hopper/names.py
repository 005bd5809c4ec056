"""Gluon's words under one name each, for triton 3.6 to 3.9: kernels import them from here and nowhere else.

load_tile(descriptor, at, barrier, memory)    a tile from the array into shared memory; the barrier counts its bytes
store_tile(descriptor, at, memory)            a tile from shared memory into the array; what sticks out is left away
wait_stores(pendings=0)                       until the tiles handed to store_tile have been read
all_threads()                                 a barrier of the threads of one partition
"""

from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

__all__ = [
    "TensorDescriptor",
    "all_threads",
    "constexpr_function",
    "fence_async_shared",
    "gl",
    "jit",
    "load_tile",
    "mbarrier",
    "store_tile",
    "wait_stores",
    "warpgroup_mma",
    "warpgroup_mma_wait",
]


def _first(module: Any, *names: str) -> Any:
    """What the first name that the module knows stands for: the newer name is given first."""
    return next(getattr(module, name) for name in names if hasattr(module, name))


jit: Any = gluon.jit
constexpr_function: Any = gluon.constexpr_function
load_tile: Any = _first(tma, "async_load", "async_copy_global_to_shared")
store_tile: Any = _first(tma, "async_store", "async_copy_shared_to_global")
wait_stores: Any = tma.store_wait
all_threads: Any = _first(gl, "barrier", "thread_barrier")
