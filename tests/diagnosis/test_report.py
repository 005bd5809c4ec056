"""A report: to JSON and back without loss, and the same words as text, in a terminal and in a notebook."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from io import StringIO
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rich.cells import cell_len
from rich.console import Console

from regard.algebra.errors import CallError, KindError, MissingExtra
from regard.diagnosis.bugs import Reference
from regard.diagnosis.display.lines import Piece, flow, folded
from regard.diagnosis.display.matrices import grid, number, shown
from regard.diagnosis.display.terminal import coloured, show
from regard.diagnosis.display.text import lines, written
from regard.diagnosis.display.words import ASCII, UNICODE, clean
from regard.diagnosis.report import Example, Finding, LawResult, Report, SourceLine

WIDTHS = [60, 80, 120]
ENCODINGS = ["utf-8", "ascii", "cp1252"]
CAUSAL = "softmax(dot / sqrt(d), mask=j <= i)"
NAN, INF = math.nan, math.inf

# -- reports of every kind -------------------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "[bold]b[/bold]",
    "[/]",
    "[link=x]",
    ":smile:",
    '" onclick="x',
    "&lt;",
    "</pre>",
]
HOSTILE += ["\x1b[31mred", "\u202eback", "\ud800", "a\x07b\rc", "{x}", "\\", "`y`", "\t", "  two  spaces", "NaN"]
LETTERS = "abc xyz. αβ √×·− é 日本語 é [](){}<>&'\"=_#\n"
texts = st.lists(st.sampled_from(HOSTILE) | st.text(LETTERS, max_size=40), max_size=4).map("".join)
names = st.text("abc 日<[&", min_size=1, max_size=13)
floats = st.sampled_from([NAN, INF, -INF, 0.0, -0.0, 1.0, 1 / 3, 1e-300, 1e300]) | st.floats()
sides = st.integers(1, 11)


@st.composite
def examples(draw: st.DrawFn) -> Example:
    shape = draw(sides), draw(sides)
    right = draw(arrays(np.float64, shape, elements=floats))
    yours = np.where(draw(arrays(np.bool_, shape)), draw(arrays(np.float64, shape, elements=floats)), right)
    kinds = [np.float64, np.int64, np.bool_]
    inputs = st.sampled_from(kinds).flatmap(lambda kind: arrays(kind, st.tuples(st.integers(1, 3), st.integers(1, 5))))
    given_over = draw(st.dictionaries(names, inputs | floats | st.none() | st.booleans() | texts, max_size=3))
    return Example(
        given_over, draw(st.sampled_from(["weights", "output", "gradient of k", "?"])), yours, right, draw(names)
    )


findings = st.builds(
    Finding, names, st.sampled_from(["error", "warning"]), texts, texts, texts, texts,
    st.none() | st.builds(Reference, texts, texts), texts, st.lists(texts, max_size=2).map(tuple),
    st.lists(st.builds(SourceLine, st.integers(1, 9999), texts), max_size=3).map(tuple), st.none() | examples(),
)  # fmt: skip
laws = st.builds(LawResult, texts, st.none() | st.booleans(), texts)
reports = st.builds(
    Report, texts, st.lists(st.tuples(names, texts), max_size=3).map(tuple), texts, st.just("") | texts, texts,
    st.lists(findings, max_size=2).map(tuple), st.lists(laws, max_size=3).map(tuple),
    st.lists(texts, max_size=2).map(tuple), floats,
)  # fmt: skip


def finding(**parts: Any) -> Finding:
    """A finding with words that stand nowhere else."""
    made: dict[str, Any] = {
        "name": "no root of d", "severity": "error", "wrong": "saturates everywhere", "hides": "projections shrink",
        "advice": "divide first", "mend": "scores = q @ k.mT / d**0.5\nweights = softmax(scores)",
        "seen": Reference("a course", "github.com/o/r/issues/7"), "evidence": "2.65 times too large",
        "also": ("wrong scale", "root lost"),
        "lines": (SourceLine(12, "    s = q @ k.mT"), SourceLine(14, "    w = s")),
    }  # fmt: skip
    return Finding(**made | parts)


def report(*found: Finding, **parts: Any) -> Report:
    made: dict[str, Any] = {
        "target": "attention.py:attend", "reading": (("library", "PyTorch\nelse: library='numpy'"),), "formula": CAUSAL,
        "laws": (LawResult("rows sum to 1", True, "off by 0"), LawResult("inputs stay", None, "lists")),
        "remarks": ("put in evaluation mode",), "seconds": 1.25,
    }  # fmt: skip
    return Report(**made | {"findings": found} | parts)


SMALL = Example(
    {"q": np.eye(2), "mask": np.tri(2, 3) > 0}, "weights",
    np.array([[0.5, NAN, 0.25], [1, 0, INF]]), np.array([[0.5, 0.125, 0.125], [1, 0, 0]]), "batch 0, head 1",
)  # fmt: skip
FULL = report(finding(example=SMALL), finding(name="empty rows", severity="warning"), asked="softmax(dot)")

# -- the three displays ----------------------------------------------------------------------------------------


def terminal(given_report: Report, width: int = 80, **options: Any) -> str:
    """What a console prints."""
    console = Console(file=StringIO(), width=width, legacy_windows=False, **options)
    show(given_report, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


class Page(HTMLParser):
    """HTML, read: its text, its elements with their attributes, the cells of its tables."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text, self.elements, self.cells, self.open = "", [], [], []
        self.feed(source)
        self.close()

    text: str
    elements: list[tuple[str, dict[str, str | None]]]
    cells: list[tuple[str, dict[str, str | None]]]
    open: list[str]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.elements.append((tag, dict(attrs)))
        if tag == "td":
            self.cells.append(("", dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] == "td":
            self.cells[-1] = (self.cells[-1][0] + data, self.cells[-1][1])


def page(given_report: Report) -> Page:
    return Page(given_report._repr_html_())


DISPLAYS = {
    "text": str,
    "narrow": lambda given_report: written(given_report, 60),
    "terminal": terminal,
    "notebook": lambda given_report: page(given_report).text,
}


def letters(text: str) -> str:
    """Without spaces, rules and bars, so that it does not matter where a line was broken."""
    return re.sub(r"[\s│─]", "", clean(text).replace("\\n", "\n"))


# -- JSON ------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(reports)
def test_json_gives_the_report_back(made: Report) -> None:
    back = Report.from_json(made.to_json())
    assert back == made
    assert hash(back) == hash(made)
    assert back.to_dict() == made.to_dict()
    assert back.ok is made.ok
    for one, other in zip(made.findings, back.findings, strict=True):
        if one.example and other.example:
            np.testing.assert_array_equal(one.example.yours, other.example.yours)
            np.testing.assert_array_equal(one.example.wrong, other.example.wrong)


@settings(max_examples=30)
@given(reports)
def test_json_is_strict(made: Report) -> None:
    def refused(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    text = made.to_json()
    assert text.isascii()
    assert json.loads(text, parse_constant=refused) == made.to_dict()


def test_json_keys_stand_in_order() -> None:
    made = FULL.to_dict()
    assert list(made) == ["version", "ok", "target", "reading", "formula", "recognised", "asked", "findings", "laws",
                          "remarks", "seconds"]  # fmt: skip
    assert made["version"] == 1
    assert made["ok"] is False
    found = made["findings"][0]
    assert list(found) == ["name", "severity", "wrong", "hides", "advice", "mend", "seen", "evidence", "also", "lines",
                           "example"]  # fmt: skip
    assert found["example"]["yours"] == [[0.5, "NaN", 0.25], [1.0, 0.0, "Infinity"]]
    assert found["example"]["inputs"]["mask"] == [[True, False, False], [True, True, False]]
    assert found["seen"] == {"title": "a course", "where": "github.com/o/r/issues/7"}


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor, jnp.asarray, lambda x: np.asarray(x).tolist()])
@pytest.mark.parametrize("values", [[[1.5, -2.0, 0.0]], [[1, 2, 3]], [[True, False, True]], [[[0.5]], [[0.25]]]])
def test_inputs_of_any_library_are_kept(convert: Any, values: Any) -> None:
    kept = Example({"x": convert(values)}, "output", [[1.0]], [[2.0]])
    assert isinstance(kept.inputs["x"], np.ndarray)
    assert kept.inputs["x"].tolist() == values
    assert kept == Example({"x": np.asarray(values)}, "output", np.ones((1, 1)), np.full((1, 1), 2.0))
    assert kept != replace(kept, where="head 1")
    assert not kept.yours.flags.writeable


