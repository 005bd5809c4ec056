"""Other formulas in NumPy and in plain Python."""

import math

import numpy as np

FORMULAS = {
    "sigmoid": "sigmoid",
    "relu": "relu_over_n",
    "cosine": "cosine_similarity",
    "radial": "euclidean",
    "capped": "soft_cap",
    "off_by_one": "softmax_plus_one",
    "window": "sliding_window",
    "alibi": "alibi",
    "bilinear": "bilinear",
    "nearness": "euclidean",
}


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _scores(Q, K):
    return Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])


def sigmoid(Q, K, V):
    """Sigmoids with −log n, by tanh so that nothing overflows."""
    return 0.5 * (1 + np.tanh((_scores(Q, K) - np.log(K.shape[-2])) / 2)) @ V


def relu(Q, K, V):
    """relu over the number of keys."""
    return np.maximum(_scores(Q, K), 0) @ V / K.shape[-2]


def cosine(Q, K, V):
    """Unit vectors, temperature 0.1."""
    Q = Q / np.linalg.norm(Q, axis=-1, keepdims=True)
    K = K / np.linalg.norm(K, axis=-1, keepdims=True)
    return _softmax(Q @ np.swapaxes(K, -1, -2) / 0.1) @ V


def radial(Q, K, V):
    """softmax(−‖q − k‖² / 2)."""
    squares = np.sum((Q[..., :, None, :] - K[..., None, :, :]) ** 2, axis=-1)
    return _softmax(-squares / 2) @ V


def capped(q, k, v):
    """Scores within ±30."""
    return _softmax(30 * np.tanh(_scores(q, k) / 30)) @ v


def off_by_one(q, k, v):
    """One more in the total."""
    s = _scores(q, k)
    top = np.maximum(s.max(axis=-1, keepdims=True), 0)
    e = np.exp(s - top)
    return e / (np.exp(-top) + e.sum(axis=-1, keepdims=True)) @ v


def window(q, k, v):
    """Itself and the two tokens before."""
    n = q.shape[-2]
    seen = np.tri(n, dtype=bool) & ~np.tri(n, k=-3, dtype=bool)
    return _softmax(np.where(seen, _scores(q, k), -np.inf)) @ v


def alibi(q, k, v):
    """(…, heads, tokens, depth), causal."""
    heads, n = q.shape[-3], q.shape[-2]
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    distance = np.subtract.outer(np.arange(n), np.arange(n))
    scores = _scores(q, k) - slopes[:, None, None] * distance
    return _softmax(np.where(distance >= 0, scores, -np.inf)) @ v


def bilinear(q, k, v, M):
    """A matrix between query and key."""
    return _softmax(np.einsum("...id,de,...je->...ij", q, M, k)) @ v


def nearness(queries, keys, values):
    """Lists: the Gaussian kernel of the distance."""
    output = []
    for query in queries:
        squares = [sum((a - b) ** 2 for a, b in zip(query, key, strict=True)) for key in keys]
        kernels = [math.exp((min(squares) - s) / 2) for s in squares]
        total = sum(kernels)
        output.append(
            [sum(g * x for g, x in zip(kernels, column, strict=True)) / total for column in zip(*values, strict=True)]
        )
    return output
