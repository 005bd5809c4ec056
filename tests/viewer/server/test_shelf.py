"""What lenses there are: the gallery, those given, and the latest looks of the live model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regard.viewer.server import shelf
from regard.viewer.server.refusals import Refusal
from regard.viewer.server.run import serve
from regard.viewer.server.shelf import KEPT, Shelf, shipped

from .conftest import Client, lens_of, refused


def test_new_looks_stand_first_and_old_ones_make_room() -> None:
    some = Shelf([lens_of("given")])
    looks = [some.look(lens_of(f"look {n}")).id for n in range(KEPT + 3)]
    assert [entry.id for entry in some] == [*reversed(looks[3:]), "given-1"]
    with pytest.raises(Refusal, match="was dropped"):
        some[looks[0]]
    assert some["given-1"].title == "given"


def test_what_is_kept_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = lens_of().bytes
    monkeypatch.setattr(shelf, "BYTES", 2 * size + 1)
    some = Shelf()
    looks = [some.look(lens_of()).id for _ in range(5)]
    assert [entry.id for entry in some] == looks[:2:-1]
    monkeypatch.setattr(shelf, "BYTES", 1)
    last = some.look(lens_of()).id
    assert [entry.id for entry in some] == [last]


def test_the_gallery_is_opened_when_it_is_asked(tmp_path: Path) -> None:
    lens_of("the second").save(tmp_path / "b_Two!.lens")
    lens_of("the first").save(tmp_path / "a.lens.zip")
    (tmp_path / "notes.txt").write_text("not a lens")
    entries = shipped(tmp_path)
    assert [entry.told() for entry in entries] == [
        {"id": "a", "title": "the first", "kind": "gallery", "live": False},
        {"id": "b-two-", "title": "the second", "kind": "gallery", "live": False},
    ]
    assert all(entry._answers is None for entry in entries)
    with (
        serve(shipped=entries, browser=False, background=True, say=lambda text: None) as served,
        Client(served.url) as one,
    ):
        for name in ("a", "b-two-"):
            assert one.meta(f"/ask/{name}/about")["title"].startswith("the ")


def test_a_broken_lens_says_nothing_of_where_it_lies(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "broken.lens").mkdir()
    (tmp_path / "broken.lens" / "lens.json").write_text(json.dumps({"title": "half"}))
    entries = shipped(tmp_path)
    assert [entry.title for entry in entries] == ["half"]
    with (
        serve(shipped=entries, browser=False, background=True, say=lambda text: None) as served,
        Client(served.url) as one,
    ):
        reason = refused(one.get("/ask/broken/about"), 500)
    assert reason == "lens: a whole one; got one that cannot be opened; the terminal says why"
    assert "broken" in caplog.text


def test_no_gallery_is_an_empty_one(tmp_path: Path) -> None:
    assert shipped(tmp_path / "none") == []


# -- looks through the wire --------------------------------------------------------------------------------------


def listed(client: Client) -> list[dict[str, Any]]:
    return list(client.get("/lenses").json()["lenses"])


def test_a_look_is_a_new_lens(client: Client) -> None:
    found = client.post("/look", json={"text": "The cat."}).json()
    image = client.post("/look", content=b"\x89PNG!", headers={"Content-Type": "image/png"}).json()
    first, second, *_ = listed(client)
    assert first == {"id": image["id"], "title": "5 bytes", "kind": "live", "live": True}
    assert second == {"id": found["id"], "title": "The cat.", "kind": "live", "live": True}
    assert client.meta(f"/ask/{found['id']}/any")["name"] == "any"


def test_what_the_live_model_reads_is_told(client: Client) -> None:
    live = client.get("/lenses").json()["live"]
    assert (live["model"], live["text"], live["image"], live["tokens"]) == ("a model", True, True, 20)
    assert (live["doing"], live["waiting"]) == ("", 0)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"a"', b'{"text": 1}', b'{"text": " "}', b"\xff", b'{"txt": "a"}', b"[" * 60_000],
)
def test_a_look_needs_a_text(client: Client, body: bytes) -> None:
    answer = client.post("/look", content=body, headers={"Content-Type": "application/json"})
    assert refused(answer, 400).startswith("text: some")


def test_a_text_that_is_too_long_is_told(client: Client) -> None:
    assert refused(client.post("/look", json={"text": "x" * 21}), 400).startswith("text: from 1 to 20 tokens")


def test_without_a_model_a_look_says_how_to_get_one() -> None:
    with serve([lens_of()], browser=False, background=True, say=lambda text: None) as served, Client(served.url) as one:
        assert refused(one.post("/look", json={"text": "a"}), 400).endswith("regard lens --model PATH")
        assert one.get("/lenses").json()["live"]["text"] is False
