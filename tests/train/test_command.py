"""`regard train`: what cannot be is said in one sentence, with status 2, before anything is written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regard import cli
from regard.train.beginning import start
from regard.train.folder import Folder
from small_runs import TASKS, done, image_file, losses, pair_file, rows, small, text_file, undisturbed, words_of

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """The command in this process: its status, what it says, and what it complains about."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["regard", "train", *map(str, words)])
        try:
            cli.main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        return status, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Folder]:
    """A run of each task, done."""
    place = tmp_path_factory.mktemp("runs")
    return {task: undisturbed(small(task, place / task, steps=4), place / task / "run") for task in TASKS}


def refused(say: Say, *words: object) -> str:
    """The one sentence in which a command ends."""
    status, _, complaint = say(*words)
    assert status == 2, complaint
    assert complaint.startswith("regard: ")
    assert complaint.count("\n") == 1
    return complaint.removeprefix("regard: ").rstrip("\n")


# -- every number ----------------------------------------------------------------------------------------------

COUNTS = {
    "text": {"context": 1, "dim": 1, "depth": 1, "heads": 1, "steps": 1, "batch": 1, "accumulate": 1, "warmup": 0}
    | {"seed": 0, "threads": 1, "evaluate": 1, "save": 1, "sample": 0},
    "images": {"patch": 1},
}
SHARES = {"text": ("noise", "dropout", "average"), "images": ("dropout",), "pairs": ("dropout",)}
LIMITS = [(task, name, least) for task, counts in COUNTS.items() for name, least in counts.items()]


@pytest.mark.parametrize(("task", "name", "least"), LIMITS)
def test_a_count_that_is_too_small(task: str, name: str, least: int, say: Say, tmp_path: Path) -> None:
    out = tmp_path / "run"
    for number in {least - 1, -7}:
        told = refused(say, task, f"--{name}", number, "--out", out)
        assert told == f"{name}: an integer of at least {least}; got {number}"
    assert not out.exists()


@pytest.mark.parametrize(("task", "name"), [(task, name) for task, names in SHARES.items() for name in names])
@pytest.mark.parametrize("number", ["-0.1", "1.0", "nan", "inf"])
def test_a_share_that_is_none(task: str, name: str, number: str, say: Say, tmp_path: Path) -> None:
    told = refused(say, task, f"--{name}", number, "--out", tmp_path / "run")
    assert told == f"{name}: a share from 0 to below 1; got {float(number)!r}"


@pytest.mark.parametrize("number", ["-0.1", "0", "nan", "inf"])
def test_a_rate_that_is_none(number: str, say: Say) -> None:
    assert refused(say, "text", "--rate", number) == f"rate: a finite number above 0; got {float(number)!r}"


@pytest.mark.parametrize("name", ["decay", "clip"])
@pytest.mark.parametrize("number", ["-1.0", "nan", "inf"])
def test_a_number_that_is_none(name: str, number: str, say: Say) -> None:
    assert refused(say, "text", f"--{name}", number) == f"{name}: a number from 0; got {float(number)!r}"


@pytest.mark.parametrize("number", ["-0.1", "0", "1", "nan", "inf"])
@pytest.mark.parametrize("task", TASKS)
def test_a_share_held_out_that_is_none(task: str, number: str, say: Say, tmp_path: Path) -> None:
    source = {"text": text_file, "images": image_folder, "pairs": pair_file}[task](tmp_path)
    told = refused(say, task, source, "--held-out", number, "--out", tmp_path / "run")
    assert told.startswith("held_out: ")
    assert f"; got {float(number)!r}" in told.replace("got 0;", "got 0.0;").replace("got 1;", "got 1.0;")


def image_folder(folder: Path) -> Path:
    """A source that does not say itself what is held out."""
    import numpy as np

    with np.load(image_file(folder)) as held:
        np.savez(folder / "one.npz", x=held["x_train"], y=held["y_train"])
    return folder / "one.npz"


@pytest.mark.parametrize("number", ["0", "-3"])
def test_the_longest_pair(number: str, say: Say, tmp_path: Path) -> None:
    told = refused(say, "pairs", pair_file(tmp_path), "--longest", number)
    assert told == f"longest: a number of characters, at least 1; got {number}"


# -- words that mean nothing -----------------------------------------------------------------------------------

SMALL = ("--context", 7, "--tokens", "characters", "--dim", 8, "--depth", 1, "--heads", 2, "--batch", 5)
WORDS = {
    "heads": (("--heads", 3), "heads: divides dim, 8; got 3"),
    "position": (
        ("--position", "here"), "position: one of rotary, alibi, sinusoidal, learned, relative, none; got 'here'",
    ),
    "style": (("--style", "bert"), "style: one of llama, gpt; got 'bert'"),
    "precision": (("--precision", "int8"), "precision: one of float32, bfloat16, float16; got 'int8'"),
    "table": (("--table", "bias=4y5"), "table: a name and a shape, as in \"bias=4x255\"; got 'bias=4y5'"),
    "no table": (
        ("--attention", 'softmax(dot + table("bias")[h, i - j])'),
        ('attention: softmax(dot + table("bias")[h, i - j]) reads the table \'bias\', which the model is to learn; '
        "say its shape, as in --table bias=8x8"),
    ),
    "ahead": (
        ("--attention", "softmax(dot, mask=j >= i)"),
        ("attention: a decoder reads what came before, j <= i; got softmax(dot, mask=i <= j), "
        "which may read what comes after; write mask=causal & …"),
    ),
    "warmup": (("--warmup", 5, "--steps", 4), "warmup: at most the steps, 4; got 5; train longer, or warm up less"),
    "parts": (("--accumulate", 6), "accumulate: at most the batch, 5; got 6"),
}  # fmt: skip


