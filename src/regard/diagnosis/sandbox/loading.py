"""Where a target comes from: an object of this process, or a place that a text names.

    "attention.py:attend"    "layers.py:Block"    "package.module:name.attribute"    "lesson.ipynb:attend"

A file may import what lies beside it; what stands under `if __name__ == "__main__"` does not run.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from ...algebra.errors import KindError
from .limits import TargetError
from .tracebacks import users_part

WAYS = "'path.py:name', 'package.module:name' or 'notebook.ipynb:name'"
NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Live:
    """A target that is an object of this process: a function, a class, a module of layers, anything callable."""

    target: Any

    def __post_init__(self) -> None:
        if not callable(self.target):
            raise KindError(f"target: something to call, or its place as text; got {shown(self.target)}; pass {WAYS}")

    @property
    def label(self) -> str:
        """How the target is called in a report."""
        return label(self.target)

    def load(self) -> Any:
        """The target itself."""
        return self.target


@dataclass(frozen=True)
class Place:
    """A target that a text names.

    >>> place = Place("attention.py:Block.forward")
    >>> place.where, place.name
    ('attention.py', 'Block.forward')
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.where:
            raise KindError(f"target: its place, {WAYS}; got {self.text!r}; name a file or a module")

    @property
    def where(self) -> str:
        """The file or the module."""
        return self._parts[0]

    @property
    def name(self) -> str:
        """The name in it; empty where the text gives none."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[str, str]:
        where, colon, name = self.text.strip().rpartition(":")
        if colon and (not name or NAME.fullmatch(name)):
            return where, name
        return self.text.strip(), ""  # no colon, or that of a drive

    @property
    def label(self) -> str:
        """How the target is called in a report."""
        return f"{Path(self.where).name}:{self.name}" if self.name else Path(self.where).name

    def load(self) -> Any:
        """The target, imported here."""
        module = self._module()
        if not self.name:
            return self._only(module)
        value: Any = module
        for part in self.name.split("."):
            if not hasattr(value, part):
                raise TargetError(f"{self.where}: no {part!r} in {_called(value, self.where)}{_choice(value, part)}")
            value = getattr(value, part)
        if not callable(value):
            choice = _choice(module, "")
            raise TargetError(f"{self.text}: a function, a class or a module of layers; got {shown(value)}{choice}")
        return value

    def _module(self) -> ModuleType:
        if self.where.endswith(".ipynb"):
            from .notebooks import module_of

            return module_of(_existing(self.where), self.name.partition(".")[0])
        if self.where.endswith(".py") or "/" in self.where or "\\" in self.where:
            return _module_of_file(_existing(self.where))
        return _module_of_name(self.where)

    def _only(self, module: ModuleType) -> Any:
        names = defined(module)
        if len(names) != 1:
            found = f"got {len(names)}: {', '.join(names)}" if names else "got none"
            advice = f"name one, as {self.where}:{names[0]}" if names else "name what it imports, as path.py:name"
            raise TargetError(f"{self.where}: exactly one public function or class, where none is named; "
                              f"{found}; {advice}")  # fmt: skip
        return getattr(module, names[0])


Source = Live | Place


def source_of(target: object) -> Source:
    """Where a target comes from: a text is a place, all else is the target itself."""
    if isinstance(target, Live | Place):
        return target
    return Place(target) if isinstance(target, str) else Live(target)


def label(target: Any) -> str:
    """The name of a function or class, or of the class of an object."""
    if isinstance(target, functools.partial):
        return f"partial of {label(target.func)}"
    return str(getattr(target, "__qualname__", None) or type(target).__qualname__)


def shown(value: object, width: int = 60) -> str:
    """A value in one short line, with its kind."""
    text = " ".join(repr(value).split())
    return f"{type(value).__name__} {text if len(text) <= width else text[: width - 1] + '…'}"


def defined(module: ModuleType) -> list[str]:
    """The public functions and classes that a module defines itself, in its order."""
    own = [name for name, value in vars(module).items() if callable(value) and _made_in(value, module)]
    return [name for name in own if not name.startswith("_")]


# -- files and modules -----------------------------------------------------------------------------------------


def _existing(where: str) -> Path:
    path = Path(where).expanduser()
    if path.is_file():
        return path.resolve()
    folder = path.parent
    if not folder.is_dir():
        raise TargetError(f"{where}: a file that exists; got no folder {str(folder)!r}; you are in {Path.cwd()}")
    near = [file.name for file in folder.iterdir() if file.suffix in (".py", ".ipynb")]
    guess = get_close_matches(path.name, near, n=3) or sorted(near)[:5]
    advice = (
        f"did you mean {' or '.join(str(folder / name) for name in guess)}?" if guess else "it holds no Python file"
    )
    raise TargetError(f"{where}: a file that exists; got no {path.name!r} in {folder.resolve()}; {advice}")


def _module_of_file(path: Path) -> ModuleType:
    """The module of a file: as a part of its package where it has one, else by its own name."""
    root, name = _package(path)
    if root != path.parent:
        _search(root, first=True)
        _search(path.parent, first=False)  # last, since parts of a package may be called as modules of Python are
        module = users_part(lambda: import_module(name), str(path))
        if _is_from(module, path):
            return module
    _search(path.parent, first=True)
    return users_part(lambda: _executed(path), str(path))


def _package(path: Path) -> tuple[Path, str]:
    """The folder that holds the outermost package of the file, and the file's name in it."""
    folder, names = path.parent, [] if path.stem == "__init__" else [path.stem]
    while (folder / "__init__.py").is_file() and folder.name.isidentifier() and folder != folder.parent:
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(names)


def _is_from(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path


def _executed(path: Path) -> ModuleType:
    name = path.stem
    while name in sys.modules or name in sys.stdlib_module_names:  # a file may be called random.py
        name += "_"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{path}: a file of Python; got one that ends in {path.suffix!r}; pass {WAYS}")
    module = module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickles look for it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_of_name(name: str) -> ModuleType:
    if not NAME.fullmatch(name):
        raise TargetError(f"{name}: the name of a module or a file; got {name!r}; pass {WAYS}")
    _search(Path.cwd(), first=True)
    return users_part(lambda: import_module(name), name)


def _search(folder: Path, *, first: bool) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0 if first else len(sys.path), str(folder))
    elif first:
        sys.path.remove(str(folder))
        sys.path.insert(0, str(folder))


# -- names -----------------------------------------------------------------------------------------------------


def _made_in(value: Any, module: ModuleType) -> bool:
    return getattr(value, "__module__", None) == module.__name__


def _called(value: Any, where: str) -> str:
    return "it" if isinstance(value, ModuleType) else f"{label(value)} of {where}"


def _choice(holder: Any, wanted: str) -> str:
    """What may be meant, as the end of a sentence."""
    names: Iterable[str] = defined(holder) if isinstance(holder, ModuleType) else _attributes(holder)
    listed = list(names)
    near = get_close_matches(wanted, listed, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ";"
    return f"{guess} it defines {', '.join(listed)}" if listed else f"{guess} it defines nothing to call"


def _attributes(holder: Any) -> list[str]:
    return [name for name in vars(holder) if not name.startswith("_")] if hasattr(holder, "__dict__") else []
