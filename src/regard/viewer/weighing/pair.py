"""One number explained: the weight of one query and one key, step by step from their vectors.

q, k  →  s_ij  →  mask  →  ψ(s_ij)  →  Z  →  w_ij = ψ(s_ij) / Z  →  w_ij v_j, a part of y_i
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.fold import fold
from ...algebra.masks import everywhere
from ...algebra.nodes import SCORE, Pair, Read
from ...algebra.printing.mathml import MathML
from ...algebra.printing.text import Piece
from ...attention import Attention
from ...parts import Parts
from ..arrays import numpy_of
from ..work import Stop
from .reasons import Reasons, finite, named, pair_says, shown
from .streaming import LARGEST, blocks

if TYPE_CHECKING:
    from ..lenses import Lens
    from ..record import Captured

KINDS = {"columns": "keys of its row", "rows": "queries of its column", "heads": "heads", "batch": "items of the batch"}


def explain(
    lens: Lens, layer: int, head: int, batch: int, query: int, key: int, formula: Attention | None = None
) -> dict[str, Any]:
    """Every step from q and k to the weight of one pair, and what its value adds to the output.

    formula: another one on the same vectors; the layer's own unless said otherwise
    """
    captured = lens.layers[layer]
    parts = captured.parts if formula is None else captured.under(formula)
    place = {"batch": batch, "heads": head, "rows": query, "columns": key}
    row = _row(captured, parts, batch, head, query)
    steps = parts.steps(_total(parts, row, place), **place)
    reasons = Reasons(steps.raw)
    weight = float(numpy_of(steps.weights)[0, 0, 0, 0])
    admitted, broken = _steps(reasons, parts, steps, row, weight)
    q, k = (numpy_of(array)[0, 0, 0] for array in (steps.raw.q, steps.raw.k))
    pairs = [_pair(reasons, pair, q, k) for pair in parts.formula.pairs]
    return {
        "layer": layer, "head": head, "query": query, "key": key,
        "labels": _labels(lens, captured, batch, query, key),
        "formula": repr(parts.formula), "mathml": parts.formula.mathml(),
        "q": _numbers(q), "k": _numbers(k), "pairs": pairs,
        "products": pairs[0]["products"] if pairs else None,
        "dot": finite(np.dot(q, k)) if q.shape == k.shape else None,
        "steps": reasons.steps, "admitted": admitted, "forbidden": broken, "weight": finite(weight),
        "rank": None if row is None else _rank(numpy_of(row.weights)[0, 0, 0], key),
        "value": None if row is None else _added(row, key),
    }  # fmt: skip


def _row(captured: Captured, parts: Parts, batch: int, head: int, query: int) -> Any | None:
    """Every step of a whole row; None where that needs too many others."""
    _, _, queries, keys = parts.shape
    if parts.shared == "rows" and queries * keys > LARGEST:
        return None
    ((_, (steps,)),) = blocks(captured, [parts], batch, range(head, head + 1), np.array([query]), Stop())
    return steps


def _total(parts: Parts, row: Any, place: dict[str, int]) -> Any | None:
    """What the total of the pair is, (1, 1, 1); None where nothing is shared."""
    if parts.shared is None or parts.shared == "columns":
        return None if parts.shared is None else row.log_total
    return parts.totals(**{name: at for name, at in place.items() if name != parts.shared})


def _rank(weights: Any, key: int) -> int:
    """How many keys of the row have more."""
    return int((weights > weights[key]).sum())


def _labels(lens: Lens, captured: Captured, batch: int, query: int, key: int) -> dict[str, str]:
    """What stands at the two places."""
    axes = lens.axes[batch]
    return {"query": axes[captured.query].labels[query], "key": axes[captured.key].labels[key]}


# -- vectors ---------------------------------------------------------------------------------------------------


def _pair(reasons: Reasons, pair: Pair, q: Any, k: Any) -> dict[str, Any]:
    """A dot product, distance or cosine with what each dimension adds to it."""
    products = _products(reasons, pair, q.astype(np.float64), k.astype(np.float64))
    return {
        "name": named(pair), "says": pair_says(pair, len(q)), "value": finite(reasons.value(pair)),
        "products": _numbers(products),
    }  # fmt: skip


def _products(reasons: Reasons, pair: Pair, q: Any, k: Any) -> Any:
    """What sums to the pair, dimension by dimension."""
    if pair.word == "cosine":
        return _unit(q) * _unit(k)
    metric = None if pair.metric is None else numpy_of(reasons.reading.metric(pair))[0, 0].astype(np.float64)
    left, right = (q, k) if pair.word == "dot" else (q - k, q - k)
    with np.errstate(all="ignore"):
        return left * (right if metric is None else metric @ right)


def _unit(x: Any) -> Any:
    norm = np.linalg.norm(x)
    return x / norm if norm > 0 else x


def _numbers(array: Any) -> list[float | None]:
    return [finite(value) for value in array.tolist()]


# -- from the score to the weight ------------------------------------------------------------------------------


def _steps(reasons: Reasons, parts: Parts, steps: Any, row: Any, weight: float) -> tuple[bool, list[str]]:
    """The steps of score, mask, ψ, Z and weight; whether the pair is admitted, and the rules that forbid it."""
    formula, set_ = parts.formula, MathML()
    w, s = set_.indexed("w", "ij"), set_.indexed("s", "ij")
    sources = reasons.parts(formula.score.node)
    score = reasons.set_score(formula.score.node)
    written = _math(set_.equation(s, fold(formula.score.node, set_)))
    says = f"{sources[0]} itself" if isinstance(formula.score.node, Pair | Read) else reasons.says(formula.score.node)
    reasons.add("score", written, finite(score), says, sources)
    admitted, broken = reasons.mask(formula.admitted)
    _psi_step(reasons, parts, admitted)
    if parts.shared is None:
        inside, sources = set_.called("ψ", s), ["ψ", "mask"]
        says = "ψ itself: this weight is shared with no other"
    else:
        index = _total_index(parts)
        _total_step(reasons, parts, steps, row, index)
        inside, sources = set_.ratio(set_.called("ψ", s), set_.indexed("Z", index)), ["ψ", "Z", "mask"]
        psi, total = (_found(reasons, name) for name in ("ψ", "Z"))
        says = f"{shown(psi)} / {shown(total)}" if psi is not None and total is not None else "exp(log ψ − log Z)"
    if not admitted:
        says = f"0, since the mask forbids the pair: {'; '.join(broken)}"
    reasons.add("weight", _math(set_.equation(w, inside)), finite(weight), says, sources)
    return admitted, broken


def _psi_step(reasons: Reasons, parts: Parts, admitted: bool) -> None:
    """ψ(s), without anything taken out; in double precision, so that it may be large."""
    weight, set_ = parts.formula.weight, MathML()
    counts = admitted or (weight.among is not None and reasons.holds(weight.among.node))
    value = _exponentials(reasons, weight.terms) if counts else 0.0
    says = reasons.filled(weight.psi.node) if counts else "0: a pair that is not admitted does not count"
    if counts and not admitted:
        says += ": counted in Z, though the mask forbids the pair"
    if not math.isfinite(value):
        says += ", too large for a number; the weight is found from logarithms"
    written = _math(set_.equation(set_.called("ψ", fold(SCORE, set_)), fold(weight.psi.node, set_)))
    reasons.add("ψ", written, finite(value), says, ["score", "mask"])


def _exponentials(reasons: Reasons, terms: Any) -> float:
    """Σ r · exp(a)."""
    with np.errstate(all="ignore"):
        return float(sum(np.float64(reasons.value(r)) * np.exp(np.float64(reasons.value(a))) for r, a in terms))


def _total_index(parts: Parts) -> str:
    """The letters that tell one total from another."""
    over = parts.formula.weight.over
    assert over is not None
    return "ij".replace(over.node.name, "") or "ij"


def _total_step(reasons: Reasons, parts: Parts, steps: Any, row: Any, index: str) -> None:
    """Z, its logarithm where ψ is an exponential, and the sink's share in it."""
    weight, set_ = parts.formula.weight, MathML()
    assert weight.over is not None
    assert parts.shared is not None
    total = float(numpy_of(steps.log_total).reshape(-1)[0])
    log, sources = total, ["ψ"]
    if weight.is_exponential:
        with np.errstate(all="ignore"):
            total = float(np.exp(np.float64(log)))
    z = set_.indexed("Z", index)
    psi = set_.called("ψ", set_.indexed("s", "ij"))
    counted = parts.formula.mask if weight.among is None else weight.among
    condition = None if counted is None or counted == everywhere else fold(counted.node, set_)
    whole = set_.total(weight.over.node.name, condition, psi)
    says = f"ψ summed over {_counted(parts, row)}{KINDS[parts.shared]}"
    if weight.sink is not None:
        sink, written = _exponentials(reasons, weight.sink_terms), fold(weight.sink.node, set_)
        whole = set_.sum([written, whole])
        share = sink / total if total and math.isfinite(total) else math.nan
        told = f"{reasons.filled(weight.sink.node)}, {shown(finite(100 * share))} % of Z: weight that reads nothing"
        sources += [reasons.add("sink", _math(written), finite(sink), told, [])]
        says += ", and the sink"
    if not math.isfinite(total):
        says += "; too large for a number, its logarithm is not"
    reasons.add("Z", _math(set_.equation(z, whole)), finite(total), says, sources)
    if weight.is_exponential:
        reasons.add("log Z", _math(set_.called("log", z)), finite(log), "the logarithm of Z, which is kept", ["Z"])


