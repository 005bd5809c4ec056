"""m, Z and y for what was read so far; each block rescales them. All queries at once, a block of keys at a time."""

import torch


def attend(q, k, v, block):
    root = q.shape[-1] ** 0.5
    m = q.new_full((len(q), 1), float("-inf"))
    Z = q.new_zeros(len(q), 1)
    y = q.new_zeros(len(q), v.shape[-1])
    for keys, values in zip(k.split(block), v.split(block), strict=True):
        scores = q @ keys.T / root  # n × block, and no more

        new = torch.maximum(m, scores.amax(dim=-1, keepdim=True))
        factor = torch.exp(m - new)  # exp(-inf) = 0 before the first block
        weights = torch.exp(scores - new)

        Z = factor * Z + weights.sum(dim=-1, keepdim=True)
        y = factor * y + weights @ values
        m = new
    return y / Z
