"""Random formulas, each with a twin in plain NumPy that knows nothing of the algebra: the independent oracle.

Sizes are different primes, so that swapped axes fail.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import special

import regard as rg
from regard import Attention, b, cosine, d, dot, equal, h, i, j, n, sqdist, table

BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, WIDTH, VALUE_WIDTH = 2, 6, 3, 5, 7, 3, 11

Env = dict[str, Any]


@dataclass(frozen=True)
class Twin:
    """An expression, mask or weight of the algebra beside its plain NumPy function."""

    value: Any
    plain: Callable[[Env], Any]

    def __repr__(self) -> str:
        return repr(self.value)


def arrays(seed: int = 0) -> dict[str, Any]:
    """q, k, v and every table that a random formula may read."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal
    return {
        "q": normal((BATCH, HEADS, QUERIES, WIDTH)),
        "k": normal((BATCH, KEY_HEADS, KEYS, WIDTH)),
        "v": normal((BATCH, KEY_HEADS, KEYS, VALUE_WIDTH)),
        "dy": normal((BATCH, HEADS, QUERIES, VALUE_WIDTH)),
        "M": normal((WIDTH, WIDTH)),
        "P": normal((HEADS, WIDTH, WIDTH)),
        "scale": np.asarray(normal()),
        "line": normal(23),
        "heads": normal((HEADS, 23)),
        "batch": normal((BATCH, 23)),
        "ids": rng.integers(0, 5, 23),
    }


