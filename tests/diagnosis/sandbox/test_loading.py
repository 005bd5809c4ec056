"""Targets by their place: files, packages, modules and notebooks; and what is said when nothing is there."""

from __future__ import annotations

import inspect
import json
import linecache
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from regard import KindError
from regard.diagnosis.sandbox.limits import Limits, Stopped, TargetError
from regard.diagnosis.sandbox.loading import Live, Place, source_of
from regard.diagnosis.sandbox.notebooks import python_of
from regard.diagnosis.sandbox.process import Call, Child, Here

ATTEND = """
    from __future__ import annotations
    import helper
    from dataclasses import dataclass

    @dataclass
    class Block:
        width: "int" = 3

        def forward(self):
            return helper.seven() + self.width

    def attend(x=0):
        return helper.seven() + x

    scale = 0.5

    if __name__ == "__main__":
        raise SystemExit("this is a run")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of files; what they bring into this process is taken out again."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    write(tmp_path / "attention.py", ATTEND)
    write(tmp_path / "helper.py", "def seven(): return 7")
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or tmp_path).startswith(str(tmp_path)):
            del sys.modules[name]
    linecache.clearcache()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


def notebook(path: Path, *cells: str) -> Path:
    text = {"cell_type": "markdown", "source": ["# not code"]}
    code = [{"cell_type": "code", "source": dedent(cell).strip("\n").splitlines(keepends=True)} for cell in cells]
    path.write_text(json.dumps({"cells": [text, *code], "nbformat": 4}), encoding="utf-8")
    return path


def refused(text: str) -> str:
    with pytest.raises(TargetError) as error:
        Place(text).load()
    return str(error.value)


# -- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where", "name"),
    [
        ("a.py:f", "a.py", "f"),
        ("dir/a.py:Block.forward", "dir/a.py", "Block.forward"),
        ("pkg.mod:f", "pkg.mod", "f"),
        ("a.py", "a.py", ""),
        ("a.py:", "a.py", ""),
        (r"C:\code\a.py", r"C:\code\a.py", ""),
        (r"C:\code\a.py:f", r"C:\code\a.py", "f"),
        ("a.ipynb:größe", "a.ipynb", "größe"),
    ],
)
def test_a_text_is_a_place_and_a_name(text: str, where: str, name: str) -> None:
    place = source_of(text)
    assert isinstance(place, Place)
    assert (place.where, place.name) == (where, name)


def test_labels_are_short() -> None:
    assert Place("dir/attention.py:attend").label == "attention.py:attend"
    assert source_of(max).label == "max"
    assert source_of(Live(max)) == Live(max)


@pytest.mark.parametrize("bad", ["", ":f", " "])
def test_an_empty_place_is_refused(bad: str) -> None:
    with pytest.raises(KindError, match=r"target: its place, 'path\.py:name'.*; got"):
        Place(bad)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(KindError, match=r"target: something to call, or its place as text; got int 7; pass 'path"):
        source_of(7)


# -- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["attention.py:attend", "./attention.py:attend", "attention:attend"])
@pytest.mark.parametrize("where", [Here, Child])
def test_a_file_may_import_its_neighbours(text: str, where: Any) -> None:
    with where(Place(text)) as runner:
        assert runner.ask(Call((4,))) == 11
        assert runner.printed.bytes == 0


def test_from_another_folder_and_with_classes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    block = Place(f"{folder}/attention.py:Block").load()
    assert block(5).forward() == 12
    assert Place(f"{folder}/attention.py:Block.forward").load()(block(2)) == 9
    assert "helper.seven() + self.width" in inspect.getsource(block.forward)


def test_nothing_is_left_in_the_folder(folder: Path) -> None:
    before = sorted(folder.iterdir())
    with Child(Place("attention.py:attend")) as runner:
        runner.ask(Call())
    assert sorted(folder.iterdir()) == before


def test_an_edited_file_is_read_again(folder: Path) -> None:
    for value in (3, 5):
        write(folder / "one.py", f"def f(): return {value}")
        with Child("one.py:f") as runner:
            assert runner.ask(Call()) == value


def test_a_function_is_sent_as_it_is_here(folder: Path) -> None:
    file = write(folder / "one.py", "def three(): return 3\ndef f(): return three()")
    target = Place("one.py:f").load()
    write(file, "raise RuntimeError('edited since')")
    with Child(target) as runner:
        assert runner.ask(Call()) == 3


@pytest.mark.parametrize("name", ["random", "json", "code", "helper"])
def test_a_file_may_be_called_as_a_module_of_python_is(folder: Path, name: str) -> None:
    write(folder / "deep" / f"{name}.py", "from dataclasses import dataclass\n@dataclass\nclass F:\n    x: int = 3")
    sys.path.insert(0, str(folder))
    module = __import__(name)
    assert Place(f"deep/{name}.py:F").load()().x == 3
    assert sys.modules[name] is module


def test_a_part_of_a_package_imports_relatively(folder: Path) -> None:
    write(folder / "pack" / "__init__.py", "")
    write(folder / "pack" / "sub" / "__init__.py", "LEVEL = 2")
    write(folder / "pack" / "base.py", "def two(): return 2")
    write(folder / "pack" / "sub" / "near.py", "def five(): return 5")
    write(
        folder / "pack" / "sub" / "main.py",
        "from . import LEVEL\nfrom ..base import two\nimport near\ndef f(): return LEVEL * two() * near.five()",
    )
    assert Place("pack/sub/main.py:f").load()() == 20
    assert Place("pack.sub.main:f").load()() == 20


def test_a_name_may_be_left_out_where_there_is_one(folder: Path) -> None:
    write(folder / "one.py", "from helper import seven\ndef only(): return seven()\ndef _hidden(): pass")
    assert Place("one.py").load()() == 7
    assert refused("attention.py") == (
        "attention.py: exactly one public function or class, where none is named; got 2: Block, attend; "
        "name one, as attention.py:Block"
    )


# -- what is not there -------------------------------------------------------------------------------------------


def test_a_missing_file_is_guessed(folder: Path) -> None:
    assert f"no 'atention.py' in {folder}; did you mean attention.py?" in refused("atention.py:attend")
    assert "got no folder 'nowhere'; you are in" in refused("nowhere/a.py:f")
    assert "did you mean attention.py?" in refused("./attention:attend")


def test_a_missing_name_is_guessed() -> None:
    assert refused("attention.py:atend") == (
        "attention.py: no 'atend' in it; did you mean 'attend'? it defines Block, attend"
    )
    assert "no 'forwrd' in Block of attention.py; did you mean 'forward'?" in refused("attention.py:Block.forwrd")


def test_what_is_no_function_is_refused() -> None:
    assert refused("attention.py:scale") == (
        "attention.py:scale: a function, a class or a module of layers; got float 0.5; it defines Block, attend"
    )


def test_a_missing_module_is_named(folder: Path) -> None:
    write(folder / "needs.py", "import no_such_package\ndef f(): pass")
    told = refused("needs.py:f")
    assert "needs.py: it imports no_such_package, which is not found; pip install no_such_package" in told
    assert "line 1, in <module>\n    import no_such_package" in told
    assert "it imports no_such_module, which is not found" in refused("no_such_module:f")
    assert "the name of a module or a file" in refused("not a place")


FAULTS = {
    "x = 1\ny = x / 0": ("ZeroDivisionError while it is imported", "line 2, in <module>\n    y = x / 0"),
    "def f(:\n  pass": ("SyntaxError while it is imported", "line 1\n    def f(:"),
    "import helper\nhelper.eight()": ("AttributeError", "helper.eight()"),
    "name = input('Name: ')": ("it asks for input while it is imported", "name = input('Name: ')"),
}


@pytest.mark.parametrize("text", FAULTS)
@pytest.mark.parametrize("where", [Here, Child])
def test_a_file_that_fails_shows_its_own_lines(folder: Path, text: str, where: Any) -> None:
    first, lines = FAULTS[text]
    write(folder / "faulty.py", text)
    with pytest.raises(TargetError) as error, where("faulty.py:f") as runner:
        runner.ask(Call())
    head, _, shown = str(error.value).partition("\n")
    assert f"faulty.py: {first}" in head
    assert lines in shown
    assert "diagnosis" not in shown
    assert "importlib" not in shown


@pytest.mark.parametrize(
    ("text", "why", "told"),
    [
        ("import sys; sys.exit(2)", "exit", r"by sys\.exit\(2\) \(while .*faulty\.py was imported, where if __name__"),
        ("raise SystemExit", "exit", r"by sys\.exit\(\)"),
        ("import os; os._exit(0)", "exit", r"by exit code 0, as os\._exit\(0\) does \(loading faulty\.py:f\)"),
        ("import ctypes; ctypes.string_at(0)", "crash", r"SIGSEGV.*\(loading faulty\.py:f\)"),
        ("while True: print(0)", "printing", r"printed more than .* \(loading faulty\.py:f\)"),
        ("a = bytearray(2**33)", "memory", r"more than 64 MiB of memory \(loading faulty\.py:f\)"),
        ("import time; time.sleep(99)", "time", r"loading faulty\.py:f took more than 1 s; keep training"),
    ],
)
def test_a_file_that_ends_or_hangs_is_told_of(folder: Path, text: str, why: str, told: str) -> None:
    write(folder / "faulty.py", text)
    began = time.monotonic()
    limits = Limits(start_seconds=1 if why == "time" else 90, memory=2**26, printed=5_000)
    with Child("faulty.py:f", limits) as runner, pytest.raises(Stopped, match=told) as stopped:
        runner.ask(Call())
    assert stopped.value.why == why
    assert time.monotonic() - began < 90


# -- notebooks ---------------------------------------------------------------------------------------------------

LESSON = (
    "%matplotlib inline\nimport helper\n!pip install nothing\nbase = (7\n    % 4)",
    "%%bash\nexit 1",
    "%%time\nif base:\n    !ls\nhelper.seven?\nfiles = !ls",
    "def attend(x=0):\n    return helper.seven() + base + x",
    "def attend(x=0):\n    raise RuntimeError('the second one')",
    "raise RuntimeError('too far')",
)


@pytest.mark.parametrize("where", [Here, Child])
def test_cells_run_up_to_the_name(folder: Path, where: Any) -> None:
    notebook(folder / "my lesson.ipynb", *LESSON)
    with where("my lesson.ipynb:attend") as runner:
        assert runner.ask(Call((5,))) == 7 + 3 + 5


def test_a_function_of_a_notebook_has_a_source(folder: Path) -> None:
    notebook(folder / "lesson.ipynb", *LESSON)
    assert inspect.getsource(Place("lesson.ipynb:attend").load()) == LESSON[3]


def test_cells_that_fail_are_named(folder: Path) -> None:
    notebook(folder / "lesson.ipynb", "x = 1", "x / 0", "def attend(): pass")
    told = refused("lesson.ipynb:attend")
    assert told.startswith("lesson.ipynb, cell 2 of code: ZeroDivisionError while it is imported")
    assert '"<lesson.ipynb, cell 2>", line 1, in <module>\n    x / 0' in told
    notebook(folder / "lesson.ipynb", "def attend(): pass")
    assert "no 'atend' in it; did you mean 'attend'?" in refused("lesson.ipynb:atend")
    assert Place("lesson.ipynb").load()() is None
    write(folder / "broken.ipynb", "{}")
    assert "broken.ipynb: a Jupyter notebook; got no cells" in refused("broken.ipynb:f")


@pytest.mark.parametrize("text", ["x = 7\ny = (x\n    % 3)", "s = '''\n%magic\n!ls\n'''", "x = 3 != 4", ""])
def test_plain_python_is_left_as_it_is(text: str) -> None:
    assert python_of(text) == text


@pytest.mark.parametrize("text", ["!ls", "  %time x", "?max", "max??", "x = !ls", "a, b = %sx ls", "%%html\n<b>"])
def test_lines_for_the_notebook_are_dropped(text: str) -> None:
    assert python_of(text).strip() in ("pass", "")
