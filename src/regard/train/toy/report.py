"""`regard train toy` in a terminal: both curves, whom the guests read before and after, and what other formulas reach.

rich is imported where it is used: whoever only wants `learn` needs NumPy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._shapes import Array, Float
from ...algebra.errors import CallError, MissingExtra
from ...algebra.symbols import cosine, d, dot, log, n, relu, sigmoid, sqdist, sqrt
from ...algebra.weights import share
from ...attention import Attention
from .numpy_lesson import learn
from .picture import save, writable
from .record import Learned, Matrices, Reached, apart
from .task import NAMES, Task

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

OTHERS: Mapping[str, Attention] = {
    "softmax": Attention(),
    "sigmoid": Attention(weight=sigmoid, score=dot / sqrt(d) - log(n)),
    "share of relu": Attention(weight=share(relu)),
    "Euclidean": Attention(score=-sqdist / 2),
    "cosine": Attention(score=cosine),
}
PAPER, DEEP = np.array([247, 251, 255]), np.array([8, 48, 107])  # of no weight, and of the largest


def show(
    console: Console,
    out: str | Path,
    attention: Attention = Attention(),  # noqa: B008 - a value that never changes
    steps: int = 400,
    seed: int = 0,
    *,
    rate: float = 0.3,
    batch: int = 50,
    task: Task = Task(),  # noqa: B008
    others: Mapping[str, Attention] = OTHERS,
) -> None:
    """Learn with NumPy and with PyTorch, say what came out, and write the picture; `others` are learned beside.

    Without PyTorch the lesson of NumPy is shown alone.
    """
    options: dict[str, Any] = {"rate": rate, "batch": batch, "task": task}
    path = writable(out)
    with console.status("learning"):
        learned, twin = learn(attention, steps, seed, **options), _twin(attention, steps, seed, **options)
        beside = {name: _tried(one, steps, seed, **options) for name, one in others.items() if one != attention}
        save(learned, None if isinstance(twin, MissingExtra) else twin, path)
    _show_curves(console, learned, twin)
    _show_guests(console, learned)
    console.print(_formulas({_name(attention, others): learned, **beside}))
    console.print(f"Wrote {path}", highlight=False, soft_wrap=True)


def _twin(*arguments: Any, **options: Any) -> Learned | MissingExtra:
    """The lesson of PyTorch, or what to install for it."""
    try:
        from .torch_lesson import learn_with_torch
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        return MissingExtra("torch", "train")
    return learn_with_torch(*arguments, **options)


def _tried(*arguments: Any, **options: Any) -> Learned | CallError:
    """What another formula learns; a rate that suits the first may be too large for it."""
    try:
        return learn(*arguments, **options)
    except CallError as refused:
        return refused


def _name(attention: Attention, others: Mapping[str, Attention]) -> str:
    return next((name for name, other in others.items() if other == attention), repr(attention))


# -- the curves --------------------------------------------------------------------------------------------------


def _show_curves(console: Console, learned: Learned, twin: Learned | MissingExtra) -> None:
    table, steps = _table("The loss", "step", "NumPy", "PyTorch", "difference"), len(learned.losses)
    for step in _round(steps - 1):
        ours = learned.losses[step]
        theirs = ("–", "–") if isinstance(twin, MissingExtra) else _beside(ours, twin.losses[step])
        table.add_row(str(step), f"{ours:.12f}", *theirs)
    console.print(table)
    if isinstance(twin, MissingExtra):
        told = f"The lesson of PyTorch is left out: {twin}"
    else:
        told = f"Over all {steps} steps the curves differ by at most {apart(learned, twin):.1e} of the loss."
    chance = f"Chance, where everyone is read alike: {learned.task.chance:.3f}."
    console.print(f"{told}\n{chance}\n", markup=False, highlight=False)


def _round(last: int) -> list[int]:
    """0, 1, 2, 5, 10, 20, 50 and so on to the last."""
    steps = (digit * 10**zeros for zeros in range(len(str(last))) for digit in (1, 2, 5))
    return [0, *(step for step in steps if step < last), *([last] if last else [])]


def _beside(ours: float, theirs: float) -> tuple[str, str]:
    return f"{theirs:.12f}", f"{abs(ours - theirs):.0e}"


# -- the guests --------------------------------------------------------------------------------------------------


def _show_guests(console: Console, learned: Learned) -> None:
    """One party that was never seen: whom each guest reads, and which colour comes back."""
    for title, W in (("at first", learned.before), ("in the end", learned.after)):
        console.print(_guests(learned, W, f"Who reads whom {title}; [ ] marks whom each seeks"))
        meeting, giving = learned.shares(W)
        told = f"Of W_Q W_Kᵀ, {meeting:.0%} lies where sought meets name; of W_V, {giving:.0%} where colours are read."
        console.print(f"{told}\n", highlight=False)


def _guests(learned: Learned, W: Matrices, title: str) -> Table:
    from rich.text import Text

    x, t, name, partner = (part[0] for part in learned.new(1))
    weights, called = learned.weights(W, x), [NAMES[number] for number in name]
    held = (_swatch(colour) for colour in x[:, learned.task.parts["colour"]])
    heads = [Text.assemble(f"{one}\n", swatch) for one, swatch in zip(called, held, strict=True)]
    table = _table(title, "guest", "wants", *heads, "  gets", close=True)
    largest = max(1.0, float(np.abs(weights).max()))
    for i, fetched in enumerate(learned.answers(W, x)):
        cells = [_cell(w / largest, w, sought=j == partner[i]) for j, w in enumerate(weights[i])]
        row = f"{called[i]} seeks {called[partner[i]]} "
        table.add_row(row, Text(*_swatch(t[i])), *cells, Text(*_swatch(fetched)))
    return table


def _cell(height: float, weight: float, *, sought: bool) -> Text:
    """A weight on its shade; a negative one is shaded by its size."""
    from rich.text import Text

    red, green, blue = np.rint(PAPER + (DEEP - PAPER) * abs(height)).astype(int)
    words, ink = f"[{weight:.2f}]" if sought else f"{weight:.2f}", "white" if abs(height) > 0.45 else "black"
    return Text(f"{words:^6}", style=f"{'bold ' if sought else ''}{ink} on rgb({red},{green},{blue})")


def _swatch(colour: Float[Array, " 3"]) -> tuple[str, str]:
    """Four blocks of a colour."""
    red, green, blue = np.rint(255 * np.clip((colour + 1) / 2, 0, 1)).astype(int)
    return "████", f"rgb({red},{green},{blue})"


# -- the formulas ------------------------------------------------------------------------------------------------


def _formulas(lessons: Mapping[str, Learned | CallError]) -> Table:
    """What each formula reaches on parties that it never saw."""
    table = _table("On parties never seen", "formula", "loss", "on the partner", "on all others", "partner first")
    for name, lesson in lessons.items():
        table.add_row(name, *(("ran away",) if isinstance(lesson, CallError) else _told(lesson.reached())))
    return table


def _told(reached: Reached) -> tuple[str, ...]:
    return f"{reached.loss:.5f}", f"{reached.partner:.3f}", f"{reached.others:.3f}", f"{reached.found:.1%}"


def _table(title: str, *columns: Any, close: bool = False) -> Table:
    """An empty table; a close one has nothing between its columns."""
    from rich import box
    from rich.table import Table

    table = Table(box=None if close else box.SIMPLE_HEAD, show_edge=False, padding=(0, 0 if close else 1))
    table.title, table.title_justify, table.title_style = title, "left", "bold"
    table.add_column(columns[0])
    for column in columns[1:]:
        table.add_column(column, justify="center" if close else "right", no_wrap=True)
    return table
