"""Windows: a function of seed and step, inside of their spans; of what is held out, each id counts once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from regard.algebra.errors import CallError, KindError
from regard.train import ngrams
from regard.train.data import HeldOutWindows, Span, TextBatches

CONTEXT, BATCH, N = 5, 3, 211
IDS = np.random.default_rng(0).permutation(N).astype(np.uint16)  # each id once, so that a place is known by its id
SPANS = [Span(11, 30), Span(37, 41), Span(60, 66), Span(100, 211)]  # the second is too short for a window


def batches(seed: int = 0, **options: Any) -> TextBatches:
    return TextBatches(IDS, CONTEXT, BATCH, seed, **options)


# -- to learn from ---------------------------------------------------------------------------------------------


def test_targets_are_one_place_further() -> None:
    inputs, targets, positions = batches()[0]
    assert inputs.shape == targets.shape == (BATCH, CONTEXT)
    assert positions.shape == (BATCH,)
    assert inputs.dtype == targets.dtype == positions.dtype == torch.int64
    assert inputs.is_contiguous()
    assert targets.is_contiguous()
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    for row, place in enumerate(positions.tolist()):
        assert inputs[row].tolist() == IDS[place : place + CONTEXT].tolist()
        assert int(targets[row, -1]) == IDS[place + CONTEXT]


def test_a_batch_is_a_function_of_seed_and_step() -> None:
    there = [batches()[step] for step in range(20)]
    back = [batches()[step] for step in reversed(range(20))][::-1]  # of new objects, in another order
    assert all(torch.equal(one.inputs, other.inputs) for one, other in zip(there, back, strict=True))
    assert len({tuple(windows.positions.tolist()) for windows in there}) == 20
    assert not torch.equal(batches(seed=1)[0].positions, batches(seed=2)[0].positions)
    assert not torch.equal(batches(seed=1)[2].positions, batches(seed=2)[1].positions), "seed and step do not mix"
    assert not torch.equal(TextBatches(IDS, CONTEXT, 2 * BATCH, 0)[0].positions[:BATCH], batches()[1].positions)


def test_windows_stay_in_one_span_and_reach_everywhere() -> None:
    found = TextBatches(IDS, CONTEXT, 4001, 0, SPANS)
    starts = set(found[0].positions.tolist())
    assert starts == {start for first, stop in SPANS for start in range(first, stop - CONTEXT)}
    assert len(starts) == found.count


def test_all_windows_are_as_probable() -> None:
    found = TextBatches(IDS, CONTEXT, 40_000, 0, SPANS)
    counts = np.bincount(found[3].positions.numpy())
    counts = counts[counts > 0]
    expected = 40_000 / found.count
    assert ((counts - expected) ** 2 / expected).sum() < 1.5 * found.count  # χ² is near its degrees of freedom


def test_the_largest_step_and_the_smallest_text() -> None:
    assert batches()[2**40].inputs.shape == (BATCH, CONTEXT)
    only = TextBatches(IDS[: CONTEXT + 1], CONTEXT, BATCH, 0)[9]
    assert only.positions.tolist() == [0] * BATCH


def test_ids_are_not_copied() -> None:
    assert batches().ids is IDS
    assert HeldOutWindows(IDS, CONTEXT, BATCH, SPANS).ids is IDS


# -- to measure ------------------------------------------------------------------------------------------------

spans = st.sampled_from([SPANS, [Span(1, 211)], [Span(1, 2)], [Span(210, 211)], [Span(3, 9), Span(9, 40)]])


@settings(max_examples=60)
@given(spans, st.integers(1, 30), st.integers(1, 9), st.data())
def test_every_id_counts_once(spans: list[Span], context: int, batch: int, data: st.DataObject) -> None:
    stride = data.draw(st.none() | st.integers(1, context))
    held_out = HeldOutWindows(IDS, context, batch, spans, stride)
    counted = []
    for inputs, targets, positions in held_out:
        assert inputs.shape == targets.shape == (len(positions), context)
        assert len(positions) <= batch
        for row, start in enumerate(positions.tolist()):
            assert inputs[row].tolist() == IDS[start : start + context].tolist()
            places = ((targets[row] != -100).nonzero()[:, 0] + start + 1).tolist()
            assert targets[row][targets[row] != -100].tolist() == IDS[places].tolist()
            counted += places
    assert sorted(counted) == [place for start, stop in spans for place in range(start, stop)]
    assert held_out.count == len(counted)
    assert len(list(held_out)) == len(held_out) == -(-held_out.windows // batch)


@pytest.mark.parametrize("stride", [1, 2, 4, 7])
def test_every_id_has_context_enough(stride: int) -> None:
    held_out = HeldOutWindows(IDS, 7, BATCH, [Span(20, 71)], stride)
    for _, targets, _ in held_out:
        first = (targets != -100).int().argmax(dim=1)
        assert int(first.min()) >= 7 - stride, "so many inputs stand before the first that counts"


def test_sum_over_windows_is_the_sum_over_the_text() -> None:
    """A model that reads one id before needs no more context: strides change nothing."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 13, 400).astype(np.uint16)
    model = ngrams.fit(ids[:200], 2, 13)
    expected = model.nats(ids)[200:].sum()
    logits = torch.from_numpy(np.log([model.distribution([number]) for number in range(13)]))
    for stride in (1, 3, 8):
        held_out = HeldOutWindows(ids, 8, 11, [Span(200, 400)], stride)
        total = sum(
            cross_entropy(logits[inputs].flatten(0, 1), targets.flatten(), reduction="sum")
            for inputs, targets, _ in held_out
        )
        assert float(total) == pytest.approx(expected, rel=1e-10)


