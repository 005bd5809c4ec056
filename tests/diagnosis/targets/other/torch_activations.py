"""Weights that are no softmax, in PyTorch: each pair for itself, or shares of something else than exp."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FORMULAS = {
    "sigmoid_attention": "sigmoid",
    "sigmoid_without_bias": "sigmoid",
    "SigmoidAttention": "sigmoid",
    "relu_attention": "relu_over_n",
    "relu_before_product": "relu_over_n",
    "squared_relu_shared": "squared_relu",
    "softmax_one": "softmax_plus_one",
    "softmax_with_zero_column": "softmax_plus_one",
    "with_sinks": "learned_sinks",
    "SinkAttention": "learned_sinks",
}


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def sigmoid_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each weight a sigmoid, its bias −log of the number of keys."""
    return torch.sigmoid(_scores(q, k) - math.log(k.shape[-2])) @ v


def sigmoid_without_bias(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Each weight a sigmoid of the score alone."""
    weights = _scores(q, k).sigmoid()
    return weights @ v, weights


class SigmoidAttention(nn.Module):
    """Several heads with sigmoids, −log n."""

    def __init__(self, dim, num_heads=8):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        weights = torch.sigmoid(_scores(q, k) - math.log(x.shape[1]))
        return self.proj((weights @ v).transpose(1, 2).flatten(2))


def relu_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """relu over the number of keys."""
    return F.relu(_scores(q, k)) / k.shape[-2] @ v


def relu_before_product(query, key, value):
    """The same, with the division done at the end and by einsum."""
    kept = torch.einsum("bhid,bhjd->bhij", query, key).mul(query.size(-1) ** -0.5).clamp(min=0)
    return torch.einsum("bhij,bhjd->bhid", kept, value) / key.size(-2)


def squared_relu_shared(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """relu squared, each row shared out; a row of zeros reads nothing."""
    squares = F.relu(_scores(q, k)).square()
    return squares / squares.sum(-1, keepdim=True).clamp_min(torch.finfo(q.dtype).tiny) @ v


def softmax_one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One is added to the total: exp(0), held against the same maximum."""
    scores = _scores(q, k)
    top = scores.amax(-1, keepdim=True).clamp_min(0)
    e = torch.exp(scores - top)
    return e / (e.sum(-1, keepdim=True) + torch.exp(-top)) @ v


def softmax_with_zero_column(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The same through a further key whose score is 0 and which is thrown away."""
    padded = F.pad(_scores(q, k), (0, 1), value=0.0)
    weights = padded.softmax(dim=-1)[..., :-1]
    return weights @ v, weights


def with_sinks(q: Tensor, k: Tensor, v: Tensor, sinks: Tensor) -> Tensor:
    """A score for each head that takes weight and gives nothing; causal; sinks: (heads)."""
    scores = _scores(q, k)
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1 + k.shape[-2] - q.shape[-2])
    scores = scores.masked_fill(later, -torch.inf)
    column = sinks.view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
    return torch.cat((scores, column), dim=-1).softmax(-1)[..., :-1] @ v


class SinkAttention(nn.Module):
    """The same as a module: the sinks are learned."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.sinks = nn.Parameter(torch.linspace(-1.0, 1.0, n_heads))
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        layers = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for layer in layers)
        return self.o_proj(with_sinks(q, k, v, self.sinks).transpose(1, 2).flatten(2))
