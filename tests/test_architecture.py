"""Who may import whom: the drawn diagram, as a test.

experiments  claims  course  tour  cli              on top
   zoo  nn  hf  diagnosis  testing  viewer  train   use the public Attention
              attention                             joins
    engines.plan ── one engine, another engine      never each other
    engines.reading ── engines.call      geometry  inputs      the door, and what comes before attention
               algebra                              imports nothing of ours
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import regard

# -- the diagram -----------------------------------------------------------------------------------------------

ENGINES = "engines.python engines.dense engines.tiled engines.sdpa engines.triton engines.linear engines.ring".split()
DOOR = [f"engines.{part}" for part in (
    "call tables dropout select reading scatter vectors costs graph compiled operators".split()
)]  # fmt: skip

ARROWS: dict[str, list[str]] = {
    "_shapes": [],
    "_names": ["algebra"],
    "_checks": ["algebra"],
    "_arrays": ["algebra"],
    "_drawing": [],
    "algebra": [],
    "geometry": ["algebra"],
    "inputs": ["algebra"],
    "engines": [],
    "engines.call": ["algebra", "engines.dropout", "engines.tables"],
    "engines.tables": ["algebra", "engines.call"],
    "engines.costs": ["engines.call"],
    "engines.graph": ["engines.compiled"],
    "engines.compiled": ["engines.graph"],
    "engines.select": [],
    **{f"engines.{part}": ["algebra", *DOOR] for part in "dropout reading scatter vectors operators".split()},
    **{engine: ["algebra", *DOOR] for engine in ENGINES},
    "engines.plan": ["algebra", *DOOR, "engines", *ENGINES],
    "trace": ["algebra", *DOOR],
    "parts": ["algebra", *DOOR, "engines.dense"],
    "attention": ["algebra", *DOOR, "engines.plan", "engines.triton", "parts", "trace"],
    "drop_in": ["algebra", "attention", *DOOR],
    "example": ["algebra"],
    "zoo": ["algebra", "attention"],
    "nn": ["algebra", "attention", "drop_in", "inputs"],
    "hf": ["algebra", "attention", "drop_in"],
    "diagnosis": ["algebra", "attention", "inputs", "zoo"],
    "testing": ["algebra", "diagnosis"],
    "train": ["algebra", "attention", "geometry", "inputs", "nn"],
    "viewer": ["algebra", "attention", "parts", "geometry", "inputs", "nn", "hf", "train"],
}
TOP = (
    "experiments claims course similarity terminal tour learning cli __main__".split()
)  # import all above, and those to their left
ANYWHERE = ["", "_shapes", "_names", "_arrays", "_checks"]  # the package itself, and what every part may use

OPTIONAL = set(  # never needed by an import
    "torch triton jax jaxtyping transformers typer rich sklearn scipy matplotlib PIL tokenizers safetensors "
    "cloudpickle IPython pytest tensorboard starlette uvicorn anywidget traitlets anyio marimo markdown latex2mathml "
    "pygments websockets".split()
)
TRIED_AT_IMPORT = {  # exceptions: a module that does without, or says what to install
    "_shapes": {"jaxtyping"},
    "cli": {"rich", "typer"},
    "experiments.command": {"rich"},
    "learning": {"typer"},
    "diagnosis.display.terminal": {"rich"},
    "geometry.whitened": {"sklearn"},
    "similarity.report": {"rich"},
    "terminal": {"rich"},
}

INSIDE = {  # of a package that is reached on demand, and of the engines
    "engines.tiled.": {"torch"},
    "engines.triton.": {"torch", "triton"},
    "engines.operators": {"torch"},
    "engines.compiled": {"torch"},
    "diagnosis.modules.": {"torch"},
    "nn.": {"torch"},
    "train.": {"torch", "safetensors"},
    "experiments.": {"torch"},
    "hf.": {"torch", "transformers"},
    "viewer.capturing.": {"torch", "transformers"},
    "viewer.server.": {"anyio", "starlette", "uvicorn"},
    "viewer.widget": {"anywidget", "traitlets"},
    "course.chapters.": {"marimo", "matplotlib", "sklearn", "torch"},
    "course.programs.": {"torch"},
    "course.serving.": {"marimo", "starlette", "uvicorn"},
    "course.widgets.": {"anywidget", "traitlets"},
}

# -- reading the source ----------------------------------------------------------------------------------------

SOURCE = Path(inspect.getfile(regard)).parent
FILES = sorted(SOURCE.rglob("*.py"))


@dataclass(frozen=True)
class Import:
    """One import in the source: the module it names, and whether it runs when the file is imported."""

    module: str
    line: int
    at_once: bool


def name_of(path: Path) -> str:
    """`engines.dense` for src/regard/engines/dense.py; a package is named by its folder."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def name_of_folder(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def place_of(module: str) -> str:
    """Where the module stands in the diagram: the longest name there that it begins with."""
    names = [*ARROWS, *TOP]
    found = [name for name in names if module == name or module.startswith(f"{name}.")]
    return max(found, key=len, default=module)


def imports(path: Path) -> list[Import]:
    return list(_imports(ast.parse(path.read_text(encoding="utf-8")), path, at_once=True))