def environment(call: Env, start: int = KEYS - QUERIES) -> Env:
    """What a plain twin sees: whole matrices, and indices that broadcast."""
    q, k, v = call["q"], *(np.repeat(call[name], HEADS // KEY_HEADS, axis=1) for name in "kv")
    difference = q[..., :, None, :] - k[..., None, :, :]
    norms = np.linalg.norm(q, axis=-1)[..., :, None] * np.linalg.norm(k, axis=-1)[..., None, :]
    swapped = np.swapaxes(k, -1, -2)
    return call | {
        "v": v,
        "dot": q @ swapped,
        "sqdist": (difference**2).sum(-1),
        "cosine": q @ swapped / norms,
        "dot(M)": q @ call["M"] @ swapped,
        "sqdist(P)": np.einsum("bhijx,hxy,bhijy->bhij", difference, call["P"], difference),
        "b": np.arange(BATCH)[:, None, None, None],
        "h": np.arange(HEADS)[:, None, None],
        "i": np.arange(start, start + QUERIES)[:, None],
        "j": np.arange(KEYS),
    }


# -- expressions -------------------------------------------------------------------------------------------------

PAIRS = [
    Twin(dot, lambda e: e["dot"]),
    Twin(sqdist, lambda e: e["sqdist"]),
    Twin(cosine, lambda e: e["cosine"]),
    Twin(dot / rg.sqrt(d), lambda e: e["dot"] / np.sqrt(WIDTH)),
    Twin(dot(table("M")), lambda e: e["dot(M)"]),
    Twin(sqdist(table("P")[h]), lambda e: e["sqdist(P)"]),
]
INTEGERS = [
    Twin(i, lambda e: e["i"]),
    Twin(j, lambda e: e["j"]),
    Twin(h, lambda e: e["h"]),
    Twin(b, lambda e: e["b"]),
    Twin(i - j, lambda e: e["i"] - e["j"]),
    Twin(rg.abs(i - j), lambda e: abs(e["i"] - e["j"])),
    Twin(i // 2, lambda e: e["i"] // 2),
    Twin((i - j) // 3, lambda e: (e["i"] - e["j"]) // 3),
    Twin((i - 2 * j) % 3, lambda e: (e["i"] - 2 * e["j"]) % 3),
    Twin(n - j, lambda e: KEYS - e["j"]),
    Twin(table("ids")[j], lambda e: e["ids"][e["j"]]),
]
READS = [
    Twin(table("scale"), lambda e: e["scale"]),
    Twin(table("line")[j], lambda e: e["line"][e["j"]]),
    Twin(table("line")[i + j], lambda e: e["line"][e["i"] + e["j"]]),
    Twin(table("heads")[h, i - j + 9], lambda e: e["heads"][e["h"], e["i"] - e["j"] + 9]),
    Twin(table("batch")[b, i], lambda e: e["batch"][e["b"], e["i"]]),
    Twin(table("line")[table("ids")[i] + 1], lambda e: e["line"][e["ids"][e["i"]] + 1]),
]
NUMBERS = [Twin(value, lambda e, value=value: value) for value in (1, -2, 3, 0.5, 0.1, -1.25, 1 / 3)]

SMOOTH = [
    (rg.tanh, np.tanh),
    (rg.sigmoid, special.expit),
    (rg.softplus, lambda x: np.logaddexp(x, 0)),
    (rg.gelu, lambda x: x * special.ndtr(x)),
    (rg.erf, special.erf),
    (rg.cos, np.cos),
    (rg.sin, np.sin),
    (lambda x: rg.exp(rg.tanh(x)), lambda x: np.exp(np.tanh(x))),
    (lambda x: rg.exp(-(x**2)), lambda x: np.exp(-(np.asarray(x, float) ** 2))),
    (lambda x: rg.log(1 + x * x), lambda x: np.log(1 + np.asarray(x, float) * x)),
    (lambda x: rg.sqrt(1 + x**2), lambda x: np.sqrt(1 + np.asarray(x, float) ** 2)),
    (lambda x: 2 ** (x / 8), lambda x: 2 ** (x / 8)),
    (operator.neg, operator.neg),
]
BROKEN = [
    (rg.abs, np.abs),
    (rg.relu, lambda x: np.maximum(x, 0)),
    (rg.floor, np.floor),
    (lambda x: rg.abs(x) ** 1.5, lambda x: np.abs(x) ** 1.5),
]
BINARY = [
    (operator.add, operator.add),
    (operator.sub, operator.sub),
    (operator.mul, operator.mul),
    (lambda x, y: x / (2 + rg.sin(y)), lambda x, y: x / (2 + np.sin(y))),
]
BROKEN_BINARY = [(rg.minimum, np.minimum), (rg.maximum, np.maximum)]


def _unary(function: tuple[Any, Any], x: Twin) -> Twin:
    own, plain = function
    return Twin(own(x.value), lambda e: plain(x.plain(e)))


def _binary(function: tuple[Any, Any], x: Twin, y: Twin) -> Twin:
    own, plain = function
    return Twin(own(x.value, y.value), lambda e: plain(x.plain(e), y.plain(e)))


def _where(condition: Twin, x: Twin, y: Twin) -> Twin:
    return Twin(
        rg.where(condition.value, x.value, y.value), lambda e: np.where(condition.plain(e), x.plain(e), y.plain(e))
    )


def expressions(*, smooth: bool = False) -> st.SearchStrategy[Twin]:
    """Expressions of pairs, indices, tables and numbers. `smooth`: with a derivative everywhere."""
    leaves = st.sampled_from([*PAIRS, *READS, *INTEGERS])
    unary, binary = (SMOOTH, BINARY) if smooth else (SMOOTH + BROKEN, BINARY + BROKEN_BINARY)

    def grow(inner: st.SearchStrategy[Twin]) -> st.SearchStrategy[Twin]:
        options = [
            st.builds(_unary, st.sampled_from(unary), inner),
            st.builds(_binary, st.sampled_from(binary), inner, inner),
            st.builds(_binary, st.sampled_from(BINARY[:3]), inner, st.sampled_from(NUMBERS)),
            st.builds(_where, index_masks(), inner, inner),
        ]
        return st.one_of(options)

    return st.recursive(leaves, grow, max_leaves=6).filter(lambda twin: isinstance(twin.value, rg.Expression))


# -- masks -------------------------------------------------------------------------------------------------------

RELATIONS = [(operator.le, np.less_equal), (operator.lt, np.less), (operator.ge, np.greater_equal), (equal, np.equal)]


def _relation(function: tuple[Any, Any], x: Twin, y: Twin) -> Twin:
    return _binary(function, x, y)


def _is_mask(twin: Twin) -> bool:
    return isinstance(twin.value, rg.Mask)


def index_masks() -> st.SearchStrategy[Twin]:
    """Masks over indices and integer tables."""
    simple = st.sampled_from([Twin(3, lambda e: 3), Twin(-1, lambda e: -1), *INTEGERS])
    atoms = st.builds(_relation, st.sampled_from(RELATIONS), st.sampled_from(INTEGERS), simple)

    def grow(inner: st.SearchStrategy[Twin]) -> st.SearchStrategy[Twin]:
        joined = st.sampled_from([(operator.and_, operator.and_), (operator.or_, operator.or_)])
        negated = st.just((operator.invert, np.logical_not))
        return st.one_of(st.builds(_binary, joined, inner, inner), st.builds(_unary, negated, inner))

    return st.recursive(atoms.filter(_is_mask), grow, max_leaves=4)


# -- weights -----------------------------------------------------------------------------------------------------


def _share(psi: Callable[[Any], Any], axis: int = -1) -> Callable[[Any, Any], Any]:
    def plain(scores: Any, admitted: Any) -> Any:
        values = np.where(admitted, psi(np.where(admitted, scores, 0)), 0)
        total = values.sum(axis, keepdims=True)
        return np.divide(values, total, out=np.zeros_like(values), where=total != 0)

    return plain


def _softmax(sink: float = 0.0, factor: float = 1.0) -> Callable[[Any, Any], Any]:
    def plain(scores: Any, admitted: Any) -> Any:
        heights = np.where(admitted, factor * scores, -np.inf)
        shift = np.maximum(heights.max(-1, keepdims=True), 0 if sink else -np.inf)
        shift = np.where(np.isfinite(shift), shift, 0)
        values = np.exp(heights - shift)
        total = values.sum(-1, keepdims=True) + sink * np.exp(-shift)
        return np.divide(values, total, out=np.zeros_like(values), where=total != 0)

    return plain


WEIGHTS: list[tuple[Any, Callable[[Any, Any], Any]]] = [
    (rg.softmax, _softmax()),
    (rg.share(rg.exp, sink=1), _softmax(sink=1.0)),
    (rg.share(lambda s: rg.exp(2 * s), sink=0.3), _softmax(sink=0.3, factor=2.0)),
    (rg.share(rg.softplus), _share(lambda s: np.logaddexp(s, 0))),
    (rg.share(rg.sigmoid), _share(special.expit)),
    (rg.share(lambda s: rg.relu(s) ** 2), _share(lambda s: np.maximum(s, 0) ** 2)),
    (rg.share(lambda s: 1 / (1 + s**2), over=i), _share(lambda s: 1 / (1 + s**2), axis=-2)),
    (rg.each(rg.sigmoid), lambda s, a: np.where(a, special.expit(np.where(a, s, 0)), 0)),
    (rg.each(lambda s: rg.tanh(s) / n), lambda s, a: np.where(a, np.tanh(np.where(a, s, 0)) / KEYS, 0)),
]
SMOOTH_WEIGHTS = [WEIGHTS[place] for place in (0, 1, 2, 3, 4, 6, 7, 8)]


@dataclass(frozen=True)
class Case:
    """A random attention, its tables, and its plain twin."""

    attention: Attention
    plain_score: Callable[[Env], Any]
    plain_mask: Callable[[Env], Any]
    plain_weight: Callable[[Any, Any], Any]

    def __repr__(self) -> str:
        return repr(self.attention)

    def tables(self, call: Env) -> Env:
        return {name: call[name] for name in self.attention.ranks}

    def scores(self, env: Env) -> Any:
        return np.broadcast_to(self.plain_score(env), (BATCH, HEADS, QUERIES, KEYS)).astype(float)

    def weights(self, env: Env) -> Any:
        admitted = np.broadcast_to(self.plain_mask(env), (BATCH, HEADS, QUERIES, KEYS))
        return self.plain_weight(self.scores(env), admitted)


def _case(score: Twin, mask: Twin | None, weight: tuple[Any, Any]) -> Case:
    attention = Attention(score.value, weight[0], None if mask is None else mask.value)
    return Case(attention, score.plain, mask.plain if mask else (lambda e: True), weight[1])


def cases(*, smooth: bool = False) -> st.SearchStrategy[Case]:
    """Whole attentions."""
    masks = st.one_of(st.none(), index_masks())
    return st.builds(_case, expressions(smooth=smooth), masks, st.sampled_from(SMOOTH_WEIGHTS if smooth else WEIGHTS))
