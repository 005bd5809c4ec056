"""Modules of encoders and translators: every order of arguments, meaning of mask and shape of result."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

OPTIONS = {
    "BertSelfAttention": {
        "init": {
            "config": SimpleNamespace(hidden_size=12, num_attention_heads=3, attention_probs_dropout_prob=0.1),
        }
    },
}


class BertSelfAttention(nn.Module):
    """No projection afterwards; an additive attention_mask (batch, 1, 1, keys); a tuple comes back."""

    def __init__(self, config):
        super().__init__()
        self.num_attention_heads = config.num_attention_heads
        self.attention_head_size = config.hidden_size // config.num_attention_heads
        self.all_head_size = config.hidden_size
        self.query = nn.Linear(config.hidden_size, self.all_head_size)
        self.key = nn.Linear(config.hidden_size, self.all_head_size)
        self.value = nn.Linear(config.hidden_size, self.all_head_size)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def transpose_for_scores(self, x):
        return x.view(*x.size()[:-1], self.num_attention_heads, self.attention_head_size).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask=None, output_attentions=False):
        query = self.transpose_for_scores(self.query(hidden_states))
        key = self.transpose_for_scores(self.key(hidden_states))
        value = self.transpose_for_scores(self.value(hidden_states))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.attention_head_size)
        if attention_mask is not None:
            scores = scores + attention_mask
        probs = self.dropout(nn.Softmax(dim=-1)(scores))
        context = torch.matmul(probs, value).permute(0, 2, 1, 3).contiguous()
        context = context.view(*context.size()[:-2], self.all_head_size)
        return (context, probs) if output_attentions else (context,)


class TimeFirst(nn.Module):
    """(tokens, batch, width); key_padding_mask (batch, keys) True hides; the mean of the heads' weights comes back."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.scaling = self.head_dim**-0.5
        self.dropout = dropout
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(embed_dim, embed_dim, bias=bias) for _ in range(4)
        )

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        tgt, bsz, width = query.shape
        src = key.shape[0]
        folded = bsz * self.num_heads
        q = (self.q_proj(query) * self.scaling).contiguous().view(tgt, folded, self.head_dim).transpose(0, 1)
        k = self.k_proj(key).contiguous().view(src, folded, self.head_dim).transpose(0, 1)
        v = self.v_proj(value).contiguous().view(src, folded, self.head_dim).transpose(0, 1)
        scores = torch.bmm(q, k.transpose(1, 2))
        if attn_mask is not None:
            scores = scores + attn_mask
        if key_padding_mask is not None:
            hidden = key_padding_mask[:, None, None, :].bool()
            scores = scores.view(bsz, self.num_heads, tgt, src).masked_fill(hidden, float("-inf")).view(-1, tgt, src)
        weights = F.softmax(scores, dim=-1)
        out = torch.bmm(F.dropout(weights, p=self.dropout, training=self.training), v)
        out = self.out_proj(out.transpose(0, 1).contiguous().view(tgt, bsz, width))
        return out, weights.view(bsz, self.num_heads, tgt, src).mean(dim=1)


class ValuesFirst(nn.Module):
    """forward(values, keys, query, mask); letters; mask 0 hides."""

    def __init__(self, embed_size, heads):
        super().__init__()
        self.embed_size, self.heads, self.head_dim = embed_size, heads, embed_size // heads
        self.values = nn.Linear(embed_size, embed_size)
        self.keys = nn.Linear(embed_size, embed_size)
        self.queries = nn.Linear(embed_size, embed_size)
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, values, keys, query, mask=None):
        N, query_len = query.shape[:2]
        values = self.values(values).reshape(N, -1, self.heads, self.head_dim)
        keys = self.keys(keys).reshape(N, -1, self.heads, self.head_dim)
        queries = self.queries(query).reshape(N, query_len, self.heads, self.head_dim)
        energy = torch.einsum("nqhd,nkhd->nhqk", [queries, keys])
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        attention = torch.softmax(energy / self.head_dim**0.5, dim=3)
        out = torch.einsum("nhql,nlhd->nqhd", [attention, values]).reshape(N, query_len, self.embed_size)
        return self.fc_out(out)


