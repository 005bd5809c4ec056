"""Laws of layouts, of matrices as functions take them, of masks in their shapes, and of what came back."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from regard.diagnosis.calling import Outcome
from regard.diagnosis.layouts import INPUT_LAYOUTS, LAYOUTS, VECTOR_LAYOUTS, Layout
from regard.diagnosis.masks import GivenMask, masks_for
from regard.diagnosis.matrices import IN_HEADS, PLAIN, Written
from regard.diagnosis.problem import Sizes, drawn_inputs, drawn_masks, drawn_vectors
from regard.diagnosis.reading import Reading
from regard.diagnosis.signature import Parameter, parameters

RNG = np.random.default_rng(0)


def reading(call: str, form: str, layout: str, **changed: object) -> Reading:
    taken = tuple(parameters(eval(f"lambda {call}: ...")))
    return replace(Reading(form, "numpy", LAYOUTS[layout], taken, Sizes()), **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", VECTOR_LAYOUTS, ids=lambda layout: layout.name)
def test_layouts_go_there_and_back(layout: Layout) -> None:
    sizes = {"b": 2, "h": 3, "n": 5, "d": 7}
    x = RNG.normal(size=[sizes[axis] if layout.has(axis) else 1 for axis in "bhnd"])
    assert layout.of(x).shape == tuple(sizes[axis] for axis in layout.axes)
    assert np.array_equal(layout.back(layout.of(x)), x)
    if not layout.one:
        assert layout.queries == layout


@pytest.mark.parametrize("layout", INPUT_LAYOUTS, ids=lambda layout: layout.name)
def test_layouts_of_inputs_go_there_and_back(layout: Layout) -> None:
    x = RNG.normal(size=(2 if layout.has("b") else 1, 5, 7))
    assert np.array_equal(layout.back(layout.of(x, "bnd"), "bnd"), x)


@pytest.mark.parametrize("way", [*PLAIN, *IN_HEADS], ids=str)
def test_matrices_mean_the_same_in_every_writing(way: Written) -> None:
    """Contracting i by its letter gives x W with heads side by side, and the same of h and d for W_O."""
    problem = drawn_inputs(Sizes(model_width=11, out_width=13), frozenset({"wq", "wo", "bq"}))
    q, o = (way.of(role, problem.arrays, heads=3, groups=3) for role in ("wq", "wo"))
    into = way.inside.replace("o", "z")
    made = np.einsum(f"bni,{into}->bn{'hd' if 'h' in into else 'z'}", problem["x"], q).reshape(2, 5, 18)
    assert np.allclose(made, problem["x"] @ problem["wq"])
    y = RNG.normal(size=(2, 5, 18))
    of_heads = "h" in way.outside
    given = y.reshape(2, 5, 3, 6) if of_heads else y
    out = np.einsum(f"bn{'hd' if of_heads else 'i'},{way.outside}->bno", given, o)
    assert np.allclose(out, y @ problem["wo"])
    assert way.of("bq", problem.arrays, 3, 3).size == 18


def test_several_matrices_in_one() -> None:
    problem = drawn_inputs(Sizes(heads=4, groups=2), frozenset({"wq", "wk", "wv"}))
    beside = Written().of("wqkv", problem.arrays, 4, 2)
    assert np.array_equal(beside, np.concatenate([problem[f"w{c}"] for c in "qkv"], axis=1))
    assert np.array_equal(Written("oi", "oi").of("wqkv", problem.arrays, 4, 2), beside.T)
    assert Written(stacked=True).of("wkv", problem.arrays, 4, 2).shape == (2, 11, 12)


@pytest.mark.parametrize("layout", VECTOR_LAYOUTS, ids=lambda layout: layout.name)
def test_masks_of_every_shape_admit_the_same_pairs(layout: Layout) -> None:
    sizes = Sizes(batch=2 if layout.has("b") else 1, queries=1 if layout.one else 5)
    problem = drawn_vectors(sizes)
    problem = replace(problem, mask=drawn_masks(problem, kind="keys"))
    for mask in masks_for("mask", layout):
        given = mask.array(problem, layout)
        admitted = given == 0 if mask.meaning in ("adds", "hides") else given != 0
        wanted = np.asarray(problem.mask) if mask.of_texts else np.asarray(problem.mask)[:1]
        spread = {"bn": admitted[:, None]}.get(mask.shape, admitted)
        spread = spread[:, 0] if mask.shape in ("b1nn", "b11n") else spread
        assert np.array_equal(np.broadcast_to(spread, wanted.shape), wanted), mask


def test_outputs_may_have_the_width_of_all_heads_of_one_or_of_the_model() -> None:
    read = reading("x, wq, wk, wv, n_heads", "inputs", "bnd", present=frozenset({"wq", "wk", "wv"}))
    problem = read.problem()
    for width in (18, 6, 11):
        raw = RNG.normal(size=(2, 5, width))
        assert np.array_equal(read.canonical(raw, problem), raw)
    assert read.shape(problem) == (2, 5, 18)
    for shape in ((2, 5, 7), (2, 4, 18), (5, 18), (2, 18, 5)):
        assert read.canonical(np.zeros(shape), problem) is None


def test_the_output_is_the_array_whose_shape_fits_best() -> None:
    read = reading("x, wq, wk, wv, n_heads", "inputs", "bnd", present=frozenset({"wq", "wk", "wv"}))
    head, weights, y = np.zeros((2, 5, 6)), np.zeros((2, 3, 5, 5)), np.ones((2, 5, 18))
    found = read.located(Outcome((((0,), head), ((1,), weights), ((2,), y))), read.problem())
    assert found is not None
    assert (found.output, found.weights) == ((2,), (1,))


@pytest.mark.parametrize(("layout", "shape"), [("bhnd", (2, 5, 18)), ("nhd", (5, 18))])
def test_heads_side_by_side_are_taken_apart(layout: str, shape: tuple[int, ...]) -> None:
    read = reading("q, k, v", "vectors", layout, sizes=Sizes(batch=2 if "b" in layout else 1))
    problem, raw = read.problem(), RNG.normal(size=shape)
    found = read.located(Outcome((((), raw),)), problem)
    assert found is not None
    assert found.merged
    y = found.canonical(raw, problem)
    assert y is not None
    assert np.array_equal(y[0, 1], raw.reshape(-1, 5, 18)[0, :, 6:12])


def test_one_query_stays_one_at_every_length() -> None:
    read = reading("query, keys, values", "vectors", "d|nd", sizes=Sizes(batch=1, heads=1, groups=1))
    problem = read.problem(queries=7, keys=7)
    given = {argument.name: np.shape(argument.value) for argument in read.call(problem).arguments}
    assert given == {"query": (6,), "keys": (7, 6), "values": (7, 6)}


def test_words_say_how_it_was_read() -> None:
    read = reading("x, wq, wk, wv, mask", "inputs", "bnd", mask=GivenMask("admits", "nn"))
    words = read.words()
    assert words["called as"] == "(x, wq, wk, wv, mask)"
    assert words["library"] == "NumPy"
    assert words["layout"] == "(batch, positions, width)"
    assert words["heads"] == "3"
    assert words["mask"] == "True admits a pair; (queries, keys)"


def test_a_parameter_that_says_nothing_is_handed_its_default() -> None:
    read = reading("q, k, v", "vectors", "nd", sizes=Sizes(batch=1, heads=1, groups=1))
    read = replace(read, taken=(*read.taken, Parameter("eps", "other", required=False, default=1e-6, by="name")))
    last = read.call(read.problem()).arguments[-1]
    assert (last.value, last.plain, last.by) == (1e-6, True, "name")


@pytest.mark.parametrize("module", "calling description trying reading modules.instance modules.plain".split())
def test_what_runs_beside_the_target_is_light(module: str) -> None:
    code = f"import sys, regard.diagnosis.{module}; print([m for m in ('sympy', 'torch', 'jax') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
