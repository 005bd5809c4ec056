"""y_i = Σ_jk w_ijk (v_j ∘ u_k), w_ijk = softmax over all pairs (j, k) of Σ_c q_ic a_jc b_kc."""

import torch


def attend(q, a, b, v, u):
    # N × N × N scores: for each i, one for every pair (j, k)
    scores = torch.einsum("ic,jc,kc->ijk", q, a, b)

    # softmax over the pairs, laid out in one row
    weights = scores.flatten(1).softmax(dim=1).view_as(scores)

    # a pair says the product of what its two say
    return torch.einsum("ijk,jc,kc->ic", weights, v, u)
