"""A hundred thousand tokens: softmax block by block."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="A hundred thousand tokens")

with app.setup(hide_code=True):
    import importlib.util

    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import causal, documents, everywhere, prefix, window
    from regard.claims.rows.programs import exponent, peak_bytes
    from regard.course import lesson
    from regard.course.figures.blocks import blocks_of
    from regard.course.figures.costs import costs_of
    from regard.course.figures.stream import stream_of
    from regard.course.pieces.code import coloured
    from regard.course.programs.c14_length.in_numpy import attend


@app.cell(hide_code=True)
def _():
    page = lesson("length")
    page.opening()
    return (page,)


@app.cell
def _(page):
    def size(count):
        """Bytes in words."""
        for unit in ("B", "kB", "MB", "GB", "TB"):
            if count < 1000:
                return f"{count:.3g} {unit}"
            count /= 1000
        return f"{count:.3g} PB"

    d, bytes_each = 64, 4  # the width of a head; a float32
    _rows = [
        (f"{n:,}", f"{n**2:,}", size(bytes_each * n**2), size(bytes_each * 4 * n * d)) for n in (1_000, 10_000, 100_000)
    ]
    page.stack(
        page.say(r"""
        A book has a hundred thousand words. Every word may read every other: that is what makes attention attention.
        And every weight is a number that must be somewhere.
        """),
        page.table(
            ["N tokens", "N² weights of a head", "their memory", "that of q, k, v and y"],
            _rows,
            f"In float32, width {d}. A model has hundreds of heads, and to learn it keeps the weights of all of them.",
        ),
        page.say(r"""
        The last column is what goes in and comes out. It grows with $N$. Only what lies *between* grows with $N^2$,
        and nobody asked to see it. Can we do without?
        """),
    )
    return d, size


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## A sum can be taken in pieces

    One query's output is a fraction of two sums over the keys:

    $$y = \frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}}$$

    Read the first few keys, add; forget them; read the next few, add. In the end divide. No weight is ever kept.

    One thing stands in the way. $e^{s}$ overflows, so softmax subtracts the largest score first, and who has not read
    everything does not know the largest. The way out: subtract **the largest so far**, $m$. When a larger one comes
    along, everything that was added is too big by the same factor, and one multiplication mends it.

    Below is one query and its scores. Step through them.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    block = mo.ui.slider(steps=[2, 3, 4, 6, 8, 12], value=4, label="keys in a block", show_value=True)
    step = mo.ui.slider(0, 12, value=2, step=1, label="blocks read", show_value=True)
    page.hand(
        block,
        step,
        says="Move the second slider to the right, block by block. When is the factor below 1, and what does it do?",
    )
    return block, step


@app.cell
def _(block, page, step):
    rng = np.random.default_rng(6)
    q, k, v = rng.standard_normal((1, 8)) * 2, rng.standard_normal((24, 8)), rng.uniform(0, 10, (24, 1))
    scores = rg.Attention().scores(q, k)[0]

    states, m, Z, total = [], -np.inf, 0.0, 0.0
    for first in range(0, len(scores), block.value):
        s, read = scores[first : first + block.value], v[first : first + block.value, 0]
        new = max(m, s.max())
        factor = np.exp(m - new)  # what was added is too big by this much
        weights = np.exp(s - new)
        Z, total, m = factor * Z + weights.sum(), factor * total + weights @ read, new
        states.append({"m": m, "factor": factor, "Z": Z, "sum": total, "y": total / Z})

    whole = rg.Attention()(q, k, v).item()
    at = min(step.value, len(states))
    _now = states[at - 1]
    _told = (
        "Nothing was read yet."
        if not at
        else f"After {at} of {len(states)} blocks: m = {_now['m']:.2f}, Z = {_now['Z']:.3f}, y = {_now['y']:.4f}. "
        + (
            f"All that was there before was multiplied by {_now['factor']:.3f}."
            if _now["factor"] < 1
            else "No score was larger than m, so what was there stays as it is."
        )
        + (f" Apart from the whole at once: {abs(_now['y'] - whole):.0e}." if at == len(states) else "")
    )
    page.figure(
        stream_of(scores, block.value, at, states, whole=whole, says="scores of one query, block by block"), _told
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.stack(
        page.mathematics(r"M = \max(m, \max_j s_j) \qquad a = e^{m - M}"),
        page.mathematics(r"Z \leftarrow a Z + \sum_j e^{s_j - M} \qquad u \leftarrow a u + \sum_j e^{s_j - M} v_j"),
        page.mathematics(
            r"m \leftarrow M",
            "One block, $j$ over its keys; in the end $y = u / Z$. At the start $m = -\\infty$, so $a = 0$: "
            "the first block is taken as it is.",
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        rg.Attention(mask=causal),
        "What is computed does not change: this is the formula, and *how* to run it is another question.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## The same in three languages

    Fifty keys in blocks of sixteen: the last block has two. It costs nothing to handle it, and it is easy to forget.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    x = np.random.default_rng(1).standard_normal((3, 50, 8))
    page.written("attend", *x, 16)
    return (x,)


@app.cell
def _(page, x):
    apart = np.abs(attend(*x, 16) - rg.Attention()(*x)).max()
    huge = x * 40  # scores in the thousands
    _same = np.abs(attend(*huge, 16) - rg.Attention()(*huge)).max()
    _largest = rg.Attention().scores(huge[0], huge[1]).max()
    page.say(f"""
    From the whole matrix at once, as the library's `dense` engine computes it, this differs by {apart:.0e}. With
    scores up to {_largest:,.0f}, of which no float could hold the exponential, by {_same:.0e}. This is no
    approximation: it is the same sum, in another order.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Memory, measured

    The library has both ways. `dense` holds whole matrices; `tiled` streams. Here is the most that NumPy held at
    once, for the whole and for our stream of blocks, measured a moment ago:
    """)
    return


@app.cell
def _(page, size):
    lengths = (256, 512, 1024, 2048)

    def vectors(n):
        return np.random.default_rng(2).standard_normal((n, 8))

    held = [peak_bytes(lambda a: rg.Attention()(a, a, a), vectors(n)) for n in lengths[:3]]
    streamed = [peak_bytes(lambda a: attend(a, a, a, 32), vectors(n)) for n in lengths]
    powers = exponent(lengths[:3], held), exponent(lengths, streamed)
    page.figure(
        costs_of(
            {"all pairs": (lengths[:3], np.array(held) / 2**20, powers[0]),
             "in blocks": (lengths, np.array(streamed) / 2**20, powers[1])},
            says="peak memory against length", unit="MiB",
        ),
        f"Peak memory: N to the **{powers[0]:.2f}** for all pairs at once, N to the "
        f"**{powers[1]:.2f}** in blocks. At N = {lengths[2]:,}: "
        f"{size(held[-1])} against {size(streamed[2])}.",
    )  # fmt: skip
    return


@app.cell
def _(d, page, size):
    def planned(n):
        """What each engine would need for n tokens, without running it."""
        if importlib.util.find_spec("torch"):
            import torch

            tokens = torch.empty(1, 1, n, d)
        else:
            tokens = np.empty((1, 1, n, d), dtype=np.float32)
        return rg.Attention().plan(tokens, tokens, tokens)

    plan = planned(100_000)
    _rows = [
        (name, f"{plan[name].operations:.2e}", size(plan[name].bytes), plan[name].against or "runs")
        for name in ("sdpa", "tiled", "dense")
    ]
    page.stack(
        page.say("""
        And for our hundred thousand tokens? `att.plan(q, k, v)` says what each engine would
        need, and why it is not taken:
        """),
        page.table(["engine", "operations", "memory beside q, k, v, y", "taken, or why not"], _rows,
                   "`sdpa` is PyTorch's own kernel; it streams as well. Memory as planned, in float32."),
    )  # fmt: skip
    return (plan,)


@app.cell(hide_code=True)
def _(page, plan):
    _each = plan["dense"].operations
    page.say(f"""
    Look at the column of operations. Streaming has saved no arithmetic: every pair is still scored,
    {_each:.1e} operations for one head. **Memory falls from $N^2$ to $N$; work stays $N^2$.** What
    helps with work is not to score pairs that the mask hides anyway.

    ## Blocks that nobody has to read

    Pairs are taken block by block, and of a whole block one can often say, without looking at a single pair, that the
    mask hides all of it. The library finds that out from the formula of the mask, by interval arithmetic:
    `att.laws.block(rows, columns)`.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    mask = mo.ui.dropdown(["everywhere", "causal", "window", "prefix", "documents"], value="causal", label="mask")
    tile = mo.ui.slider(steps=[64, 128, 256], value=128, label="block", show_value=True)
    page.hand(
        mask,
        tile,
        says="Choose who may read whom. Empty blocks are never computed; only the orange ones test single pairs.",
    )
    return mask, tile


