"""What the values of one call do not show: each law is tried on the target itself.

calls     the same answer twice, inputs left alone, texts apart, any length, any batch
weights   rows sum to one, outputs among the values, the order of keys, who reads whom
numbers   large scores, rows far apart, gradients
masks     what a mask argument means, and rows that it leaves empty;  flags: causal ones, padding that broadcasts
leaks     hidden pairs stay hidden
caches    pieces with a cache are the whole
"""

from __future__ import annotations

from collections.abc import Iterator

from . import caches, calls, flags, leaks, masks, numbers, weights
from .base import UNKNOWN, Examination, Suspicion, Verdict

SINGLE = (
    calls.inputs_left_alone,
    calls.texts_apart,
    calls.sizes_free,
    calls.batches_free,
    calls.different_lengths,
    calls.fewer_key_heads,
    weights.rows_sum_to_one,
    weights.among_the_values,
    weights.order_of_keys,
    weights.scale_law,
    weights.who_reads_whom,
    weights.returned_weights,
    numbers.large_scores,
    numbers.gradients,
    leaks.own_mask,
)
SEVERAL = (masks.mask_arguments, flags.causal_flag, flags.padding_by_accident, caches.in_pieces)


def tried(exam: Examination) -> Iterator[Verdict]:
    """Every law, one after the other."""
    for law in SINGLE:
        yield law(exam)
    for laws in SEVERAL:
        yield from laws(exam)


__all__ = ["UNKNOWN", "Examination", "Suspicion", "Verdict", "calls", "tried"]
