"""One bug of the catalogue in full: its texts, and what it does to a small matrix.

The right chain of steps and the one with the mistake run on the same small numbers; the first problem on which they
part is shown, the plainest first. Of mistakes that no value shows, as a gradient that is cut, there is no matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np

from ..algebra.errors import KindError, RegardError
from ..algebra.masks import given
from ..attention import Attention
from ..inputs import Rotary
from .bugs import Bug
from .catalogue import CATALOGUE
from .display.catalogue import lines_of
from .libraries import LIBRARIES
from .matching import CAUSAL, PLAIN
from .mutants import MUTANTS, Mutant
from .options import one_of
from .problem import Array, Problem, Sizes, drawn_inputs, drawn_masks, drawn_vectors
from .report import Example, Finding
from .steps import State, Steps, Turn, on_inputs, on_vectors

N = 3
APART = 1e-3
SEED = 51
LARGE = 1000.0  # scores so large that exp has no number for them
MASKED = Attention(mask=given("mask"))
COUNTS = ((1, 1, 1), (2, 2, 1), (1, 1, 2), (1, 1, N), (4, 2, 1))  # heads, groups, texts
NEEDS = {  # one head, or one text, would show a special case
    "softmax over heads": 1,
    "heads attend to heads": 1,
    "softmax over the batch": 2,
    "batch elements see each other": 2,
}
RANDOM = ("dropout in evaluation", "not deterministic")  # another matrix each time
HIDDEN = {"weights": {"v", "past_v"}, "output": set[str]()}  # what has no part in what is shown


def bug_of(name: str) -> Bug:
    """The bug of that name; a name that is near is named."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    try:
        one_of("bug", name, CATALOGUE)
    except KindError as problem:
        guess = str(problem).partition("; did you mean ")[2]
        hint = f"did you mean {guess}" if guess else "`regard check --list` lists them"
        raise KindError(f"bug: a name of the catalogue; got {name!r}; {hint}") from None
    raise AssertionError(name)


def finding_of(bug: Bug, library: str | None = None) -> Finding:
    """The bug as a report would tell of it, with a small example and the lines that are right in every library."""
    mend = lines_of(bug.mend, "\n") if library is None else bug.mended(one_of("--library", library, LIBRARIES))
    example = example_of(bug.name)
    return Finding(bug.name, bug.severity, bug.wrong, bug.hides, bug.advice, mend, bug.seen, example=example)


# -- the example ---------------------------------------------------------------------------------------------------


@cache
def example_of(name: str) -> Example | None:
    """The plainest small problem on which the mistake shows; None where values do not show it."""
    forms = () if name in RANDOM else MUTANTS.get(name, ())
    settings = _settings(COUNTS[NEEDS.get(name, 0) :])
    tried = ((mutant, base, problem) for base, problem in settings for mutant in forms)
    return next((found for one in tried if (found := _compared(*one))), None)


def _settings(counts: Iterable[tuple[int, int, int]]) -> Iterator[tuple[Steps, Problem]]:
    """Right chains with problems for them: ordinary scores before large, few heads before many."""
    for spread, (heads, groups, batch) in product((1.0, LARGE), counts):
        sizes = Sizes(batch, heads, groups, N, N, width=2, value_width=N, model_width=2 * heads)
        yield from _on_vectors(_rounded(drawn_vectors(sizes, SEED, spread)))
        yield from _turned(_rounded(drawn_vectors(replace(sizes, width=4, value_width=4), SEED, spread)))
        for names in ("wq wk wv", "wq wk wv wo"):
            present = frozenset(names.split())
            yield on_inputs(PLAIN), _rounded(drawn_inputs(replace(sizes, value_width=2), present, SEED))
    small = _rounded(drawn_vectors(Sizes(1, 1, 1, N, N, width=2, value_width=N), SEED))
    yield on_vectors(MASKED), replace(small, mask=_without_a_row(drawn_masks(small, SEED)))


def _on_vectors(small: Problem) -> Iterator[tuple[Steps, Problem]]:
    """Without a mask, causal, with a given one; and the last query alone, which reads all keys."""
    yield on_vectors(PLAIN), small
    yield on_vectors(CAUSAL), small
    for kind in ("pairs", "padding"):
        yield on_vectors(MASKED), replace(small, mask=drawn_masks(small, SEED, kind))
    yield on_vectors(CAUSAL), small.but(q=small["q"][..., -1:, :])


def _turned(small: Problem) -> Iterator[tuple[Steps, Problem]]:
    """With rotary positions, in one call and behind keys that an earlier one kept."""
    steps = replace(on_vectors(PLAIN), place=Turn(Rotary()))
    yield steps, small
    new = {name: small[name][..., -1:, :] for name in "qkv"}
    yield steps, small.but(**new, past_k=small["k"][..., :-1, :], past_v=small["v"][..., :-1, :])


def _rounded(problem: Problem) -> Problem:
    made = {id(value): np.round(value, 1) for value in problem.arrays.values()}
    return problem.but(**{name: made[id(value)] for name, value in problem.arrays.items()})


def _without_a_row(mask: Array) -> Array:
    """A mask that admits no key to the first query."""
    return mask & (np.arange(mask.shape[1]) > 0)[:, None]


# -- yours and right -----------------------------------------------------------------------------------------------


def _compared(mutant: Mutant, base: Steps, problem: Problem) -> Example | None:
    wrong = mutant(base)
    if wrong is None or wrong == base:
        return None
    yours, right = _state(wrong, problem), _state(base, problem)
    if yours is None or right is None:
        return None
    for shown in ("weights", "y"):
        a, b = np.asarray(getattr(yours, shown), float), np.asarray(getattr(right, shown), float)
        if a.shape == b.shape and a.ndim > 2 and (found := _matrix(a, b)):
            name = "output" if shown == "y" else shown
            return Example(_given(problem, name), name, *found)
    return None


def _state(steps: Steps, problem: Problem) -> State | None:
    """Where the chain ends, on numbers of its own; None where the shapes do not fit it."""
    own = replace(problem, arrays={name: np.array(value) for name, value in problem.arrays.items()})
    try:
        with np.errstate(all="ignore"):
            return steps.run(own)
    except (RegardError, ValueError, IndexError, KeyError, ZeroDivisionError, TypeError):
        return None


def _matrix(yours: Array, right: Array) -> tuple[Array, Array, str] | None:
    """The first matrix of a stack that differs, and where it is."""
    with np.errstate(invalid="ignore"):
        apart = ~(np.abs(yours - right) <= APART * (1 + np.abs(right))) & ~(np.isnan(yours) & np.isnan(right))
    if not apart.any():
        return None
    lead = yours.shape[:-2]
    place = next(index for index in np.ndindex(*lead) if apart[index].any())
    where = ", ".join(
        f"{name} {at}" for name, at, size in zip(("batch", "head"), place, lead, strict=False) if size > 1
    )
    return yours[place], right[place], where


def _given(problem: Problem, shown: str) -> dict[str, Array]:
    """What a reader needs to see, without axes of size 1."""
    arrays = {**problem.arrays, **({} if problem.mask is None else {"mask": problem.mask.astype(int)})}
    told = {id(value): name for name, value in reversed(arrays.items()) if name not in HIDDEN[shown]}
    return {name: _squeezed(arrays[name]) for name in arrays if told.get(id(arrays[name])) == name}


def _squeezed(value: Array) -> Array:
    return value.squeeze(tuple(axis for axis in range(value.ndim - 2) if value.shape[axis] == 1))