@app.cell
def _(mask, page, tile):
    masks = {
        "everywhere": everywhere,
        "causal": causal,
        "window": window(256),
        "prefix": prefix(512),
        "documents": documents("ids") & causal,
    }
    n = 2048
    ids = np.repeat(np.arange(5), [300, 500, 248, 600, 400])[None]  # five texts, one after the other
    attention = rg.Attention(mask=masks[mask.value])
    _tables = {"ids": ids} if mask.value == "documents" else {}
    _edges = range(0, n, tile.value)
    kinds = [
        [str(attention.laws.block((r, r + tile.value), (c, c + tile.value), tables=_tables).value) for c in _edges]
        for r in _edges
    ]
    _count = {kind: sum(line.count(kind) for line in kinds) for kind in ("all", "some", "none")}
    _of = sum(_count.values())
    page.stack(
        page.figure(
            blocks_of(kinds, says=f"blocks of pairs under the mask {mask.value}"),
            f"{n:,} tokens in blocks of {tile.value}: {_count['all']} full, {_count['some']} to "
            f"be tested pair by pair, {_count['none']} "
            f"skipped. Computed: **{1 - _count['none'] / _of:.0%}** of {_of}.",
        ),
        page.mathematics(attention),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    A causal mask saves nearly half, whatever the length. A window saves most, and the more the longer the text:
    with it, work grows with $N$ as well. It is another formula, though, and no longer reads the whole book.

    ## One kernel

    On a GPU there is a second reason to stream. Its arithmetic units are fast; the way to its large memory is long. A
    program that writes all scores, reads them to take exponentials, writes those and reads them again spends its time
    on the way. **Fused** means: one program makes a block of scores, weighs it and multiplies it with the values
    where it lies, in the small fast memory beside the units. That is FlashAttention, and the stream above is what
    makes it possible.

    The library writes such a kernel for any formula. Here is the heart of the one for causal attention, as
    `att.code("triton")` prints it. Look for `m`, for `l` (our $Z$) and for `acc` (our $u$): it is the step of this
    chapter.
    """)
    return


@app.cell
def _(page):
    kernel = rg.Attention(mask=causal).code("triton")
    _first = kernel.index("def taken_in")
    _heart = kernel[_first : kernel.index("\n\n\n", _first)]
    page.figure(
        f"{coloured(_heart)}<details><summary>The whole kernel, {kernel.count(chr(10)):,} "
        f"lines</summary>{coloured(kernel)}</details>",
        "Triton, for a GPU. `alpha` is the factor that mends what was added before.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    answer = page.answer()
    page.exercise(answer)
    return (answer,)


@app.cell(hide_code=True)
def _(answer, page):
    page.judged(answer)
    return


@app.cell(hide_code=True)
def _(page):
    choice = page.choice()
    page.quiz(choice)
    return (choice,)


@app.cell(hide_code=True)
def _(choice, page):
    page.answered(choice)
    return


@app.cell(hide_code=True)
def _(page):
    page.closing()
    return


if __name__ == "__main__":
    app.run()
