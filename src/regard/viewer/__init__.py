"""The lens: see attention in any model, at any length.

    w_ij = ψ(s_ij) / Z_i        kept: q, k, the formula, and one Z_i for each row; drawn: any part of w

record       what is kept of one call, and what stands along its axes;  lenses: all calls of one look at a model
looking      a lens from a model and its inputs, from arrays, or from weights;  capturing: what a model calls
entering     inputs of a model, texts of tokens, images and their patches;  keeping: a lens on the disk
weighing     from q, k and totals to weights, tiles, measures, one pair explained, what if
answering    questions and answers: the protocol of page, server, widget (`widget`) and exported file (`export`)
models       models to look at;  vision, gallery: what ships;  page: ES modules and styles, joined by `joined`

`regard.lens`, `regard.capture` and `regard.Lens` are the way in.
"""

from __future__ import annotations

from typing import Any

from .._names import brought, by_name

_NAMES = by_name({"lenses": "Lens", "looking": "lens", "capturing": "capture", "record": "Axis Captured Missing"})

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, torch="hf", transformers="hf")


def __dir__() -> list[str]:
    return list(__all__)
