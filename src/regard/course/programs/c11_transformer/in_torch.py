"""A block with one head, of PyTorch's own parts."""

from torch.nn.functional import layer_norm, relu
from torch.nn.functional import scaled_dot_product_attention as attend


def block(x, wq, wk, wv, w1, w2):
    """Rows in, rows out."""
    z = norm(x)
    x = x + attend(z @ wq, z @ wk, z @ wv)
    return x + relu(norm(x) @ w1) @ w2


def norm(x):
    """Mean 0 and spread 1, row by row."""
    return layer_norm(x, x.shape[-1:], eps=0)
