"""No library at all: lists of numbers, math.exp and sum."""

import math


def _dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def _softmax(row):
    top = max(row)
    exponents = [math.exp(x - top) for x in row]
    total = sum(exponents)
    return [e / total for e in exponents]


def _matmul(a, b):
    return [[_dot(row, column) for column in zip(*b, strict=True)] for row in a]


def _transpose(matrix):
    return [list(column) for column in zip(*matrix, strict=True)]


def attention(queries, keys, values):
    """A row of weights for each query."""
    scale = math.sqrt(len(keys[0]))
    output = []
    for query in queries:
        weights = _softmax([_dot(query, key) / scale for key in keys])
        output.append(
            [sum(w * value[c] for w, value in zip(weights, values, strict=True)) for c in range(len(values[0]))]
        )
    return output


def matrix_style(Q, K, V):
    """matmul, transpose, softmax, matmul; output and weights."""
    scores = _matmul(Q, _transpose(K))
    scaled = [[s / len(Q[0]) ** 0.5 for s in row] for row in scores]
    weights = [_softmax(row) for row in scaled]
    return _matmul(weights, V), weights


def comprehension(q, k, v):
    """One expression, each weight from logarithms."""
    d = len(q[0])
    s = [[sum(a * b for a, b in zip(x, y, strict=True)) / d**0.5 for y in k] for x in q]
    logs = [max(r) + math.log(sum(math.exp(t - max(r)) for t in r)) for r in s]
    return [
        [sum(math.exp(t - log) * y[c] for t, y in zip(r, v, strict=True)) for c in range(len(v[0]))]
        for r, log in zip(s, logs, strict=True)
    ]


def indices(Q, K, V):
    """Range and brackets, as translated from C; causal, since j stops at i."""
    n, d, d_v = len(Q), len(Q[0]), len(V[0])
    out = [[0.0] * d_v for _ in range(n)]
    for i in range(n):
        scores = []
        for j in range(i + 1):
            total = 0.0
            for c in range(d):
                total += Q[i][c] * K[j][c]
            scores.append(total / math.sqrt(d))
        top = max(scores)
        norm = math.fsum(math.exp(s - top) for s in scores)
        for j in range(i + 1):
            for c in range(d_v):
                out[i][c] += math.exp(scores[j] - top) / norm * V[j][c]
    return out


def masked(queries, keys, values, mask=None):
    """mask[i][j] true may be read; a query that may read nothing gives zeros."""
    out = []
    for i, query in enumerate(queries):
        seen = [j for j in range(len(keys)) if mask is None or mask[i][j]]
        if not seen:
            out.append([0.0] * len(values[0]))
            continue
        weights = _softmax([_dot(query, keys[j]) / math.sqrt(len(query)) for j in seen])
        out.append([sum(w * values[j][c] for w, j in zip(weights, seen, strict=True)) for c in range(len(values[0]))])
    return out


def self_attention(x, Wq, Wk, Wv):
    """Projections as lists of rows: x W."""
    q, k, v = _matmul(x, Wq), _matmul(x, Wk), _matmul(x, Wv)
    return _matmul([_softmax([s / math.sqrt(len(q[0])) for s in row]) for row in _matmul(q, _transpose(k))], v)


def attend_one(query, keys, values):
    """One query, a vector, against a list of keys: the step of a decoder."""
    weights = _softmax([_dot(query, key) / math.sqrt(len(query)) for key in keys])
    return [_dot(weights, column) for column in zip(*values, strict=True)]


class Attention:
    """Projections as lists in an object."""

    def __init__(self, d_model):
        steps = iter(range(3 * d_model * d_model))

        def drawn():
            return [
                [math.sin(1 + 7 * next(steps)) / math.sqrt(d_model) for _ in range(d_model)] for _ in range(d_model)
            ]

        self.wq, self.wk, self.wv = drawn(), drawn(), drawn()

    def __call__(self, x):
        return self_attention(x, self.wq, self.wk, self.wv)
