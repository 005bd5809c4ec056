"""Each formula three times: in regard, in plain PyTorch (eager, and the reference), in FlexAttention.

    y_i = Σ_j w_ij v_j        w_ij = ψ(s_ij) / Z_i

The three are written apart from each other, so that one can check the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import normalize

import regard as rg
from regard import H, cosine, d, dot, each, h, i, j, log, n, s, sqdist, sqrt, table, tanh

CAP, HEAT = 30.0, 10.0
SLOPE = 2 ** (-8 * (h + 1) / H)


@dataclass(frozen=True)
class Pairs:
    """Rows i of some heads against all keys j."""

    q: Any  # (B, h, R, d)
    k: Any  # (B, h, n, d)
    i: Any  # (R, 1)
    j: Any  # (1, n)
    x: dict[str, Any]  # slopes (h, 1, 1); bias (h, 2n − 1); ids (B, n)

    @property
    def scaled(self) -> Any:
        """q·k / √d, in float32 or wider."""
        return self.dots * self.q.shape[-1] ** -0.5

    @property
    def dots(self) -> Any:
        """q·k."""
        return wide(self.q @ self.k.mT)


def wide(x: Any) -> Any:
    """In float32, or float64 where it was."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


Score = Callable[[Pairs], Any]
Mod = Callable[[Any, Any, Any, Any, Any], Any]


@dataclass(frozen=True)
class Formula:
    """One formula. `flex` gives q, k, score_mod and scale; `mask_mod` the mask, given the tables.

    before: what FlexAttention's score_mod reads beside the tables, compiled by itself
    fitted: kernel_options without which FlexAttention's own choice does not fit into the chip
    """

    regard: Any
    score: Score
    flex: Callable[[Any, Any, dict[str, Any]], tuple[Any, Any, Mod | None, float | None]] | None
    admits: Callable[[Pairs], Any] | None = None
    mask_mod: Callable[[dict[str, Any]], Callable[[Any, Any, Any, Any], Any]] | None = None
    weigh: Callable[[Any], Any] = lambda scores: scores.softmax(-1)
    tables: tuple[str, ...] = ()
    is_causal: bool = False  # what PyTorch's kernels are told
    exact: bool = False  # whether PyTorch's kernels compute this formula; if not, they are a yardstick
    spread: Callable[[int], float] = lambda width: 1.0  # the size of q and k, so that scores are near 1
    before: Callable[[Any], dict[str, Any]] | None = None
    fitted: dict[str, Any] | None = None


def plain(formula: Formula, pairs: Pairs, v: Any) -> Any:
    """y by whole matrices."""
    scores = formula.score(pairs)
    if formula.admits is not None:
        scores = scores.masked_fill(~formula.admits(pairs), -torch.inf)
    return formula.weigh(scores).to(v.dtype) @ v


# -- what FlexAttention is told ----------------------------------------------------------------------------------


def _bare(q: Any, k: Any, x: dict[str, Any]) -> Any:  # noqa: ARG001 - one signature for all
    return q, k, None, None


def _alibi(q: Any, k: Any, x: dict[str, Any]) -> Any:
    slopes = x["slopes"]
    return q, k, lambda s, b, h, i, j: s - slopes[h] * (i - j), None


def _alibi_both(q: Any, k: Any, x: dict[str, Any]) -> Any:
    slopes = x["slopes"]
    return q, k, lambda s, b, h, i, j: s - slopes[h] * (i - j).abs(), None


def _norms(k: Any) -> dict[str, Any]:
    return {"norms": k.float().square().sum(-1) / 2}


def _euclidean(q: Any, k: Any, x: dict[str, Any]) -> Any:
    """−‖q − k‖² / 2 without the row's term, which softmax cancels: the best that can be said."""
    norms = x["norms"]
    return q, k, lambda s, b, h, i, j: s - norms[b, h, j], 1.0


def _relative(q: Any, k: Any, x: dict[str, Any]) -> Any:
    bias, last = x["bias"], k.shape[-2] - 1
    return q, k, lambda s, b, h, i, j: s + bias[h, i - j + last], None


def _soft_cap(q: Any, k: Any, x: dict[str, Any]) -> Any:  # noqa: ARG001 - one signature for all
    return q, k, lambda s, b, h, i, j: CAP * torch.tanh(s / CAP), None


