"""The lesson of PyTorch: the same curve, by a derivative of its own."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from regard import Attention
from regard.algebra.errors import CallError, MissingExtra
from regard.train import toy
from regard.train.toy import Learned, Matrices, Task, learn, learn_with_torch
from regard.train.toy.numpy_lesson import initial
from regard.train.toy.record import apart
from regard.train.toy.report import OTHERS
from regard.train.toy.torch_lesson import loss_of

TASK = Task(guests=5, names=7)


def widest(ours: Matrices, theirs: Matrices) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))


def test_the_whole_curve_is_the_same() -> None:
    ours, theirs = learn(), learn_with_torch()
    assert apart(ours, theirs) < 1e-9
    assert np.allclose(ours.lengths, theirs.lengths, rtol=1e-9, atol=0)
    assert widest(ours.before, theirs.before) == 0
    assert widest(ours.after, theirs.after) < 1e-10


@pytest.mark.parametrize("name", OTHERS)
def test_other_formulas_and_sizes(name: str) -> None:
    ours, theirs = (one(OTHERS[name], steps=30, seed=3, batch=11, rate=0.2, task=TASK) for one in LESSONS)
    assert apart(ours, theirs) < 1e-9
    assert widest(ours.after, theirs.after) < 1e-9


LESSONS = (learn, learn_with_torch)


def test_the_derivative_is_that_of_pytorchs_own_attention() -> None:
    """Nothing of regard's in the graph: each step back is an operation of PyTorch."""
    rng = np.random.default_rng(0)
    W = Matrices(*(torch.tensor(w, requires_grad=True) for w in initial(TASK, rng)))
    x, t = (torch.from_numpy(part) for part in TASK.draw(3, rng)[:2])
    ours = torch.autograd.grad(loss_of(Attention(), W, x, t), W)
    theirs = torch.autograd.grad(((scaled_dot_product_attention(x @ W.Q, x @ W.K, x @ W.V) - t) ** 2).sum(-1).mean(), W)
    assert all(torch.allclose(a, b, rtol=1e-12, atol=1e-15) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", OTHERS)
def test_no_derivative_of_ours_takes_part(name: str) -> None:
    rng = np.random.default_rng(0)
    W = Matrices(*(torch.tensor(w, requires_grad=True) for w in initial(TASK, rng)))
    x, t = (torch.from_numpy(part) for part in TASK.draw(2, rng)[:2])
    waiting, met = [loss_of(OTHERS[name], W, x, t).grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in met:
            met.add(node)
            waiting += [following for following, _ in node.next_functions]
    assert len(met) > 10
    assert not [node for node in met if isinstance(node, torch.autograd.function.BackwardCFunction)]


def test_the_result_is_of_the_same_kind() -> None:
    lesson = learn_with_torch(steps=2, batch=2)
    assert isinstance(lesson, Learned)
    assert all(type(w) is np.ndarray and w.dtype == np.float64 for w in (*lesson.before, *lesson.after))
    assert lesson.losses.shape == lesson.lengths.shape == (2,)
    assert 0 < lesson.reached().partner < 1


def test_refusals_are_those_of_numpy() -> None:
    with pytest.raises(CallError, match="steps: an integer of at least 1; got 0"):
        learn_with_torch(steps=0)
    with pytest.raises(CallError, match=r"rate: small enough .*; got 1e\+250, and a loss of \w+ after \d+ steps"):
        learn_with_torch(rate=1e250)


def test_without_pytorch_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(vars(toy), "learn_with_torch")
    monkeypatch.delitem(sys.modules, "regard.train.toy.torch_lesson")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r'this needs torch, .*: pip install "regard\[train\]"'):
        _ = toy.learn_with_torch
