"""The front page: chapters, marks, where to go on; and how the token leaves the address."""

from __future__ import annotations

import re

from regard.course.progress import Progress
from regard.course.serving.front import FILES, front_page, sheet

from .conftest import Course


def test_it_lists_the_chapters(course: Course) -> None:
    with course.known() as client:
        page = client.get("/").text
    assert re.findall(r"<li><a href='(/\d/)'>", page) == ["/1/", "/2/"]
    assert "The &lt;first&gt; &amp; all" in page
    assert "Why “second”?" in page
    assert "<first>" not in page


def test_it_loads_nothing_from_outside_and_runs_nothing(course: Course) -> None:
    with course.known() as client:
        page = client.get("/").text
        assert "<script" not in page
        assert "style=" not in page
        assert not re.search(r"https?://", page)
        style = client.get("/page/course.css")
        assert style.headers["content-type"] == "text/css; charset=utf-8"
        assert not re.search(r"url\(|@import|https?://", style.text)
    assert re.findall(r"(?:src|href)='([^']*)'", page)[:2] == ["data:,", "/page/course.css"]


def test_marks_and_going_on(course: Course) -> None:
    progress = Progress(course.path.with_name("other.json"))
    assert "Begin with the first chapter" in front_page(course.chapters, progress)
    progress.keep_opened(2)
    page = front_page(course.chapters, progress)
    assert "Go on where you stopped: <a href='/2/'>" in page
    assert "0 of 2 exercises solved" in page
    assert "opened" in page
    progress.keep_answer(1, "x")
    progress.keep_choice(2, "a", False)
    page = front_page(course.chapters, progress)
    assert "begun" in page
    assert "quiz answered" in page
    progress.keep_solved(1)
    progress.keep_choice(2, "b", True)
    page = front_page(course.chapters, progress)
    assert "1 of 2 exercises solved" in page
    assert "<span class='done'>solved</span>" in page
    assert "<span class='done'>quiz right</span>" in page


def test_trouble_is_said_and_a_chapter_that_is_gone_is_no_place_to_go_on(course: Course) -> None:
    progress = Progress(course.path.with_name("third.json"), trouble="progress: <it> is broken")
    progress.kept["last"] = 99
    page = front_page(course.chapters, progress)
    assert "progress: &lt;it&gt; is broken" in page
    assert "Begin with the first chapter" in page


def test_opening_a_chapter_is_kept(course: Course) -> None:
    with course.known() as client:
        assert client.get("/2/").status_code == 200
        assert course.progress().last == 2
        assert client.get("/1/").status_code == 200
        client.get("/2/favicon.ico")
        client.head("/2/")
    assert course.progress().last == 1


def test_the_token_becomes_a_cookie_and_leaves_the_address(course: Course) -> None:
    with course.client() as client:
        answer = client.get(f"/2?x=1&token={course.token}")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/2/?x=1"
        told = answer.headers["set-cookie"].lower()
        assert told.startswith(f"regard-{course.port}=")
        assert all(word in told for word in ("httponly", "samesite=strict", "path=/"))
        assert answer.headers["cache-control"] == "no-store"
        assert client.get("/2/").status_code == 200
        assert client.get("/").status_code == 200


def test_the_front_page_takes_the_token_without_a_detour(course: Course) -> None:
    with course.client() as client:
        assert client.get(f"/?token={course.token}").status_code == 200
        assert client.get("/1/").status_code == 200


def test_ways_to_a_chapter(course: Course) -> None:
    with course.known() as client:
        assert client.get("/second").headers["location"] == "/2/"
        assert client.get("/1").headers["location"].endswith("1/")
        for path in ("/99", "/page/x.css", "/page/../site.py", "/page/..%2fsite.py", "/secnd", "/1x/", "/01/"):
            answer = client.get(path)
            assert answer.status_code == 404, path
            assert "<a href='/'>The table of contents</a>" in answer.text


def test_a_redirect_never_leaves(course: Course) -> None:
    with course.known() as client:
        for path in ("/1//evil.example", "/1/..//evil.example/", "/1/%0d%0aX-Evil:1"):
            answer = client.get(f"{path}?token={course.token}")
            assert "x-evil" not in answer.headers
            assert not answer.headers.get("location", "/").startswith(("//", "http"))


def test_the_style_is_dark_where_the_system_is() -> None:
    assert sheet().count("{") == sheet().count("}")
    dark = sheet().rpartition("@media (prefers-color-scheme: dark)")[2]
    assert "--paper:" in dark
    assert "body.course .lesson" in dark


def test_its_style_reaches_nothing_of_marimo_or_of_a_lesson() -> None:
    """marimo has classes such as `contents`; a rule of ours begins with a name of ours."""
    rules = (FILES / "course.css").read_text(encoding="utf-8")
    rules = re.sub(r"/\*.*?\*/|@media[^{]*\{", "", rules, flags=re.DOTALL)
    heads = [one.strip() for head in re.findall(r"([^{}]+)\{", rules) for one in head.split(",")]
    ours = r"\.(course|still)-[a-z]+|body\.course|body:has\(> nav\.course-bar\)|nav\.course-bar|marimo-ui-element"
    ours += r"|:host\(marimo-(slider|form)\) "  # inside of these two, whose sheets are copies of ours
    assert [head for head in heads if not re.match(ours, head)] == []