class SharedByHeads(nn.Module):
    """The input is cut into heads first, and all heads share one small projection."""

    def __init__(self, embed_size, heads):
        super().__init__()
        self.embed_size, self.heads, self.head_dim = embed_size, heads, embed_size // heads
        self.values = nn.Linear(self.head_dim, self.head_dim, bias=False)
        self.keys = nn.Linear(self.head_dim, self.head_dim, bias=False)
        self.queries = nn.Linear(self.head_dim, self.head_dim, bias=False)
        self.fc_out = nn.Linear(heads * self.head_dim, embed_size)

    def forward(self, values, keys, query, mask):
        N = query.shape[0]
        values, keys, queries = (t.reshape(N, -1, self.heads, self.head_dim) for t in (values, keys, query))
        values, keys, queries = self.values(values), self.keys(keys), self.queries(queries)
        energy = torch.einsum("nqhd,nkhd->nhqk", queries, keys) / math.sqrt(self.head_dim)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -1e20)
        out = torch.einsum("nhqk,nkhd->nqhd", torch.softmax(energy, dim=-1), values)
        return self.fc_out(out.reshape(N, -1, self.heads * self.head_dim))


class MultiHeadAttentionLayer(nn.Module):
    """fc_q, fc_k, fc_v, fc_o; a device in the constructor; scale as a tensor; output and weights."""

    def __init__(self, hid_dim, n_heads, dropout=0.1, device="cpu"):
        super().__init__()
        self.hid_dim, self.n_heads, self.head_dim = hid_dim, n_heads, hid_dim // n_heads
        self.fc_q, self.fc_k = nn.Linear(hid_dim, hid_dim), nn.Linear(hid_dim, hid_dim)
        self.fc_v, self.fc_o = nn.Linear(hid_dim, hid_dim), nn.Linear(hid_dim, hid_dim)
        self.dropout = nn.Dropout(dropout)
        self.scale = torch.sqrt(torch.FloatTensor([self.head_dim])).to(device)

    def forward(self, query, key, value, mask=None):
        b = query.shape[0]
        Q = self.fc_q(query).view(b, -1, self.n_heads, self.head_dim).permute(0, 2, 1, 3)
        K = self.fc_k(key).view(b, -1, self.n_heads, self.head_dim).permute(0, 2, 1, 3)
        V = self.fc_v(value).view(b, -1, self.n_heads, self.head_dim).permute(0, 2, 1, 3)
        energy = torch.matmul(Q, K.permute(0, 1, 3, 2)) / self.scale
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -1e10)
        attention = torch.softmax(energy, dim=-1)
        x = torch.matmul(self.dropout(attention), V).permute(0, 2, 1, 3).contiguous()
        return self.fc_o(x.view(b, -1, self.hid_dim)), attention


class HeadsInParameters(nn.Module):
    """W_Q, W_K, W_V (heads, width, depth) and W_O (heads, depth, width) with biases; causal."""

    def __init__(self, n_heads, d_model, d_head):
        super().__init__()
        draw = 1 / math.sqrt(d_model)
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.randn(n_heads, d_model, d_head) * draw) for _ in range(3))
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model) * draw)
        self.b_Q, self.b_K, self.b_V = (nn.Parameter(torch.zeros(n_heads, d_head)) for _ in range(3))
        self.b_O = nn.Parameter(torch.zeros(d_model))
        self.d_head = d_head
        self.register_buffer("IGNORE", torch.tensor(-torch.inf))

    def forward(self, x):
        q = torch.einsum("bpd,hdk->bphk", x, self.W_Q) + self.b_Q
        k = torch.einsum("bpd,hdk->bphk", x, self.W_K) + self.b_K
        v = torch.einsum("bpd,hdk->bphk", x, self.W_V) + self.b_V
        scores = torch.einsum("bqhk,bphk->bhqp", q, k) / self.d_head**0.5
        later = torch.triu(torch.ones(scores.shape[-2:], device=x.device), diagonal=1).bool()
        pattern = scores.masked_fill(later, self.IGNORE).softmax(-1)
        z = torch.einsum("bhqp,bphk->bqhk", pattern, v)
        return torch.einsum("bqhk,hkd->bqd", z, self.W_O) + self.b_O


class ByName(nn.Module):
    """A dictionary comes back; padding_mask (batch, keys), True where a token is real."""

    def __init__(self, d_model, nhead):
        super().__init__()
        self.nhead = nhead
        self.in_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, padding_mask=None):
        q, k, v = (t.unflatten(-1, (self.nhead, -1)).transpose(1, 2) for t in self.in_proj(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if padding_mask is not None:
            scores = scores.masked_fill(~padding_mask[:, None, None, :], torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        return {"output": self.out_proj((weights @ v).transpose(1, 2).flatten(2)), "weights": weights}
