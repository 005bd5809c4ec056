"""README.md and docs/ execute: Python blocks run, doctests give what they show, and so do `regard` commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from types import ModuleType

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

import regard

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PACKAGES = "course diagnosis experiments geometry hf inputs nn testing train viewer".split()
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "TERM": "dumb"}


def evaluate_console(example: Example) -> None:
    """Each `$ regard …` of a console block, against the lines below it ("..." is any text); others are for people."""
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*(?:\n|\Z))*)", str(example.parsed), re.MULTILINE):
        program, *arguments = shlex.split(command, comments=True)
        if program == "regard" and shown.strip():
            printed, wanted = map(_without_trailing_space, (_printed(arguments), shown))
            assert OutputChecker().check_output(wanted, printed, ELLIPSIS), f"$ {command}\n{printed}"


def _printed(arguments: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "regard", *arguments],
        env=os.environ | TERMINAL,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    return done.stdout + done.stderr


def _without_trailing_space(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n")) + "\n"


documents = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS),
        CodeBlockParser(language="console", evaluator=evaluate_console),
        SkipParser(),
    ],
    encoding="utf-8",
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_executes(path: Path) -> None:
    for example in documents.parse(path).examples():
        example.evaluate()


@pytest.mark.parametrize(
    "module",
    [regard, *(getattr(regard, name) for name in PACKAGES)],
    ids=lambda module: module.__name__,
)
def test_every_public_name_is_documented(module: ModuleType) -> None:
    words = set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)))
    assert not sorted(set(module.__all__) - words), "public, but in neither README.md nor docs/"
