"""A run's folder: whole files, and sums that others can check."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path
from typing import Any

import pytest

from regard.train.beginning import start
from regard.train.errors import TrainingError
from regard.train.folder import Folder, read_json, read_sums, usual, write_json, write_text
from small_runs import TASKS, small


@pytest.mark.parametrize("task", TASKS)
def test_sums_are_those_of_the_files(task: str, tmp_path: Path) -> None:
    folder = start(small(task, tmp_path), tmp_path / "run").folder
    told = read_sums(folder.sums)
    assert told == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in told}
    kept = {f"data/{path.name}" for path in folder.data.iterdir()}
    assert told.keys() == {"first.safetensors", *kept, *(() if task == "images" else ("vocabulary.json",))}


@pytest.mark.parametrize("text", ["", "a\nb\r\nc\r", "λ → 界 🙂\n"])
def test_texts_come_back_as_they_were(text: str, tmp_path: Path) -> None:
    write_text(tmp_path / "text.txt", text)
    assert (tmp_path / "text.txt").read_bytes() == text.encode()
    write_json(tmp_path / "text.json", {"text": text})
    assert read_json(tmp_path / "text.json") == {"text": text}


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, text: str, **_: Any) -> None:
        path.write_bytes(text.encode()[:2])
        raise OSError(errno.ENOSPC, "No space left on device")

    write_text(tmp_path / "one", "before")
    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match="No space left"):
        write_text(tmp_path / "one", "after")
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    assert (tmp_path / "one").read_bytes() == b"before"


def test_json_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text("{", encoding="utf-8")
    for name in ("half.json", "nowhere.json"):
        with pytest.raises(TrainingError) as told:
            read_json(tmp_path / name)
        assert str(told.value).startswith(f"{tmp_path / name}: JSON that can be read; got ")


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    Folder(tmp_path).check_free()
    Folder(tmp_path / "not there").check_free()
    Folder(tmp_path).begin()
    assert Folder(tmp_path).holds_beginning
    Folder(tmp_path).check_free()


def test_where_runs_go_when_nobody_says() -> None:
    assert usual("text").parent == Path("runs")
    assert usual("text").name.startswith("text-20")