def _cosine(q: Any, k: Any, x: dict[str, Any]) -> Any:  # noqa: ARG001 - one signature for all
    return normalize(q.float(), dim=-1).to(q.dtype), normalize(k.float(), dim=-1).to(k.dtype), None, HEAT


def _causal_mod(x: dict[str, Any]) -> Any:  # noqa: ARG001 - one signature for all
    return lambda b, h, i, j: i >= j


def _documents_mod(x: dict[str, Any]) -> Any:
    ids = x["ids"]
    return lambda b, h, i, j: ids[b, i] == ids[b, j]


# -- all of them -------------------------------------------------------------------------------------------------


def _before(p: Pairs) -> Any:
    return p.j <= p.i


def _distance(p: Pairs) -> Any:
    """−‖q − k‖² / 2."""
    return p.dots - wide(p.q).square().sum(-1)[..., None] / 2 - wide(p.k).square().sum(-1)[..., None, :] / 2


def _cosine_of(p: Pairs) -> Any:
    return HEAT * (normalize(wide(p.q), dim=-1) @ normalize(wide(p.k), dim=-1).mT)


def _near(width: int) -> tuple[Any, Any]:
    """A causal window, in plain PyTorch and for FlexAttention."""
    return (
        lambda p: (p.j <= p.i) & (p.i - p.j < width),
        lambda x: lambda b, h, i, j: (i >= j) & (i - j < width),
    )


def formulas(window: int) -> dict[str, Formula]:
    """By name."""
    scaled, near = dot / sqrt(d), _near(window)
    alibi = scaled - SLOPE * (i - j)

    def tilted(p: Pairs) -> Any:
        return p.scaled - p.x["slopes"] * (p.i - p.j)

    return {
        "softmax": Formula(rg.Attention(), lambda p: p.scaled, _bare, exact=True),
        "causal": Formula(
            rg.Attention(mask=rg.causal), lambda p: p.scaled, _bare, _before, _causal_mod, is_causal=True, exact=True
        ),
        "alibi": Formula(rg.Attention(alibi), tilted, _alibi),
        "alibi_causal": Formula(
            rg.Attention(alibi, mask=rg.causal), tilted, _alibi, _before, _causal_mod, is_causal=True
        ),
        "alibi_both": Formula(
            rg.Attention(scaled - SLOPE * abs(i - j)),
            lambda p: p.scaled - p.x["slopes"] * (p.i - p.j).abs(),
            _alibi_both,
        ),
        "euclidean": Formula(
            rg.Attention(-sqdist / 2), _distance, _euclidean, spread=lambda width: width**-0.25, before=_norms
        ),
        "relative": Formula(
            rg.Attention(scaled + table("bias")[h, i - j + n - 1]),
            lambda p: p.scaled + p.x["bias"][:, p.i - p.j + p.k.shape[-2] - 1],
            _relative,
            tables=("bias",),
            fitted={"bwd_num_stages": 2},
        ),
        "soft_cap": Formula(
            rg.Attention(CAP * tanh(scaled / CAP)), lambda p: CAP * torch.tanh(p.scaled / CAP), _soft_cap
        ),
        "window": Formula(rg.Attention(mask=rg.window(window)), lambda p: p.scaled, _bare, *near),
        "documents": Formula(
            rg.Attention(mask=rg.documents("ids")),
            lambda p: p.scaled,
            _bare,
            lambda p: (p.x["ids"][:, p.i] == p.x["ids"][:, p.j])[:, None],
            _documents_mod,
            tables=("ids",),
        ),
        "sigmoid": Formula(
            rg.Attention(scaled - log(n), each(rg.sigmoid(s))),
            lambda p: p.scaled,
            None,
            weigh=lambda scores: torch.sigmoid(scores - math.log(scores.shape[-1])),
        ),
        "relu": Formula(
            rg.Attention(weight=each(rg.relu(s) / n)),
            lambda p: p.scaled,
            None,
            weigh=lambda scores: scores.relu() / scores.shape[-1],
        ),
        "cosine": Formula(rg.Attention(HEAT * cosine), _cosine_of, _cosine),
    }
