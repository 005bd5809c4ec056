"""NumPy functions of the input and the projections, and NumPy classes that hold them."""

import numpy as np


def _softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def _heads(x, num_heads):
    b, n, d = x.shape
    return x.reshape(b, n, num_heads, d // num_heads).transpose(0, 2, 1, 3)


def self_attention(X, W_q, W_k, W_v):
    """One sentence, one head."""
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    weights = _softmax(Q @ K.T / np.sqrt(K.shape[1]))
    return weights @ V, weights


def with_output(x, Wq, Wk, Wv, Wo):
    """A batch, one head, an output projection."""
    q, k, v = (np.tensordot(x, W, axes=1) for W in (Wq, Wk, Wv))
    return _softmax(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])) @ v @ Wo


def keys_first(x, Wk, Wq, Wv):
    """Columns are tokens, weights multiply from the left, and the keys' matrix comes first."""
    q, k, v = Wq @ x, Wk @ x, Wv @ x
    scores = q.T @ k / np.sqrt(k.shape[0])
    return (_softmax(scores) @ v.T).T


def multi_head_attention(Q, K, V, W_q, W_k, W_v, W_o, num_heads):
    """Inputs for queries, keys and values apart."""
    b, n, _ = Q.shape
    q, k, v = _heads(Q @ W_q, num_heads), _heads(K @ W_k, num_heads), _heads(V @ W_v, num_heads)
    context = _softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])) @ v
    return context.transpose(0, 2, 1, 3).reshape(b, n, -1) @ W_o


def heads_as_axes(x, wq, wk, wv, wo):
    """Projections with an axis of heads: (heads, width, depth), the last one (heads, depth, width)."""
    q, k, v = (np.einsum("nd,hdk->hnk", x, w) for w in (wq, wk, wv))
    weights = _softmax(np.einsum("hik,hjk->hij", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("hij,hjk,hkd->id", weights, v, wo)


def fused_causal(x, w_qkv, w_out, n_head=2):
    """One matrix for queries, keys and values side by side; causal; a list of heads stacked at the end."""
    qkv = np.split(x @ w_qkv, 3, axis=-1)
    q_heads, k_heads, v_heads = (np.split(part, n_head, axis=-1) for part in qkv)
    hidden = (1 - np.tri(x.shape[0])) * -1e10
    outputs = [
        _softmax(q @ k.T / np.sqrt(q.shape[-1]) + hidden) @ v for q, k, v in zip(q_heads, k_heads, v_heads, strict=True)
    ]
    return np.hstack(outputs) @ w_out


class SelfAttention:
    """One head; projections drawn at the start; forward(x)."""

    def __init__(self, d_model, d_k=None, seed=0):
        d_k = d_k or d_model
        rng = np.random.default_rng(seed)
        self.W_Q, self.W_K, self.W_V = (rng.normal(0, d_model**-0.5, (d_model, d_k)) for _ in range(3))

    def forward(self, x):
        q, k, v = x @ self.W_Q, x @ self.W_K, x @ self.W_V
        return _softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])) @ v


class MultiHeadAttention:
    """Several heads; called like a function; mask True admits."""

    def __init__(self, d_model, num_heads):
        rng = np.random.default_rng(1)
        self.num_heads = num_heads
        self.wq, self.wk, self.wv, self.wo = rng.standard_normal((4, d_model, d_model)) / np.sqrt(d_model)

    def __call__(self, x, mask=None):
        q, k, v = (_heads(x @ w, self.num_heads) for w in (self.wq, self.wk, self.wv))
        scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, -1e9)
        out = (_softmax(scores) @ v).transpose(0, 2, 1, 3)
        return out.reshape(x.shape) @ self.wo
