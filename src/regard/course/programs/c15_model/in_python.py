"""exp(H_i), H_i = −Σ_j w_ij log w_ij: one token that takes all gives 1, n tokens that are read alike give n."""

from math import exp, log


def reach(weights):
    found = []
    for row in weights:
        entropy = -sum(w * log(w) for w in row if w > 0)  # 0 log 0 is 0
        found.append(exp(entropy))
    return found
