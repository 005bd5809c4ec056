"""The right implementation, as a chain of steps that mutants replace one by one.

    project   q = x W_Q + b_Q, …           (batch, n, heads · d)
    split     into heads                   (batch, heads, n, d)
    remember  keys and values of earlier calls come before
    repeat    each key head for its group of query heads
    place     positions that turn q and k
    weigh     w_ij = ψ(s_ij) / Z_i         the formula
    mix       y_i = Σ_j w_ij v_j
    merge     heads side by side           (batch, n, heads · d_v)
    out       y W_O + b_O
    add       x + y, where the input is added inside

Every step takes a State and gives the next. They run on NumPy, PyTorch and JAX alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from .._arrays import library
from ..attention import Attention
from ..inputs import Rotary
from .problem import Array, Problem


@dataclass(frozen=True, eq=False)
class State:
    """What is known between two steps."""

    problem: Problem
    q: Array = None
    k: Array = None
    v: Array = None
    kept: tuple[Array, Array] | None = None  # keys and values for a later call
    weights: Array = None
    y: Array = None


Step = Callable[[State], State]


# -- project -------------------------------------------------------------------------------------------------------


def given_vectors(state: State) -> State:
    """q, k and v are what the call was given."""
    p = state.problem
    return replace(state, q=p["q"], k=p["k"], v=p["v"])


def projected(state: State) -> State:
    """q = x W_Q + b_Q and so on; a matrix that is absent leaves its input as it is."""
    return replace(state, q=role(state, "q"), k=role(state, "k"), v=role(state, "v"))


SOURCES = {"q": "x", "k": "context", "v": "memory"}


def role(state: State, name: str, matrix: str | None = None, source: str | None = None) -> Array:
    """One of q, k, v: its own input through its own matrix, unless another is named."""
    p = state.problem
    return affine(p, p[source or SOURCES[name]], matrix or name)


def affine(problem: Problem, x: Array, name: str) -> Array:
    """x W + b for the matrix of that name."""
    matrix, bias = problem.get(f"w{name}"), problem.get(f"b{name}")
    y = x if matrix is None else x @ matrix
    return y if bias is None else y + bias


# -- heads ---------------------------------------------------------------------------------------------------------


def as_they_are(state: State) -> State:
    """Nothing to do."""
    return state


def split_heads(state: State) -> State:
    """(batch, n, heads · d) → (batch, heads, n, d)."""
    heads, groups = state.problem.heads, state.problem.groups
    return replace(state, q=split(state.q, heads), k=split(state.k, groups), v=split(state.v, groups))


def split(x: Array, heads: int) -> Array:
    """Columns h·d … h·d + d belong to head h."""
    batch, n, width = x.shape
    return library(x).permute_dims(x.reshape(batch, n, heads, width // heads), (0, 2, 1, 3))


def remember(state: State) -> State:
    """Keys and values of earlier calls come before those of this one."""
    return joined(state, axis=-2)


def joined(state: State, axis: int) -> State:
    """Kept keys and values before the new ones, along one axis."""
    past_k, past_v = state.problem.get("past_k"), state.problem.get("past_v")
    if past_k is None or past_v is None:
        return replace(state, kept=(state.k, state.v))
    xp = library(state.k)
    k, v = xp.concat([past_k, state.k], axis=axis), xp.concat([past_v, state.v], axis=axis)
    return replace(state, k=k, v=v, kept=(k, v))


def repeat_groups(state: State) -> State:
    """Key head g serves the query heads g·r … g·r + r."""
    times = state.q.shape[1] // state.k.shape[1]
    if times == 1:
        return state
    xp = library(state.k)
    return replace(state, k=xp.repeat(state.k, times, axis=1), v=xp.repeat(state.v, times, axis=1))


def merge_heads(state: State) -> State:
    """(batch, heads, n, d) → (batch, n, heads · d)."""
    batch, heads, n, width = state.y.shape
    return replace(state, y=library(state.y).permute_dims(state.y, (0, 2, 1, 3)).reshape(batch, n, heads * width))


def project_out(state: State) -> State:
    """y W_O + b_O, where there is a W_O."""
    return replace(state, y=affine(state.problem, state.y, "o"))


def add_input(state: State) -> State:
    """x + y: a residual connection inside."""
    return replace(state, y=state.y + state.problem["x"])


# -- positions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """Rotary positions on queries and keys."""

    rotary: Rotary

    def __call__(self, state: State) -> State:
        p = state.problem
        return replace(state, q=self.rotary.turn(state.q, p.first), k=self.rotary.turn(state.k))


# -- weights and values --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Weigh:
    """w_ij = ψ(s_ij) / Z_i, by the formula; its tables come with the problem."""

    formula: Attention

    def __call__(self, state: State) -> State:
        return replace(state, weights=self.formula.weights(state.q, state.k, **self.options(state.problem)))

    def scores(self, state: State) -> Array:
        """s_ij of every pair."""
        return self.formula.scores(state.q, state.k, **self.options(state.problem))

    def options(self, problem: Problem) -> dict[str, Any]:
        """The arguments of the formula beside q and k."""
        tables = {name: value for name, value in problem.options.items() if name in self.formula.ranks}
        if "mask" in self.formula.ranks:
            admitted = self.admitted(problem)
            tables["mask"] = admitted[:, None] if admitted.ndim == 3 else admitted
        return {"start": self.start(problem), "engine": "dense", **tables}

    def admitted(self, problem: Problem) -> Array:
        """The pairs that the call's own mask admits: (batch, n_q, n_k), or with heads after the batch."""
        return problem.mask

    def start(self, problem: Problem) -> int | None:
        """The position of the first query."""
        return problem.start


def mix_values(state: State) -> State:
    """y_i = Σ_j w_ij v_j."""
    return replace(state, y=state.weights @ state.v)


# -- the chain -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steps:
    """All steps in their order. A mutant replaces one, or the few that one mistake touches."""

    project: Step
    split: Step
    remember: Step
    repeat: Step
    place: Step
    weigh: Step
    mix: Step
    merge: Step
    out: Step
    add: Step = as_they_are

    def __iter__(self) -> Any:
        return (getattr(self, field.name) for field in fields(self))

    def run(self, problem: Problem) -> State:
        """Every step after the other."""
        state = State(problem)
        for step in self:
            state = step(state)
        return state

    @property
    def formula(self) -> Attention | None:
        """The formula of the weights, where they still are one's."""
        return self.weigh.formula if isinstance(self.weigh, Weigh) else None

    def with_formula(self, formula: Attention | None) -> Steps | None:
        """The same chain with other weights."""
        if formula is None or not isinstance(self.weigh, Weigh):
            return None
        return replace(self, weigh=replace(self.weigh, formula=formula))


def on_vectors(formula: Attention) -> Steps:
    """From q, k and v to y."""
    return Steps(
        given_vectors,
        as_they_are,
        remember,
        repeat_groups,
        as_they_are,
        Weigh(formula),
        mix_values,
        as_they_are,
        as_they_are,
    )


def on_inputs(formula: Attention) -> Steps:
    """From x and the matrices to y."""
    return Steps(
        projected,
        split_heads,
        remember,
        repeat_groups,
        as_they_are,
        Weigh(formula),
        mix_values,
        merge_heads,
        project_out,
    )