def test_tensors_with_gradients_in_low_precision_are_kept() -> None:
    x = torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True)
    assert Example({"x": x}, "output", x, 2 * x).wrong.all()


REFUSED = {
    "version": ({"version": 2}, "report: version 1 is read here; got 2; make it anew with this regard"),
    "none": ({"target": "f"}, "report: version 1 is read here; got None; make it anew with this regard"),
    "strange": ({"version": 1, "colour": 1}, "findings, laws, remarks, seconds; got colour"),
    "missing": ({"version": 1, "target": "f"}, "missing 1 required positional argument: 'formula'"),
    "law": ({"version": 1, "laws": [3]}, "report: LawResult is an object; got a int"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_report_is_refused(case: str) -> None:
    values, message = REFUSED[case]
    with pytest.raises(CallError, match=re.escape(message)):
        Report.from_dict(values)


def test_json_that_is_no_object_is_refused() -> None:
    with pytest.raises(CallError, match="report: a JSON object, as to_json gives it; got a list"):
        Report.from_json("[]")


def test_matrices_of_two_shapes_are_refused() -> None:
    with pytest.raises(CallError, match=re.escape("matrices of one shape; got (2, 3), (3, 2)")):
        Example({}, "output", np.ones((2, 3)), np.ones((3, 2)))
    with pytest.raises(CallError, match="two matrices"):
        Example({}, "output", np.ones(3), np.ones(3))


def test_a_third_severity_is_refused() -> None:
    with pytest.raises(KindError, match='severity: "error" or "warning"; got \'note\''):
        finding(severity="note")


# -- what is wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("yours", "right", "wrong"),
    [(1, 1, False), (1, 1 + 1e-7, False), (1, 1.001, True), (NAN, NAN, False), (NAN, 1, True), (1, NAN, True),
     (INF, INF, False), (INF, -INF, True), (INF, 1, True), (1, INF, True), (NAN, INF, True), (0, 1e-9, True)],
)  # fmt: skip
def test_what_counts_as_wrong(yours: float, right: float, wrong: bool) -> None:
    assert Example({}, "output", [[yours]], [[right]]).wrong.tolist() == [[wrong]]


def test_the_tolerance_is_a_part_of_the_largest_right_entry() -> None:
    yours, right = np.array([[1e3, 1.001, 2.0]]), np.array([[1e3, 1.0, 1.0]])
    assert Example({}, "output", yours, right).wrong.tolist() == [[False, False, True]]
    assert Example({}, "output", yours, right, tolerance=1e-7).wrong.tolist() == [[False, True, True]]


def test_errors_and_warnings() -> None:
    assert [one.name for one in FULL.errors] == ["no root of d"]
    assert [one.name for one in FULL.warnings] == ["empty rows"]
    assert not FULL.ok
    assert report(finding(severity="warning")).ok
    assert report(laws=(LawResult("a", False, ""), LawResult("b", None, ""))).broken == (LawResult("a", False, ""),)


# -- the verdict -----------------------------------------------------------------------------------------------

VERDICTS = {
    f"attention.py:attend computes {CAUSAL}  ✓ right": report(),
    f"attention.py:attend computes {CAUSAL}  ✓ right, 1 warning": report(finding(severity="warning")),
    "attention.py:attend  ✗ 1 mistake": report(finding()),
    "attention.py:attend  ✗ 2 mistakes, 1 warning": report(finding(), finding(), finding(severity="warning")),
    "attention.py:attend is cosine (Henry 2020)  ✓ recognised, no mistake": report(recognised="cosine (Henry 2020)"),
    "attention.py:attend  ✗ 1 mistake ": report(finding(), recognised="cosine (Henry 2020)"),
    "attention.py:attend fits nothing in the catalogue  ? breaks no law that was tried": report(formula=""),
    "attention.py:attend fits nothing in the catalogue  ? breaks 2 laws": report(
        formula="", laws=(LawResult("sum to 1", False, "off by 2"), LawResult("causal", False, "leaks"))
    ),
    "attention.py:attend fits nothing in the catalogue  ✗ 1 mistake": report(
        finding(name="fits nothing in the catalogue"), formula=""
    ),
    "attention.py:attend never returns  ✗ 1 mistake": report(finding(name="never returns"), formula=""),
}


@pytest.mark.parametrize("first", VERDICTS)
def test_the_first_line_is_the_verdict(first: str) -> None:
    made = VERDICTS[first]
    assert written(made, 120).split("\n")[0] == first.strip()
    assert terminal(made, 120).split("\n")[0] == first.strip()
    assert letters(page(made).text).startswith(letters(first))


def test_the_formulas_are_told_where_the_verdict_does_not() -> None:
    wrong = report(finding(), formula="softmax(dot)", asked=CAUSAL)
    for display in DISPLAYS.values():
        assert letters(f"checked against {CAUSAL}") in letters(display(wrong))
        assert letters("computes softmax(dot)") in letters(display(wrong))
    assert "checked against" not in str(report(asked=CAUSAL))


def test_broken_laws_come_first() -> None:
    made = report(laws=(LawResult("one", True, ""), LawResult("two", None, "no"), LawResult("three", False, "off")))
    for display in DISPLAYS.values():
        text = display(made)
        assert text.index("✗ three" if "✗ three" in text else "✗three") < text.index("one") < text.index("two")
    assert re.search(r"✗ three +off\n +✓ one\n +– two +no", str(made))


# -- the same words everywhere ---------------------------------------------------------------------------------


def words(made: Report) -> list[str]:
    """Every text of a report that a reader must find."""
    found = [made.target, *made.remarks]
    found += [part for name, value in made.reading for part in (name, *value.split("\n"))]
    found += [part for law in made.laws for part in (law.name,)]
    for one in made.findings:
        found += [one.name, one.wrong, one.hides, one.advice, *one.mend.split("\n"), one.evidence, *one.also]
        found += [line.text for line in one.lines] + [str(line.number) for line in one.lines]
        found += [one.seen.title, one.seen.where] if one.seen else []
        found += [one.example.shown, one.example.where, *one.example.inputs] if one.example else []
    return found


@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize("made", [FULL, *VERDICTS.values()], ids=str)
def test_every_text_is_shown(display: str, made: Report) -> None:
    told = letters(DISPLAYS[display](made))
    assert not [text for text in words(made) if letters(text) not in told]


@pytest.mark.parametrize("display", DISPLAYS)
@settings(max_examples=10)
@given(st.lists(findings, min_size=1, max_size=2).map(tuple))
def test_every_text_of_a_finding_is_shown(display: str, found: tuple[Finding, ...]) -> None:
    made = report(*found)
    if display in ("text", "narrow", "terminal"):  # where a law or a number stands beside a text, lines interleave
        made = replace(made, laws=())
    told = letters(DISPLAYS[display](made))
    assert not [text for text in words(made) if letters(text) not in told]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=8)
