"""Functions of q, k and v in NumPy, as articles and exercises write them."""

import numpy as np
from scipy.special import logsumexp
from scipy.special import softmax as scipy_softmax


def _softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def attention(Q, K, V):
    """Two axes, three lines."""
    scores = Q @ K.T / np.sqrt(K.shape[1])
    weights = _softmax(scores)
    return weights @ V


def scaled_dot_product_attention(q, k, v, mask=None):
    """Any leading axes; a mask is added (0 or a large negative number); weights come back too."""
    logits = np.matmul(q, np.swapaxes(k, -1, -2)) / np.sqrt(q.shape[-1])
    if mask is not None:
        logits = logits + mask
    attention_weights = _softmax(logits)
    return np.matmul(attention_weights, v), attention_weights


def admitted(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """True may be read."""
    scores = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, np.finfo(scores.dtype).min)
    return np.einsum("...ij,...jd->...id", _softmax(scores), v)


def by_dot(query, key, value):
    """np.dot and np.transpose for one sentence."""
    d_k = key.shape[-1]
    scores = np.dot(query, np.transpose(key)) / np.power(d_k, 0.5)
    shifted = scores - np.amax(scores, axis=1)[:, None]
    weights = np.exp(shifted) / np.sum(np.exp(shifted), axis=1, keepdims=True)
    return np.dot(weights, value), weights


def with_loops(Q, K, V):
    """Three nested loops and arrays filled in place."""
    n, d = Q.shape
    m, d_v = V.shape
    output = np.zeros((n, d_v))
    for i in range(n):
        scores = np.zeros(m)
        for j in range(m):
            for c in range(d):
                scores[j] += Q[i, c] * K[j, c]
        scores /= np.sqrt(d)
        e = np.exp(scores - scores.max())
        p = e / e.sum()
        for j in range(m):
            output[i] += p[j] * V[j]
    return output


def rows_along_axis(Q, K, V):
    """Softmax applied row by row through apply_along_axis."""

    def softmax(row):
        e = np.exp(row - row.max())
        return e / e.sum()

    return np.apply_along_axis(softmax, 1, Q @ K.T / np.sqrt(Q.shape[1])) @ V


def columns(q, k, v):
    """Tokens are columns, as in some textbooks: (width, tokens)."""
    scores = k.T @ q / np.sqrt(q.shape[0])
    e = np.exp(scores - scores.max(axis=0, keepdims=True))
    return v @ (e / e.sum(axis=0, keepdims=True))


def by_scipy(q, k, v):
    """SciPy's softmax."""
    return scipy_softmax(q @ np.moveaxis(k, -1, -2) / np.sqrt(q.shape[-1]), axis=-1) @ v


def through_logarithms(q, k, v):
    """exp(score − logsumexp)."""
    scores = np.matmul(q, k.swapaxes(-2, -1)) * q.shape[-1] ** -0.5
    return np.exp(scores - logsumexp(scores, axis=-1, keepdims=True)) @ v


def causal(q, k, v, mask=None):
    """The upper triangle of −1e10 is added when no mask is given; a mask given is added instead."""
    n = q.shape[-2]
    if mask is None:
        mask = (1 - np.tri(n, dtype=q.dtype)) * -1e10
    return _softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask) @ v


def causal_by_index(q, k, v):
    """−inf written into the upper triangle of fresh scores."""
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores[np.triu_indices_from(scores, k=1)] = -np.inf
    return _softmax(scores, axis=1) @ v


def online(Q, K, V):
    """One key at a time with a running maximum."""
    n, d = Q.shape
    top = np.full((n, 1), -np.inf)
    total = np.zeros((n, 1))
    mixed = np.zeros((n, V.shape[1]))
    for key, value in zip(K, V, strict=True):
        score = (Q @ key / np.sqrt(d))[:, None]
        higher = np.maximum(top, score)
        shrink, grown = np.exp(top - higher), np.exp(score - higher)
        total = total * shrink + grown
        mixed = mixed * shrink + grown * value
        top = higher
    return mixed / total


def many_heads(q, k, v, num_heads=2):
    """Projected q, k, v of full width; heads are slices of the columns."""
    outputs = [
        _softmax(a @ b.T / np.sqrt(a.shape[-1])) @ c
        for a, b, c in zip(*(np.split(x, num_heads, axis=-1) for x in (q, k, v)), strict=True)
    ]
    return np.concatenate(outputs, axis=-1)