def _imports(node: ast.AST, path: Path, *, at_once: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (Import(alias.name, child.lineno, at_once) for alias in names)
            case ast.ImportFrom(names=names):
                yield from (Import(f"{_base(child, path)}.{alias.name}", child.lineno, at_once) for alias in names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _imports(child, path, at_once=False)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _imports(child, path, at_once=False)
            case _:
                yield from _imports(child, path, at_once=at_once)


def _base(node: ast.ImportFrom, path: Path) -> str:
    if node.level == 0:
        return node.module or ""
    package = ["regard", *path.relative_to(SOURCE).parts[:-1]]
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])


def ours(found: Import) -> str | None:
    """The module of ours that an import names, without the name taken from it."""
    root, _, rest = found.module.partition(".")
    if root != "regard":
        return None
    while rest and not ((SOURCE / rest.replace(".", "/")).is_dir() or _file(rest).is_file()):
        rest = rest.rpartition(".")[0]
    return rest


def _file(module: str) -> Path:
    return (SOURCE / module.replace(".", "/")).with_suffix(".py")


def allowed(place: str) -> set[str]:
    if place in TOP:
        return {*ARROWS, *TOP[: TOP.index(place)], *ANYWHERE, place}
    return {*ARROWS[place], *ANYWHERE, place} - ({"_arrays"} if place == "algebra" else set())


# -- what must hold --------------------------------------------------------------------------------------------

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: name_of(path) or "regard")


@every_file
def test_stands_in_the_diagram(path: Path) -> None:
    name = name_of(path)
    assert not name or place_of(name) in {*ARROWS, *TOP}, f"{name} has no arrows yet: draw them in ARROWS"


@every_file
def test_imports_follow_the_arrows(path: Path) -> None:
    if path == SOURCE / "__init__.py":
        assert not [found for found in imports(path) if ours(found)], "the package names its parts; it imports none"
        return
    may = allowed(place_of(name_of(path)))
    named = [(found.line, module) for found in imports(path) if (module := ours(found)) is not None]
    assert not [f"line {line}: {module}" for line, module in named if place_of(module) not in may]


@every_file
def test_optional_packages_are_imported_on_demand(path: Path) -> None:
    name = name_of(path)
    inside = [packages for place, packages in INSIDE.items() if name.startswith(place)]
    barred = OPTIONAL.difference(TRIED_AT_IMPORT.get(name, set()), *inside)
    found = [found for found in imports(path) if found.at_once and found.module.partition(".")[0] in barred]
    assert not [f"line {one.line}: {one.module}" for one in found]


@pytest.mark.parametrize("package", ["torch", "triton", "jax", "numpy", "array_api_compat"])
def test_algebra_knows_no_array_library(package: str) -> None:
    inside = [path for path in FILES if place_of(name_of(path)) == "algebra"]
    assert inside
    named = [(name_of(path), found.module.partition(".")[0]) for path in inside for found in imports(path)]
    assert not [module for module, root in named if root == package]


def test_no_function_shares_its_name_with_a_folder() -> None:
    folders = {path.name for path in SOURCE.rglob("*") if path.is_dir()}
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    functions = [(path, node.name) for path, tree in trees.items() for node in tree.body if hasattr(node, "name")]
    assert not [f"{name_of(path)}.{name}" for path, name in functions if name in folders]


@pytest.mark.parametrize("package", sorted({path.parent for path in FILES}), ids=name_of_folder)
def test_no_public_name_is_that_of_a_module_beside_it(package: Path) -> None:
    """Importing the module would put it in the place of the name."""
    names = getattr(import_module(".".join(["regard", *package.relative_to(SOURCE).parts])), "_NAMES", {})
    assert not {path.stem for path in package.glob("*.py")} & set(names)


# -- documentation ---------------------------------------------------------------------------------------------


@every_file
def test_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def public_parts(name: str) -> Iterator[tuple[str, Any]]:
    """A public name, and the public attributes that its class or module adds."""
    value = getattr(regard, name)
    yield name, value
    if isinstance(value, type):
        inside = {key for base in value.__mro__ if base.__module__.startswith("regard") for key in vars(base)}
        yield from ((f"{name}.{key}", getattr(value, key)) for key in sorted(inside) if not key.startswith("_"))
    if isinstance(value, ModuleType):
        yield from ((f"{name}.{key}", getattr(value, key)) for key in sorted(_made_in(value)))


def _made_in(module: ModuleType) -> set[str]:
    """The public names of a module: those it lists, and those it defines."""
    made = {key for key, part in vars(module).items() if getattr(part, "__module__", None) == module.__name__}
    listed = {key: getattr(module, key) for key in getattr(module, "__all__", ())}
    told = {key for key, part in listed.items() if inspect.isclass(part) or inspect.isroutine(part)}
    return {key for key in made if not key.startswith("_")} | told


@pytest.mark.parametrize("name", regard.__all__)
def test_public_name_has_a_docstring(name: str) -> None:
    documentable = [(part, value) for part, value in public_parts(name) if callable(value) or hasattr(value, "fget")]
    assert not [part for part, value in documentable if not (inspect.getdoc(value) or "").strip()]
    assert (inspect.getdoc(getattr(regard, name)) or "").strip()
