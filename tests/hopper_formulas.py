# mypy: ignore-errors
"""A few formulas as the printer writes them, jitted for Gluon, and the cases in which the forward kernel is compiled.

data of every formula: slopes float32 (H), table float32 (2 K + 1), documents of rows and of keys, int32 (B, N) and
(B, n), N, n, K.
"""

from dataclasses import replace

from triton.experimental import gluon
from triton.experimental.gluon import language as tl

DATA = ("*fp32", "*fp32", "*i32", "*i32", "i32", "i32", "i32")
LISTS = ("*i32", "*i32", "i32", "i32", "i32", "i32", "i32")


@gluon.jit
def no_heads(data, b, h):
    return (0.0,)


@gluon.jit
def no_rows(data, head, b, h, r, inside):
    return (0.0,)


@gluon.jit
def no_columns(data, head, b, h, j, inside):
    return (0.0,)


@gluon.jit
def scale(known):
    return 0.12751743


@gluon.jit
def one(known):
    return 1.0


@gluon.jit
def raw(product, known, at):
    return product[0]


@gluon.jit
def power(x, shift, product, known, at):
    return tl.exp2(x * 0.12751743 - shift)


@gluon.jit
def causal(product, known, at):
    return at[2] >= at[3]


@gluon.jit
def in_window(product, known, at):
    return (at[2] >= at[3]) & (at[2] - 59 <= at[3])


@gluon.jit
def slopes(data, b, h):
    return (tl.load(data[0] + h),)


@gluon.jit
def alibi(product, known, at):
    return product[0] + known[0][0] * (at[3] - at[4]).to(tl.float32)


@gluon.jit
def tanh(x):
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@gluon.jit
def capped(product, known, at):
    return tanh(product[0] * 0.0029462783)


@gluon.jit
def cap(known):
    return 43.280851


@gluon.jit
def capped_power(x, shift, product, known, at):
    return tl.exp2(x * 43.280851 - shift)


@gluon.jit
def sigmoid(x, shift, product, known, at):
    return tanh(product[0] * 0.044194174 - 4.5) * 0.5 + 0.5


@gluon.jit
def relu(x, shift, product, known, at):
    return tl.maximum(product[0] * 0.088388348, 0.0)


@gluon.jit
def relative(product, known, at):
    data = known[3]
    place = tl.minimum(tl.maximum(at[2] - at[3], -data[6]), data[6]) + data[6]
    return product[0] * 0.12751743 + tl.load(data[1] + place)


@gluon.jit
def plain_power(x, shift, product, known, at):
    return tl.exp2(x - shift)


@gluon.jit
def row_documents(data, head, b, h, r, inside):
    return (tl.load(data[2] + b.to(tl.int64) * data[4] + r, mask=inside, other=0),)


@gluon.jit
def column_documents(data, head, b, h, j, inside):
    return (tl.load(data[3] + b.to(tl.int64) * data[5] + j, mask=inside, other=0),)


@gluon.jit
def same_document(product, known, at):
    return (known[1][0] == known[2][0]) & (at[2] >= at[3])


@gluon.jit
def column_table(data, head, b, h, j, inside):
    return (tl.load(data[1] + j % (2 * data[6] + 1), mask=inside, other=0.0),)


@gluon.jit
def with_column(product, known, at):
    return product[0] + known[2][0]


@gluon.jit
def sink(known):
    return known[0][0] * 1.442695


