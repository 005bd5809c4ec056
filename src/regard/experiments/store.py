"""What was measured already, and with which code: a number is measured again when that code has changed.

    outcome("recall")                 the outcome of an experiment that is kept, or came with the package
    code_hash("experiments.recall")   the SHA-256 of a module, of all that it imports, and of the packages below

An import counts wherever it stands, in a function too. In a file that fetches modules by their names, every text that
names one counts. Results lie in REGARD_CACHE, or where the system keeps caches, under their name and the hash. Those
that come with the package name the modules that were loaded when they were measured, and the hash of their source: what
no run ever loads, as the kernels of a GPU on a machine without one, may change. `is_older` says where the source does.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..algebra.errors import RegardError
from .record import Experiment, Outcome, Scale, Tell, silent
from .registry import find

SOURCE = Path(__file__).parent.parent
PACKAGES = ("numpy", "sympy", "torch", "jax", "scipy", "scikit-learn", "transformers")
"""Others' code that numbers depend on, by its version where it is installed."""
OUTCOMES = SOURCE / "experiments" / "outcomes"
"""Outcomes that come with the package: NAME.json, with what measured it under "modules" and "source"."""
FETCHERS = {"import_module", "by_name"}
"""Functions that import what a text names."""


class NotMeasured(RegardError):  # noqa: N818 - what is the case, as one says it
    """An outcome that is asked for and is not there."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(
            f"not measured with this code; `regard experiment {experiment.name}` does, "
            f"in about {experiment.minutes:g} minutes"
        )


def known(name: str, scale: Scale = Scale()) -> Outcome | None:  # noqa: B008 - a value that never changes
    """The outcome of this code, kept here or shipped; None where there is none."""
    path = place(name, scale)
    if path.is_file():
        return Outcome.of_json(path.read_text(encoding="utf-8"))
    brought = shipped(name) if scale == Scale() else None
    return brought[0] if brought is not None and brought[1] else None


def outcome(name: str) -> Outcome:
    """The outcome of the whole experiment, for the ledger: of this code, or else the one that came with the package."""
    found = known(name)
    if found is not None:
        return found
    brought = shipped(name)
    if brought is None:
        raise NotMeasured(find(name))
    return brought[0]


def shipped(name: str) -> tuple[Outcome, bool] | None:
    """The outcome that came with the package, and whether the source that measured it is the one here."""
    path = OUTCOMES / f"{name}.json"
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    told = json.loads(text)
    modules = told.get("modules", "").split()
    stands = bool(modules) and all(map(_is_module, modules)) and _hashed(modules) == told.get("source")
    return Outcome.of_json(text), stands


def ship(name: str, found: Outcome) -> None:
    """Let an outcome of this process come with the package."""
    modules = sorted(part for part in dependencies(f"experiments.{name}") if part and f"regard.{part}" in sys.modules)
    told = json.loads(found.json()) | {"modules": " ".join(modules), "source": _hashed(modules)}
    write(OUTCOMES / f"{name}.json", json.dumps(told, ensure_ascii=False, indent=1) + "\n")


def is_older(name: str) -> bool:
    """Whether all that is known of an experiment was measured by other code."""
    return known(name) is None and shipped(name) is not None


def measured(name: str, scale: Scale = Scale(), tell: Tell = silent) -> Outcome:  # noqa: B008
    """Run it, and keep what comes out."""
    path = place(name, scale)  # before the run: it is that of the code that runs
    found = find(name).run(scale, tell)
    write(path, found.json())
    return found


def place(name: str, scale: Scale) -> Path:
    """The file of an outcome."""
    code = code_hash(f"experiments.{name}")
    return folder("experiments") / name / f"{code[:16]}-{scale.share:g}-{scale.seed}.json"


def folder(kind: str) -> Path:
    """Where results of a kind are kept: "experiments" or "claims"."""
    if "REGARD_CACHE" in os.environ:
        return Path(os.environ["REGARD_CACHE"]) / kind
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "regard" / kind
    usual = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_CACHE_HOME")
    return (Path(usual) if usual else Path.home() / ".cache") / "regard" / kind


def write(path: Path, text: str) -> None:
    """The whole file at once: another process may read it meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


