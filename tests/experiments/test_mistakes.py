"""Mistakes in training: each model has one thing wrong, and what flatters is exactly what reads beyond the text."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.algebra.masks import causal
from regard.attention import Attention
from regard.experiments import mistakes
from regard.experiments.language import characters
from regard.experiments.mistakes import FLATTERS, FORMULAS, HARMLESS, NONE, QUERIES, RIGHT, STEPPED, Found
from regard.experiments.picture import drawn
from regard.experiments.reader import Reader, as_whole, held_out_windows, one_by_one, reader, size
from regard.experiments.record import Outcome, Scale, silent
from regard.experiments.rewired import Nothing, Rewired, Steps, exchanged, flattened, softmax, unguarded, viewed
from regard.inputs.positions.rotary import Rotary
from regard.nn.attention import SelfAttention, heads, joined
from regard.nn.placement import Placement, Rows

VARIANTS = {variant.name: variant for variant in mistakes.variants()}
READ_BEYOND = {
    "mask after the weights", "softmax over queries", "no mask", "hidden scores set to 0", "shifted mask",
    "inverted mask", "heads split by view", "heads joined by view", "key reshaped",
}  # fmt: skip
PLACES = (5, 46)


@pytest.fixture(scope="module")
def small() -> Outcome:
    return mistakes.run(Scale(0.02), silent)


def lively(name: str) -> Reader:
    """An untrained model whose attention says much."""
    model = VARIANTS[name].make(3).eval()
    with torch.no_grad():
        for matrix in (parameter for parameter in model.blocks.parameters() if parameter.ndim == 2):
            matrix.mul_(10)
    return model


def layer_and_rows(x: torch.Tensor) -> tuple[SelfAttention, Rows]:
    torch.manual_seed(2)
    layer = SelfAttention(x.shape[-1], 2, attention=Attention(mask=causal)).double()
    return layer, Placement(Rotary(), 2).rows(x, x.shape[-1] // 2)


# -- steps -----------------------------------------------------------------------------------------------------


def test_right_steps_are_the_right_formula() -> None:
    x = torch.randn(3, 7, 20, dtype=torch.float64)
    layer, rows = layer_and_rows(x)
    torch.testing.assert_close(Rewired(layer, Steps())(x, rows), layer(x, rows))


def test_swapped_roles_are_a_change_of_names() -> None:
    x = torch.randn(3, 7, 20, dtype=torch.float64)
    layer, rows = layer_and_rows(x)
    swapped = Rewired(layer, Steps(scores=exchanged))
    swapped.query, swapped.key = swapped.key, swapped.query
    torch.testing.assert_close(swapped(x, rows), layer(x, rows))


def test_a_maximum_changes_nothing_until_exp_overflows() -> None:
    scores = 5 * torch.randn(2, 3, 7, 7)
    torch.testing.assert_close(unguarded(scores), softmax(scores))
    assert not unguarded(scores + 100).isfinite().all()
    assert softmax(scores + 100).isfinite().all()


def test_views_move_no_numbers() -> None:
    x = torch.randn(2, 7, 15)
    assert torch.equal(viewed(x, 5).flatten(), x.flatten())
    assert torch.equal(flattened(viewed(x, 5)), x)
    assert torch.equal(joined(heads(x, 5)), x)
    assert not torch.equal(viewed(x, 5), heads(x, 5))


def test_nothing_is_read() -> None:
    assert not Nothing()(torch.randn(2, 7, 5), None).any()


# -- models ----------------------------------------------------------------------------------------------------


def test_they_begin_alike() -> None:
    first = dict(reader(5).named_parameters())
    for name, variant in VARIANTS.items():
        parameters = dict(variant.make(5).named_parameters())
        missing = {key for key in first if ".attention." in key} if name == NONE else set()
        assert first.keys() - parameters.keys() == missing
        assert all(torch.equal(parameter, first[key]) for key, parameter in parameters.items())
    assert size(VARIANTS[QUERIES].make(0)) == size(reader(0))


def test_every_mistake_is_there_once() -> None:
    assert set(VARIANTS) == {RIGHT, NONE, *FORMULAS, *STEPPED}
    assert len({repr(VARIANTS[name].make(0).blocks[0].attention) for name in (RIGHT, *FORMULAS)}) == 1 + len(FORMULAS)


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_what_flatters_reads_beyond_the_text(name: str) -> None:
    model, windows = lively(name), held_out_windows(3)
    gap = one_by_one(model, windows, PLACES) - as_whole(model, windows, PLACES)
    assert abs(gap) > 1e-3 if name in READ_BEYOND else abs(gap) < 1e-4


def test_texts_of_a_batch_meet_where_the_total_is_theirs() -> None:
    windows = held_out_windows(3)
    for name, meets in (("softmax over the batch", True), (RIGHT, False)):
        model = lively(name)
        gap = one_by_one(model, windows, PLACES) - one_by_one(model, windows, PLACES, together=1)
        assert (abs(gap) > 1e-3) == meets
    assert VARIANTS["softmax over the batch"].together == 1


def test_guessing_costs_the_logarithm_of_the_vocabulary() -> None:
    def guess(ids: torch.Tensor) -> torch.Tensor:
        return torch.zeros(*ids.shape, len(characters().vocabulary))

    for measure in (as_whole, one_by_one):
        assert measure(guess, held_out_windows(3), PLACES) == pytest.approx(math.log(len(characters().vocabulary)))


# -- the outcome -----------------------------------------------------------------------------------------------


def test_a_small_share_of_it_runs(small: Outcome, tmp_path: Path) -> None:
    assert set(small.table.column("what is done")) == set(VARIANTS)
    assert all(map(math.isfinite, small.numbers.values()))
    assert Outcome.of_json(small.json()) == small
    assert drawn(mistakes.EXPERIMENT, small, tmp_path / "picture.png").stat().st_size > 10_000


def told(name: str, single: float, whole: float) -> Outcome:
    """All as good as the right one, but for this."""
    good = Found(1.9, 2.0, 2.0, [4.6, 1.9], {2: {"loss": 2.0, "single": 2.0}}, "so")
    results = {each: [good, replace(good, single=2.01, whole=2.01)] for each in VARIANTS}
    results[NONE] = [replace(good, single=2.5, whole=2.5)]
    results[name] = [replace(good, single=single, whole=whole)]
    return mistakes.outcome_of(results)


@pytest.mark.parametrize(
    ("single", "whole", "kind"),
    [(3.1, 0.4, FLATTERS), (2.01, 2.01, HARMLESS), (2.3, 2.3, "worse"), (2.6, 2.6, "no better than no attention")],
)
def test_what_comes_of_it_follows_the_numbers(single: float, whole: float, kind: str) -> None:
    outcome = told(QUERIES, single, whole)
    row = next(row for row in outcome.table.rows if row[0] == QUERIES)
    assert row[4] == kind
    assert f"{whole:.2f} held out as a whole, {single:.2f} one by one" in outcome.says
    assert (QUERIES in outcome.says.partition("harm here: ")[2]) == (kind == HARMLESS)
    assert ("1 of them worse than no attention" in outcome.says) == (kind == FLATTERS)