SOFTMAX = {
    "heads": no_heads,
    "rows": no_rows,
    "columns": no_columns,
    "unit": scale,
    "height": raw,
    "weight": power,
    "admitted": causal,
    "sink": sink,
    "EXPONENTIAL": True,
    "SHARED": True,
    "HAS_MASK": False,
    "BOUNDED": False,
    "SCALED": False,
    "ROUNDED": False,
    "HAS_SINK": False,
    "COVERED": True,
    "USES_J": False,
    "STAGED": 0,
}
COLUMN = {"columns": column_table, "height": with_column, "USES_J": True, "STAGED": 1}
MASKED = {"HAS_MASK": True}
EACH = {"EXPONENTIAL": False, "SHARED": False, "COVERED": False}
FORMULAS = {
    "softmax": SOFTMAX,
    "causal": SOFTMAX | MASKED,
    "window": SOFTMAX | MASKED | {"admitted": in_window},
    "bounded": SOFTMAX | {"BOUNDED": True},
    "causal and bounded": SOFTMAX | MASKED | {"BOUNDED": True},
    "sink": SOFTMAX | MASKED | {"heads": slopes, "HAS_SINK": True},
    "alibi": SOFTMAX | MASKED | {"heads": slopes, "height": alibi, "USES_J": True},
    "soft-cap": SOFTMAX | {"height": capped, "unit": cap, "weight": capped_power},
    "sigmoid": SOFTMAX | EACH | {"weight": sigmoid},
    "relu": SOFTMAX | EACH | {"weight": relu},
    "shared relu": SOFTMAX | EACH | MASKED | {"weight": relu, "SHARED": True},
    "scaled relu": SOFTMAX | EACH | MASKED | {"weight": relu, "SHARED": True, "SCALED": True, "ROUNDED": True},
    "relative": SOFTMAX | {"height": relative, "unit": one, "weight": plain_power, "USES_J": True},
    "column table": SOFTMAX | COLUMN,
    "causal column table": SOFTMAX | MASKED | COLUMN,
    "documents": SOFTMAX | MASKED | {"rows": row_documents, "columns": column_documents, "admitted": same_document},
}


UNEVEN = ("causal", "causal and bounded", "scaled relu", "sink", "alibi", "documents", "causal column table")
LOADS = {name: {"uses_j": True, "columns": True} for name in ("column table", "causal column table")}
LOADS |= {"alibi": {"uses_j": True}, "documents": {"uses_j": True}, "relative": {"pairs": True, "uses_j": True}}


def traits(formula):
    """What the tiles of a formula depend on."""
    from regard.engines.triton.hopper.tilings import Traits

    flags = FORMULAS[formula]
    return Traits(flags["EXPONENTIAL"], flags["HAS_MASK"], formula not in UNEVEN, **LOADS.get(formula, {}))


def case(formula, width, wide=None, dtype="bf16", **changes):
    """The forward kernel for a formula and widths of keys and values."""
    from gluon_offline import Case, descriptor
    from regard.engines.triton.hopper.forward import forward
    from regard.engines.triton.hopper.tilings import tiling
    from regard.engines.triton.templates.common import Constants

    flags, wide = FORMULAS[formula], wide or width
    tiles = replace(tiling(width, wide, traits(formula)), **changes)
    signature = {
        "left": descriptor(dtype, 64, width),
        "right": descriptor(dtype, tiles.columns, width),
        "value": descriptor(dtype, tiles.columns, wide),
        "out": descriptor(dtype, 64, wide),
        "total": "*fp32",
        "start": "*i64",
        "data": DATA,
        "lists": LISTS,
        "order": "*i32",
        "sizes": ("i32",) * 4,
        "launch": ("i32",) * 6,
    }
    constants = {"F": Constants(**flags), "S": Constants(LISTED=flags["HAS_MASK"], **tiles.constants)}
    return Case(forward, signature, constants, tiles.options)


def cases():
    """Every formula in widths 64 and 128; some in the others."""
    found = {f"{formula} {width}": case(formula, width) for formula in FORMULAS for width in (64, 128)}
    found |= {f"softmax {width}": case("softmax", width) for width in (16, 32)}
    found |= {f"{formula} 256": case(formula, 256) for formula in ("softmax", "causal", "alibi", "relu")}
    found |= {"softmax 64 128": case("softmax", 64, 128), "softmax 128 64": case("softmax", 128, 64)}
    found |= {"softmax f16": case("softmax", 128, dtype="fp16"), "causal in turn": case("causal", 128, in_turn=True)}
    return found
