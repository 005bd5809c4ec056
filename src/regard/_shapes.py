"""Shapes in signatures: `Float[Array, "b h i j"]`, checked while tests run if jaxtyping is installed.

b batch, h heads, i queries, j keys, d width of queries and keys, e width of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

Array = Any  # NumPy, PyTorch, JAX: whatever follows the array API

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
else:
    try:
        from jaxtyping import Bool, Float
    except ImportError:

        class _AnyShape:
            def __class_getitem__(cls, item: Any) -> Any:
                return Any

        Bool = Float = _AnyShape

__all__ = ["Array", "Bool", "Float"]