@given(made=reports)
def test_no_line_is_too_wide_and_every_sign_can_be_written(width: int, encoding: str, made: Report) -> None:
    text = written(made, width, encoding)
    assert all(cell_len(line) <= width for line in text.split("\n"))
    text.encode(encoding)
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize(("asked", "kept"), [(20, 60), (60, 60), (99, 99), (120, 120), (300, 120)])
def test_the_width_is_used_up_to_a_readable_one(asked: int, kept: int) -> None:
    assert max(cell_len(line) for line in written(FULL, asked).split("\n")) == kept


def test_ascii_where_the_encoding_has_no_signs() -> None:
    text = written(replace(FULL, remarks=("√d ≤ 2 × ∞",)), 80, "ascii")
    assert text.startswith("attention.py:attend  x 1 mistake, 1 warning")
    assert "sqrt d <= 2 x inf" in text
    assert "NaN*" in text
    assert "inf*" in text
    assert "ok rows sum to 1" in text


def test_an_unknown_encoding_is_ascii() -> None:
    assert written(FULL, 80, "klingon") == written(FULL, 80, "ascii")


@given(texts, st.integers(11, 31))
def test_lines_flow_without_loss(text: str, width: int) -> None:
    cleaned = clean(text)
    made = ["".join(piece.text for piece in line) for line in flow([Piece(cleaned, "dim")], width, hang=3)]
    assert all(cell_len(line) <= width for line in made)
    assert letters("".join(made)) == letters(cleaned)
    assert "".join(folded(cleaned.replace("\n", ""), width)) == cleaned.replace("\n", "")


