"""What a call costs: operations, bytes beside the arguments, and the time to expect.

    seconds = call + pair · pairs · passes + product · multiplications + look · looks       on a CPU
    seconds = max(call, product · multiplications)                                          on a GPU, which Python keeps
                                                                                            busy: the longer one counts

A call whose arrays ask for gradients counts on a GPU with its way back. The three rates of each engine were fitted by
bench/costs.py to float32 on two cores of a server, those of a GPU to bfloat16 on an H200, each call awaited. `look`,
the way back and Triton's own template were not: they are set by hand. float64 takes twice as long. All are there to
compare engines on one machine, and to tell a second from an hour.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from .call import Call


@dataclass(frozen=True)
class Cost:
    """The cost of a call: of one forward pass, on a GPU with the way back where gradients are asked for."""

    operations: int  # multiplications and additions
    bytes: int  # held beside the arguments
    seconds: float


@dataclass(frozen=True)
class Rates:
    """Seconds for each call, each pair and pass over it, each multiplication."""

    call: float
    pair: float
    product: float


RATES = {
    "sdpa": Rates(call=9.9e-5, pair=6.4e-10, product=9.5e-12),
    "triton": Rates(call=1e-1, pair=1e-6, product=1e-10),  # in Triton's interpreter
    "tiled": Rates(call=5.5e-4, pair=1.6e-10, product=1.2e-11),
    "dense": Rates(call=3.7e-4, pair=0.0, product=7.5e-11),
    "python": Rates(call=1.3e-4, pair=2.7e-5, product=2.9e-8),
}
ON_GPU = RATES | {
    "sdpa": Rates(call=1.2e-4, pair=0.0, product=3.1e-15),
    "triton": Rates(call=3.7e-4, pair=0.0, product=3.0e-15),
    "triton's template": Rates(call=3.7e-4, pair=0.0, product=4.2e-15),  # 0.73 of cuDNN's speed
    "tiled": Rates(call=1.7e-3, pair=0.0, product=6.8e-13),
    "dense": Rates(call=7.9e-4, pair=0.0, product=1.6e-13),
}
# The way back, of N 8 192 and width 128 in bench/results/gpu.json; Python's part of `sdpa` is taken as that of its way
# forth. What is not listed takes 2.5 times as long in products as forth: five of them for two.
BACK_ON_GPU = {
    "sdpa": Rates(call=1.2e-4, pair=0.0, product=8.5e-15),
    "triton": Rates(call=2.0e-3, pair=0.0, product=7.8e-15),
    "triton's template": Rates(call=2.0e-3, pair=0.0, product=2.5 * 4.2e-15),
}


def is_on_gpu(call: Call) -> bool:
    """Whether a call's arrays lie on a GPU."""
    return bool(call.xp.name == "torch" and call.q.device.type == "cuda")


def learns(call: Call) -> bool:
    """Whether a call is part of a graph that asks for gradients."""
    if call.xp.name != "torch" or not sys.modules["torch"].is_grad_enabled():
        return False
    return any(x.requires_grad for x in (call.q, call.k, call.v, *call.tables.values()) if x is not None)


def rates(engine: str, call: Call) -> Rates:
    """The rates of an engine where the call's arrays lie."""
    return (ON_GPU if is_on_gpu(call) else RATES)[engine]


LOOK = 1e-4  # seconds to read from tables what a mask says of a block; set by hand from one padded shape, not fitted


def cost(
    engine: str, call: Call, *, held: int, pairs: int | None = None, passes: int = 1, extra: int = 0, looks: int = 0
) -> Cost:
    """The cost of a call.

    held:   numbers beside the arguments
    pairs:  those that are computed; all unless said otherwise
    passes: over each pair, beside the products of matrices
    extra:  multiplications for each pair beside those of q·k and w v
    looks:  into the tables of a mask, for what it says of a block
    """
    every = call.batch * call.heads * call.queries * call.keys
    pairs = every if pairs is None else pairs
    width = 0 if call.v is None else int(call.v.shape[3])
    products = pairs * (call.width + width + extra)
    known, wide = rates(engine, call), "64" in str(call.working_dtype)
    work = (known.pair * pairs * passes + known.product * products) * (1 + wide)
    seconds = known.call + LOOK * looks + work
    if is_on_gpu(call):
        seconds = max(known.call + LOOK * looks, work)
        seconds += _back(engine, known, products * (1 + wide)) if learns(call) else 0.0
    return Cost(2 * products, held * (8 if wide else 4), seconds)


def _back(engine: str, forth: Rates, products: int) -> float:
    """The seconds of the way back on a GPU."""
    known = BACK_ON_GPU.get(engine, Rates(2.5 * forth.call, 0.0, 2.5 * forth.product))
    return max(known.call, known.product * products)
