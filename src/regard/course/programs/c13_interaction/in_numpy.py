"""y_i = Σ_jk w_ijk (v_j ∘ u_k), w_ijk = softmax over all pairs (j, k) of Σ_c q_ic a_jc b_kc."""

import numpy as np


def attend(q, a, b, v, u):
    # N × N × N scores: for each i, one for every pair (j, k)
    scores = np.einsum("ic,jc,kc->ijk", q, a, b)
    scores = scores - scores.max(axis=(1, 2), keepdims=True)

    # one unit of attention for all pairs together
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=(1, 2), keepdims=True)

    # a pair says the product of what its two say
    return np.einsum("ijk,jc,kc->ic", weights, v, u)
