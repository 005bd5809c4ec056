"""Search: the exact k nearest of many vectors, block by block.

    measures   what "near" means: dot, cosine, Euclidean, Mahalanobis, a bilinear form, any score of the algebra
    pairs      two vectors compared, always in the same order of rounding
    corpus     the vectors, read in blocks, from memory or from a disk
    best       the k best so far

A block is compared in two steps. A matrix product in the corpus's own precision proposes; it comes with a bound on its
rounding. What could still be among the k best is compared again in float64, from the vectors themselves, and that alone
decides. So the result is exact, at the price of the product; and memory is that of a block.
"""

from __future__ import annotations

from .searching import Found, search

__all__ = ["Found", "search"]
