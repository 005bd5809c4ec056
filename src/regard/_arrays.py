"""Array libraries: the array API standard, and the little that it leaves out."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import array_api_compat
import numpy as np

from .algebra.errors import CallError, KindError


class Library:
    """One array library. Names of the array API standard are its own; the rest is below."""

    name: str = "array"

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def __getattr__(self, name: str) -> Any:
        return getattr(self.xp, name)

    def erf(self, x: Any) -> Any:
        """The error function."""
        raise CallError(f"gelu: {self.name} has no error function; use NumPy, PyTorch or JAX")

    def scatter(self, shape: Sequence[int], indices: tuple[Any, ...], values: Any) -> Any:
        """An array of zeros to which each value has been added at its place."""
        raise CallError(f"vjp: {self.name} cannot scatter; use NumPy, PyTorch or JAX")

    def constant(self, x: Any) -> Any:
        """x, as something that automatic differentiation holds fixed."""
        return x

    def once(self, x: Any) -> Any:
        """x, as something whose derivative is not differentiated again, where the library can refuse that."""
        return x

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        """No warnings about infinities and NaN: they are results here."""
        return contextlib.nullcontext()

    def exact(self, x: Any) -> contextlib.AbstractContextManager[Any]:
        """No autocast, which would round what is computed from x: arrays were cast at the door."""
        return contextlib.nullcontext()

    def known(self, x: Any) -> bool:
        """Whether the values can be looked at now (not while a compiler traces)."""
        return True

    def is_mapped(self, x: Any) -> bool:
        """Whether `vmap` hides an axis of the array."""
        return False

    def is_true(self, truth: Any) -> bool:
        """Whether a truth is known to hold now; while a compiler traces, nothing is."""
        return self.known(truth) and bool(truth)

    def is_real(self, x: Any) -> bool:
        """Whether the array holds floating-point numbers."""
        return bool(self.xp.isdtype(x.dtype, "real floating"))

    def is_bool(self, x: Any) -> bool:
        """Whether the array holds truths."""
        return bool(self.xp.isdtype(x.dtype, "bool"))

    def is_integer(self, x: Any) -> bool:
        """Whether the array holds integers."""
        return bool(self.xp.isdtype(x.dtype, "integral"))

    def working_dtype(self, dtype: Any) -> Any:
        """The dtype to compute in: the given one, but at least float32."""
        return self.xp.float32 if dtype.itemsize < 4 else dtype

    @property
    def widest(self) -> tuple[Any, Any]:
        """The integers and the real numbers of most bits: 64, where JAX was not told to do with 32."""
        return self.xp.int64, self.xp.float64

    def promoted(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """The arrays in the dtype that the library's own mixed precision asks for now."""
        return arrays

    def device(self, x: Any) -> Any:
        """Where the array lies."""
        return array_api_compat.device(x)

    def is_accelerated(self, x: Any) -> bool:
        """Whether the array lies on an accelerator, which takes large pieces."""
        return False

    def squares(self, x: Any) -> Any:
        """‖x‖² along the last axis."""
        return self.xp.vecdot(x, x)

    def kth_largest(self, x: Any, k: int) -> Any:
        """The k-th largest number of each column of a matrix; NaN counts as largest."""
        return self.xp.sort(x, axis=0)[x.shape[0] - k, :]

    def product_error(self, x: Any, width: int) -> float:
        """γ: a matrix product of such numbers, of this inner width, is off by at most γ ‖row‖ ‖column‖."""
        share = width * float(self.xp.finfo(x.dtype).eps) / 2
        return share / (1 - share) if share < 1 else math.inf


class NumPy(Library):
    """NumPy: the oracle."""

    name = "numpy"

    def erf(self, x: Any) -> Any:
        values = np.vectorize(math.erf, otypes=[float])(x)
        return values.astype(x.dtype)

    def scatter(self, shape: Sequence[int], indices: tuple[Any, ...], values: Any) -> Any:
        total = np.zeros(shape, values.dtype)
        np.add.at(total, indices, values)
        return total

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        return np.errstate(all="ignore")

    def is_real(self, x: Any) -> bool:
        return bool(x.dtype.kind == "f" or x.dtype.name == "bfloat16")

    def working_dtype(self, dtype: Any) -> Any:
        return np.dtype(np.float32) if dtype.itemsize < 4 else dtype

    def kth_largest(self, x: Any, k: int) -> Any:
        return np.partition(x, x.shape[0] - k, axis=0)[x.shape[0] - k, :]


