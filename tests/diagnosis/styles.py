"""Attention in the styles in which people hand arrays over, all of them right."""

# mypy: ignore-errors

import math

import numpy as np


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def attend(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])) @ v


def cut(x, heads):
    return np.moveaxis(x.reshape(*x.shape[:-1], heads, -1), -2, -3)


def joined(y):
    y = np.moveaxis(y, -3, -2)
    return y.reshape(*y.shape[:-2], -1)


# -- vectors -------------------------------------------------------------------------------------------------------


def heads_inside(q, k, v):
    _b, _n, _h, _d = q.shape
    return np.moveaxis(attend(*(np.moveaxis(x, 2, 1) for x in (q, k, v))), 1, 2)


def heads_come_back_joined(q, k, v):
    _b, _h, _n, _d = q.shape
    return joined(attend(q, k, v))


def one_text(q, k, v):
    _n, _d = q.shape
    return attend(q, k, v)


def columns_are_tokens(q, k, v):
    d, _n = q.shape
    return (softmax(q.T @ k / math.sqrt(d)) @ v.T).T


def one_query(query, keys, values):
    return softmax(keys @ query / math.sqrt(len(query))) @ values


def one_query_each(query, keys, values):
    weights = softmax(np.einsum("bd,bnd->bn", query, keys) / math.sqrt(query.shape[-1]))
    return np.einsum("bn,bnd->bd", weights, values)


def one_query_of_lists(query, keys, values):
    scores = [math.exp(sum(a * b for a, b in zip(query, key, strict=True)) / len(query) ** 0.5) for key in keys]
    return [sum(s * x for s, x in zip(scores, c, strict=True)) / sum(scores) for c in zip(*values, strict=True)]


def heads_in_columns(q, k, v, num_heads=2):
    return joined(attend(*(cut(x, num_heads) for x in (q, k, v))))


def fewer_key_heads(q, k, v, n_heads=8, n_kv_heads=2):
    return attend(q, *(np.repeat(x, n_heads // n_kv_heads, axis=1) for x in (k, v)))


def scale_must_be_given(q, k, v, scale):
    return softmax(q @ np.swapaxes(k, -1, -2) * scale) @ v


def methods_of_tensors(q, k, v):
    return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v


# -- inputs --------------------------------------------------------------------------------------------------------


def matrices(x, Wq, Wk, Wv):
    return attend(x @ Wq, x @ Wk, x @ Wv)


def out_in(x, Wq, Wk, Wv, Wo):
    return attend(x @ Wq.T, x @ Wk.T, x @ Wv.T) @ Wo.T


def heads_as_axes(x, wq, wk, wv, wo):
    return np.einsum("bhnd,hdo->bno", attend(*(np.einsum("bni,hid->bhnd", x, w) for w in (wq, wk, wv))), wo)


def heads_second(x, wq, wk, wv):
    return joined(attend(*(np.einsum("bni,ihd->bhnd", x, w) for w in (wq, wk, wv))))


def fused(x, w_qkv, w_out, n_head=2):
    return joined(attend(*(cut(part, n_head) for part in np.split(x @ w_qkv, 3, axis=-1)))) @ w_out


def stacked(x, w_qkv):
    return attend(*np.einsum("bni,pio->pbno", x, w_qkv))


class Plain:
    def __init__(self, d_model, seed=0):
        draw = np.random.default_rng(seed).normal
        self.W_Q, self.W_K, self.W_V = draw(size=(3, d_model, d_model))

    def forward(self, x):
        return attend(x @ self.W_Q, x @ self.W_K, x @ self.W_V)


class Layer:
    def __init__(self, wide):
        self.W, self.b = np.eye(wide), np.zeros(wide)

    def __call__(self, x):
        return x @ self.W + self.b


class Layers:
    def __init__(self, n_channels, num_heads):
        self.num_heads = num_heads
        self.q, self.k, self.v, self.o = (Layer(n_channels) for _ in range(4))

    def __call__(self, x, mask=None):
        q, k, v = (cut(layer(x), self.num_heads) for layer in (self.q, self.k, self.v))
        return self.o(joined(attend(q, k, v)))


class InADictionary:
    def __init__(self, dim):
        self.params = {name: np.eye(dim) for name in ("Wq", "Wk", "Wv")}

    def forward(self, x):
        return matrices(x, **self.params)


class OfLists:
    def __init__(self, d_model):
        self.wq, self.wk, self.wv = ([[0.5] * d_model for _ in range(d_model)] for _ in range(3))

    def __call__(self, x):
        one_text(*(np.array(x) @ np.array(w) for w in (self.wq, self.wk, self.wv)))
        return matrices(np.array(x), *map(np.array, (self.wq, self.wk, self.wv))).tolist()


class WithoutMatrices:
    def __init__(self, d_k):
        self.scale = d_k**-0.5

    def __call__(self, q, k, v):
        return softmax(q @ np.swapaxes(k, -1, -2) * self.scale) @ v
