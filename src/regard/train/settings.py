"""What a run is made of, as values that JSON can hold: with the data beside them they are all that repeats it.

{"task": "text", "data": {…}, "shape": {…}, "learning": {…}, "machine": {…}, "watching": {…}}
"""

from __future__ import annotations

from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, cast, get_origin, get_type_hints

from .._checks import check_count, check_number
from ..algebra.errors import CallError, KindError
from .machine import Machine
from .optimiser import AdamW
from .schedule import Schedule


def check_share(name: str, value: object) -> None:
    """Refuse what is no share that leaves something."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise CallError(f"{name}: a share from 0 to below 1; got {value!r}")


def option(default: Any, says: str) -> Any:
    """A field with its default, and what the command line says of it."""
    return field(default=default, metadata={"help": says})


# -- what is learned from --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextData:
    """A text, and how it is cut."""

    source: str | None = option(None, "A text file, or a folder of them; Python's language reference without.")
    tokens: str = option("characters", "What a token is: characters, words:5000, bytepairs:1024.")
    context: int = option(128, "How many tokens the model reads at once.")
    noise: float = option(0.0, "The largest share of the tokens it reads that is exchanged for others while learning.")
    held_out: float = option(0.1, "The share of the text that is never learned from.")

    def __post_init__(self) -> None:
        check_count("context", self.context, 1)
        check_share("noise", self.noise)


@dataclass(frozen=True)
class ImageData:
    """Labelled images, and how they are cut."""

    source: str | None = option(None, "A folder of class folders, MNIST's idx files, an .npz; digits without.")
    size: str | None = option(None, "Resize to so many pixels, as in 32 or 32x24 (height x width).")
    patch: int | None = option(None, "The side of a patch in pixels; chosen by the size without.")
    colour: str = option("keep", "keep, grey or colour.")
    augment: str = option("usual", "What is done to images while learning: usual (small shifts), none, flip.")
    pool: str = option("class", "What classes are read from: class (a token), mean (of all patches).")
    held_out: float = option(0.2, "The share that is never learned from, where the folder does not say.")

    def __post_init__(self) -> None:
        if self.patch is not None:
            check_count("patch", self.patch, 1)


@dataclass(frozen=True)
class PairData:
    """Pairs of texts."""

    source: str | None = option(None, "A TSV of two columns, or a folder with train.tsv and test.tsv; dates without.")
    tokens: str = option("characters", "What a token is: characters, words:5000, bytepairs:1024.")
    longest: int = option(256, "Pairs with more characters on a side are left out.")
    held_out: float = option(0.1, "The share that is never learned from.")


# -- what learns -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """What the model is made of."""

    dim: int = option(128, "The width of a row.")
    depth: int = option(4, "How many blocks.")
    heads: int = option(4, "How many heads in each.")
    attention: str = option("softmax(dot / sqrt(d))", "The formula, or a name of the zoo.")
    position: str = option("rotary", "Where rows stand: rotary, alibi, sinusoidal, learned, relative, none.")
    style: str = option("llama", "What blocks are made of: llama (RMS norm, gated), gpt (LayerNorm, GELU).")
    dropout: float = option(0.1, "The share of what each part adds that is dropped while learning.")
    table: tuple[str, ...] = option((), 'A learned table that the formula reads, with its shape, as in "bias=4x255".')

    def __post_init__(self) -> None:
        for name in ("dim", "depth", "heads"):
            check_count(name, getattr(self, name), 1)
        if self.dim % self.heads:
            raise CallError(f"heads: divides dim, {self.dim}; got {self.heads}")
        check_share("dropout", self.dropout)


@dataclass(frozen=True)
class Learning:
    """How it learns."""

    steps: int = option(1000, "How many steps.")
    batch: int = option(32, "How many examples a step learns from.")
    accumulate: int = option(1, "In how many parts a batch is gone through, where it does not fit at once.")
    rate: float = option(2e-3, "The largest rate; it rises in the warm-up and falls along a cosine.")
    warmup: int | None = option(None, "After how many steps it is reached; a tenth of all, at most 100, without.")
    decay: float = option(0.1, "By how much matrices decay (AdamW).")
    clip: float = option(1.0, "The length above which a gradient is cut; 0 for any.")
    average: float = option(0.998, "What is left, at each step, of the mean over steps that is kept; 0 for none.")
    seed: int = option(0, "Of the first parameters, the batches and what is dropped.")

    def __post_init__(self) -> None:
        check_count("batch", self.batch, 1)
        check_count("accumulate", self.accumulate, 1)
        if self.accumulate > self.batch:
            raise CallError(f"accumulate: at most the batch, {self.batch}; got {self.accumulate}")
        check_count("seed", self.seed, 0)
        check_number("rate", self.rate, 0, above=True)
        check_share("average", self.average)
        self.schedule, self.optimiser  # noqa: B018 - each refuses what it cannot take

    @property
    def schedule(self) -> Schedule:
        """η_t."""
        return Schedule(self.steps, self.rate, self.warmup)

    @property
    def optimiser(self) -> AdamW:
        """AdamW."""
        return AdamW(self.decay, self.clip)


@dataclass(frozen=True)
class Watching:
    """How often it is looked at."""

    evaluate: int | None = option(None, "After how many steps it is measured; ten times in all without.")
    save: int | None = option(None, "After how many steps a checkpoint is written; at each measurement without.")
    sample: int = option(300, "How many tokens of its own it writes when it is measured; 0 for none.")

    def __post_init__(self) -> None:
        for name in ("evaluate", "save"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), 1)
        check_count("sample", self.sample, 0)

    def every(self, steps: int) -> int:
        """After how many steps it is measured."""
        return self.evaluate or max(1, steps // 10)


Data = TextData | ImageData | PairData
DATA: dict[str, type[Data]] = {"text": TextData, "images": ImageData, "pairs": PairData}


@dataclass(frozen=True)
class Settings:
    """A run."""

    task: str
    data: Data
    shape: Shape
    learning: Learning
    machine: Machine
    watching: Watching

    def plain(self) -> dict[str, Any]:
        """As data that JSON can hold."""
        return asdict(self)

    @classmethod
    def of(cls, told: Any) -> Settings:
        """What `plain` told."""
        if not isinstance(told, dict) or told.get("task") not in DATA:
            raise KindError(f"settings: those of a run, with a task among {', '.join(DATA)}; got {told!r:.80}")
        groups = groups_of(told["task"])
        return cls(told["task"], *(_read(kind, told.get(name, {}), name) for name, kind in groups.items()))


def groups_of(task: str) -> dict[str, type[Any]]:
    """The parts of a task's settings, by name."""
    shared = {"shape": Shape, "learning": Learning, "machine": Machine, "watching": Watching}
    return {"data": cast(type[Any], DATA[task]), **shared}


def _read(kind: type[Any], told: Any, name: str) -> Any:
    """A part of the settings from what JSON holds."""
    if not isinstance(told, dict):
        raise KindError(f"{name}: settings by name; got {told!r:.80}")
    hints = {part.name: hint for part, hint in fields_of(kind)}
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
    for key, value in values.items():
        if key not in hints:
            known = ", ".join(sorted(hints))
            raise KindError(f"{name}: of {known}; got {key}; which version of regard wrote it?")
        if not _fits(value, hints[key]):
            raise KindError(f"{name}: {key} is {_named(hints[key])}; got {value!r:.80}")
    return kind(**values)


def fields_of(kind: type[Any]) -> list[tuple[Field[Any], Any]]:
    """The fields of a part, each with its type."""
    hints = get_type_hints(kind)
    return [(part, hints[part.name]) for part in fields(kind)]


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(isinstance(part, str) for part in value)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, int | float if hint is float else hint)


def _named(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)