# -- the code that a number depends on -------------------------------------------------------------------------


@cache
def code_hash(module: str, leaving: tuple[str, ...] = ()) -> str:
    """The SHA-256 of the source that a module depends on, and of the versions of `PACKAGES`."""
    digest = hashlib.sha256(f"Python {platform.python_version()}\0".encode())
    for package in PACKAGES:
        digest.update(f"{package} {_version(package)}\0".encode())
    digest.update(source_hash(module, leaving).encode())
    return digest.hexdigest()


@cache
def source_hash(module: str, leaving: tuple[str, ...] = ()) -> str:
    """The SHA-256 of the source of a module and of all that it depends on, on whatever machine."""
    return _hashed(dependencies(module, leaving))


def _hashed(modules: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(modules):
        source = _file(name).read_text(encoding="utf-8")  # line ends are the same everywhere
        digest.update(f"{name}\0{source}\0".encode())
    return digest.hexdigest()


@cache
def dependencies(module: str, leaving: tuple[str, ...] = ()) -> frozenset[str]:
    """A module of regard, as in "engines.dense", and all that it imports, directly or not; "" is regard itself.

    leaving: modules that do not count, and what they import
    """
    found, above, ahead = set[str](), set[str](), {module}
    while ahead:
        name = ahead.pop()
        found.add(name)
        parents = {parent for parent in _parents(name) if parent not in leaving}  # loaded, but not asked for anything
        above |= parents
        asked = _imported(name) | _fetched(name) | {part for parent in parents for part in _imported(parent)}
        ahead |= asked - found - set(leaving)
    return frozenset(found | above)


@cache
def _imported(name: str) -> frozenset[str]:
    """The modules of ours that a file imports."""
    told = (part for node in _statements(_tree(name)) for part in _targets(node, _package(name)))
    return frozenset(filter(_is_module, told))


@cache
def _fetched(name: str) -> frozenset[str]:
    """The modules of ours that a text in a file names, if it fetches any by their names."""
    if not any(fetcher in _file(name).read_text(encoding="utf-8") for fetcher in FETCHERS):
        return frozenset()
    parts = (node.value for node in ast.walk(_tree(name)) if isinstance(node, ast.Constant))
    words = {word.lstrip(".") for text in parts if isinstance(text, str) for word in text.split()} - {""}
    return frozenset(filter(_is_module, (_joined(_package(name), word) for word in words)))


def _tree(name: str) -> ast.Module:
    return ast.parse(_file(name).read_text(encoding="utf-8"))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement, however deep; expressions hold none, and are most of a file."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        inside = getattr(node, field, ())
        for part in inside if isinstance(inside, list) else ():
            yield part
            yield from _statements(part)


def _package(name: str) -> str:
    return name if _file(name).name == "__init__.py" else name.rpartition(".")[0]


def _targets(node: ast.AST, package: str) -> Iterator[str]:
    """What an import names, without the leading "regard": a module, or the one that a name is taken from."""
    if isinstance(node, ast.Import):
        ours = (alias.name.partition(".") for alias in node.names)
        yield from (rest for root, _, rest in ours if root == "regard")
    elif isinstance(node, ast.ImportFrom):
        root, _, rest = (node.module or "").partition(".")
        if node.level == 0 and root != "regard":
            return
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if package else []
        base = _joined(".".join(above), node.module or "") if node.level else rest
        names = [alias.name for alias in node.names if not alias.name.startswith("__")]  # these are never fetched
        yield from (part if _is_module(part := _joined(base, name)) else base for name in names)


def _joined(package: str, name: str) -> str:
    return ".".join(filter(None, (package, name)))


def _parents(name: str) -> Iterator[str]:
    """The packages that hold a module, regard among them."""
    while name:
        name = name.rpartition(".")[0]
        yield name


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.split(".") if name) and _file(name).is_file()


def _file(name: str) -> Path:
    """Where a module stands; a package is its __init__.py."""
    path = SOURCE.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
