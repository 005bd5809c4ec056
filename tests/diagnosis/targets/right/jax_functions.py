"""Functions in JAX: letters, vmaps, scans and jit."""

from functools import partial

import jax
import jax.numpy as jnp


def dot_product_attention(query, key, value, bias=None, mask=None):
    """(batch, tokens, heads, depth); True admits, hidden scores are the dtype's least; a bias is added."""
    query = query / jnp.sqrt(query.shape[-1]).astype(query.dtype)
    scores = jnp.einsum("...qhd,...khd->...hqk", query, key)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    weights = jax.nn.softmax(scores)
    return jnp.einsum("...hqk,...khd->...qhd", weights, value)


def attention(q, k, v, mask=None):
    """(…, tokens, depth); mask 0 hides."""
    logits = jnp.matmul(q, jnp.swapaxes(k, -2, -1)) / q.shape[-1] ** 0.5
    if mask is not None:
        logits = jnp.where(mask == 0, -9e15, logits)
    weights = jax.nn.softmax(logits, axis=-1)
    return jnp.matmul(weights, v), weights


def _single(q, k, v):
    return jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1]), axis=-1) @ v


def mapped_over_heads(q, k, v):
    """One head's function, mapped over heads and batch."""
    return jax.vmap(jax.vmap(_single))(q, k, v)


@jax.jit
def compiled(q, k, v):
    """Decorated with jit; softmax by hand."""
    scores = q @ jnp.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5)
    e = jnp.exp(scores - jax.lax.stop_gradient(scores.max(axis=-1, keepdims=True)))
    return (e / e.sum(axis=-1, keepdims=True)) @ v


@partial(jax.jit, static_argnames=("causal",))
def compiled_with_flag(q, k, v, causal=False):
    """A static flag; the triangle is cut from the corner below right."""
    scores = jnp.einsum("bhid,bhjd->bhij", q, k) / jnp.sqrt(q.shape[-1])
    if causal:
        n, m = scores.shape[-2:]
        scores = jnp.where(jnp.tril(jnp.ones((n, m), dtype=bool), m - n), scores, -jnp.inf)
    return jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(scores, axis=-1), v)


def causal(q, k, v):
    """Compared positions."""
    n = q.shape[-2]
    scores = q @ jnp.swapaxes(k, -1, -2) / jnp.sqrt(q.shape[-1])
    seen = jnp.arange(n)[:, None] >= jnp.arange(n)[None, :]
    return jax.nn.softmax(jnp.where(seen, scores, -1e30), axis=-1) @ v


def scanned(q, k, v):
    """One key at a time through lax.scan, for one sentence."""

    def step(state, pair):
        top, total, mixed = state
        key, value = pair
        score = q @ key / jnp.sqrt(q.shape[-1])
        higher = jnp.maximum(top, score)
        shrink, grown = jnp.exp(top - higher), jnp.exp(score - higher)
        return (higher, total * shrink + grown, mixed * shrink[:, None] + grown[:, None] * value), None

    n = q.shape[0]
    start = jnp.full(n, -jnp.inf, q.dtype), jnp.zeros(n, q.dtype), jnp.zeros((n, v.shape[-1]), v.dtype)
    (_, total, mixed), _ = jax.lax.scan(step, start, (k, v))
    return mixed / total[:, None]


def library_call(query, key, value, is_causal=False):
    """JAX's own: (batch, tokens, heads, depth)."""
    return jax.nn.dot_product_attention(query, key, value, is_causal=is_causal)


def grouped(q, k, v):
    """(batch, tokens, heads, depth); heads of queries in groups, one group for each head of keys."""
    b, n, heads, d = q.shape
    q = q.reshape(b, n, k.shape[2], -1, d)
    weights = jax.nn.softmax(jnp.einsum("bqkgd,bskd->bkgqs", q, k) / jnp.sqrt(d), axis=-1)
    return jnp.einsum("bkgqs,bskd->bqkgd", weights, v).reshape(b, n, heads, -1)


def self_attention(x, Wq, Wk, Wv, Wo):
    """Projections handed over, one head."""
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    return _single(q, k, v) @ Wo
