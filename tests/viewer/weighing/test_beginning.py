"""A page begins at a weight that shows something."""

from __future__ import annotations

import numpy as np

import regard as rg
from regard.viewer.weighing.beginning import CELLS, beginning

WORDS = ["[CLS]", "The", " cat", " sat", " on", " it", " un", "told", " ,", " mat"]


def lens(*pairs: tuple[int, int, float], head: int = 1, layer: int = 2) -> rg.Lens:
    weights = np.full((4, 3, 10, 10), 0.01)
    for query, key, weight in pairs:
        weights[layer, head, query, key] = weight
    return rg.lens(weights=list(weights), tokens=[WORDS])


def test_a_long_link_between_words() -> None:
    found = beginning(lens((5, 2, 0.6), (5, 4, 0.9), (3, 3, 1.0), (9, 1, 0.02)))
    assert found == {"layer": 2, "head": 1, "query": 5, "key": 2}


def test_what_shows_nothing_is_passed_over() -> None:
    dull = [(9, 0, 1.0), (9, 8, 1.0), (9, 6, 1.0), (7, 1, 1.0), (8, 2, 1.0), (4, 5, 1.0)]
    assert beginning(lens(*dull, (9, 3, 0.3))) == {"layer": 2, "head": 1, "query": 9, "key": 3}


def test_a_sink_at_the_first_place_is_passed_over() -> None:
    weights = np.full((1, 1, 6, 6), 0.01)
    weights[0, 0, 5, 0], weights[0, 0, 5, 2] = 0.9, 0.2
    found = beginning(rg.lens(weights=weights, tokens="every morning he opens the door"))
    assert found == {"layer": 0, "head": 0, "query": 5, "key": 2}


def test_a_patch_reads_from_the_middle_or_the_class_token() -> None:
    weights = np.full((3, 2, 12, 12), 0.01)
    weights[0, 0, 6, 3], weights[2, 1, 6, 5], weights[2, 0, 3, 3] = 1.0, 0.5, 1.0
    assert beginning(rg.lens(weights=list(weights), grid=(3, 4))) == {"layer": 2, "head": 1, "query": 6, "key": 5}
    classed = np.pad(weights, [(0, 0), (0, 0), (1, 0), (1, 0)])
    classed[1, 1, 0, 7] = 0.4
    assert beginning(rg.lens(weights=list(classed), grid=(3, 4))) == {"layer": 1, "head": 1, "query": 0, "key": 7}


def test_too_many_to_look_at() -> None:
    n = int(CELLS**0.5) + 1
    q = np.ones((n, 1), np.float16)
    assert beginning(rg.lens(q=q, k=q)) == {}


def test_nothing_between_positions() -> None:
    assert beginning(rg.lens(q=np.ones((5, 2)), k=np.ones((5, 2)))) == {}
