import math


def _softmax(row):
    top = max(row)
    e = [math.exp(s - top) for s in row]
    return [a / sum(e) for a in e]


def _dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def _mix(weights, v):
    return [[_dot(row, column) for column in zip(*v, strict=True)] for row in weights]


def attention(q, k, v):
    scores = [[_dot(a, b) for b in k] for a in q]
    return _mix([_softmax(row) for row in scores], v)


def attend(q, k, v):
    scores = [[_dot(a, b) / math.sqrt(len(a)) for a in q] for b in k]
    weights = list(zip(*[_softmax(column) for column in scores], strict=True))
    return _mix(weights, v)


def causal_attention(q, k, v):
    out = []
    for i, a in enumerate(q):
        scores = [_dot(a, b) / math.sqrt(len(a)) if j < i else -1e9 for j, b in enumerate(k)]
        out.append(_mix([_softmax(scores)], v)[0])
    return out


def dot_product_attention(q, k, v):
    result = []
    for a in q:
        e = [math.exp(_dot(a, b) / math.sqrt(len(a))) for b in k]
        total = sum(e)
        result.append([sum(w / total * row[c] for w, row in zip(e, v, strict=True)) for c in range(len(v[0]))])
    return result


def scaled_attention(queries, keys, values):
    scale = 1 / math.sqrt(len(keys))
    weights = [_softmax([scale * _dot(a, b) for b in keys]) for a in queries]
    return _mix(weights, values)


def plain_attention(q, k, v):
    scores = [[_dot(a, b) / math.sqrt(len(b)) for b in k] for a in q]
    return _mix(scores, v)


def decoder_attention(q, k, v):
    n = len(k)
    out = []
    for a in q:
        scores = [_dot(a, k[j]) / math.sqrt(len(a)) for j in range(n)]
        out.append(_mix([_softmax(scores)], v)[0])
    return out


def normalised_attention(q, k, v):
    root = math.sqrt(len(q[0]))
    for row in q:
        row[:] = [x / root for x in row]
    return _mix([_softmax([_dot(a, b) for b in k]) for a in q], v)


BUGS: dict[str, list[str]] = {
    "attention": ["no root of d"],
    "attend": ["softmax over queries"],
    "causal_attention": ["strict mask"],
    "dot_product_attention": ["no maximum subtracted"],
    "scaled_attention": ["root of the length"],
    "plain_attention": ["scores as weights"],
    "decoder_attention": ["no mask"],
    "normalised_attention": ["inputs changed in place"],
}
OPTIONS: dict[str, dict] = {
    "decoder_attention": {"causal": True},
}
