# mypy: ignore-errors
"""What the printer adds for the way back to the formulas of hopper_formulas.py, and the cases that are compiled.

data, behind what hopper_formulas.py lists: a float32 (B, H, N), c float32 (B, H, n), H.
"""

import ast
import importlib.util
import re
from pathlib import Path

from triton.experimental import gluon
from triton.experimental.gluon import language as tl

_SPEC = importlib.util.spec_from_file_location("forward_formulas", Path(__file__).with_name("hopper_formulas.py"))
forth = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(forth)
tanh = forth.tanh

DATA = (*forth.DATA, "*fp32", "*fp32", "i32")


@gluon.jit
def scales(known):
    return (0.088388348,)


@gluon.jit
def one(known):
    return (1.0,)


@gluon.jit
def pull_power(g, x, shift, product, known, at):
    return (g * tl.exp2(x * 0.12751743 - shift),)


@gluon.jit
def pull_capped(g, x, shift, product, known, at):
    return (g * tl.exp2(x * 43.280851 - shift) * (1.0 - x * x),)


@gluon.jit
def pull_plain(g, x, shift, product, known, at):
    return (g * tl.exp2(x - shift),)


@gluon.jit
def pull_sigmoid(g, x, shift, product, known, at):
    w = tanh(product[0] * 0.044194174 - 4.5) * 0.5 + 0.5
    return (g * (w * (1.0 - w)),)


@gluon.jit
def pull_relu(g, x, shift, product, known, at):
    return (tl.where(product[0] > 0.0, g, 0.0),)


@gluon.jit
def row_bias(data, head, b, h, r, inside):
    return (tl.load(data[7] + (b.to(tl.int64) * data[9] + h) * data[4] + r, mask=inside, other=0.0),)


@gluon.jit
def column_bias(data, head, b, h, j, inside):
    return (tl.load(data[8] + (b.to(tl.int64) * data[9] + h) * data[5] + j, mask=inside, other=0.0),)


@gluon.jit
def biased(x, shift, product, known, at):
    return tanh((product[0] * 0.088388348 + known[1][0] + known[2][0]) * 0.5) * 0.5 + 0.5


@gluon.jit
def pull_biased(g, x, shift, product, known, at):
    w = biased(x, shift, product, known, at)
    return (g * (w * (1.0 - w)),)


@gluon.jit
def pull_biased_twice(g, x, shift, product, known, at):
    w = biased(x, shift, product, known, at)
    pull = g * (w * (1.0 - w))
    return (pull, pull * product[0])


@gluon.jit
def column_height(product, known, at):
    return product[0] + known[2][0]


PULLS = {
    "product_scales": scales,
    "pull_products": pull_power,
    "pull_rows": pull_power,
    "pull_columns": pull_power,
    "ROW_PULLS": 0,
    "COLUMN_PULLS": 0,
}
OWN = {
    "soft-cap": {"product_scales": scales, "pull_products": pull_capped},
    "sigmoid": {"pull_products": pull_sigmoid},
    "relu": {"pull_products": pull_relu},
    "shared relu": {"pull_products": pull_relu},
    "scaled relu": {"pull_products": pull_relu},
    "relative": {"pull_products": pull_plain},
}
FORMULAS = {name: flags | PULLS | OWN.get(name, {}) for name, flags in forth.FORMULAS.items()}
FORMULAS["column bias"] = FORMULAS["causal"] | {"columns": column_bias, "height": column_height, "COLUMN_PULLS": 1}
FORMULAS["biases"] = FORMULAS["sigmoid"] | {
    "rows": row_bias,
    "columns": column_bias,
    "weight": biased,
    "pull_products": pull_biased,
    "pull_rows": pull_biased,
    "pull_columns": pull_biased_twice,
    "ROW_PULLS": 1,
    "COLUMN_PULLS": 2,
}


@gluon.jit
def pull_balanced(g, x, shift, product, known, at):
    """Of a temperature: g ∂ψ, g ψ, ∂ψ."""
    pull, power = pull_power(g, x, shift, product, known, at)[0], pull_power(1.0, x, shift, product, known, at)[0]
    return (pull * product[0], pull, power * product[0])


COMPILED = FORMULAS | {  # and not run
    f"{name} balanced": FORMULAS[name] | {"pull_rows": pull_balanced, "ROW_PULLS": 3} for name in ("softmax", "causal")
}


def case(kernel, formula, width, wide=None, dtype="bf16", one_scale=True, **changes):
    """A kernel of the backward pass, for a formula and widths of keys and values."""
    from dataclasses import replace

    from gluon_offline import Case, descriptor
    from regard.engines.triton.hopper.backward_keys import backward_keys
    from regard.engines.triton.hopper.backward_queries import backward_queries
    from regard.engines.triton.hopper.backward_rows import backward_rows
    from regard.engines.triton.hopper.backward_tilings import GatherTiling, keys_tiling, rows_tiling
    from regard.engines.triton.hopper.tilings import Traits
    from regard.engines.triton.templates.common import Constants

    flags, wide = COMPILED[formula], wide or width
    traits = Traits(flags["EXPONENTIAL"], flags["HAS_MASK"], **forth.LOADS.get(formula, {}))
    same = {"stats": "*fp32", "sums": "*fp32", "start": "*i64", "data": DATA, "lists": forth.LISTS, "order": "*i32"}
    same |= {"sizes": ("i32",) * 6, "launch": ("i32",) * 6, "slants": descriptor(dtype, 64, 64)}
    if kernel == "queries":
        tiles = GatherTiling(**changes)
        sizes = Constants(LISTED=flags["HAS_MASK"], ONE_SCALE=one_scale, **tiles.constants)
        same |= {"right": descriptor(dtype, 64, width), "out": descriptor(dtype, 64, width), "places": "*i32"}
        return Case(backward_queries, same, {"F": Constants(**flags), "S": sizes}, tiles.options)
    if kernel == "rows":
        tiles = replace(rows_tiling(width, wide, traits), **changes)
        tall, size, made, outs = 64, tiles.block, backward_rows, {"out": descriptor(dtype, 64, width)}
    else:
        tiles = replace(keys_tiling(width, wide, traits), **changes)
        tall, size, made = tiles.block, 64, backward_keys
        outs = {"out_right": descriptor(dtype, 64, width), "out_value": descriptor(dtype, 64, wide)}
    signature = {
        "left": descriptor(dtype, tall, width),
        "slope": descriptor(dtype, tall, wide),
        "right": descriptor(dtype, size, width),
        "value": descriptor(dtype, size, wide),
    }
    sizes = Constants(LISTED=flags["HAS_MASK"], ONE_SCALE=one_scale, **tiles.constants)
    return Case(made, same | outs | signature, {"F": Constants(**flags), "S": sizes}, tiles.options)


def named(name):
    """The case of a name: kernel, formula, width, and values of a tiling, as in "keys softmax 128 in_turn=True"."""
    kernel, rest = name.split(" ", 1)
    words = re.findall(r"\w+=\w+", rest)
    formula, *widths = re.fullmatch(r"(.*?) (\d+)(?: (\d+))?", re.sub(r" \w+=\w+", "", rest)).groups()
    values = {word.split("=")[0]: ast.literal_eval(word.split("=")[1]) for word in words}
    return case(kernel, formula, *(int(width) for width in widths if width), **values)


class Cases(dict):
    """Every name is a case, made when it is asked for."""

    def __missing__(self, name):
        return named(name)


def cases():
    """What gluon_offline.measured asks for."""
    return Cases()
