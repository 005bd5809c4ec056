"""Checks that run in another process, which lives as long as the tests: there they take a fraction of the time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).parent.parent / "check_targets.py"


class Elsewhere:
    """Asks tests/check_targets.py, which starts at the first question: without the tests' type checks."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - as long as the process

    def started(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, str(DRIVER)], stdin=pipe, stdout=pipe, stderr=self.said, text=True, encoding="utf-8"
        )

    def __call__(self, *question: Any) -> dict[str, dict[str, Any]]:
        """What was found, by the name of the target."""
        self.process = self.process or self.started()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.close()
            self.said.seek(0)
            pytest.fail(self.said.read()[-5000:])
        found: dict[str, dict[str, Any]] = json.loads(answer)
        assert found
        return found

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.process = None


@pytest.fixture(scope="session")
def checked() -> Iterator[Elsewhere]:
    """checked("file", path, names), checked("mutant", name, number) and so on: see tests/check_targets.py."""
    elsewhere = Elsewhere()
    yield elsewhere
    elsewhere.close()
    elsewhere.said.close()
