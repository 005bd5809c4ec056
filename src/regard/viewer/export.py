"""A lens as one HTML file that opens without a server: the page, and the answers that it will ask for.

Short inputs are whole: every head of every layer, and every pair of the chosen head explained. Of long ones the file
holds the chosen head's map, coarse enough to fit, and says what it does not hold.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from ..algebra.errors import CallError, RegardError
from .answering.answers import MATRIX, Answers
from .answering.packet import packed
from .joined import script, style

Asked = tuple[str, dict[str, Any]]

PAIRS = 1024  # pairs of the chosen head that are explained
BYTES = 32 * 2**20  # of answers, before they are packed
ROLLED = 300  # queries of an image whose rollout is saved
TILES = 24  # of the map of a long input
ELSEWHERE = "Open the lens itself for it: regard lens --open FOLDER, or lens.serve()."
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<title>{title} · regard</title>
<style>{style}</style>
</head>
<body>
<div class="regard" data-whole></div>
<script type="application/json" class="regard-answers">{answers}</script>
<script type="module">
{script}
mountAlone(document.querySelector(".regard[data-whole]"), JSON.parse(document.querySelector(".regard-answers").textContent));
</script>
</body>
</html>
"""  # noqa: E501 - a header is one line


def html(lens: Any, path: str | Path, *, layer: int = 0, head: int = 0, batch: int = 0) -> Path:
    """Write a lens as one HTML file; every pair of the chosen head is explained in it."""
    place = Path(path)
    if place.suffix not in (".html", ".htm"):
        raise CallError(f"path: a file that ends in .html; got {str(path)!r}")
    place.write_text(html_text(lens, layer=layer, head=head, batch=batch), encoding="utf-8")
    return place


def html_text(lens: Any, *, layer: int = 0, head: int = 0, batch: int = 0, answers: Answers | None = None) -> str:
    """The file's text."""
    answers = Answers(lens) if answers is None else answers
    answers.answer("thumbs", {"layer": layer, "batch": batch})  # refuses a layer or batch item that is not there
    index, content = embedded(answers, layer, head, batch)
    given = {
        "index": index,
        "packed": base64.b64encode(gzip.compress(content, 6, mtime=0)).decode("ascii"),
        "elsewhere": ELSEWHERE,
        "state": {"layer": layer, "head": head, "batch": batch},
    }
    return PAGE.format(
        title=escape(lens.title), style=style(), answers=_inside_script(json.dumps(given)), script=script("alone")
    )


def embedded(answers: Answers, layer: int, head: int, batch: int) -> tuple[dict[str, tuple[int, int]], bytes]:
    """Where each answer stands, and all of them; the first that are asked are kept where not all fit."""
    index: dict[str, tuple[int, int]] = {}
    content = bytearray()
    for name, options in asked(answers.lens, layer, head, batch):
        try:
            found = packed(answers.answer(name, options))
        except RegardError:
            continue  # what a lens does not have, its page does not show
        if len(content) + len(found) <= BYTES:
            index[key(name, options)] = (len(content), len(found))
            content += found
    return index, bytes(content)


def key(name: str, options: dict[str, Any]) -> str:
    """A question as one text; page/embedded.js spells it likewise."""
    given = sorted(f"{option}={_spelled(value)}" for option, value in options.items() if option != "side")
    return f"{name}?{'&'.join(given)}"


def _spelled(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def asked(lens: Any, layer: int, head: int, batch: int) -> Iterator[Asked]:
    """What a page will ask, the most needed first."""
    here = {"batch": batch}
    yield "about", {}
    yield "image", {}
    for at in range(len(lens.layers)):
        yield "thumbs", {**here, "layer": at, "side": 48}
        yield "measures", {**here, "layer": at}
    yield from _maps(lens, layer, head, here)
    yield from _pairs(lens, layer, head, here)
    for query in _rolled(lens, layer, batch):
        yield "rollout", {**here, "query": query, "how": "mean", "residual": 0.5}
    for at, captured in enumerate(lens.layers):
        if at != layer and _cells(captured) * captured.shape[1] <= MATRIX:
            yield "matrix", {**here, "layer": at}


def _rolled(lens: Any, layer: int, batch: int) -> Iterable[int]:
    """The queries whose rollout is saved: those of an image, all where it is small, else those that are special."""
    captured = lens.layers[layer]
    axis = lens.axes[batch][captured.query]
    if axis.grid is None:
        return ()
    return range(len(axis)) if len(axis) <= ROLLED else sorted(axis.special)


def _maps(lens: Any, layer: int, head: int, here: dict[str, Any]) -> Iterator[Asked]:
    captured = lens.layers[layer]
    if _cells(captured) * captured.shape[1] <= MATRIX:
        yield "matrix", {**here, "layer": layer}
    elif _cells(captured) <= MATRIX:
        yield "matrix", {**here, "layer": layer, "head": head}
    else:
        yield from _tiles(captured, {**here, "layer": layer, "head": head})


def _pairs(lens: Any, layer: int, head: int, here: dict[str, Any]) -> Iterator[Asked]:
    _, _, queries, keys = lens.layers[layer].shape
    if queries * keys <= PAIRS:
        for query in range(queries):
            for at in range(keys):
                yield "pair", {**here, "layer": layer, "head": head, "query": query, "key": at}


def _tiles(captured: Any, where: dict[str, Any]) -> Iterator[Asked]:
    """Whole levels of a map, from the coarsest on, as long as they fit."""
    _, _, queries, keys = captured.shape
    level, left = max(0, (max(queries, keys) - 1).bit_length() - 8), TILES
    while level >= 0:
        rows, columns = (-(-size // (256 << level)) for size in (queries, keys))
        left -= rows * columns
        if left < 0:
            return
        for row in range(rows):
            for column in range(columns):
                yield "tile", {**where, "level": level, "row": row, "column": column}
        level -= 1


def _cells(captured: Any) -> int:
    return int(captured.shape[2] * captured.shape[3])


def _inside_script(text: str) -> str:
    """JSON that cannot end the script that holds it."""
    return text.replace("<", "\\u003c")
