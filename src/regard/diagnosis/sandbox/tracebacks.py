"""The user's part of what went wrong while the user's code was loaded: a traceback without our own lines."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from .limits import TargetError, left, out_of_memory

T = TypeVar("T")
OURS = str(Path(__file__).parent)


def users_part(load: Callable[[], T], where: str) -> T:
    """What `load` gives; its troubles become errors that name the file and show the user's lines."""
    try:
        return load()
    except SystemExit as error:
        how = f"sys.exit({'' if error.code is None else repr(error.code)})"
        raise left(how, f"while {where} was imported, where if __name__ == '__main__' keeps it apart") from None
    except ModuleNotFoundError as error:
        hint = f"pip install {error.name}, or start where it can be imported" if error.name else "install it"
        raise TargetError(f"{where}: it imports {error.name}, which is not found; {hint}\n{_lines(error)}") from None
    except EOFError as error:
        raise TargetError(
            f"{where}: it asks for input while it is imported, and there is none; "
            f"put that under if __name__ == '__main__'\n{_lines(error)}"
        ) from None
    except Exception as error:
        if out_of_memory(error):
            raise
        name = type(error).__name__
        raise TargetError(
            f"{where}: {name} while it is imported; mend it, or put what only a run needs under "
            f"if __name__ == '__main__'\n{_lines(error)}"
        ) from None


def _lines(error: BaseException) -> str:
    """The traceback as Python prints it, from the first line of the user on."""
    told = traceback.TracebackException.from_exception(error)
    _trim(told)
    return "".join(told.format()).rstrip()


def _trim(told: traceback.TracebackException | None) -> None:
    if told is None:
        return
    kept = [frame for frame in told.stack if not _is_ours(frame.filename)]
    told.stack = traceback.StackSummary.from_list(kept)
    _trim(told.__cause__)
    _trim(told.__context__)


def _is_ours(filename: str) -> bool:
    return filename.startswith(("<frozen importlib", OURS)) or "importlib/__init__.py" in filename.replace("\\", "/")
