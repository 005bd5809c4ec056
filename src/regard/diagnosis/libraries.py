"""What targets are written in: nested lists, NumPy, PyTorch, JAX. One object each, with the same five verbs."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np


class Language:
    """array: from NumPy; read: back to NumPy; same: whether untouched; gradients: of Σ y·dy; quiet, watched: around calls."""

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

    def gradients(self, output: Callable[..., Any], chosen: Sequence[Any], dy: Any) -> list[np.ndarray | None]:
        raise NotImplementedError

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield

    @contextlib.contextmanager
    def watched(self, fused: list[bool]) -> Iterator[None]:
        with self.quiet():
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
        return made.to(getattr(torch, dtype), copy=True) if made.dtype == torch.float64 else made.clone()

    def read(self, value: Any) -> np.ndarray | None:
        import torch

        if not isinstance(value, torch.Tensor):
            return super().read(value)
        if value.is_complex() or value.is_nested or value.dtype == torch.uint8:
            return None
        return np.array(value.detach().to("cpu", torch.float64))

    def gradients(self, output: Callable[..., Any], chosen: Sequence[Any], dy: Any) -> list[np.ndarray | None]:
        import torch

        leaves = [value.requires_grad_() for value in chosen]
        with self.quiet():
            y = output(*leaves)
            if not isinstance(y, torch.Tensor) or not y.requires_grad:
                return [None for _ in leaves]
            found = torch.autograd.grad((y * dy).sum(), leaves, allow_unused=True)
        return [None if g is None else self.read(g) for g in found]

    @contextlib.contextmanager
    def watched(self, fused: list[bool]) -> Iterator[None]:
        from torch.nn.functional import scaled_dot_product_attention
        from torch.overrides import TorchFunctionMode

        class Watch(TorchFunctionMode):
            def __torch_function__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                options = kwargs or {}
                if called is scaled_dot_product_attention:
                    fused.append(bool(options.get("is_causal", len(args) > 5 and args[5])))
                return called(*args, **options)

        with self.quiet(), Watch():
            yield


class Jax(Language):
    """JAX on the CPU in float32."""

    name, title, dtype, differentiable = "jax", "JAX", "float32", True

    def array(self, values: Any, dtype: str) -> Any:
        import jax.numpy as jnp

        values = np.asarray(values)
        return jnp.asarray(values.astype(dtype) if values.dtype.kind == "f" else values)

    def read(self, value: Any) -> np.ndarray | None:
        import jax

        return np.array(value, dtype=np.float64) if isinstance(value, jax.Array) else super().read(value)

    def gradients(self, output: Callable[..., Any], chosen: Sequence[Any], dy: Any) -> list[np.ndarray | None]:
        import jax

        with self.quiet():
            _, pull = jax.vjp(output, *chosen)
            return [self.read(g) for g in pull(dy)]


LIBRARIES: dict[str, Language] = {one.name: one for one in (Lists(), NumPy(), PyTorch(), Jax())}
