"""Chapter 1: an image as rows, one for each patch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...diagnosis.sandbox.limits import Limits
from ...diagnosis.sandbox.process import Call, runner_for
from .exercise import Choice, Exercise, Quiz, Verdict
from .judges import SECONDS, Compared

TASK = """
Write `cut(image, size)` in NumPy. `image` is `(height, width, colours)`, and both sides are multiples of `size`.
Return a matrix with **one row for each patch**: patches from left to right, then down; inside a row the patch's
pixels in the same order, each with its colours side by side. The shape is
`(number of patches, size * size * colours)`.

Whatever you hand in is put together again as a picture, as if it were right. You will see it if it is not.
"""

START = """import numpy as np


def cut(image, size):
    height, width, colours = image.shape
    down, across = height // size, width // size
    return ...
"""

ANSWER = """import numpy as np


def cut(image, size):
    height, width, colours = image.shape
    down, across = height // size, width // size
    split = image.reshape(down, size, across, size, colours)
    patches = split.transpose(0, 2, 1, 3, 4)
    return patches.reshape(down * across, size * size * colours)
"""


def _split(image: Any, size: int) -> Any:
    """(down, line, across, pixel, colour)."""
    height, width, colours = image.shape
    return image.reshape(height // size, size, width // size, size, colours)


def _joined(image: Any, size: int, *order: int) -> Any:
    """Rows of a patch's size, whatever order their numbers are in."""
    return _split(image, size).transpose(order).reshape(-1, size * size * image.shape[-1])


def _right(image: Any, size: int) -> Any:
    return _joined(image, size, 0, 2, 1, 3, 4)


def _strips(image: Any, size: int) -> Any:
    return image.reshape(-1, size * size * image.shape[-1])


def _overlapping(image: Any, size: int) -> Any:
    height, width = (side - size + 1 for side in image.shape[:2])
    corners = [(y, x) for y in range(height) for x in range(width)]
    return np.stack([image[y : y + size, x : x + size].reshape(-1) for y, x in corners])


MISTAKES = {
    "rows cut without exchanging axes": (
        _strips,
        (
            "reshape alone goes on reading along the lines of the image: each row holds pieces of a long line, not "
            "a square."
        ),
        "split = image.reshape(down, size, across, size, colours)\npatches = split.transpose(0, 2, 1, 3, 4)",
    ),
    "patches down the columns": (
        lambda image, size: _joined(image, size, 2, 0, 1, 3, 4),
        (
            "Every patch is right, but they are numbered from top to bottom, then across. Row 1 should be the patch "
            "to the right."
        ),
        "patches = split.transpose(0, 2, 1, 3, 4)  # down before across",
    ),
    "pixels down the columns": (
        lambda image, size: _joined(image, size, 0, 2, 3, 1, 4),
        "Every patch lies on its side: inside of a row the pixels run down before they run across.",
        "patches = split.transpose(0, 2, 1, 3, 4)  # lines before pixels",
    ),
    "colours first": (
        lambda image, size: _joined(image, size, 0, 2, 4, 1, 3),
        "All reds of a patch come first, then all greens, then all blues. A pixel's colours should stay side by side.",
        "patches = split.transpose(0, 2, 1, 3, 4)  # colours last",
    ),
    "one column for each patch": (
        lambda image, size: _right(image, size).T,
        "The matrix is transposed: patches are its columns. Here and in all that follows a row is one patch.",
        "return patches.reshape(down * across, size * size * colours)",
    ),
    "overlapping patches": (
        _overlapping,
        "The window moves on by one pixel, so that most pixels are in many patches. It should move on by its own size.",
        "for top in range(0, height, size):\n    for left in range(0, width, size):",
    ),
}


@dataclass(frozen=True)
class Pictured:
    """A comparison, and with it a photograph: cut by the answer, put together by the library."""

    compared: Compared

    def __call__(self, target: str) -> Verdict:
        verdict = self.compared(target)
        return Verdict(verdict.right, verdict.title, verdict.found, _picture(target) + verdict.page)


def _picture(target: str) -> str:
    """What comes of a photograph; nothing where the answer has another shape."""
    from ...inputs.images import patches
    from ..figures.photograph import in_colour, link

    image, size = in_colour()[120:312, 150:438], 24
    with runner_for(target, Limits(seconds=SECONDS)) as runner:
        rows = runner.ask(Call((image, size)))
    grid = patches(image, size).grid
    try:
        again = grid.image(np.asarray(rows).reshape(len(grid), -1))
        told = f'<img src="{link(again)}" alt="the photograph put together again" style="width:288px;margin:0.6em 0">'
    except (TypeError, ValueError):
        return ""
    return f"<p>Your rows of a photograph, put together again:</p>{told}"


RNG = np.random.default_rng(0)

EXERCISE = Exercise(
    function="cut",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Pictured(
        Compared(
            _right,
            (
                (np.arange(8).reshape(2, 4, 1), 2),
                *(
                    (RNG.integers(0, 256, shape), size)
                    for shape, size in (((4, 6, 3), 2), ((6, 9, 2), 3), ((5, 5, 1), 5))
                ),
            ),
            MISTAKES,
        )
    ),
    wrong={
        "rows cut without exchanging axes": ANSWER.replace("split.transpose(0, 2, 1, 3, 4)", "split"),
        "patches down the columns": ANSWER.replace("0, 2, 1, 3, 4", "2, 0, 1, 3, 4"),
        "pixels down the columns": ANSWER.replace("0, 2, 1, 3, 4", "0, 2, 3, 1, 4"),
        "colours first": ANSWER.replace("0, 2, 1, 3, 4", "0, 2, 4, 1, 3"),
        "one column for each patch": ANSWER.replace("size * colours)", "size * colours).T"),
        "overlapping patches": """import numpy as np


def cut(image, size):
    height, width, colours = image.shape
    rows = []
    for top in range(height - size + 1):
        for left in range(width - size + 1):
            rows.append(image[top : top + size, left : left + size].ravel())
    return np.array(rows)
""",
    },
    hints=(
        (
            "Two loops will do: over the top edges `range(0, height, size)`, and over the left edges. "
            "`image[top:top + size, left:left + size].ravel()` is one row."
        ),
        (
            "Without loops: `image.reshape(down, size, across, size, colours)` gives five axes. What does each of "
            "them count?"
        ),
        (
            "The two that count patches must stand first: `.transpose(0, 2, 1, 3, 4)`. Then join the first two, and "
            "the last three."
        ),
    ),
)

QUIZ = Quiz(
    "A photograph of 224 × 224 pixels with three colours is cut into patches of 16 × 16. What is the shape of X, "
    "and what of Y, after every patch has looked at the others?",
    (
        Choice(
            "X is 196 × 768, Y is 196 × 768.",
            "14 · 14 patches, each of 16 · 16 · 3 numbers; and each row of Y is a mean of rows of X, so it is as long.",
            right=True,
        ),
        Choice("X is 196 × 256, Y is 196 × 256.", "That forgets the three colours: a patch has 16 · 16 · 3 numbers."),
        Choice(
            "X is 196 × 768, Y is 196 × 196.",
            "196 × 196 are the weights: how much each patch takes from each. Y is what comes of them, and has "
            "the shape of X.",
        ),
        Choice("X is 768 × 196, Y is 768 × 196.", "That has a patch in each column. Here a row is one patch."),
    ),
)
