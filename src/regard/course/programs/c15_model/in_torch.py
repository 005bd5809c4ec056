"""exp(H_i), H_i = −Σ_j w_ij log w_ij: one token that takes all gives 1, n tokens that are read alike give n."""

import torch


def reach(weights):
    entropy = -torch.special.xlogy(weights, weights).sum(dim=-1)  # 0 log 0 is 0
    return torch.exp(entropy)
