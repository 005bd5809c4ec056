"""A run in the terminal: a bar with loss, speed and time left; a line for each measurement."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ...algebra.errors import MissingExtra
from ..learner import Taken
from .base import Measured, Watcher

if TYPE_CHECKING:
    from ..run import Run

LAST = 50  # steps over which the loss that is shown is averaged
SHOWN = 6  # lines of a sample


class Terminal(Watcher):
    """What a person sees who leaves it running."""

    def __init__(self, console: Any) -> None:
        self.console, self.best = console, float("inf")
        self.losses: deque[float] = deque(maxlen=LAST)
        self.started: float | None = None
        self.bar: Any = None

    def began(self, run: Run) -> None:
        self.run, self.first, self.counted = run, run.learner.step, 0
        self.best = run.progress.best[0] if run.progress.best else self.best
        model = run.learner.model
        self._say(f"{type(model).__name__} of {model.count():,} parameters on {run.learner.place}")
        self._say(f"folder {run.folder}")
        if self.first:
            self._say(f"going on after step {self.first} of {run.steps}")
        self.bar = self._bar(run)
        self.bar.start()

    def _bar(self, run: Run) -> Any:
        try:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError:
            raise MissingExtra("rich", "cli") from None
        columns: tuple[Any, ...] = (
            BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}"), TimeRemainingColumn(),
        )  # fmt: skip
        shown = self.console.is_terminal
        bar = Progress(*columns, console=self.console, transient=True, speed_estimate_period=120, disable=not shown)
        self.task = bar.add_task("steps", total=run.steps, completed=self.first, told="")
        return bar

    def stepped(self, taken: Taken, seconds: float) -> None:
        self.losses.append(taken.loss)
        shown = f"loss {self.loss:.3f}"
        if self.started is None:  # the first step warms up
            self.started = seconds
        else:
            self.counted += taken.count
            shown += f"  {self.counted / max(seconds - self.started, 1e-9):,.0f} predictions/s"
        self.bar.update(self.task, completed=taken.step + 1, told=shown)

    def measured(self, measured: Measured) -> None:
        loss = measured.measures["loss"]
        mark, self.best = ("  ← best", loss) if loss < self.best else ("", self.best)
        step = f"{measured.step:>{len(str(self.run.steps))}}"  # one column, as wide as the last of them
        self._say(f"step {step}  training {self.loss:.3f}  {told(measured.measures)}  {clock(measured.seconds)}{mark}")

    def sampled(self, step: int, text: str) -> None:
        if self.console.is_terminal and step == self.run.steps:
            for line in text.splitlines()[:SHOWN]:
                self._say(f"    {line}")

    @property
    def loss(self) -> float:
        """The mean over the last steps."""
        return sum(self.losses) / len(self.losses)

    def ended(self, result: dict[str, Any]) -> None:
        self.closed()
        best = dict(result["best"])
        step = best.pop("step")
        self._say(f"done in {clock(result['seconds'])}; best after {step} steps: {told(best)}")
        self._say(f"picture  {self.run.folder / 'curve.png'}\nmodel    {self.run.folder.best}")
        self._say(f"try it   regard train try {self.run.folder}")

    def closed(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def told(measures: dict[str, float]) -> str:
    """Measures in words.

    >>> told({"loss": 1.25, "nats_per_character": 0.5})
    'held out 1.250  nats per character 0.500'
    """
    named = {"held out" if name == "loss" else name.replace("_", " "): value for name, value in measures.items()}
    return "  ".join(f"{name} {value:.3f}" for name, value in named.items())


def clock(seconds: float) -> str:
    """Seconds as people say them.

    >>> clock(7.2), clock(75), clock(3700)
    ('7 s', '1 min 15 s', '1 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