# -- nothing that a reader wrote is obeyed ---------------------------------------------------------------------


@settings(max_examples=20)
@given(reports)
def test_a_terminal_shows_the_plain_text_and_obeys_none_of_it(made: Report) -> None:
    text = "".join(f"{''.join(piece.text for piece in line)}\n" for line in lines(made, 80))
    assert terminal(made, color_system=None) == text
    escapes = r"\x1b\[[\d;]*m"  # of colours, and of nothing else
    assert re.sub(escapes, "", terminal(made, force_terminal=True, color_system="truecolor")) == text


@settings(max_examples=20)
@given(reports)
def test_a_notebook_obeys_none_of_the_texts(made: Report) -> None:
    read = page(made)
    assert not read.open
    allowed = "div span code details summary b pre table tbody tr td th a".split()
    assert {tag for tag, _ in read.elements} <= set(allowed)
    for _, attributes in read.elements:
        assert set(attributes) <= {"style", "title", "open", "href", "target", "rel"}
        assert "url(" not in (attributes.get("style") or "")
        assert (attributes.get("href") or "https://").startswith("https://")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_are_shown_as_they_are(text: str) -> None:
    made = report(finding(wrong=text, mend=text, lines=(SourceLine(3, text),), seen=Reference(text, text)))
    for display in DISPLAYS.values():
        assert not set("\x1b\u202e\ud800\x07\r\t") & set(display(made))
        assert not letters(text) or letters(display(made)).count(letters(text)) >= 5


