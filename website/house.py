"""The picture of who may import whom, drawn from the arrows that tests/test_architecture.py holds the source to."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from colours import style

ROOT = Path(__file__).parents[1]
ATTENTION = {"attention", "parts", "trace", "drop_in"}
WORDS = {
    "algebra": "the formula",
    "door": "engines: the door",
    "geometry": "similarity",
    "inputs": "elements → vectors",
    "plan": "engines.plan: which one runs",
    "attention": "Attention: the public face",
    "zoo": "named formulas",
    "nn": "modules, models",
    "hf": "transformers",
    "diagnosis": "check",
    "testing": "check in pytest",
    "train": "learning",
    "viewer": "the lens",
}
ORDER = "inputs door geometry python dense tiled sdpa triton zoo nn hf diagnosis train testing viewer".split()
WIDE, BOX, HIGH, STEP = 720, 116, 40, 78

Arrows = dict[str, set[str]]


def picture() -> str:
    """Boxes in rows, each above all that it imports; an arrow that others imply is left out."""
    arrows = _arrows()
    rows = _rows(arrows)
    places = _places(rows)
    height = STEP * len(rows) - (STEP - HIGH) + 2
    lines = [
        _line(places[name], places[other])
        for name, others in sorted(arrows.items())
        for other in sorted(_nearest(others, arrows))
    ]
    boxes = [_box(name, *place) for name, place in places.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {height}" width="{WIDE}" height="{height}" '
        f'role="img"><title>Who may import whom</title>\n{style({1, 3})}\n' + "\n".join([*lines, *boxes]) + "\n</svg>\n"
    )


def _arrows() -> Arrows:
    """The arrows between the parts that are drawn: those that exist, the engine's door as one, the top as one."""
    drawn = _architecture()
    found: Arrows = {}
    for name, others in drawn.ARROWS.items():
        if (part := _part(name, drawn)) is not None:
            found.setdefault(part, set()).update(filter(None, (_part(other, drawn) for other in others)))
    for part, others in found.items():
        others.discard(part)
    found["top"] = set(found)
    return found


def _part(name: str, drawn: ModuleType) -> str | None:
    if name in drawn.DOOR:
        return "door"
    if name in ATTENTION:
        return "attention"
    if name in {"engines", "example"} or name.startswith("_"):
        return None  # a folder, an example for documents, what every part may use
    path = name.replace(".", "/")
    exists = any((drawn.SOURCE / file).exists() for file in (f"{path}.py", f"{path}/__init__.py"))
    return name.removeprefix("engines.") if exists else None


@cache
def _architecture() -> ModuleType:
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "tests" / "test_architecture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["architecture"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def _nearest(others: set[str], arrows: Arrows) -> set[str]:
    """Without those that another of them leads to."""
    return {one for one in others if not any(one in _below(other, arrows) for other in others - {one})}


def _below(name: str, arrows: Arrows) -> set[str]:
    return arrows[name].union(*(_below(other, arrows) for other in arrows[name]))


def _rows(arrows: Arrows) -> list[list[str]]:
    """The top first; each part in the lowest row above all that it imports."""
    level: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in level:
            level[name] = 1 + max((of(other) for other in arrows[name]), default=-1)
        return level[name]

    deepest = max(map(of, arrows))
    order = {name: place for place, name in enumerate(ORDER)}
    rows = [[name for name in arrows if level[name] == wanted] for wanted in range(deepest, -1, -1)]
    return [sorted(row, key=lambda name: order.get(name, len(order))) for row in rows]


def _places(rows: list[list[str]]) -> dict[str, tuple[float, float, float]]:
    """The middle of each box, its top, and its width."""
    found: dict[str, tuple[float, float, float]] = {}
    for row, names in enumerate(rows):
        width = WIDE - 2 if names == ["top"] else 260 if len(names) == 1 else BOX if len(names) > 3 else 150
        gap = (WIDE - 2 - width * len(names)) / len(names)
        for column, name in enumerate(names):
            found[name] = (1 + gap / 2 + width / 2 + column * (width + gap), 1 + row * STEP, width)
    return found


def _line(above: tuple[float, float, float], below: tuple[float, float, float]) -> str:
    (x1, y1, width), (x2, y2, _) = above, below
    x1 = max(x1 - width / 2 + 12, min(x1 + width / 2 - 12, x2)) if width > 200 else x1
    bend = (y2 - y1 - HIGH) / 2
    curve = f"c0 {bend:.0f} {x2 - x1:.0f} {bend:.0f} {x2 - x1:.0f} {2 * bend:.0f}"
    return f'<path class="line" d="M{x1:.0f} {y1 + HIGH:.0f}{curve}"/>'


def _box(name: str, x: float, y: float, width: float) -> str:
    drawn = _architecture()
    top = ", ".join(filter(None, (_part(one, drawn) for one in drawn.TOP)))
    head, words = (top, "on top") if name == "top" else (name, WORDS.get(name, "an engine"))
    level = 3 if name in {"attention", "algebra"} else 1
    return (
        f'<rect class="w{level}" x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HIGH}" rx="5"/>'
        f'<rect class="rule" x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HIGH}" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + 17:.0f}" text-anchor="middle" class="head">{head}</text>'
        f'<text x="{x:.0f}" y="{y + 32:.0f}" text-anchor="middle">{words}</text>'
    )
