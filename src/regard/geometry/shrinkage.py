"""A covariance that can be inverted: from few rows, or columns that repeat each other, shrunk towards a sphere.

(1 − α) S + α m I,  m = tr S / D the mean variance
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Library
from .._shapes import Array, Float
from ..algebra.errors import CallError, KindError
from .moments import centred, covariance
from .spectrum import nowhere_negative, rounding
from .vectors import cloud


def shrunk(x: Any, shrinkage: float | str = "auto") -> tuple[Float[Array, "d d"], float]:
    """The covariance of the rows of x after shrinkage, and α.

    shrinkage: "auto": 0 where the covariance has full rank, Ledoit and Wolf's where it has not;
               "ledoit-wolf": always theirs; a number from 0 to 1
    """
    xp, x = cloud(x, least=2)
    if isinstance(shrinkage, str) and shrinkage in ("auto", "ledoit-wolf"):
        found = covariance(x)
        if shrinkage == "auto" and rank(xp, found) in (None, x.shape[1]):
            return found, 0.0
        found, alpha = ledoit_wolf(x)
        return found, float(xp.constant(alpha))
    if isinstance(shrinkage, bool) or not isinstance(shrinkage, int | float | np.number):
        raise KindError(f'shrinkage: "auto", "ledoit-wolf" or a number from 0 to 1; got {shrinkage!r}')
    if not 0 <= shrinkage <= 1:
        raise CallError(f"shrinkage: from 0 to 1; got {shrinkage!r}")
    return _towards_sphere(xp, covariance(x), float(shrinkage)), float(shrinkage)


def ledoit_wolf(x: Any) -> tuple[Float[Array, "d d"], Float[Array, ""]]:
    """The covariance shrunk towards a multiple of the identity, and by how much: (1 − α) S + α m I, and α.

        S = Xᵀ X / N, X centred     m = tr S / D     α = min(β, δ) / δ
        δ = ‖S − m I‖² / D          β = (1/N² Σ_n ‖x_n x_nᵀ − S‖²) / D

    Ledoit and Wolf, 2004: of all α, the one that is nearest to the true covariance in the mean. It has full rank
    although S has none, unless each row is μ + a or μ − a, as two rows are: then α is 0.
    """
    xp, x = cloud(x, least=1)
    x, (count, width) = centred(xp, x), x.shape
    sample = xp.matrix_transpose(x) @ x / count
    spread = xp.sum((sample - _towards_sphere(xp, sample, 1.0)) ** 2) / width
    fourth = xp.sum(xp.sum(x * x, axis=1) ** 2) / count  # mean of ‖x_n x_nᵀ‖²
    noise = (fourth - xp.sum(sample * sample)) / count / width
    noise = xp.where(noise < spread, xp.where(noise > 0, noise, xp.zeros_like(noise)), spread)
    alpha = xp.where(spread > 0, noise / xp.where(spread > 0, spread, xp.ones_like(spread)), xp.zeros_like(spread))
    return _towards_sphere(xp, sample, alpha), alpha


def _towards_sphere(xp: Library, matrix: Any, alpha: Any) -> Any:
    """(1 − α) S + α m I."""
    width = matrix.shape[0]
    identity = xp.eye(width, dtype=matrix.dtype, device=xp.device(matrix))
    return (1 - alpha) * matrix + alpha * (xp.linalg.trace(matrix) / width) * identity


def refuse_singular(xp: Library, covariance: Any) -> None:
    """A covariance without full rank has no inverse: along some direction nothing varies."""
    found = rank(xp, covariance)
    if found is not None and found < covariance.shape[0]:
        raise CallError(
            f"covariance: of full rank, as it is inverted; got rank {found} of {covariance.shape[0]}; "
            f"shrink it with ledoit_wolf(x) or shrunk(x, 0.1), take more rows, or leave out columns that are constant "
            f"or repeat others"
        )


def rank(xp: Library, covariance: Any) -> int | None:
    """How many variances differ from 0 by more than rounding; None while a compiler traces."""
    if not xp.known(covariance):
        return None
    values = nowhere_negative(xp, xp.linalg.eigvalsh(xp.constant(covariance)), "covariance")
    return int(xp.sum(xp.astype(values > rounding(xp, values), xp.int32)))
