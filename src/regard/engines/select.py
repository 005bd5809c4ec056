"""Sums and quotients over the admitted pairs alone."""

from __future__ import annotations

from typing import Any

from .._arrays import Library
from .._shapes import Array, Bool, Float


def quotient(xp: Library, psi: Any, total: Any) -> Any:
    """ψ / Z, and 0 where Z is 0."""
    empty = total == 0
    return xp.where(empty, xp.zeros_like(psi), psi / xp.where(empty, xp.ones_like(total), total))


def keep(xp: Library, admitted: Any | None, values: Any, other: float = 0.0) -> Any:
    """The values where a pair is admitted; `other` elsewhere, whatever stood there."""
    return values if admitted is None else xp.where(admitted, values, xp.full_like(values, other))


def mix(
    xp: Library,
    weights: Float[Array, "b h i j"],
    values: Float[Array, "b h j e"],
    admitted: Bool[Array, "b h i j"] | None,
) -> Float[Array, "b h i e"]:
    """Σ_j w_ij v_j over the admitted j: a value that is not read cannot spoil the row, even if it is NaN."""
    finite = xp.isfinite(values)
    if admitted is None or not xp.is_true(~xp.all(finite)):
        return weights @ values
    total = weights @ xp.where(finite, values, xp.zeros_like(values))
    for j in range(values.shape[2]):
        if not bool(xp.all(finite[:, :, j, :])):
            wild = xp.where(finite[:, :, j, :], xp.zeros_like(values[:, :, j, :]), values[:, :, j, :])
            product = weights[:, :, :, j, None] * wild[:, :, None, :]
            reads = admitted[:, :, :, j, None] & ~finite[:, :, None, j, :]
            total = total + xp.where(reads, product, xp.zeros_like(product))
    return total


def mix_back(
    xp: Library,
    weights: Float[Array, "b h i j"],
    dy: Float[Array, "b h i e"],
    admitted: Bool[Array, "b h i j"] | None,
) -> Float[Array, "b h j e"]:
    """Σ_i w_ij dy_i over the admitted i."""
    transposed = None if admitted is None else xp.matrix_transpose(admitted)
    return mix(xp, xp.matrix_transpose(weights), dy, transposed)
