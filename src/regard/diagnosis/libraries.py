"""What targets are written in: nested lists, NumPy, PyTorch, JAX. One object each, with the same five verbs."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np


class Language:
    """array: from NumPy; read: back to it; same: as given; apply: a call; gradients; quiet: around calls."""

    name = ""
    title = ""
    dtype = "float64"
    differentiable = False

    def array(self, values: Any, dtype: str) -> Any:
        raise NotImplementedError

    def read(self, value: Any) -> np.ndarray | None:
        """NumPy's view of an array or number; None for anything else."""
        if isinstance(value, np.ndarray | np.generic) and np.asarray(value).dtype.kind in "fiub":
            return np.array(value, dtype=np.float64)
        return None

    def same(self, value: Any, given: Any) -> bool:
        now, before = self.read(value), self.read(given)
        return now is not None and before is not None and np.array_equal(now, before, equal_nan=True)

    def apply(self, function: Callable[..., Any], places: Sequence[Any], names: Mapping[str, Any]) -> Any:
        """One call."""
        return function(*places, **names)

    def gradients(self, output: Callable[..., Any], chosen: Sequence[Any], dy: Any) -> list[np.ndarray | None]:
        raise NotImplementedError

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield


class Lists(Language):
    """Nested lists of Python's own numbers."""

    name, title = "python", "Python lists"

    def array(self, values: Any, dtype: str) -> Any:
        return np.asarray(values).tolist()

    def read(self, value: Any) -> np.ndarray | None:
        if isinstance(value, list | tuple) and value and _is_regular(value):
            return np.array(value, dtype=np.float64)
        return super().read(value)


def _is_regular(value: Any) -> bool:
    try:
        found = np.array(value)
    except ValueError:
        return False
    return found.dtype.kind in "fiub"


class NumPy(Language):
    """NumPy in float64."""

    name, title = "numpy", "NumPy"

    def array(self, values: Any, dtype: str) -> Any:
        values = np.asarray(values)
        return np.array(values, dtype=dtype if values.dtype.kind == "f" else values.dtype)

    def read(self, value: Any) -> np.ndarray | None:
        if isinstance(value, list) and value and all(isinstance(row, np.ndarray | np.generic) for row in value):
            return np.array(value, dtype=np.float64) if len({np.shape(row) for row in value}) == 1 else None
        return super().read(value)


class PyTorch(Language):
    """PyTorch on the CPU in float32."""

    name, title, dtype, differentiable = "torch", "PyTorch", "float32", True

    def array(self, values: Any, dtype: str) -> Any:
        import torch

        made = torch.from_numpy(np.ascontiguousarray(values))
        if made.is_complex():
            return made.to(torch.complex128 if dtype == "float64" else torch.complex64)
        return made.to(getattr(torch, dtype), copy=True) if made.dtype == torch.float64 else made.clone()

    def read(self, value: Any) -> np.ndarray | None:
        import torch

        if not isinstance(value, torch.Tensor):
            return super().read(value)
        if value.is_complex() or value.is_nested or value.dtype == torch.uint8:
            return None
        return np.array(value.detach().to("cpu", torch.float64).numpy())

    def gradients(self, output: Callable[..., Any], chosen: Sequence[Any], dy: Any) -> list[np.ndarray | None]:
        import torch

        leaves = [value.requires_grad_() for value in chosen]
        with self.quiet():
            y = output(*leaves)
            if not isinstance(y, torch.Tensor) or not y.requires_grad:
                return [None for _ in leaves]
            found = torch.autograd.grad((y * dy).sum(), leaves, allow_unused=True)
        return [None if g is None else self.read(g) for g in found]


class Jax(Language):
    """JAX on the CPU in float32. Functions are compiled as a whole: operations one by one take five times as long."""

    name, title, dtype, differentiable = "jax", "JAX", "float32", True
    options = {"xla_allow_excess_precision": False, "xla_backend_optimization_level": 0}

    def __init__(self) -> None:
        self._compiled: dict[tuple[Any, ...], tuple[Any, Any]] = {}  # the function beside, so that its id stays its own

    def array(self, values: Any, dtype: str) -> Any:
        import jax.numpy as jnp

        values = np.asarray(values)
        kind = {"f": dtype, "c": "complex64", "i": "int32"}.get(values.dtype.kind)
        return jnp.asarray(values if kind is None else values.astype(kind))

    def read(self, value: Any) -> np.ndarray | None:
        import jax

        return np.array(value, dtype=np.float64) if isinstance(value, jax.Array) else super().read(value)

    def apply(self, function: Callable[..., Any], places: Sequence[Any], names: Mapping[str, Any]) -> Any:
        """Compiled where that can be done; a function that cannot, or that raises, is called as it is."""
        import jax

        given = [*enumerate(places), *names.items()]
        fixed = {at: value for at, value in given if not _is_traced(value)}
        arrays = [value for at, value in given if at not in fixed]
        key = (id(function), tuple(at for at, _ in given), repr(fixed))
        if key not in self._compiled:
            called = _of_arrays(function, len(places), tuple(at for at, _ in given), fixed)
            self._compiled[key] = function, jax.jit(called, compiler_options=self.options)
        compiled = self._compiled[key][1]
        try:
            return compiled(arrays) if compiled is not None else function(*places, **names)
        except Exception:  # noqa: BLE001 - its own error is the one to show
            result = function(*places, **names)
            self._compiled[key] = function, None
            return result

    def gradients(self, output: Callable[..., Any], chosen: Sequence[Any], dy: Any) -> list[np.ndarray | None]:
        import jax

        def pulled(chosen: Sequence[Any]) -> Any:
            return jax.vjp(output, *chosen)[1](dy)

        with self.quiet():
            try:
                found = jax.jit(pulled, compiler_options=self.options)(list(chosen))
            except Exception:  # noqa: BLE001 - what cannot be compiled may still be differentiated
                found = pulled(chosen)
            return [self.read(g) for g in found]


def _is_traced(value: Any) -> bool:
    return any(
        hasattr(one, "__jax_array__") or hasattr(one, "aval")
        for one in (value if isinstance(value, tuple) else [value])
    )


def _of_arrays(
    function: Callable[..., Any], places: int, order: Sequence[Any], fixed: Mapping[Any, Any]
) -> Callable[[Sequence[Any]], Any]:
    """The function of its arrays alone; what is no array stays what it was."""

    def called(arrays: Sequence[Any]) -> Any:
        rest = iter(arrays)
        values = [fixed[at] if at in fixed else next(rest) for at in order]
        return function(*values[:places], **dict(zip(order[places:], values[places:], strict=True)))

    return called


LIBRARIES: dict[str, Language] = {one.name: one for one in (Lists(), NumPy(), PyTorch(), Jax())}
