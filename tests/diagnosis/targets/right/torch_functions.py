"""Functions of q, k and v in PyTorch: one formula, its scale, softmax and result spelled in the ways tutorials do."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor


def attention(query, key, value, mask=None, dropout=None):
    """The line-by-line teaching form: mask 0 hides, a dropout layer may be handed in, weights come back too."""
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = torch.softmax(scores, dim=-1)
    if dropout is not None:
        weights = dropout(weights)
    return torch.matmul(weights, value), weights


def scaled_dot_product(q, k, v):
    """The shortest form."""
    return F.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def by_einsum(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """Axes by letters: batch, head, query, key, depth."""
    energy = torch.einsum("bhqd,bhkd->bhqk", Q, K)
    attention = F.softmax(energy * Q.shape[-1] ** -0.5, dim=3)
    return torch.einsum("bhqk,bhkd->bhqd", attention, V)


def by_bmm(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Three axes and batched products."""
    width = queries.size(2)
    scores = torch.bmm(queries, keys.permute(0, 2, 1)).div(math.sqrt(width))
    return torch.bmm(scores.softmax(dim=2), values)


def by_baddbmm(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scale inside the product; heads are folded into the batch."""
    shape = q.shape[:-1] + v.shape[-1:]
    q, k, v = (t.flatten(0, -3) for t in (q, k, v))
    empty = q.new_zeros(1, 1, 1)
    scores = torch.baddbmm(empty, q, k.transpose(1, 2), beta=0, alpha=1 / math.sqrt(q.shape[-1]))
    return torch.bmm(scores.softmax(-1), v).reshape(shape)


def one_sentence(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Two axes only: rows are tokens."""
    scores = q @ k.T
    weights = torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1)
    context = weights @ v
    return context, weights


def scale_first(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None) -> Tensor:
    """The query is scaled before the product."""
    q = q * (q.shape[-1] ** -0.5 if scale is None else scale)
    return (q @ k.transpose(-1, -2)).softmax(-1) @ v


def scale_both(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each side carries d to the quarter, so that half precision holds the product."""
    quarter = q.shape[-1] ** -0.25
    return ((q * quarter) @ (k * quarter).transpose(-1, -2)).softmax(dim=-1) @ v


def softmax_by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """exp of the distance to the row's maximum, over its total."""
    scores = torch.matmul(q, k.transpose(-2, -1)) / torch.sqrt(torch.tensor(q.shape[-1], dtype=q.dtype))
    top, _ = scores.max(dim=-1, keepdim=True)
    exponents = torch.exp(scores - top)
    return torch.matmul(exponents / exponents.sum(dim=-1, keepdim=True), v)


def divided_at_the_end(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Mix with unnormalised weights, then divide each row once."""
    scores = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.size(-1))
    unnormalised = (scores - scores.amax(-1, keepdim=True)).exp()
    return unnormalised @ v / unnormalised.sum(-1, keepdim=True)


def through_logarithms(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Weights as exp(score − logsumexp)."""
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(k.size(-1)))
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True)) @ v


def through_log_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """log_softmax, and then its exponential."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
    return F.log_softmax(scores, dim=-1).exp().matmul(v)


def wide_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax in at least float32, the result in the inputs' dtype."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    wide = torch.promote_types(q.dtype, torch.float32)
    return F.softmax(scores, dim=-1, dtype=wide).to(q.dtype) @ v


def tokens_before_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(batch, tokens, heads, depth) in and out."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    out = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), dim=-1) @ v
    return out.transpose(1, 2).contiguous()


def fused_kernel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """PyTorch's own."""
    return F.scaled_dot_product_attention(q, k, v)


def fused_kernel_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """PyTorch's own, causal."""
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.0, is_causal=True)


def row_by_row(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One query at a time, for a single sentence."""
    rows = []
    for query in q:
        weights = torch.softmax(torch.stack([torch.dot(query, key) for key in k]) / k.shape[1] ** 0.5, dim=0)
        rows.append(sum(w * value for w, value in zip(weights, v, strict=True)))
    return torch.stack(rows)


def head_by_head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A loop over heads, stacked again."""
    heads = [
        torch.softmax(q[:, h] @ k[:, h].transpose(1, 2) / math.sqrt(q.shape[-1]), dim=-1) @ v[:, h]
        for h in range(q.shape[1])
    ]
    return torch.stack(heads, dim=1)


def mapped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One head's function under two vmaps."""

    def single(q, k, v):
        return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, dim=-1) @ v

    return torch.vmap(torch.vmap(single))(q, k, v)


def answer_as_dict(query: Tensor, key: Tensor, value: Tensor) -> dict[str, Tensor]:
    """The result by name."""
    weights = (query @ key.transpose(-1, -2) / math.sqrt(query.size(-1))).softmax(-1)
    return {"output": weights @ value, "attention_weights": weights}


def values_first(values: Tensor, keys: Tensor, query: Tensor) -> Tensor:
    """The arguments in the other order, as some videos have them."""
    energy = torch.einsum("nhqd,nhkd->nhqk", [query, keys])
    return torch.einsum("nhql,nhld->nhqd", [torch.softmax(energy / keys.shape[-1] ** 0.5, dim=3), values])


def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Tensor:
    """Projections handed over: x W."""
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return F.softmax(q @ k.transpose(-2, -1) / math.sqrt(w_k.shape[-1]), dim=-1) @ v


def functional_multihead(x: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor, Wo: Tensor, num_heads: int = 2) -> Tensor:
    """Weights as nn.Linear stores them (out, in), several heads, output projection."""
    b, n, _ = x.shape
    q, k, v = (F.linear(x, W).view(b, n, num_heads, -1).transpose(1, 2) for W in (Wq, Wk, Wv))
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
    return F.linear((weights @ v).transpose(1, 2).reshape(b, n, -1), Wo)


def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Fewer heads of keys and values than of queries: neighbours share one."""
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v


def _either(q, k, v, *, causal):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ v


both_ways = partial(_either, causal=False)
only_back = partial(_either, causal=True)