@pytest.mark.parametrize("which", WORDS)
def test_what_means_nothing_here(which: str, say: Say, tmp_path: Path) -> None:
    words, expected = WORDS[which]
    assert refused(say, "text", text_file(tmp_path), *SMALL, *words, "--out", tmp_path / "run") == expected


def test_nothing_is_written_for_what_is_refused(say: Say, tmp_path: Path) -> None:
    source = text_file(tmp_path)
    for which, (words, _) in WORDS.items():
        refused(say, "text", source, *SMALL, *words, "--out", tmp_path / which)
    assert list(tmp_path.iterdir()) == [source]


def test_weights_shared_over_rows_read_ahead(say: Say, tmp_path: Path) -> None:
    told = refused(say, "text", text_file(tmp_path), *SMALL, "--attention", "Attention(dot, share(exp, over=i))")
    assert told.startswith("attention: a decoder reads what came before, j <= i; got ")
    assert told.endswith(", whose weights are shared over i; share them over j")


def test_a_formula_that_cannot_be_read(say: Say, tmp_path: Path) -> None:
    status, _, complaint = say("text", text_file(tmp_path), *SMALL, "--attention", "softmax(dto)")
    assert status == 2
    assert complaint == ("regard: dto is not a word of formulas; did you mean dot?\n    softmax(dto)\n            ^\n")


@pytest.mark.parametrize("content", ["", "short"])
def test_a_text_that_is_too_short(content: str, say: Say, tmp_path: Path) -> None:
    source = tmp_path / "few.txt"
    source.write_text(content, encoding="utf-8")
    told = refused(say, "text", source, *SMALL, "--out", tmp_path / "run")
    assert told.startswith("corpus: at least 80 characters, ")
    assert told.endswith(f"; got {len(content)} in {source}; give more text, or take a shorter context")


def test_a_source_that_is_not_there(say: Say, tmp_path: Path) -> None:
    for task in TASKS:
        assert refused(say, task, tmp_path / "nowhere", "--out", tmp_path / "run").startswith("source: ")


def test_a_device_that_is_not_there(say: Say, tmp_path: Path) -> None:
    told = refused(say, "text", text_file(tmp_path), *SMALL, "--device", "warp")
    assert told.startswith("device: one that PyTorch has here; got 'warp': ")


def test_a_precision_that_ends_the_process(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.train import machine

    killed = subprocess.CompletedProcess([], -4)
    monkeypatch.setattr(machine.subprocess, "run", lambda *_, **__: killed)
    told = refused(say, "text", text_file(tmp_path), *SMALL, "--precision", "bfloat16", "--out", tmp_path / "run")
    assert told == (
        "precision: one whose products this processor can do; got bfloat16, and a product of it ends a process with "
        "-4; try ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 in the environment, or float32"
    )
    assert not (tmp_path / "run").exists()


# -- folders ---------------------------------------------------------------------------------------------------


def test_a_place_where_something_stands(say: Say, tmp_path: Path, runs: dict[str, Folder]) -> None:
    source, rule = text_file(tmp_path), "out: a folder that is empty or not there; got "
    assert refused(say, "text", source, *SMALL, "--out", tmp_path) == (
        f"{rule}{str(tmp_path)!r}, which holds other files; name another"
    )
    assert refused(say, "text", source, *SMALL, "--out", source) == (
        f"{rule}{str(source)!r}, which holds a file; name another"
    )
    assert refused(say, "text", source, *SMALL, "--out", runs["text"]) == (
        f"{rule}{str(runs['text'])!r}, which holds a run; go on with it: regard train resume {runs['text']}"
    )


@pytest.mark.parametrize("command", ["resume", "repeat", "try"])
def test_a_folder_that_holds_no_run(command: str, say: Say, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert refused(say, command, folder).startswith(
            f"folder: one that holds a run, with a settings.json; got {str(folder)!r}"
        )


def test_fewer_steps_than_were_taken(say: Say, runs: dict[str, Folder]) -> None:
    assert refused(say, "resume", runs["text"], "--steps", 3) == "steps: at least the 4 that were taken; got 3"


def test_a_run_that_is_done_says_so(say: Say, runs: dict[str, Folder]) -> None:
    told = say("resume", runs["text"])
    assert told == (0, f"{runs['text']} is done, after 4 steps; resume it with --steps to go on\n", "")


@pytest.fixture
def copied(tmp_path: Path, runs: dict[str, Folder]) -> Callable[[str], Folder]:
    """A run that a test may damage."""
    return lambda task: Folder(shutil.copytree(runs[task].path, tmp_path / f"copy of {task}"))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("how", ["changed", "gone"])
def test_what_a_run_began_with_must_stand(how: str, task: str, say: Say, copied: Callable[[str], Folder]) -> None:
    folder = copied(task)
    for path in [*folder.data.iterdir(), *([folder.vocabulary] if task != "images" else [])]:
        before = path.read_bytes()
        if how == "gone":
            path.unlink()
        else:
            path.write_bytes(before.replace(b"a", b"b", 1) + b" ")
        what = "is not there" if how == "gone" else "was changed"
        for words in (("resume", folder, "--steps", 9), ("repeat", folder, "--out", folder.path.parent / "new")):
            told = refused(say, *words)
            assert told == (
                f"folder: with what the run began with; got {str(path)!r}, which {what}; "
                "put it back, or start a new run"
            )
        path.write_bytes(before)


def test_settings_of_another_model(say: Say, copied: Callable[[str], Folder]) -> None:
    folder = copied("text")
    told = json.loads(folder.settings.read_text(encoding="utf-8"))
    told["shape"]["dim"] = 12
    folder.settings.write_text(json.dumps(told), encoding="utf-8")
    found = refused(say, "resume", folder, "--steps", 9)
    assert found.startswith(f"folder: a model of the same shape; got another in {str(folder.first)!r}: size mismatch")
    assert found.endswith("; was settings.json changed?")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "JSON that can be read; got "),
        ("[]", "settings: those of a run, with a task among text, images, pairs; got []"),
        ('{"task": "text", "shape": 3}', "shape: settings by name; got 3"),
        ('{"task": "text", "shape": {"dim": "8"}}', "shape: dim is int; got '8'"),
        ('{"task": "text", "shape": {"width": 8}}', "got width; which version of regard wrote it?"),
    ],
)
def test_settings_that_are_none(text: str, says: str, say: Say, copied: Callable[[str], Folder]) -> None:
    folder = copied("text")
    folder.settings.write_text(text, encoding="utf-8")
    assert says in refused(say, "resume", folder)


