"""The real answers behind the server: what they say is what arrives, and what cannot be asked is refused in words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from regard.viewer.answering.answers import Answers
from regard.viewer.answering.packet import packed
from regard.viewer.server.run import serve
from regard.viewer.work import Stop

from .conftest import Client, lens_of, refused

WRONG = [
    "about?x=1", "row?query=7", "row?query=-1", "row?query=NaN", "row?query=1e3", "row?query=" + "9" * 5000,
    "row?query=1.0", "row", "row?query=%00", "row?query=\u0663", "row?query=0&batch=1", "row?query=0&layers=0,9",
    "row?query=0&layers=,", "column?key=7", "matrix?layer=2", "matrix?layer=0&head=3", "matrix?layer=0&head=-1",
    "tile?layer=0&head=0&level=99&row=0&column=0", "tile?layer=0&head=0&level=0&row=999999999&column=0",
    "tile?layer=0&head=0&level=0&row=-1&column=0", "cells?layer=0&head=0&rows=0,8&columns=0,2",
    "cells?layer=0&head=0&rows=3,2&columns=0,2", "cells?layer=0&head=0&rows=0&columns=0,2",
    "pair?layer=0&head=0&query=0&key=7", "matrix?layer=0&formula=__import__('os')",
    "matrix?layer=0&formula=" + "(" * 1500, "matrix?layer=0&formula=softmax(dot%2b" + "1" * 1900 + ")",
    "matrix?layer=0&formula=" + "x" * 2001, "matrix?layer=0&formula=softmax(table(%22secret%22)[i,j])",
    "rollout?residual=inf", "rollout?residual=nan", "rollout?how=sideways", "rollout?query=-1",
    "thumbs?layer=0&side=0", "thumbs?layer=0&side=65", "image", "nosuch", "__class__", "answer",
    "whatif?layer=0", "labels?axis=nosuch&places=0,1", "labels?axis=tokens&places=0,8",
]  # fmt: skip


@pytest.fixture(scope="module")
def real() -> Iterator[Client]:
    with (
        serve([lens_of()], browser=False, background=True, say=lambda text: None) as running,
        Client(running.url) as one,
    ):
        yield one


def test_the_wire_carries_what_answers_say(real: Client) -> None:
    wanted = Answers(lens_of())
    for question, options in [("about", {}), ("row", {"query": "3"}), ("matrix", {"layer": "1", "head": "2"})]:
        found = real.get(f"/ask/given-1/{question}", params=options)
        assert found.content == packed(wanted.answer(question, options, Stop()))


@pytest.mark.parametrize("address", WRONG, ids=lambda text: text[:40])
def test_what_cannot_be_asked_is_refused_in_words(real: Client, address: str) -> None:
    reason = refused(real.get(f"/ask/given-1/{address}"), 400)
    assert len(reason) < 1000
