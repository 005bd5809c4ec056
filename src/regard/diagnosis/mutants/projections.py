"""Roles that are mixed up: which vectors are queries, keys and values, and what becomes of the output."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..._arrays import library
from ..steps import State, Step, Steps, as_they_are, given_vectors, mix_values, project_out, projected, role
from .registry import makes


@dataclass(frozen=True)
class Turned:
    """Weights of q with the columns of k, which fit when n = d, or with k read as (d, n)."""

    weigh: Step
    reshaped: bool

    def __call__(self, state: State) -> State:
        xp = library(state.k)
        batch, heads, n, width = state.k.shape
        k = state.k.reshape(batch, heads, width, n) if self.reshaped else state.k
        if k.shape[-2] != state.q.shape[-1]:
            raise ValueError("the columns of k are no vectors of the width of q")
        return replace(self.weigh(replace(state, k=xp.matrix_transpose(k))), k=state.k)


@makes("key not transposed")
def key_as_it_is(steps: Steps) -> Steps:
    """q @ k."""
    return replace(steps, weigh=Turned(steps.weigh, reshaped=False))


@makes("key not transposed")
def key_reshaped(steps: Steps) -> Steps:
    """q @ k.reshape(d, n)."""
    return replace(steps, weigh=Turned(steps.weigh, reshaped=True))


@dataclass(frozen=True)
class Exchanged:
    """Queries and keys change places after they were made."""

    project: Step

    def __call__(self, state: State) -> State:
        made = self.project(state)
        if made.q.shape != made.k.shape:
            raise ValueError("queries and keys differ in shape")
        return replace(made, q=made.k, k=made.q)


@makes("queries and keys swapped")
def swapped(steps: Steps) -> Steps:
    """k qᵀ in place of q kᵀ."""
    return replace(steps, project=Exchanged(steps.project))


def raw_values(state: State) -> State:
    """v = x."""
    made = projected(state)
    return replace(made, v=state.problem["memory"])


@makes("values from the input")
def values_raw(steps: Steps) -> Steps | None:
    """W_V is never used."""
    return replace(steps, project=raw_values) if steps.project is projected else None


def values_by_keys(state: State) -> State:
    """v = x W_K."""
    made = projected(state)
    return replace(made, v=role(state, "v", "k"))


def values_by_queries(state: State) -> State:
    """v = x W_Q."""
    made = projected(state)
    return replace(made, v=role(state, "v", "q"))


def keys_by_queries(state: State) -> State:
    """k = x W_Q."""
    made = projected(state)
    return replace(made, k=role(state, "k", "q"))


def queries_by_keys(state: State) -> State:
    """q = x W_K."""
    made = projected(state)
    return replace(made, q=role(state, "q", "k"))


def values_of_keys(state: State) -> State:
    """v = W_V of what the keys are made of, where values have an input of their own."""
    made = projected(state)
    return replace(made, v=role(state, "v", source="context"))


def values_of_queries(state: State) -> State:
    """v = W_V of what the queries are made of."""
    made = projected(state)
    return replace(made, v=role(state, "v", source="x"))


def keys_of_queries(state: State) -> State:
    """k = W_K of what the queries are made of."""
    made = projected(state)
    return replace(made, k=role(state, "k", source="x"))


def all_of_queries(state: State) -> State:
    """k and v of what the queries are made of: the context is never read."""
    made = projected(state)
    return replace(made, k=role(state, "k", source="x"), v=role(state, "v", source="x"))


def keys_for_values(state: State) -> State:
    """v is k."""
    made = given_vectors(state)
    return replace(made, v=made.k)


def queries_for_values(state: State) -> State:
    """v is q."""
    made = given_vectors(state)
    return replace(made, v=made.q)


def queries_for_keys(state: State) -> State:
    """k is q."""
    made = given_vectors(state)
    return replace(made, k=made.q)


def keys_for_queries(state: State) -> State:
    """q is k."""
    made = given_vectors(state)
    return replace(made, q=made.k)


def _enter(name: str, right: Step, wrong: Step) -> None:
    makes(name)(lambda steps: replace(steps, project=wrong) if steps.project is right else None)


for _name, _right, _wrong in (
    ("values from the keys", projected, values_by_keys),
    ("values from the keys", projected, values_of_keys),
    ("values from the keys", given_vectors, keys_for_values),
    ("values from the queries", projected, values_by_queries),
    ("values from the queries", projected, values_of_queries),
    ("values from the queries", given_vectors, queries_for_values),
    ("keys from the queries", projected, keys_by_queries),
    ("keys from the queries", projected, queries_by_keys),
    ("keys from the queries", projected, keys_of_queries),
    ("keys from the queries", projected, all_of_queries),
    ("keys from the queries", given_vectors, queries_for_keys),
    ("keys from the queries", given_vectors, keys_for_queries),
):
    _enter(_name, _right, _wrong)


@makes("output projection forgotten")
def not_projected_out(steps: Steps) -> Steps | None:
    """W_O is never used."""
    return replace(steps, out=as_they_are) if steps.out is project_out else None


def project_out_per_head(state: State) -> State:
    """Each head through its own square block of W_O: heads never mix."""
    p, y = state.problem, state.y
    matrix, heads = p["wo"], p.heads
    rows, columns = matrix.shape[0] // heads, matrix.shape[1] // heads
    blocks = [
        y[..., h * rows : (h + 1) * rows] @ matrix[h * rows : (h + 1) * rows, h * columns : (h + 1) * columns]
        for h in range(heads)
    ]
    joined = library(y).concat(blocks, axis=-1)
    return replace(state, y=joined if p.get("bo") is None else joined + p["bo"])


@makes("output projection per head")
def projected_per_head(steps: Steps) -> Steps | None:
    """W_O has no way from one head to another."""
    return replace(steps, out=project_out_per_head) if steps.out is project_out else None


def project_out_small(state: State) -> State:
    """One small W_O for every head."""
    p, y = state.problem, state.y
    small = p["wo"]
    batch, n, merged = y.shape
    if small.shape[0] == merged:
        raise ValueError("W_O takes all heads")
    each = y.reshape(batch, n, merged // small.shape[0], small.shape[0]) @ small
    each = each if p.get("bo") is None else each + p["bo"]
    return replace(state, y=each.reshape(batch, n, -1))


@makes("output projection per head")
def projected_by_one(steps: Steps) -> Steps | None:
    """One W_O of the width of a head."""
    return replace(steps, out=project_out_small) if steps.out is project_out else None


def mix_without_weights(state: State) -> State:
    """y_i = v_i: the weights are made and never used."""
    if state.weights.shape[-2] != state.weights.shape[-1]:
        raise ValueError("as many queries as keys are needed")
    return replace(state, y=state.v)


def mix_evenly(state: State) -> State:
    """y_i = the mean of all values."""
    xp = library(state.v)
    mean = xp.mean(state.v, axis=-2, keepdims=True)
    return replace(state, y=mean + 0 * state.weights[..., :1])


@makes("weights never used")
def values_averaged(steps: Steps) -> Steps | None:
    """The mean of the values, whatever the scores."""
    return replace(steps, mix=mix_evenly) if steps.mix is mix_values else None


@makes("weights never used")
def values_alone(steps: Steps) -> Steps | None:
    """The values are returned as they are."""
    return replace(steps, mix=mix_without_weights) if steps.mix is mix_values else None
