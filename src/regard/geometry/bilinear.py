"""A matrix between two vectors that need not be symmetric: where queries and keys come from.

    s(x, y) = xᵀ M y        M = W_Qᵀ W_K, so that s = (W_Q x)·(W_K y) = q·k
    M = S + T               S = (M + Mᵀ)/2 is what both directions share, T = (M − Mᵀ)/2 is what sets them apart:
                            s(x, y) − s(y, x) = 2 xᵀ T y
    M = Σ_r σ_r u_r v_rᵀ    at most d_k terms; term r asks along u_r and answers along v_r

M is one fixed matrix: what changes with the pair is the score, never M. It is an inner product only if T = 0 and every
eigenvalue of S is positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from .._arrays import Library, library
from .._shapes import Array, Float
from ..algebra.errors import CallError
from ..algebra.expressions import Expression
from ..algebra.symbols import dot, table
from .products import row_by_row
from .spectrum import axes
from .vectors import pair, refuse_wild, together


class Signature(NamedTuple):
    """How many eigenvalues of the symmetric part are above, below and at 0."""

    positive: int
    negative: int
    zero: int


@dataclass(frozen=True, eq=False)
class Contribution:
    """What one pair makes of the form: s(x, y), taken apart in three ways. Each sums to the score.

    score:         xᵀ M y
    symmetric:     xᵀ S y, the same in both directions
    antisymmetric: xᵀ T y, which changes its sign with the direction
    entries:       x_a M_ab y_b: which entry of x meets which entry of y
    terms:         σ_r (u_r·x)(v_r·y): what each rank adds, the largest σ first
    """

    score: Any
    symmetric: Any
    antisymmetric: Any
    entries: Float[Array, "... d e"]
    terms: Float[Array, "... r"]


@dataclass(frozen=True, eq=False)
class BilinearForm:
    """s(x, y) = xᵀ M y.

    matrix: M, (D, D); the first vector asks, the second answers
    """

    matrix: Float[Array, "d d"]

    def __post_init__(self) -> None:
        xp, (matrix,) = together(matrix=self.matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
            raise CallError(f"matrix: square, one row and one column for each entry; got {tuple(matrix.shape)}")
        refuse_wild(xp, matrix, "matrix")
        object.__setattr__(self, "matrix", matrix)

    @classmethod
    def of(cls, Wq: Any, Wk: Any, *, scale: float = 1.0) -> BilinearForm:
        """M = scale · Wq Wkᵀ for projections as `self_attention` takes them, q = x Wq and k = x Wk, each (D, d_k).

        Where vectors are columns, q = W_Q x with W_Q = Wqᵀ, this is W_Qᵀ W_K. With scale = 1/√d_k,
        self_attention(x, M=form.matrix) is self_attention(x, Wq, Wk).
        """
        xp, (Wq, Wk) = together(Wq=Wq, Wk=Wk)
        if Wq.ndim != 2 or Wq.shape != Wk.shape:
            raise CallError(f"Wq, Wk: two matrices of one shape, (D, d_k); got {tuple(Wq.shape)} and {tuple(Wk.shape)}")
        return cls(scale * Wq @ xp.matrix_transpose(Wk))

    # -- its parts ---------------------------------------------------------------------------------------------

    @cached_property
    def symmetric(self) -> Float[Array, "d d"]:
        """S = (M + Mᵀ) / 2."""
        return (self.matrix + self._xp.matrix_transpose(self.matrix)) / 2

    @cached_property
    def antisymmetric(self) -> Float[Array, "d d"]:
        """T = (M − Mᵀ) / 2."""
        return (self.matrix - self._xp.matrix_transpose(self.matrix)) / 2

    @cached_property
    def asymmetry(self) -> float:
        """‖T‖ / ‖M‖: 0 for a symmetric matrix, 1 for one that only tells directions apart; 0 where M = 0."""
        xp, parts = self._xp, (self.matrix, self.antisymmetric)
        size, apart = (float(xp.linalg.matrix_norm(xp.constant(part))) for part in parts)
        return apart / size if size else 0.0

    @cached_property
    def terms(self) -> tuple[Float[Array, "d r"], Array, Float[Array, "d r"]]:
        """U, σ, V with M = U diag(σ) Vᵀ: column r of U asks, column r of V answers."""
        u, sizes, v = self._xp.linalg.svd(self.matrix, full_matrices=False)
        return u, sizes, self._xp.matrix_transpose(v)

    @cached_property
    def rank(self) -> int:
        """How many terms M has beyond rounding: at most d_k."""
        sizes = self.terms[1]
        return int(self._xp.sum(self._xp.astype(sizes > self._rounding(sizes), self._xp.int32)))

    @cached_property
    def signature(self) -> Signature:
        """The signs of the eigenvalues of S: what stands between M and an inner product."""
        values = axes(self.symmetric).values
        tolerance = self._rounding(self._xp.abs(values))
        positive, negative = (
            int(self._xp.sum(self._xp.astype(side, self._xp.int32)))
            for side in (values > tolerance, values < -tolerance)
        )
        return Signature(positive, negative, int(values.shape[0]) - positive - negative)

    @property
    def is_inner_product(self) -> bool:
        """Whether M is symmetric and no squared length is negative or, but for 0, zero."""
        width = int(self.matrix.shape[0])
        rounded = 1e3 * width * float(self._xp.finfo(self.matrix.dtype).eps)
        return self.asymmetry <= rounded and self.signature.positive == width

    # -- what it says of vectors -------------------------------------------------------------------------------

    def __call__(self, x: Any, y: Any) -> Float[Array, ...]:
        """xᵀ M y, along the last axis."""
        xp, x, y, matrix = self._pair(x, y)
        return xp.sum((x @ matrix) * y, axis=-1)

    def scores(self, x: Any, y: Any = None) -> Float[Array, "... n m"]:
        """x_nᵀ M y_m for every row of x, which asks, and every row of y, which answers: X M Yᵀ."""
        xp, x, y, matrix = self._pair(*row_by_row(x, y)[1:])
        return x @ matrix @ xp.matrix_transpose(y)

    def contribution(self, x: Any, y: Any) -> Contribution:
        """What the pair x, y makes of the form: by direction, by entries, by ranks."""
        xp, x, y, matrix = self._pair(x, y)
        u, sizes, v = (xp.astype(part, matrix.dtype, copy=False) for part in self.terms)
        return Contribution(
            score=self(x, y),
            symmetric=BilinearForm(self.symmetric)(x, y),
            antisymmetric=BilinearForm(self.antisymmetric)(x, y),
            entries=x[..., :, None] * matrix * y[..., None, :],
            terms=sizes * (x @ u) * (y @ v),
        )

    def score(self, name: str = "M") -> Expression:
        """qᵀ M k as a score of the algebra, with the matrix as table `name`.

        >>> BilinearForm([[0.0, 1.0], [0.0, 0.0]]).score()
        dot(table("M"))
        """
        return dot(table(name))

    def tables(self, name: str = "M") -> dict[str, Any]:
        """What a call of that formula brings: the matrix."""
        return {name: self.matrix}

    # -- helpers -----------------------------------------------------------------------------------------------

    @property
    def _xp(self) -> Library:
        return library(self.matrix)

    def _rounding(self, sizes: Any) -> Any:
        """Values that are 0 come out as large as this."""
        return self._xp.max(sizes) * self.matrix.shape[0] * float(self._xp.finfo(sizes.dtype).eps)

    def _pair(self, x: Any, y: Any) -> tuple[Library, Any, Any, Any]:
        xp, x, y = pair(x, y)
        _, (x, y, matrix) = together(x=x, y=y, matrix=self.matrix)
        if x.shape[-1] != matrix.shape[0]:
            raise CallError(f"x, y: vectors of width {matrix.shape[0]}, as the matrix; got {tuple(x.shape)}")
        return xp, x, y, matrix