class Torch(Library):
    """PyTorch, with its automatic differentiation."""

    name = "torch"

    def erf(self, x: Any) -> Any:
        return self.xp.erf(x)

    def scatter(self, shape: Sequence[int], indices: tuple[Any, ...], values: Any) -> Any:
        total = self.xp.zeros(tuple(shape), dtype=values.dtype, device=values.device)
        return total.index_put(indices, values, accumulate=True)

    def constant(self, x: Any) -> Any:
        return x.detach()

    def once(self, x: Any) -> Any:
        return _once()(x)

    def promoted(self, arrays: dict[str, Any]) -> dict[str, Any]:
        device = arrays["q"].device.type
        if not self._is_cast(device):
            return arrays
        dtype = self.xp.get_autocast_dtype(device)  # as PyTorch's own attention: all but float64
        return {name: x.to(dtype) if self.is_real(x) and x.dtype.itemsize < 8 else x for name, x in arrays.items()}

    def exact(self, x: Any) -> contextlib.AbstractContextManager[Any]:
        device = x.device.type
        return self.xp.autocast(device, enabled=False) if self._is_cast(device) else contextlib.nullcontext()

    def _is_cast(self, device: str) -> bool:
        return bool(self.xp.amp.is_autocast_available(device) and self.xp.is_autocast_enabled(device))

    def known(self, x: Any) -> bool:
        traced = type(x).__name__ in ("FakeTensor", "FunctionalTensor")  # not every version says that it is compiling
        return not (traced or self.xp.compiler.is_compiling() or x.is_meta or self.is_mapped(x))

    def device(self, x: Any) -> Any:
        return x.device

    def is_accelerated(self, x: Any) -> bool:
        return bool(x.device.type != "cpu")

    def squares(self, x: Any) -> Any:
        return self.xp.linalg.vector_norm(x, axis=-1) ** 2  # in one pass, which PyTorch's own product of rows is not

    def kth_largest(self, x: Any, k: int) -> Any:
        return self.xp.topk(x, k, dim=0).values[-1, :]

    def product_error(self, x: Any, width: int) -> float:
        reduced = x.dtype == self.xp.float32 and not self._is_full()
        return super().product_error(x, width) + (2**-7 if reduced else 0.0)  # factors may be rounded to bfloat16

    def _is_full(self) -> bool:
        """Whether products of float32 are in float32; set for one backend alone, PyTorch does not say."""
        try:
            return bool(self.xp.get_float32_matmul_precision() == "highest")
        except RuntimeError:
            return False

    def is_mapped(self, x: Any) -> bool:
        from torch._C._functorch import is_batchedtensor  # PyTorch has no public way to ask

        return bool(is_batchedtensor(x))


@lru_cache(maxsize=1)
def _once() -> Callable[[Any], Any]:
    """The identity of PyTorch with one derivative."""
    from torch.autograd import Function
    from torch.autograd.function import once_differentiable

    class Once(Function):  # type: ignore[misc]  # PyTorch's classes are Any here
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return once_differentiable(lambda ctx, g: g.clone())(ctx, g)

    identity: Callable[[Any], Any] = Once.apply
    return identity


class Jax(Library):
    """JAX, under its transformations too."""

    name = "jax"

    def erf(self, x: Any) -> Any:
        from jax.scipy.special import erf

        return erf(x)

    def scatter(self, shape: Sequence[int], indices: tuple[Any, ...], values: Any) -> Any:
        return self.xp.zeros(tuple(shape), values.dtype).at[indices].add(values)

    def constant(self, x: Any) -> Any:
        from jax.lax import stop_gradient

        return stop_gradient(x)

    @property
    def widest(self) -> tuple[Any, Any]:
        return self.xp.asarray(0).dtype, self.xp.asarray(0.0).dtype

    def device(self, x: Any) -> Any:  # JAX itself says where arrays go, also while it traces
        return None

    def is_mapped(self, x: Any) -> bool:
        return type(x).__name__ == "BatchTracer"  # JAX has no public way to ask

    def known(self, x: Any) -> bool:
        from jax.core import Tracer

        return not isinstance(x, Tracer)


def _numpy() -> Library:
    import array_api_compat.numpy

    return NumPy(array_api_compat.numpy)


def _torch() -> Library:
    import array_api_compat.torch

    return Torch(array_api_compat.torch)


def _jax() -> Library:
    import jax.numpy

    return Jax(jax.numpy)


LIBRARIES: dict[str, Callable[[], Library]] = {"numpy": _numpy, "torch": _torch, "jax": _jax, "jaxlib": _jax}
"""By the package that an array's type comes from."""


def library(array: Any) -> Library:
    """The library that an array belongs to."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return LIBRARIES["torch"]()  # without asking its class, which a compiler could not follow for a Parameter
    root = type(array).__module__.partition(".")[0]
    if root in LIBRARIES and is_array(array):
        return LIBRARIES[root]()
    xp = array_api_compat.array_namespace(array)  # refuses what is no array
    ours = LIBRARIES.get(xp.__name__.rpartition(".")[2])  # a subclass, of PyTorch's tensor for example
    return Library(xp) if ours is None else ours()


def is_array(value: object) -> bool:
    """Whether this is an array of some library that follows the standard."""
    torch = sys.modules.get("torch")
    if isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor)):
        return True  # without asking further, which a compiler could not follow
    return bool(array_api_compat.is_array_api_obj(value))


def as_array(value: object, argument: str) -> Any:
    """An array as it is; nested lists of numbers as NumPy float64."""
    if is_array(value):
        return value
    if not isinstance(value, list | tuple):
        raise KindError(f"{argument}: an array or nested lists of numbers; got {type(value).__name__}")
    try:
        return np.asarray(value, dtype=np.float64)
    except (ValueError, TypeError):
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}…"
        raise KindError(f"{argument}: nested lists of numbers, all rows of one length; got {shown}") from None


def numbers(value: object, argument: str) -> Any:
    """A number or nested lists of numbers, whole, real or truths, as a NumPy array."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise KindError(f"{argument}: an array, a number or nested lists of numbers; got {type(value).__name__}")
    return array
