"""The pictures of experiments, for the page: drawn by matplotlib, as SVG in the colours of the page.

Every colour of the drawings that has a role becomes a variable of the page's style, so that dark paper has light ink;
text stays text, in the page's type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from ..algebra.errors import MissingExtra
from .record import Figure, Result

ROLES = {"#ffffff": "paper", "#000000": "ink", "#333333": "ink", "#555555": "soft", "#e6e6e6": "hair"}
"""Colours of `train.drawing` beside those of its lines, and what they are on the page."""


def pictures(results: Iterable[Result]) -> dict[str, Figure]:
    """The picture of the experiment that decides a row, by the row's id; where it cannot be drawn, why."""
    read = {result.claim.id for result in results if result.passed and "torch" in result.claim.needs}
    if not read:
        return {}
    from ..experiments.registry import EXPERIMENTS, find

    decided = [(name, read & set(find(name).claims)) for name in EXPERIMENTS]
    return {claim: picture(name) for name, claims in decided if claims for claim in claims}


def picture(name: str) -> Figure:
    """The picture of an experiment that was run, and what it says."""
    from ..experiments.picture import drawn
    from ..experiments.registry import find
    from ..experiments.store import outcome

    experiment, found = find(name), outcome(name)
    try:
        from matplotlib import rc_context

        with TemporaryDirectory() as folder, rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
            path = drawn(experiment, found, Path(folder) / f"{name}.svg")
            markup = themed(path.read_text(encoding="utf-8"), experiment.asks)
    except (ImportError, MissingExtra):
        markup = f"<p>{escape(str(MissingExtra('matplotlib', 'train')))}</p>"
    return Figure(markup, f"{found.says} From the experiment “{name}”.")


def themed(svg: str, told: str) -> str:
    """A drawing of matplotlib with the page's colours, and without what a file of its own needs."""
    from ..train.drawing import COLOURS

    roles = {**ROLES, **{colour: f"c{place}" for place, colour in enumerate(COLOURS)}}
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda found: f"var(--{roles[found[0]]})" if found[0] in roles else found[0], svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r"\n\s*", "\n", svg)
    return svg.replace("<svg ", f'<svg class="picture" role="img" aria-label="{escape(told)}" ', 1)
