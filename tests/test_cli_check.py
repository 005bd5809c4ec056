"""`regard check`: its options, what it prints, and the status that it ends with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from regard import cli
from regard.algebra.errors import KindError
from regard.diagnosis import CATALOGUE, Limits, Report
from regard.diagnosis.display.catalogue import markdown
from regard.diagnosis.explaining import bug_of, example_of, finding_of
from regard.diagnosis.options import arguments, bytes_of, limits, literals, pairs

RUNNER = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"})

ATTENTIONS = """
import numpy as np

def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

def right(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])) @ v

def unscaled(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2)) @ v

def fragile(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])
    e = np.exp(s - s.max())
    return e / e.sum(-1, keepdims=True) @ v

def exchanged(a, b, c):
    return right(b, a, c)

def failing(q, k, v):
    raise ValueError("never works")
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(ATTENTIONS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(*given: str, code: int = 0) -> str:
    result = RUNNER.invoke(cli.app, ["check", *given])
    assert result.exit_code == code, result.output
    return result.stdout


# -- the status ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (["mine.py:right"], 0, "✓ right"),
        (["mine.py:unscaled"], 1, "no root of d"),
        (["mine.py:right", "--causal"], 1, "no mask"),
        (["mine.py:right", "--no-causal"], 0, "✓ right"),
        (["mine.py:fragile"], 0, "one maximum for all rows"),
        (["mine.py:fragile", "--strict"], 1, "one maximum for all rows"),
        (["mine.py:exchanged", "--as", "k,q,v"], 0, "✓ right"),
        (["mine.py:unscaled", "--formula", "softmax(dot)"], 0, "✓ right"),
        (["mine.py:right", "--heads", "5", "--layout", "bhnd", "--library", "numpy", "--seconds", "30"], 0, "✓ right"),
        (["mine.py:right", "--memory", "1G"], 0, "✓ right"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_status_says_what_was_found(place: Path, given: list[str], code: int, words: str) -> None:
    assert words in said(*given, code=code)


def test_several_targets_have_a_report_each_and_a_summary(place: Path) -> None:
    text = said("mine.py:right", "mine.py:unscaled", code=1)
    assert text.index("mine.py:right") < text.index("✗ 1. no root of d")
    assert text.splitlines()[-1] == "2 targets: 1 right, 1 wrong (mine.py:unscaled)"


def test_the_others_are_checked_where_one_cannot_be(place: Path) -> None:
    result = RUNNER.invoke(cli.app, ["check", "mine.py:rigth", "mine.py:unscaled"])
    assert result.exit_code == 2
    assert "did you mean 'right'?" in result.stderr
    assert "2 targets: 1 wrong, 1 could not be checked (mine.py:rigth, mine.py:unscaled)" in result.stdout


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "check: what to check, as in model.py:attend; got nothing"),
        (["gone.py:right"], "gone.py: a file that exists"),
        (["mine.py:failing"], "never works"),
        (["mine.py:right", "--mask", "hide"], "--mask: one of admits, hides; got 'hide'; did you mean 'hides'?"),
        (["mine.py:right", "--layout", "bnn"], "layout: one of bhnd"),
        (["mine.py:right", "--formula", "softmax(dot"], "was never closed"),
        (["mine.py:right", "--init", "32"], "each value needs a name"),
        (["mine.py:right", "--html", "gone/page.html"], "--html: a file in a folder that exists; got"),
        (["mine.py:right", "--seconds", "0"], "seconds: a number of seconds above 0"),
        (["--explain", "no rot of d"], "bug: a name of the catalogue; got 'no rot of d'; did you mean 'no root of d'?"),
        (["--explain", "xyzzy"], "got 'xyzzy'; `regard check --list` lists them"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_ends_in_a_sentence(
    place: Path, given: list[str], problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["regard", "check", *given])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert problem in error
    assert "Traceback" not in error


# -- JSON and HTML -------------------------------------------------------------------------------------------------


def test_json_is_all_that_is_printed(place: Path) -> None:
    report = Report.from_json(said("mine.py:unscaled", "--json", code=1))
    assert [one.name for one in report.findings] == ["no root of d"]


def test_json_of_several_is_a_list_with_what_could_not_be_read(place: Path) -> None:
    first, second = json.loads(said("mine.py:right", "mine.py:gone", "--json", code=2))
    assert Report.from_dict(first).ok
    assert second["target"] == "mine.py:gone"
    assert "no 'gone' in it" in second["error"]


def test_a_page_holds_every_report(place: Path) -> None:
    said("mine.py:right", "mine.py:unscaled", "--html", "page.html", code=1)
    page = (place / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "no root of d" in page
    assert page.count("mine.py:right") >= 2  # the title, too


# -- the catalogue -------------------------------------------------------------------------------------------------


def test_every_bug_is_listed() -> None:
    text = said("--list")
    assert [name for name in CATALOGUE if name not in text] == []
    assert text.count("(a warning)") == sum(bug.severity == "warning" for bug in CATALOGUE.values())


def test_the_page_of_the_catalogue_is_up_to_date() -> None:
    page = Path(__file__).parents[1] / "docs" / "bugs.md"
    assert page.read_text(encoding="utf-8") == markdown(), "regard check --list --markdown > docs/bugs.md"
    assert said("--list", "--markdown") == markdown()


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_bug_can_be_explained(name: str) -> None:
    text, bug = " ".join(said("--explain", name).replace("│", " ").split()), CATALOGUE[name]
    for part in (name, bug.wrong, bug.hides, bug.advice, bug.seen.where):
        assert " ".join(part.split()).replace(" ", "") in text.replace(" ", "")


WITHOUT = {  # no mutant, another shape, or nothing that values show
    *("wrong scale", "heads averaged", "cache on the wrong axis", "low precision inside", "dropout in evaluation"),
    *("not deterministic", "inputs changed in place", "gradient cut", "gradient wrong"),
    *("length baked in", "batch size baked in", "mask of another text"),
}


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_example_shows_a_difference(name: str) -> None:
    example = example_of(name)
    assert (example is None) <= (name in WITHOUT)
    assert example is None or example.wrong.any()


def test_an_example_is_what_the_mistake_computes() -> None:
    example = example_of("no root of d")
    assert example is not None
    q, k = (np.asarray(example.inputs[name]) for name in "qk")
    for scores, shown in ((q @ k.T, example.yours), (q @ k.T / np.sqrt(q.shape[-1]), example.right)):
        weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        assert np.allclose(weights, shown)


def test_one_library_is_shown_where_it_is_asked_for() -> None:
    bug = bug_of("no root of d")
    assert finding_of(bug, "numpy").mend == bug.mend["numpy"]
    assert all(lines in finding_of(bug).mend for lines in bug.mend.values())
    with pytest.raises(KindError, match=r"--library: one of .*; got 'nmpy'; did you mean 'numpy'"):
        finding_of(bug, "nmpy")


# -- options as text -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("d_model=32, n_heads=4", {"d_model": 32, "n_heads": 4}),
        ("config={'a': [1, None], 'b': {'c': -1.5}}", {"config": {"a": [1, None], "b": {"c": -1.5}}}),
        ("name='x, y=2'", {"name": "x, y=2"}),
    ],
)
def test_literals(text: str, values: dict[str, Any]) -> None:
    assert literals(text) == values


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("32", "each value needs a name"),
        ("**{'a': 1}", "each value needs a name"),
        ("a=1) + call(b=2", "names and literals"),
        ("a=1)(b=2", "names and literals"),
        ("a=", "names and literals"),
        ("a=__import__('os').system('true')", "is no literal"),
        ("dtype=torch.float32", "torch.float32 is no literal"),
        ("a=\0", "names and literals"),
    ],
)
def test_what_is_no_literal_is_refused(text: str, reason: str) -> None:
    with pytest.raises(KindError, match="--init: ") as refused:
        literals(text)
    assert reason in str(refused.value)


def test_pairs() -> None:
    assert pairs("q=a.wq.weight, k = a.wk.weight") == {"q": "a.wq.weight", "k": "a.wk.weight"}
    for text in ("", "q", "q=", "=a", "q=a, k"):
        with pytest.raises(KindError, match="--projections: roles and paths, as in q=attn"):
            pairs(text)


def test_limits() -> None:
    assert limits(5.0, None) == Limits(seconds=5.0, call_seconds=5.0)
    assert limits(None, "512M") == Limits(memory=512 * 2**20)
    assert [bytes_of(text) for text in ("7", "2k", "1.5 MiB", "1GB", "1t")] == [7, 2**11, 3 * 2**19, 2**30, 2**40]
    with pytest.raises(KindError, match="--memory: a size, as in 512M or 2G; got 'much'"):
        bytes_of("much")


def test_options_that_were_not_given_are_left_out() -> None:
    assert arguments(causal=None, heads=None, init=None) == {}
    assert arguments(causal=False, mask="hides") == {"causal": False, "mask": "hides"}