def test_a_model_to_start_with(say: Say, tmp_path: Path, runs: dict[str, Folder]) -> None:
    other = text_file(tmp_path, words="ΑΒΓ ΔΕΖ ΗΘΙ ΚΛΜ ΝΞΟ ΠΡΣ")
    told = refused(say, "text", other, "--start", runs["text"], "--out", tmp_path / "run")
    assert told.startswith("vocabulary: ") or "not" in told
    told = refused(say, "text", "--start", runs["text"], "--dim", 12, "--heads", 3, "--out", tmp_path / "run")
    assert told.startswith("start: a model of the same shape; got another in ")
    assert refused(say, "text", "--start", runs["images"]) == (
        f"start: a run of the task text; got one of images in {str(runs['images'])!r}"
    )
    assert not (tmp_path / "run").exists()


# -- what it does ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_what_is_learned_can_be_tried(task: str, say: Say, runs: dict[str, Folder]) -> None:
    status, told, complaint = say("try", runs[task], "--length", 5)
    assert (status, complaint) == (0, "")
    assert told.strip()


def test_a_text_is_gone_on_with(say: Say, runs: dict[str, Folder]) -> None:
    assert say("try", runs["text"], "reads what", "--length", 5)[1].startswith("reads what")
    assert " → " in say("try", runs["pairs"], "101")[1]


@pytest.mark.parametrize("task", ["text", "pairs"])
def test_what_the_vocabulary_does_not_know(task: str, say: Say, runs: dict[str, Folder]) -> None:
    for asked in ("", "Ω"):
        status, told, complaint = say("try", runs[task], asked)
        assert status in (0, 2)
        assert told or complaint.startswith("regard: ")


def test_the_command_is_the_run(say: Say, tmp_path: Path) -> None:
    """Options say the same as settings, and everything that is watched comes to stand."""
    settings = small("text", tmp_path, steps=4)
    status, told, complaint = say(*words_of(settings), "--out", tmp_path / "said")
    assert (status, complaint) == (0, "")
    assert "done in" in told
    folder = Folder(tmp_path / "said")
    assert folder.read_settings() == settings
    assert rows(folder) == rows(done(start(settings, tmp_path / "written")))
    assert {path.name for path in folder.path.iterdir()} >= {"curve.png", "samples", "tensorboard", "result.json"}
    assert say("repeat", folder, "--out", tmp_path / "again")[0] == 0
    assert rows(tmp_path / "again") == rows(folder)
    assert say("resume", folder, "--steps", 6)[0] == 0
    assert len(losses(folder)) == 6


HELP = """
import sys
from regard import cli
sys.argv = ["regard", {words}]
try:
    cli.main()
except SystemExit as end:
    assert not end.code, end.code
heavy = {{"torch", "matplotlib", "tensorboard", "sklearn"}} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize("words", ['"--help"', '"train", "--help"', '"train", "text", "--help"'])
def test_help_is_light(words: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", HELP.format(words=words)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert "Usage" in found.stdout
