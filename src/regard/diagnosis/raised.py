"""What an exception of the target says: its kind, its text, and the last line of the user's own code that it passed."""

from __future__ import annotations

import linecache
import sysconfig
from pathlib import Path
from traceback import walk_tb
from types import FrameType

OURS = str(Path(__file__).resolve().parent)
INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
LONGEST = 600  # characters of a text


def text_of(problem: BaseException) -> str:
    """The text, without an end that nobody reads."""
    return str(problem).strip()[:LONGEST]


def line_of(problem: BaseException) -> str:
    """`attention.py:12: scores = q @ k` for the last line of the user's code; empty where there is none."""
    lines = [(frame, number) for frame, number in walk_tb(problem.__traceback__) if _is_users(frame)]
    if not lines:
        return ""
    frame, number = lines[-1]
    path = frame.f_code.co_filename
    return f"{Path(path).name}:{number}: {linecache.getline(path, number).strip()}".rstrip(": ")


def _is_users(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return not path.startswith((OURS, "<frozen", "<string>", "<__array", *INSTALLED))
