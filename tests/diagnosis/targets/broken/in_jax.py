import jax
import jax.numpy as jnp


def attention(q, k, v):
    weights = jax.nn.softmax(q @ k.T, axis=-1)
    return weights @ v


def multi_head(q, k, v):
    logits = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(logits, axis=-2), v)


def scaled_attention(q, k, v):
    scale = q.shape[-1] ** 0.5
    return jax.nn.softmax((q @ k.T) * scale) @ v


def causal_attention(q, k, v):
    n = q.shape[1]
    mask = jnp.tril(jnp.ones((n, n), dtype=bool), k=1)
    logits = jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(k.shape[-1])
    return jax.nn.softmax(jnp.where(mask, logits, -jnp.inf), axis=-1) @ v


def masked_attention(q, k, v, mask):
    logits = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    logits = jnp.where(mask, -1e9, logits)
    return jax.nn.softmax(logits, axis=-1) @ v


def self_attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wk
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / jnp.sqrt(q.shape[-1])) @ v


def grouped_attention(q, k, v):
    """q: (batch, heads, n, d); k, v: (batch, kv_heads, n, d)."""
    g = q.shape[1] // k.shape[1]
    k, v = jnp.tile(k, (1, g, 1, 1)), jnp.tile(v, (1, g, 1, 1))
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / jnp.sqrt(q.shape[-1])) @ v


def mha(x, Wq, Wk, Wv, Wo, num_heads):
    n, d = x.shape
    q, k, v = (jnp.swapaxes((x @ w).reshape(n, num_heads, -1), 0, 1) for w in (Wq, Wk, Wv))
    out = jax.nn.softmax(q @ k.swapaxes(1, 2) / jnp.sqrt(d // num_heads)) @ v
    return out.reshape(n, d) @ Wo


def attention_v2(q, k, v):
    logits = jnp.matmul(q, k.transpose(0, 2, 1)) / jnp.sqrt(q.shape[-1])
    e = jnp.exp(logits)
    return (e / e.sum(-1, keepdims=True)) @ v


def attend(q, k, v):
    logits = q @ k.swapaxes(1, 2) / jnp.sqrt(q.shape[-1])
    return jax.lax.stop_gradient(jax.nn.softmax(logits)) @ v


def causal_decoder(q, k, v):
    n = q.shape[1]
    logits = q @ k.swapaxes(1, 2) / jnp.sqrt(q.shape[-1])
    return (jax.nn.softmax(logits) * jnp.tri(n)) @ v


BUGS: dict[str, list[str]] = {
    "attention": ["no root of d"],
    "multi_head": ["softmax over queries"],
    "scaled_attention": ["times the root of d"],
    "causal_attention": ["shifted mask"],
    "masked_attention": ["inverted mask"],
    "self_attention": ["values from the keys"],
    "grouped_attention": ["groups repeated in the wrong order"],
    "mha": ["heads merged without transpose"],
    "attention_v2": ["no maximum subtracted"],
    "attend": ["gradient cut"],
    "causal_decoder": ["mask after the weights"],
}
OPTIONS: dict[str, dict] = {}
