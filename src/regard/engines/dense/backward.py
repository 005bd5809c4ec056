"""The backward pass, for any ψ: through the total, through ψ, then through the score's own derivative."""

from __future__ import annotations

from typing import Any

from ...algebra.nodes import Pair
from ..call import AXIS
from ..scatter import shares, to_metric, to_table
from ..select import keep, mix_back, quotient
from .forward import Steps, dropped
from .matrices import Matrices
from .pairs import PAIRS


def vjp(steps: Steps, dy: Any) -> dict[str, Any]:
    """Gradients of Σ dy·y for q, k, v and every real table, by the algebra's own derivative."""
    xp = steps.call.xp
    with xp.quiet(), xp.exact(steps.call.q):
        return _Backward(steps, dy).run()


class _Backward:
    def __init__(self, steps: Steps, dy: Any) -> None:
        self.steps, self.call, self.reading = steps, steps.call, steps.reading
        self.xp, self.dy = steps.call.xp, steps.call.xp.astype(dy, steps.call.working_dtype, copy=False)
        self.gradients: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        xp, steps, weight = self.xp, self.steps, self.call.formula.weight
        g = keep(xp, steps.admitted, self.dy @ xp.matrix_transpose(self.reading.v))
        dpsi = self._through_total(g)
        ds = dpsi * self.reading.scaled(weight.slope_terms, steps.shift)
        self._add("v", mix_back(xp, steps.weights, self.dy, steps.admitted))
        self._through(self.call.formula.score.node, keep(xp, self.reading.live, ds), 0.0, self.reading)
        self._through(weight.psi.node, dpsi, steps.shift, self.reading)
        self._add("q", xp.zeros_like(self.reading.q))
        self._add("k", xp.zeros_like(self.reading.k))
        for name, table in self.call.tables.items():
            if xp.is_real(table):
                self._add(name, xp.zeros_like(table))
        return {name: self._fitted(name, gradient) for name, gradient in self.gradients.items()}

    def _through_total(self, g: Any) -> Any:
        """dψ · exp(m) from g = dy vᵀ: dw where nothing is shared, otherwise (dw − Σ g w) / Z."""
        xp, steps, weight = self.xp, self.steps, self.call.formula.weight
        dw = dropped(self.call, steps.kept, g)
        if weight.over is None:
            return dw
        axis = AXIS[weight.over.node.name]
        delta = xp.sum(keep(xp, steps.admitted, g * steps.weights), axis=axis, keepdims=True)
        if weight.sink is not None:
            self._through(weight.sink.node, -quotient(xp, delta, steps.total), steps.shift, steps.raw)
        counted = steps.admitted if weight.among is None else self.reading.mask(weight.among.node)
        spread = keep(xp, counted, xp.broadcast_to(delta, g.shape))
        return quotient(xp, dw - spread, steps.total)

    def _through(self, node: Any, gradient: Any, shift: Any, reading: Matrices) -> None:
        """Add gradient · ∂node/∂leaf to every leaf of `node`; exponentials are scaled by exp(−shift)."""
        for leaf, share in shares(reading, node, gradient, shift):
            if isinstance(leaf, Pair):
                self._to_pair(leaf, share)
            else:
                self._add(leaf.table, to_table(self.reading, leaf, share))

    def _to_pair(self, pair: Pair, g: Any) -> None:
        gradients = PAIRS[pair.word].backward(self.reading, pair, g)
        for name, gradient in zip(("q", "k"), gradients[:2], strict=True):
            self._add(name, gradient)
        if pair.metric is not None:
            self._add(pair.metric.table, to_metric(self.reading, pair.metric, gradients[2]))

    def _add(self, name: str, gradient: Any | None) -> None:
        if gradient is not None:
            self.gradients[name] = self.gradients[name] + gradient if name in self.gradients else gradient

    def _fitted(self, name: str, gradient: Any) -> Any:
        """The gradient in the shape and dtype of its argument; heads that read one key head are summed."""
        if name in ("k", "v") and self.call.group > 1:
            batch, heads, length, width = gradient.shape
            grouped = (batch, heads // self.call.group, self.call.group, length, width)
            gradient = self.xp.sum(self.xp.reshape(gradient, grouped), axis=2)
        return self.call.fit(name, gradient)
