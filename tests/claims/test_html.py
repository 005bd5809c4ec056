"""The ledger's page: one file that fetches nothing, with every row, its numbers and what there is to see."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard import claims, cli
from regard.claims import Figure, Ledger, Measured, Measurements, Result, Verdict, pictures, registry
from regard.claims.registry import measured
from regard.experiments import store
from regard.experiments.record import Outcome

OUTCOMES = store.OUTCOMES
LEDGER = {claim.id: claim for claim in claims.ledger()}
WRONG = [name for name, claim in LEDGER.items() if claim.verdict is Verdict.WRONG]
HOSTILE = "<script>alert(1)</script> & “more”"


class Read(HTMLParser):
    """Tags that are open, ids, links, and text."""

    VOID = {"meta", "br", "img"}

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.text = list[str](), list[str](), list[str](), set[str](), ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.tags.add(tag)
        self.ids += [given["id"] or ""] if "id" in given and tag in ("article", "dt") else []
        self.links += [given["href"] or ""] if tag == "a" else []
        assert not {name for name in given if name.startswith("on")}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile() -> Measurements:
    """<b>formula</b> & more."""
    yield Measured(2.5e-16, HOSTILE, at_most=1e-9, detail=HOSTILE)
    yield Measured(-3, "another", at_least=-4)
    yield Figure("<svg></svg>", HOSTILE)


def breaks() -> Measurements:
    """1 = 2."""
    yield Measured(2, "a number", at_most=1)


def stops() -> Measurements:
    """1 / 0."""
    raise ZeroDivisionError("by <0>")
    yield


def ledger() -> Ledger:
    made = Ledger()
    for name, verdict, function in (
        ("X1", Verdict.HOLDS, hostile),
        ("X2", Verdict.WRONG, breaks),
        ("X3", Verdict.CONDITION, stops),
    ):
        made.claim(name, "AE", f"{HOSTILE} of {name}.", verdict)(function)
    made.claim("X4", "B", "Needs a package.", Verdict.WRONG, needs=["no_such_package"])(breaks)
    return made


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcomes that bench/experiments.py measured."""

    def kept(name: str, *_: object) -> Outcome:
        return Outcome.of_json((OUTCOMES / f"{name}.json").read_text(encoding="utf-8"))

    monkeypatch.setattr(store, "known", kept)


def test_nothing_is_fetched_and_nothing_runs() -> None:
    page = claims.html(ledger().run())
    found = Read(page)
    assert found.open == []
    assert not found.tags & {"script", "link", "iframe", "object", "embed", "base", "form"}
    assert not re.search(r"https?:|//[a-z]|url\(|@import|src=", page)
    assert all(link.startswith("#") for link in found.links)


def test_every_link_has_its_place_and_every_row_a_link() -> None:
    found = Read(claims.html(ledger().run()))
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert {f"#X{place}" for place in range(1, 5)} <= set(found.links)
    assert len(found.ids) == len(set(found.ids))


def test_every_row_is_told_whole() -> None:
    text = Read(claims.html(ledger().run())).text
    for told in (
        f"{HOSTILE} of X1.", "Self-Attention From First Principles", "<b>formula</b> & more.", "2.5 × 10⁻¹⁶",
        "expected at most 10⁻⁹", "−3", "at least −4", "less than 0.01 s",
        "A number breaks its bounds.", "2 ✕", "It broke off. ZeroDivisionError: by <0>",
        'Not measured here. this needs no_such_package, which is not installed: pip install "regard[no_such_package]"',
        "1 passed, 1 failed, 1 skipped, 1 error in",
    ):  # fmt: skip
        assert told in text
    assert text.count(HOSTILE) == 6  # three sentences; what, detail and caption


def test_a_verdict_is_a_sign_and_a_word() -> None:
    text = Read(claims.html(ledger().run())).text
    assert all(told in text for told in ("✓ holds", "◐ holds with a condition", "✕ wrong as stated"))
    assert "illustration" not in text, "there is none, so there is no heading for it"


def test_both_schemes_phones_and_paper() -> None:
    page = claims.html([])
    told = ("prefers-color-scheme: dark", "max-width: 40rem", "@media print", 'name="viewport"')
    assert all(word in page for word in told)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("known")
def test_what_is_wrong_as_stated_shows_the_counterexample(name: str) -> None:
    result = measured(LEDGER[name])
    assert result.passed, claims.full(result)
    assert result.figures
    for figure in result.figures:
        assert Read(figure.markup).open == []
        assert figure.caption.endswith(".")
        assert "accent" in figure.markup or "<table" in figure.markup


@pytest.mark.usefixtures("known")
def test_rows_of_experiments_show_their_picture_once() -> None:
    results = [measured(LEDGER[name]) for name in ("V1", "V2", "T4", "G12")]
    page = claims.html(results)
    found = Read(page)
    assert found.open == []
    assert page.count('class="picture"') == 2
    assert "The picture of its experiment stands at V1." in found.text
    assert "From the experiment “values”." in found.text
    assert not re.search(r"#1b4965|#ffffff|#333333", page.partition("<main>")[2]), (
        "a colour that the page has no say in"
    )


@pytest.mark.usefixtures("known")
def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = 'this needs matplotlib, which is not installed: pip install "regard[train]"'
    assert told in Read(pictures.picture("values").markup).text


def test_what_was_not_measured_has_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("known", "shipped"):
        monkeypatch.setattr(store, name, lambda *_: None)
    results = [measured(LEDGER["V2"])]
    assert pictures.pictures(results) == {}
    assert "`regard experiment values` does, in about" in Read(claims.html(results)).text


# -- the command -----------------------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli.app, ["claims", *arguments], catch_exceptions=False)
        return done.exit_code, " ".join(done.output.split())

    return run


def test_the_command_writes_a_page_and_json(command: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    page, data = tmp_path / "new" / "ledger.html", tmp_path / "ledger.json"
    code, _ = command("G12", "I2", "--html", str(page), "--json", str(data))
    assert code == 0
    assert {"G12", "I2"} <= set(Read(page.read_text(encoding="utf-8")).ids)
    first, second = json.loads(data.read_text(encoding="utf-8"))
    assert (first["id"], first["sources"]) == ("G12", ["Self-Attention From First Principles"])
    assert (first["verdict"], first["status"], first["reason"]) == ("wrong as stated", "passed", None)
    assert first["measurements"][1]["value"] == 180
    assert second["measurements"][0]["kept"]


def test_a_page_that_cannot_be_written(command: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    with pytest.raises(
        claims.LedgerError.__bases__[0], match=r"--html: a file that can be written; got .*; name another"
    ):
        command("G12", "--html", str(tmp_path))


def test_the_whole_ledger_tells_titles_and_seconds(
    command: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_filled", ledger)
    code, text = command()
    assert code == 1
    assert "“Self-Attention From First Principles”, “Self Attention”" in text
    assert "“A Close Reading of Self-Attention”" in text
    assert re.search(r"X1 holds 2\.5e-16 at most 1e-09 passed \d\.\d\d s", text)


def test_fresh_measures_again(command: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.claims.keeping.SLOW", 0)
    kept = "kept from a run of the same code"
    told = [kept in command("G12", *options)[1] for options in ((), (), ("--fresh",), ())]
    assert told == [False, True, False, True]


def test_the_list_names_the_texts(command: Callable[..., tuple[int, str]]) -> None:
    code, text = command("--list")
    assert code == 0
    assert "E: “Self Attention”: a lesson with code in three flavours" in text
    assert Result.__name__ not in text
