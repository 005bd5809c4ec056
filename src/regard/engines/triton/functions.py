"""The written functions of a formula as a module of jitted ones, from a file that people can read.

Files lie in a folder of the user's cache (REGARD_CACHE names another), under the formula's key; one that does not hold
what is written now is written again, so that nothing else is ever run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from .source import Written

TRITON = "import triton\nimport triton.language as tl\n\njit = triton.jit\n"
GLUON = (
    "from triton.experimental import gluon\nfrom triton.experimental.gluon import language as tl\n\njit = gluon.jit\n"
)


@lru_cache(maxsize=1024)
def jitted(written: Written, head: str = TRITON) -> ModuleType:
    """The functions, jitted for Triton or for Gluon."""
    text = whole_text(written, head)
    path = folder() / f"{written.formula.key[:16]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        _write(path, text)
    spec = importlib.util.spec_from_file_location(f"regard_kernels_{path.stem.replace('-', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def whole_text(written: Written, head: str) -> str:
    """The source of the module: its title, what it imports, its functions."""
    title, rest = written.text.split("\n", 1)
    return f"{title}\n\n{head}{rest}"


@lru_cache(maxsize=1)
def folder() -> Path:
    """Where generated source is kept: the user's cache, or a folder of this process where that is closed to it."""
    home = os.environ.get("REGARD_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    place = Path(home).expanduser() / "regard" / "kernels"
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="regard-kernels-"))
    return place if os.access(place, os.W_OK) else Path(tempfile.mkdtemp(prefix="regard-kernels-"))


def _write(path: Path, text: str) -> None:
    """The whole file at once: another process may read it meanwhile."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as part:
        part.write(text)
    Path(part.name).replace(path)