@pytest.mark.parametrize(
    ("where", "address"),
    [("github.com/o/r/issues/7", "https://github.com/o/r/issues/7"), ("https://arxiv.org/abs/1", "https://arxiv.org/abs/1"),
     ("javascript:alert(1)", None), ("arXiv:2010.04245", None), ('x.com/"onclick="a', None), ("a paper, 2020", None)],
)  # fmt: skip
def test_addresses_of_the_web_alone_are_links(where: str, address: str | None) -> None:
    links = [
        attributes["href"]
        for tag, attributes in page(report(finding(seen=Reference("t", where)))).elements
        if tag == "a"
    ]
    assert links == ([] if address is None else [address])


# -- matrices --------------------------------------------------------------------------------------------------


def marked(text: str, name: str, mark: str) -> list[list[bool]]:
    """Which entries bear the mark, read from a page whose matrices stand below each other."""
    block = text[text.index(f"\n    {name}\n") :].split("\n\n")[0].strip("\n").split("\n")[2:]
    entries = [re.findall(rf"(?:NaN|-?∞|-?inf|-?\d[\d.e-]*) *(?:{re.escape(mark)})?", line[11:]) for line in block]
    return [[entry.endswith(mark) for entry in row] for row in entries]


@pytest.mark.parametrize(("encoding", "signs"), [("utf-8", UNICODE), ("ascii", ASCII)])
@settings(max_examples=20)
@given(arrays(np.float64, (5, 5), elements=st.sampled_from([NAN, INF, -INF, 0.0, 0.5, 1 / 3, -12.0])), st.data())
def test_wrong_entries_are_marked_and_right_ones_not(
    encoding: str, signs: Any, right: Any, data: st.DataObject
) -> None:
    flips = data.draw(arrays(np.bool_, (5, 5)))
    other = np.where(np.isfinite(right), right + 0.25, 3.0)
    example = Example({}, "weights", np.where(flips, other, right), right)
    made = report(finding(example=example), laws=())
    text = written(made, 70, encoding)
    assert marked(text, "yours", signs.mark) == flips.tolist()
    assert not np.any(marked(text, "right", signs.mark))
    count = sum(line.count(signs.mark) for line in text.split("\n") if line.startswith("    query"))
    assert count == flips.sum()


@settings(max_examples=30)
@given(examples())
def test_a_notebook_marks_wrong_entries_and_says_both_numbers(example: Example) -> None:
    cells = page(report(finding(example=example), laws=())).cells
    visible = grid(example)
    expected = [cell for row in visible.cells for cell in row]
    yours, right = cells[: len(expected)], cells[len(expected) :]
    for cell, (one, look), (other, other_look) in zip(expected, yours, right, strict=True):
        if cell is None:
            assert one == other == "…"
            continue
        assert (one.strip(" ✗"), other.strip()) == (cell.yours.strip(), cell.right.strip())
        assert ("✗" in one, "✗" in other) == (cell.wrong, False)
        says = f"yours {cell.yours.strip()}, right {cell.right.strip()}" if cell.wrong else None
        assert look.get("title") == other_look.get("title") == says
        assert ("font-weight:700" in (look["style"] or "")) is cell.wrong
        assert ("background:rgba" in (look["style"] or "")) is cell.wrong