def test_a_part_is_spread_evenly() -> None:
    held_out = HeldOutWindows(IDS, 4, BATCH, [Span(10, 210)])
    part = held_out.part(10)
    starts = [start for windows in part for start in windows.positions.tolist()]
    assert part.windows == len(starts) == 10
    assert part.count == 20
    assert np.ptp(np.diff(starts)) == 0
    assert held_out.windows == 100, "the whole stays as it was"
    assert held_out.part(1000).windows == 100
    assert part.part(3).windows == 3
    every = torch.cat([windows.targets for windows in held_out])
    assert torch.equal(torch.cat([windows.targets for windows in part]), every[::10])


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: TextBatches(IDS[:5], 5, 2, 0),
            CallError,
            "context: at most 4, .* fit into the longest span; got 5 and spans of up to 5 ids; give more text, or take",
        ),
        (
            lambda: TextBatches(IDS, 200, 2, 0, SPANS),
            CallError,
            "context: at most 110, .*; got 200 and spans of up to 111",
        ),
        (lambda: TextBatches(IDS, 5, 2, 0, []), CallError, "context: at most 0"),
        (lambda: TextBatches(IDS, 0, 2, 0), CallError, "context: at least 1; got 0"),
        (lambda: TextBatches(IDS, 5, 0, 0), CallError, "batch: at least 1; got 0"),
        (lambda: TextBatches(IDS, 5, 2.0, 0), KindError, r"batch: an integer; got 2\.0"),
        (lambda: TextBatches(IDS, 5, 2, -1), CallError, "seed: from 0 to 2⁶⁴ − 1; got -1"),
        (lambda: TextBatches(IDS, 5, 2, 0)[-1], CallError, "step: at least 0; got -1"),
        (
            lambda: TextBatches("text", 5, 2, 0),
            KindError,
            r"ids: integers in an array with one axis; .*encode the text",
        ),
        (lambda: TextBatches(IDS[None], 5, 2, 0), KindError, r"ids: .*shape \(1, 211\)"),
        (lambda: HeldOutWindows(IDS, 5, 2, SPANS, 6), CallError, "stride: at most the context, 5; got 6; ids between"),
        (lambda: HeldOutWindows(IDS, 5, 2, SPANS, 0), CallError, "stride: at least 1; got 0"),
        (lambda: HeldOutWindows(IDS[:5], 5, 2, [Span(1, 5)]), CallError, "context: below the 5 ids of the text; got 5"),
        (lambda: HeldOutWindows(IDS, 5, 2, [Span(0, 9)]), CallError, "spans: at least one, none from the first id on"),
        (lambda: HeldOutWindows(IDS, 5, 2, []), CallError, "spans: at least one"),
        (lambda: HeldOutWindows(IDS, 5, 2, SPANS).part(0), CallError, "windows: at least 1; got 0"),
        (lambda: HeldOutWindows(IDS, 5, 2, SPANS)[99], IndexError, "batch 99 of "),
    ],
)
def test_refusals(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()
