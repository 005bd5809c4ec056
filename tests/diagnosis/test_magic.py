"""%%check, on a shell that has what IPython's has."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, field
from typing import Any

import pytest

import regard
from regard.algebra.errors import KindError
from regard.diagnosis import Report

CELL = """
import numpy as np

def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

def attend(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])) @ v
"""
UNSCALED = CELL.replace(" / np.sqrt(k.shape[-1])", "")


@dataclass
class Result:
    success: bool


@dataclass
class Shell:
    """Runs cells in one namespace, as IPython does; an error is shown, and not raised."""

    user_ns: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    magics: dict[str, Any] = field(default_factory=dict)
    shown: str = ""

    def register_magic_function(self, function: Any, magic_kind: str, magic_name: str) -> None:
        assert magic_kind == "line_cell"
        self.magics[magic_name] = function

    def transform_cell(self, cell: str) -> str:
        return cell.replace("%time ", "")

    def run_cell(self, cell: str) -> Result:
        try:
            exec(self.transform_cell(cell), self.user_ns)
        except Exception:  # noqa: BLE001 - a cell may fail in any way
            self.shown = traceback.format_exc()
            return Result(False)
        return Result(True)

    def check(self, line: str = "", cell: str | None = None) -> Any:
        return self.magics["check"](line, cell)


@pytest.fixture
def shell() -> Shell:
    made = Shell()
    regard.load_ipython_extension(made)
    return made


def names(report: Report) -> list[str]:
    return [one.name for one in report.findings]


def test_the_last_definition_is_checked(shell: Shell) -> None:
    report = shell.check("", CELL)
    assert (report.target, report.ok) == ("attend", True)
    assert "attend" in shell.user_ns
    assert report._repr_html_().startswith("<div")


def test_a_mistake_is_named(shell: Shell) -> None:
    assert names(shell.check("", UNSCALED)) == ["no root of d"]


def test_the_rest_of_the_cell_runs_too(shell: Shell) -> None:
    assert shell.check("", f"{CELL}\n%time x = attend(*np.ones((3, 2, 2)))").ok
    assert shell.user_ns["x"].shape == (2, 2)


def test_options_are_those_of_the_command(shell: Shell) -> None:
    assert names(shell.check("--causal", CELL)) == ["no mask"]
    assert shell.check('--formula "softmax(dot)" --no-causal', UNSCALED).ok
    assert shell.check('--as "q,k,v" --layout bhnd --heads 2 --seconds 20', CELL).ok


def test_one_may_be_named(shell: Shell) -> None:
    both = CELL + "\ndef other(q, k, v):\n    return softmax(q @ k.swapaxes(-1, -2)) @ v\n"
    assert shell.check("attend", both).ok
    assert names(shell.check("other")) == ["no root of d"]
    shell.user_ns["holder"] = type("Holder", (), {"attend": staticmethod(shell.user_ns["attend"])})
    assert shell.check("holder.attend").ok


def test_a_public_name_comes_before_a_private_one(shell: Shell) -> None:
    assert shell.check("", CELL + "\ndef _helper():\n    pass\n").target == "attend"


def test_a_cell_that_fails_is_told_by_the_shell(shell: Shell) -> None:
    assert shell.check("", CELL + "\nraise RuntimeError('mine')") is None
    assert "mine" in shell.shown
    assert shell.check("", "def attend(q, k, v:") is None
    assert "SyntaxError" in shell.shown


@pytest.mark.parametrize(
    ("line", "cell", "problem"),
    [
        ("", "x = 1", "%%check: a cell that defines a function or a class; got none; name one"),
        ("attend", "x = 1", "%%check: a name that is defined; got 'attend'"),
        ("print.me", "x = 1", "got 'print.me'"),
        ("", None, "%check: the name of a function or class; got none; as in %check attend"),
        ("--bogus 3", CELL, "%%check: unrecognized arguments: --bogus.*options are --as --causal"),
        ("--heads many", CELL, "invalid int value: 'many'"),
        ('--as "q', CELL, "No closing quotation"),
        ("--mask hide", CELL, "--mask: one of admits, hides"),
    ],
)
def test_a_mistake_in_the_line_is_told(shell: Shell, line: str, cell: str | None, problem: str) -> None:
    with pytest.raises(told_as(), match=problem):
        shell.check(line, cell)


def test_it_is_told_without_a_notebook_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython.core.error", None)
    with pytest.raises(KindError, match="%%check: a name that is defined; got 'attend'"):
        shell.check("attend", "x = 1")


def told_as() -> type[Exception]:
    """What a notebook shows as a sentence, where there is one."""
    try:
        from IPython.core.error import UsageError
    except ImportError:
        return KindError
    shown: type[Exception] = UsageError
    return shown