def test_side_by_side_where_there_is_room_with_rows_and_columns_named() -> None:
    text = written(report(finding(example=SMALL)), 80)
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.split("\n") if re.match(r" +(yours|key|query) ", line)]
    assert rows == [
        ["yours", "right"],
        ["key 0", "key 1", "key 2", "key 0", "key 1", "key 2"],
        ["query 0", "0.500", "NaN✗", "0.250✗", "0.500", "0.125", "0.125"],
        ["query 1", "1", "0", "∞✗", "1", "0", "0"],
    ]
    assert "q = [[1, 0], [0, 1]]" in text
    assert "weights of batch 0, head 1 (✗ differs: 3 of 6)" in text


@pytest.mark.parametrize("display", DISPLAYS)
def test_large_matrices_are_cut_around_what_is_wrong(display: str) -> None:
    right = np.arange(17 * 23.0).reshape(17, 23) / 8
    yours = right.copy()
    yours[13, 19] += 100
    example = Example({"x": np.ones((3, 5, 7))}, "gradient of k", yours, right)
    text = DISPLAYS[display](report(finding(example=example)))
    assert "dim 19" in text
    assert "key 13" in text
    assert "dim 18" not in text
    assert "array of 3 × 5 × 7" in text
    assert "…" in text


@given(arrays(np.bool_, st.integers(1, 31)), st.integers(1, 11))
def test_wrong_places_are_shown_before_others(wrong: Any, most: int) -> None:
    found = shown(wrong, most)
    places = [place for place in found if place is not None]
    assert places == sorted(set(places))
    assert len(places) == min(most, len(wrong))
    assert wrong[places].sum() == min(most, wrong.sum())
    assert all(a is not None or b is not None for a, b in pairwise(found))
    gaps = np.diff([-1, *places, len(wrong)]) > 1
    assert found.count(None) == gaps.sum()


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 14))
def test_a_wrong_entry_never_prints_like_the_right_one(value: float, places: int) -> None:
    yours = value * (1 + 10.0**-places)
    example = Example({}, "output", [[yours]], [[value]], tolerance=0)
    if not example.wrong[0, 0]:
        return
    cell = grid(example).cells[0][0]
    assert cell
    assert float(cell.yours.replace("∞", "inf")) != float(cell.right)


@given(st.floats(-1e300, 1e300), st.integers(3, 9))
def test_a_number_is_off_by_less_than_its_last_digit(value: float, digits: int) -> None:
    assert float(number(value, digits)) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits), abs=0)
    assert len(number(value)) <= len("-1.23e-308")


@pytest.mark.parametrize(
    ("name", "labels"),
    [("weights", ("query 0", "key 0")), ("scores", ("query 0", "key 0")), ("output", ("query 0", "dim 0")),
     ("gradient of q", ("query 0", "dim 0")), ("gradient of v", ("key 0", "dim 0")), ("W", ("row 0", "col 0")),
     ("gradient of weights", ("row 0", "col 0"))],
)  # fmt: skip
def test_rows_and_columns_are_named_after_what_is_shown(name: str, labels: tuple[str, str]) -> None:
    made = grid(Example({}, name, [[1.0]], [[2.0]]))
    assert (made.rows[0], made.columns[0]) == labels


# -- colours ---------------------------------------------------------------------------------------------------


def test_roles_are_coloured() -> None:
    console = Console(file=StringIO(), force_terminal=True, color_system="standard", legacy_windows=False)
    assert console.render_str("x")
    roles = {role: coloured((Piece("x", role),)).spans for role in ("good", "bad", "warning", "dim", "strong")}
    assert all(roles.values())
    assert not coloured((Piece("x"),)).spans
    code = coloured((Piece("weights = softmax(2.5)  # rows", "code"),))
    assert code.plain == "weights = softmax(2.5)  # rows"
    assert {code.plain[span.start : span.end] for span in code.spans} >= {"2.5", "# rows"}


def test_errors_stand_open_and_warnings_closed() -> None:
    details = [attributes for tag, attributes in page(FULL).elements if tag == "details"]
    assert ["open" in attributes for attributes in details] == [True, False, False]  # the laws hold: closed


def test_text_and_notebook_need_no_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys; sys.modules['rich'] = None\n"
        "from regard.diagnosis.report import Report\n"
        "report = Report('f', (), 'softmax(dot)'); assert '✓ right' in str(report) and report._repr_html_()"
    )
    subprocess.run([sys.executable, "-X", "utf8", "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.delitem(sys.modules, "regard.diagnosis.display.terminal")
    with pytest.raises(MissingExtra, match=r'pip install "regard\[cli\]"'):
        import_module("regard.diagnosis.display.terminal")
