"""What is held out: a share of every class, never a part of a group, the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.algebra.errors import CallError, KindError
from regard.train.data.holding_out import grouped, stratified

shares = st.floats(0.01, 0.99)


@given(st.lists(st.integers(2, 17), min_size=1, max_size=5), shares, st.integers(0, 99))
def test_each_class_is_on_both_sides(counts: list[int], share: float, seed: int) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)[np.random.default_rng(seed).permutation(sum(counts))]
    training, held = stratified(labels, share, seed)
    assert sorted([*training, *held]) == list(range(len(labels)))
    for label, count in enumerate(counts):
        assert 1 <= (labels[held] == label).sum() <= count - 1
        assert abs((labels[held] == label).sum() - share * count) <= 1
    again = stratified(labels, share, seed)
    assert again[0].tolist() == training.tolist()


@given(st.lists(st.sampled_from("abcdefg"), min_size=2).filter(lambda groups: len(set(groups)) > 1), shares)
def test_a_group_is_on_one_side(groups: list[str], share: float) -> None:
    training, held = ({groups[row] for row in rows} for rows in grouped(groups, share, 5))
    assert training
    assert held
    assert not training & held
    assert training | held == set(groups)


def test_another_seed_holds_out_others() -> None:
    labels = np.arange(70) % 7
    assert len({tuple(stratified(labels, 0.2, seed)[1].tolist()) for seed in range(9)}) == 9
    assert len({tuple(grouped(range(70), 0.2, seed)[1].tolist()) for seed in range(9)}) == 9


@pytest.mark.parametrize("share", [0, 1, -0.5, 20])
def test_what_is_no_share(share: float) -> None:
    with pytest.raises(CallError, match=rf"held_out: a share between 0 and 1, such as 0\.2; got {share}"):
        stratified(np.zeros(4), share, 0)


@pytest.mark.parametrize("share", ["a fifth", None, True])
def test_what_is_no_number(share: Any) -> None:
    with pytest.raises(KindError, match="held_out: a number; got"):
        grouped("ab", share, 0)
