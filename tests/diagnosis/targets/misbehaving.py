import ctypes
import itertools
import os
import sys
import time

import numpy as np
import torch


def hangs(q, k, v):
    while True:
        time.sleep(0.01)


def spins(q, k, v):
    total = 0
    for i in itertools.count():
        total += i
    return total


def prints_forever(q, k, v):
    while True:
        sys.stdout.write("still attending\n")


def allocates_forever(q, k, v):
    kept = []
    while True:
        kept.append(np.ones(1 << 24))


def segfaults(q, k, v):
    return ctypes.string_at(0)


def exits(q, k, v):
    sys.exit(0)


def leaves_at_once(q, k, v):
    os._exit(0)


def aborts(q, k, v):
    os.abort()


def raises(q, k, v):
    raise ValueError("the shapes do not agree")


def interrupts(q, k, v):
    raise KeyboardInterrupt


def recurses(q, k, v):
    return recurses(q, k, v)


def returns_none(q, k, v):
    weights = torch.softmax(torch.as_tensor(q) @ torch.as_tensor(k).mT, -1)
    weights @ torch.as_tensor(v)


def returns_wrong_shape(q, k, v):
    return v[..., :1, :] * 2


def returns_string(q, k, v):
    return "attention"


def returns_generator(q, k, v):
    yield from v


def returns_nan(q, k, v):
    return v * float("nan")


def needs_a_gpu(q, k, v):
    q, k, v = (torch.as_tensor(t).cuda() for t in (q, k, v))
    return torch.softmax(q @ k.mT / q.size(-1) ** 0.5, -1) @ v


def takes_nothing():
    return np.eye(3)


def takes_seven(a, b, c, d, e, f, g):
    return a


def sleeps_then_answers(q, k, v):
    time.sleep(30)
    return v


class RaisesWhenMade(torch.nn.Module):
    def __init__(self, d_model):
        raise RuntimeError("no weights were found")

    def forward(self, x):
        return x


class HangsInForward(torch.nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.q = torch.nn.Linear(d_model, d_model)

    def forward(self, x):
        while True:
            x = self.q(x)


EXPECTED: dict[str, str] = {
    "hangs": "time",
    "spins": "time",
    "prints_forever": "time",
    "allocates_forever": "memory",
    "segfaults": "crash",
    "exits": "exit",
    "leaves_at_once": "exit",
    "aborts": "crash",
    "raises": "error",
    "interrupts": "error",
    "recurses": "error",
    "returns_none": "result",
    "returns_wrong_shape": "result",
    "returns_string": "result",
    "returns_generator": "result",
    "returns_nan": "result",
    "needs_a_gpu": "error",
    "takes_nothing": "signature",
    "takes_seven": "signature",
    "sleeps_then_answers": "time",
    "RaisesWhenMade": "error",
    "HangsInForward": "time",
}
BUGS: dict[str, list[str]] = {name: [] for name in EXPECTED}
OPTIONS: dict[str, dict] = {}
