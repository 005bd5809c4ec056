"""What a call costs: operations, bytes beside the arguments, and the time to expect.

    seconds = call + pair · pairs · passes + product · multiplications + look · looks

The three rates of each engine were fitted by bench/costs.py to float32 on two cores of a server, those of a GPU to
bfloat16 on an H200; `look` was not. float64 takes twice as long. They are there to compare engines on one machine, and
to tell a second from an hour.
"""

from __future__ import annotations

from dataclasses import dataclass

from .call import Call


@dataclass(frozen=True)
class Cost:
    """The cost of one forward pass."""

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
    "tiled": Rates(call=1.7e-3, pair=0.0, product=6.8e-13),
    "dense": Rates(call=7.9e-4, pair=0.0, product=1.6e-13),
}


def rates(engine: str, call: Call) -> Rates:
    """The rates of an engine where the call's arrays lie."""
    return (ON_GPU if call.xp.name == "torch" and call.q.device.type == "cuda" else RATES)[engine]


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
    seconds = known.pair * pairs * passes + known.product * products
    return Cost(2 * products, held * (8 if wide else 4), known.call + LOOK * looks + seconds * (1 + wide))
