"""The gradients of softmax attention, number by number."""

from math import exp, sqrt


def backward(q, k, v, dy):
    """dq, dk and dv, each n × d."""
    n, d = len(q), len(q[0])
    dq, dk, dv = ([[0.0] * d for _ in range(n)] for _ in "qkv")
    for i in range(n):
        s = [dot(q[i], key) / sqrt(d) for key in k]
        e = [exp(score - max(s)) for score in s]
        w = [share / sum(e) for share in e]
        costs = [dot(dy[i], value) for value in v]
        delta = dot(w, costs)  # dy_i · y_i
        for j in range(n):
            ds = w[j] * (costs[j] - delta)
            for a in range(d):
                dq[i][a] += ds * k[j][a] / sqrt(d)
                dk[j][a] += ds * q[i][a] / sqrt(d)
                dv[j][a] += w[j] * dy[i][a]
    return [dq, dk, dv]


def dot(a, b):
    """a · b."""
    return sum(x * y for x, y in zip(a, b, strict=True))
