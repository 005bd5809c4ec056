"""The backward pass, pair by pair: through the total, through ψ, then through the score's own derivative."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...algebra.calculus import partials
from ...algebra.nodes import Pair
from ...algebra.weights import exponential_terms
from ..call import Call
from .forward import Steps, dropped, group_of
from .lists import Lists, Place
from .pairs import PAIRS, inner


def vjp(steps: Steps, dy: Any) -> dict[str, Any]:
    """Gradients of Σ dy·y for q, k, v and every real table, pair by pair."""
    with np.errstate(all="ignore"):  # infinities and NaN are results here
        return _vjp(steps, dy)


def _vjp(steps: Steps, dy: Any) -> dict[str, Any]:
    call, lists, weight = steps.call, steps.lists, steps.call.formula.weight
    grads, dy = Gradients(call, lists), dy.tolist()
    g = {(b, h, i, j): inner(dy[b][h][i], lists.v[b][h // lists.group][j]) for b, h, i, j in steps.w}
    for b, h, i, j in sorted(steps.w):
        grads.add_vector("v", (b, h // lists.group, j), [steps.w[b, h, i, j] * value for value in dy[b][h][i]])
    for p, dpsi in _through_total(steps, g, grads).items():
        m = steps.m[group_of(weight.over.node.name)(p)] if weight.over is not None else 0.0
        ds = dpsi * lists.scaled(weight.slope_terms, p, steps.s[p], m)
        grads.through(weight.psi.node, p, dpsi, m, steps.s[p])
        grads.through(call.formula.score.node, p, ds, 0.0, 0.0)
    return grads.arrays()


def _through_total(steps: Steps, g: dict[Place, float], grads: Gradients) -> dict[Place, float]:
    """dψ · exp(m) for every pair that counts: dw where nothing is shared, otherwise (dw − Σ g w) / Z."""
    weight, dw = steps.call.formula.weight, dropped(steps.f, g)
    if weight.over is None:
        return dw
    group = group_of(weight.over.node.name)
    delta: dict[Place, float] = defaultdict(float)
    for p in sorted(g):
        delta[group(p)] += g[p] * steps.w[p]
    if weight.sink is not None:
        for total, z in steps.z.items():
            grads.through(weight.sink.node, total, -delta[total] / z if z != 0 else 0.0, steps.m[total], 0.0)
    dpsi = {}
    for p in sorted(steps.s):
        z, counts = steps.z[group(p)], weight.among is None or steps.lists.value(weight.among.node, p)
        dpsi[p] = (dw.get(p, 0.0) - (delta[group(p)] if counts else 0.0)) / z if z != 0 else 0.0
    return dpsi


class Gradients:
    """Sums of gradients by place, for each argument."""

    def __init__(self, call: Call, lists: Lists) -> None:
        self.call, self.lists = call, lists
        shapes = {"q": call.q.shape, "k": call.k.shape, "v": call.v.shape if call.v is not None else ()}
        shapes |= {name: table.shape for name, table in call.tables.items() if call.xp.is_real(table)}
        self.sums = {name: np.zeros(tuple(shape)) for name, shape in shapes.items()}

    def add_vector(self, name: str, place: tuple[int, ...], values: Iterable[float]) -> None:
        for e, value in enumerate(values):
            self.sums[name][(*place, e)] += value

    def through(self, node: Any, place: Place, gradient: float, shift: float, score: float) -> None:
        """Add gradient · ∂node/∂leaf to every leaf of `node`."""
        for leaf, slope in partials(node).items():
            share = gradient * self.lists.scaled(exponential_terms(slope), place, score, shift)
            if isinstance(leaf, Pair):
                self._to_pair(leaf, place, share)
            elif leaf.table in self.sums:
                self.sums[leaf.table][self.lists.entry(leaf, place, score)] += share

    def _to_pair(self, pair: Pair, place: Place, share: float) -> None:
        b, h, i, j = place
        q, k = self.lists.vectors(place)
        metric = None if pair.metric is None else self.lists.metric(pair.metric, place)
        dq, dk, dm = PAIRS[pair.word].backward(q, k, metric)
        self.add_vector("q", (b, h, i), (share * value for value in dq))
        self.add_vector("k", (b, h // self.lists.group, j), (share * value for value in dk))
        if pair.metric is not None:
            where = self.lists.entry(pair.metric, place)
            for row, values in enumerate(dm):
                self.add_vector(pair.metric.table, (*where, row), (share * value for value in values))

    def arrays(self) -> dict[str, Any]:
        working = self.call.working_dtype
        return {name: self.call.fit(name, self.lists.converted(total, working)) for name, total in self.sums.items()}