def _counted(parts: Parts, row: Any) -> str:
    """How many keys the total counts, where it is one of a row by the mask."""
    if parts.shared != "columns" or parts.formula.weight.among is not None or row is None:
        return "the "
    keys = parts.shape[3]
    count = keys if row.admitted is None else int(numpy_of(row.admitted).sum())
    return f"the {count} admitted " if count < keys else f"all {keys} "


def _found(reasons: Reasons, name: str) -> float | None:
    return next((one["value"] for one in reasons.steps if one["name"] == name), None)


def _math(piece: Piece) -> str:
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{piece.text}</math>'


# -- what the value adds ---------------------------------------------------------------------------------------


def _added(row: Any, key: int) -> dict[str, float | None] | None:
    """‖v‖, ‖w v‖ / ‖y‖ and the cosine between w v and y; None without values."""
    if row.y is None:
        return None
    y = numpy_of(row.y)[0, 0, 0].astype(np.float64)
    v = numpy_of(row.raw.v)[0, 0, key].astype(np.float64)
    added = float(numpy_of(row.weights)[0, 0, 0, key]) * v
    with np.errstate(all="ignore"):
        norm, whole = np.linalg.norm(added), np.linalg.norm(y)
        share, cosine = norm / whole, added @ y / (norm * whole)
    return {"norm": finite(np.linalg.norm(v)), "share": finite(share), "cosine": finite(cosine)}
