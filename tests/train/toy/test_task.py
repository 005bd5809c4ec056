"""Parties: who is there, who seeks whom, and what chance is worth."""

from __future__ import annotations

import numpy as np
import pytest

from regard.algebra.errors import CallError, KindError
from regard.train.toy import Parties, Task
from regard.train.toy.task import COLOUR, NAMES

TASK = Task(guests=5, names=7)


@pytest.fixture
def parties() -> Parties:
    return TASK.draw(311, np.random.default_rng(3))


def test_shapes(parties: Parties) -> None:
    assert parties.x.shape == (311, 5, TASK.width) == (311, 5, 2 * 7 + COLOUR)
    assert parties.t.shape == (311, 5, COLOUR)
    assert parties.name.shape == parties.partner.shape == (311, 5)


def test_a_guest_is_made_of_its_parts(parties: Parties) -> None:
    parts = {part: parties.x[..., where] for part, where in TASK.parts.items()}
    assert list(parts) == ["name", "sought", "colour"]
    assert sum(part.shape[-1] for part in parts.values()) == TASK.width
    assert np.array_equal(parts["name"], np.eye(7)[parties.name])
    assert np.all(np.abs(parts["colour"]) <= 1)


def test_whom_a_guest_seeks_is_there_and_another(parties: Parties) -> None:
    x, t, name, partner = parties
    assert all(len(set(party)) == 5 for party in name.tolist())
    assert np.all(partner != np.arange(5))
    for party, i in np.ndindex(partner.shape):
        j = partner[party, i]
        assert np.array_equal(x[party, i, TASK.parts["sought"]], x[party, j, TASK.parts["name"]])
        assert np.array_equal(t[party, i], x[party, j, TASK.parts["colour"]])


def test_each_guest_chooses_for_itself(parties: Parties) -> None:
    sought = {len(set(party)) for party in parties.partner.tolist()}
    assert sought == {2, 3, 4, 5}  # from two who are sought by all to a ring


def test_everybody_is_sought_and_named_equally_often() -> None:
    _, _, name, partner = TASK.draw(5000, np.random.default_rng(2))
    apart = (partner - np.arange(5)) % 5
    assert np.allclose(np.bincount(name.ravel(), minlength=7) / name.size, 1 / 7, atol=0.01)
    assert np.allclose(np.bincount(apart.ravel(), minlength=5)[1:] / apart.size, 1 / 4, atol=0.01)


def test_chance_is_what_the_mean_colour_is_worth() -> None:
    x, t, *_ = TASK.draw(20000, np.random.default_rng(1))
    colour = x[..., TASK.parts["colour"]]
    assert (colour**2).sum(-1).mean() == pytest.approx(1, abs=0.01)
    mean = colour.mean(axis=1, keepdims=True)
    assert ((mean - t) ** 2).sum(-1).mean() == pytest.approx(TASK.chance, abs=0.01)


def test_a_seed_gives_the_same_parties() -> None:
    one, same, other = (TASK.draw(3, np.random.default_rng(seed)).x for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("guests", "names", "text"),
    [
        (1, 5, "guests: an integer of at least 2; got 1"),
        (6, 5, r"names: one for each of 6 guests, and at most 12; got 5; for example Task\(guests=6, names=12\)"),
        (6, 13, "names: one for each of 6 guests, and at most 12; got 13"),
        (14, 14, r"names: .*; got 14; for example Task\(guests=12, names=12\)"),
    ],
)
def test_parties_that_cannot_be(guests: int, names: int, text: str) -> None:
    with pytest.raises(CallError, match=text):
        Task(guests, names)


def test_half_a_guest() -> None:
    with pytest.raises(KindError, match=r"guests: an integer; got 2\.5"):
        Task(guests=2.5)  # type: ignore[arg-type]


def test_names_differ() -> None:
    assert len(set(NAMES)) == len(NAMES)
