"""One thing in plain Python, in NumPy and in PyTorch: shown side by side, run on the same numbers, and compared.

The source that is shown is the source that is run: a file of `course/programs`, or what the library prints.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from ...attention import Attention
from .code import coloured
from .numbers import as_set
from .piece import Piece, same

LANGUAGES = {"python": "plain Python", "numpy": "NumPy", "torch": "PyTorch"}


@dataclass(frozen=True)
class Program:
    """A program in one of the languages; `run` is None where its library is not installed."""

    language: str
    source: str
    run: Callable[..., Any] | None


def printed(attention: Attention, form: str, call: str) -> list[Program]:
    """The programs that the library prints of a formula."""
    texts = {language: attention.code(language, form) for language in LANGUAGES}
    return [Program(language, text, _loaded(text, call)) for language, text in texts.items()]


def written(key: str, call: str) -> list[Program]:
    """The programs of a chapter, as in programs/c02_similarity/in_numpy.py."""
    return [_written(key, call, language) for language in LANGUAGES]


def _written(key: str, call: str, language: str) -> Program:
    file = Path(__file__).parents[1] / "programs" / key / f"in_{language}.py"
    source = file.read_text(encoding="utf-8")
    try:
        module = import_module(f"regard.course.programs.{key}.in_{language}")
    except ModuleNotFoundError as missing:
        if missing.name != language:
            raise
        return Program(language, source, None)
    return Program(language, source, getattr(module, call))


def _loaded(source: str, call: str) -> Callable[..., Any] | None:
    """A function of a program that was printed; None where its library is missing."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "printed.py"
        file.write_text(source, encoding="utf-8")
        spec = spec_from_file_location("regard_printed", file)
        if spec is None or spec.loader is None:  # pragma: no cover - a file of Python has a loader
            return None
        module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except ModuleNotFoundError:
            return None
    found: Callable[..., Any] = getattr(module, call)
    return found


# -- run and compared ------------------------------------------------------------------------------------------


def ran(programs: list[Program], arrays: tuple[Any, ...]) -> dict[str, Any]:
    """What each program makes of the arrays, as NumPy arrays; those that could not run are left out."""
    return {
        one.language: np.asarray(one.run(*(_as(one.language, array) for array in arrays)), dtype=float)
        for one in programs
        if one.run is not None
    }


def _as(language: str, array: Any) -> Any:
    if not isinstance(array, np.ndarray):
        return array
    if language == "numpy":
        return array
    return array.tolist() if language == "python" else sys.modules["torch"].from_numpy(array)


def apart(found: dict[str, Any]) -> float:
    """The largest difference between any two."""
    first, *others = found.values()
    return max((float(np.max(np.abs(first - other), initial=0.0)) for other in others), default=0.0)


def side_by_side(programs: list[Program], arrays: tuple[Any, ...]) -> Piece:
    """The three programs, and how far apart they are on these arrays."""
    found = ran(programs, arrays)
    columns = "".join(f"<div><h4>{LANGUAGES[one.language]}</h4>{coloured(_body(one.source))}</div>" for one in programs)
    said = _said(programs, found, arrays)
    return same(f'<section class="programs"><div class="columns">{columns}</div><p class="agree">{said}</p></section>')


def _said(programs: list[Program], found: dict[str, Any], arrays: tuple[Any, ...]) -> str:
    shapes = ", ".join("×".join(map(str, array.shape)) for array in arrays if isinstance(array, np.ndarray))
    gap = apart(found)
    missing = [LANGUAGES[one.language] for one in programs if one.run is None]
    text = (
        f"Run just now on the same numbers ({shapes}): the largest difference between them is {as_set(f'{gap:.1g}')}."
    )
    return text + "".join(f" {name} is not installed here: pip install regard[torch]." for name in missing)


def _body(source: str) -> str:
    """The program without its opening words, which the page says already."""
    doc = source.lstrip()
    if not doc.startswith('"""'):
        return source
    return inspect.cleandoc(doc[3:].partition('"""')[2])
