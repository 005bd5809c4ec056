"""Other formulas in JAX."""

import jax
import jax.numpy as jnp

FORMULAS = {
    "sigmoid_attention": "sigmoid",
    "soft_capped": "soft_cap",
    "cosine": "cosine_similarity",
    "squared_relu": "squared_relu",
}


def _scores(q, k):
    return jnp.einsum("...id,...jd->...ij", q, k) / jnp.sqrt(q.shape[-1])


def sigmoid_attention(q, k, v):
    """Sigmoids with −log n."""
    return jax.nn.sigmoid(_scores(q, k) - jnp.log(k.shape[-2])) @ v


def soft_capped(q, k, v, cap=30.0):
    """Scores within ±cap."""
    return jax.nn.softmax(cap * jnp.tanh(_scores(q, k) / cap), axis=-1) @ v


def cosine(q, k, v, temperature=10.0):
    """Unit vectors, scores times the temperature."""
    q, k = (x / jnp.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    return jax.nn.softmax(temperature * q @ jnp.swapaxes(k, -1, -2), axis=-1) @ v


def squared_relu(q, k, v):
    """relu squared, shared out; a row of zeros reads nothing."""
    squares = jnp.square(jax.nn.relu(_scores(q, k)))
    total = squares.sum(axis=-1, keepdims=True)
    return squares / jnp.where(total > 0, total, 1.0) @ v
