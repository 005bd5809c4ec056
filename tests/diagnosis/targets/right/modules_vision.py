"""Modules of vision, speech and diffusion models: fused projections, norms inside, contexts, shared keys."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """qkv as (3, batch, heads, tokens, depth); norms of q and k that are the identity until asked for."""

    def __init__(self, dim, num_heads=8, qkv_bias=False, qk_norm=False, attn_drop=0.0, proj_drop=0.0):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.q_norm = nn.LayerNorm(self.head_dim) if qk_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(self.head_dim) if qk_norm else nn.Identity()
        self.attn_drop, self.proj, self.proj_drop = nn.Dropout(attn_drop), nn.Linear(dim, dim), nn.Dropout(proj_drop)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = self.q_norm(q) * self.scale, self.k_norm(k)
        attn = self.attn_drop((q @ k.transpose(-2, -1)).softmax(dim=-1))
        return self.proj_drop(self.proj((attn @ v).transpose(1, 2).reshape(B, N, C)))


class NormInside(nn.Module):
    """A layer norm first; inner width heads × dim_head; the way out is a Sequential."""

    def __init__(self, dim, heads=8, dim_head=64, dropout=0.0):
        super().__init__()
        inner = dim_head * heads
        self.heads, self.scale = heads, dim_head**-0.5
        self.norm = nn.LayerNorm(dim)
        self.attend, self.dropout = nn.Softmax(dim=-1), nn.Dropout(dropout)
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.to_qkv(self.norm(x)).chunk(3, -1))
        attn = self.dropout(self.attend(torch.matmul(q, k.transpose(-1, -2)) * self.scale))
        return self.to_out(torch.matmul(attn, v).transpose(1, 2).flatten(2))


class FusedKeysValues(nn.Module):
    """to_q and to_kv; without a context the input itself; mask (batch, keys), True admits."""

    def __init__(self, dim, context_dim=None, heads=4, dim_head=8):
        super().__init__()
        inner = heads * dim_head
        self.scale, self.heads = dim_head**-0.5, heads
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(context_dim or dim, inner * 2, bias=False)
        self.to_out = nn.Linear(inner, dim)

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        q, (k, v) = self.to_q(x), self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (t.reshape(*t.shape[:2], self.heads, -1).transpose(1, 2) for t in (q, k, v))
        sim = torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        if mask is not None:
            sim = sim.masked_fill(~mask[:, None, None, :], -torch.finfo(sim.dtype).max)
        out = torch.einsum("b h i j, b h j d -> b h i d", sim.softmax(dim=-1), v)
        return self.to_out(out.transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    """Three projections without bias, heads folded into the batch, dropout after the way out."""

    def __init__(self, query_dim, context_dim=None, heads=8, dim_head=64, dropout=0.0):
        super().__init__()
        inner, context_dim = dim_head * heads, context_dim or query_dim
        self.scale, self.heads = dim_head**-0.5, heads
        self.to_q = nn.Linear(query_dim, inner, bias=False)
        self.to_k = nn.Linear(context_dim, inner, bias=False)
        self.to_v = nn.Linear(context_dim, inner, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, query_dim), nn.Dropout(dropout))

    def _fold(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.heads, -1).transpose(1, 2).reshape(b * self.heads, n, -1)

    def forward(self, x, context=None):
        context = x if context is None else context
        q, k, v = map(self._fold, (self.to_q(x), self.to_k(context), self.to_v(context)))
        attn = torch.einsum("bid,bjd->bij", q, k).mul(self.scale).softmax(dim=-1)
        out = torch.einsum("bij,bjd->bid", attn, v).view(x.shape[0], self.heads, x.shape[1], -1)
        return self.to_out(out.transpose(1, 2).reshape(*x.shape[:2], -1))


class Decoder(nn.Module):
    """Cross attention on (x, memory), PyTorch's kernel."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, memory):
        q = self.q_proj(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(memory).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(memory).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        return self.out_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class UnifyHeads(nn.Module):
    """tokeys, toqueries, tovalues, unifyheads; q and k are each divided by d to the quarter."""

    def __init__(self, emb, heads=8, mask=False):
        super().__init__()
        self.emb, self.heads, self.mask = emb, heads, mask
        self.tokeys = nn.Linear(emb, emb, bias=False)
        self.toqueries = nn.Linear(emb, emb, bias=False)
        self.tovalues = nn.Linear(emb, emb, bias=False)
        self.unifyheads = nn.Linear(emb, emb)

    def forward(self, x):
        b, t, e = x.size()
        h, s = self.heads, e // self.heads
        keys, queries, values = (
            f(x).view(b, t, h, s).transpose(1, 2).contiguous().view(b * h, t, s)
            for f in (self.tokeys, self.toqueries, self.tovalues)
        )
        dot = torch.bmm(queries / s**0.25, (keys / s**0.25).transpose(1, 2))
        if self.mask:
            rows, columns = torch.triu_indices(t, t, offset=1)
            dot[..., rows, columns] = float("-inf")
        out = torch.bmm(F.softmax(dot, dim=2), values).view(b, h, t, s)
        return self.unifyheads(out.transpose(1, 2).contiguous().view(b, t, s * h))


class Speech(nn.Module):
    """Keys without bias; forward(x, xa): xa is what is read; additive mask."""

    def __init__(self, n_state, n_head):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state, bias=False)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)

    def forward(self, x, xa=None, mask=None):
        source = x if xa is None else xa
        q, k, v = self.query(x), self.key(source), self.value(source)
        scale = (q.shape[-1] // self.n_head) ** -0.25
        q = q.view(*q.shape[:2], self.n_head, -1).permute(0, 2, 1, 3) * scale
        k = k.view(*k.shape[:2], self.n_head, -1).permute(0, 2, 3, 1) * scale
        v = v.view(*v.shape[:2], self.n_head, -1).permute(0, 2, 1, 3)
        qk = q @ k
        if mask is not None:
            qk = qk + mask[: x.shape[1], : source.shape[1]]
        w = F.softmax(qk.float(), dim=-1).to(q.dtype)
        return self.out((w @ v).permute(0, 2, 1, 3).flatten(start_dim=2))


class MultiQuery(nn.Module):
    """Many heads of queries, one of keys and values."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.wq = nn.Linear(d_model, d_model)
        self.wkv = nn.Linear(d_model, 2 * self.d_head)
        self.wo = nn.Linear(d_model, d_model)

    def forward(self, x):
        q = self.wq(x).unflatten(-1, (self.n_heads, self.d_head))
        k, v = self.wkv(x).split(self.d_head, dim=-1)
        weights = torch.einsum("bnhd,bmd->bhnm", q, k).div(self.d_head**0.5).softmax(dim=-1)
        return self.wo(torch.einsum("bhnm,bmd->bnhd", weights, v).flatten(2))
