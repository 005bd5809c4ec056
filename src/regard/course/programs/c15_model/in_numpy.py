"""exp(H_i), H_i = −Σ_j w_ij log w_ij: one token that takes all gives 1, n tokens that are read alike give n."""

import numpy as np


def reach(weights):
    logs = np.log(np.where(weights > 0, weights, 1))  # 0 log 0 is 0
    entropy = -(weights * logs).sum(axis=-1)
    return np.exp(entropy)
