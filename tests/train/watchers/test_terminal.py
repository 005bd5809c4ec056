"""What a person sees: lines that tell what is best, in a terminal of any width."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from regard.train.beginning import resume, start
from regard.train.watchers.base import Watcher
from regard.train.watchers.terminal import Terminal, clock
from small_runs import Ends, Killed, done, small

KEYS = "\x1b"


def shown(console_width: int, *, terminal: bool = False) -> tuple[Terminal, StringIO]:
    said = StringIO()
    return Terminal(Console(file=said, width=console_width, force_terminal=terminal)), said


def test_a_run_in_lines(tmp_path: Path) -> None:
    terminal, said = shown(100)
    run = start(small("text", tmp_path), tmp_path / "run")
    done(run, terminal)
    first, where, *steps, end, picture, model, attempt = said.getvalue().splitlines()
    assert first == f"GPT of {run.learner.model.count():,} parameters on cpu"
    assert where == f"folder {run.folder}"
    assert [line[:7] for line in steps] == ["step  4", "step  8", "step 11"]
    assert all("training " in line and "held out " in line and "nats per character " in line for line in steps)
    assert all(len(line) <= 80 for line in steps)
    assert end.startswith("done in ")
    assert picture == f"picture  {run.folder / 'curve.png'}"
    assert model == f"model    {run.folder.best}"
    assert attempt == f"try it   regard train try {run.folder}"
    assert KEYS not in said.getvalue()


def test_a_run_that_goes_on_knows_what_was_best(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        done(start(small("text", tmp_path, rate=0.5, average=0.0, warmup=0), tmp_path / "run"), Ends(9))
    run = resume(tmp_path / "run")
    assert run.progress.best is not None
    run.progress.best = (0.0, 4)
    terminal, said = shown(100)
    done(run, terminal)
    assert f"going on after step {9} of 11" in said.getvalue()
    assert "best\n" not in said.getvalue(), "nothing beats a loss of 0"


@pytest.mark.parametrize("width", [20, 50, 120])
def test_a_bar_in_a_terminal_of_any_width(width: int, tmp_path: Path) -> None:
    terminal, said = shown(width, terminal=True)
    done(start(small("text", tmp_path), tmp_path / "run"), terminal)
    assert KEYS in said.getvalue()
    assert "done in" in said.getvalue()


def test_it_is_closed_however_it_ends(tmp_path: Path) -> None:
    terminal, _ = shown(80, terminal=True)
    with pytest.raises(Killed):
        done(start(small("text", tmp_path), tmp_path / "run"), terminal, Ends(5))
    assert terminal.bar is None
    terminal.closed()


def test_seconds_as_people_say_them() -> None:
    assert [clock(seconds) for seconds in (0, 59.4, 59.6, 3599, 3600, 90061)] == [
        "0 s", "59 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "25 h 1 min",
    ]  # fmt: skip


def test_a_watcher_may_leave_out_everything(tmp_path: Path) -> None:
    assert done(start(small("text", tmp_path), tmp_path / "run"), Watcher()).result.exists()
