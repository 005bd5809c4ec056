"""Chapter 12: one look across the table, against a chain of whispers."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="One look across the table, against a chain of whispers")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard.course import lesson
    from regard.course.figures.scales import lines_of, powers_of
    from regard.course.figures.whispers import whispers_of
    from regard.course.pieces.numbers import percent
    from regard.course.programs.c12_recurrence.fading import attending, recurrent


@app.cell(hide_code=True)
def _():
    page = lesson("recurrence")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    Before attention, texts were read by a *recurrent net*: one word after the other, with a memory that each step
    rewrites. It is a dinner at which nobody may speak aloud. Guest 1 whispers to guest 2, who whispers what is left
    of it, mixed with thoughts of her own, to guest 3. At the other end of the table somebody laughs, or does not.

    Attention seats the same guests and lets everyone look at everyone. However many sit between them, guest 1 is one
    look away.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    guests = mo.ui.slider(3, 20, value=20, step=1, label="guests", show_value=True)
    kept = mo.ui.slider(0.5, 1.0, value=0.85, step=0.01, label="what each guest passes on", show_value=True)
    page.hand(
        guests,
        kept,
        says="Change how many guests there are. How well must each whisper, so that half of the joke arrives?",
    )
    return guests, kept


@app.cell
def _(guests, kept, page):
    arrives = kept.value ** (guests.value - 1)
    needed = 0.5 ** (1 / (guests.value - 1))
    # the last guest asks for guest 1, whose score stands 6 above all others
    keys = np.zeros((guests.value, 1))
    keys[0] = 6
    look = rg.Attention(score=rg.dot).weights(np.ones((1, 1)), keys)[0, 0]
    page.figure(
        whispers_of(guests.value, kept.value),
        f"Left: each guest passes on {kept.value:.0%}, so guest {guests.value} gets {percent(arrives)} of the joke; "
        f"for half of it each would have to pass on {needed:.1%}. Right: guest {guests.value} looks at guest 1, whose "
        f"score is 6 above the others', and gives it {look:.0%} of its attention. How far apart the two sit is not in "
        "the formula.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## The net behind the whispers

    A recurrent net keeps one row of numbers, its state, and rewrites it at every step. How much does the last state
    still depend on the state $i$ steps before? By the chain rule, through every step in between:
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.stack(
        page.mathematics(r"h_t = \tanh(h_{t-1} W + x_t U)"),
        page.mathematics(
            r"\frac{\partial h_T}{\partial h_{T-i}} = \prod_{t = T-i+1}^{T} W\, \mathrm{diag}(1 - h_t^2)",
            "A product of $i$ factors, each with the same $W$. If $W$ shrinks, the product vanishes; if it "
            "stretches, it may explode. Attention has no product at all, but one sum:",
        ),
        page.mathematics(rg.Attention(mask=rg.causal)),
    )
    return


@app.cell(hide_code=True)
def _(page):
    radius = mo.ui.slider(0.4, 3.0, value=1.0, step=0.1, label="size of W (its largest eigenvalue)", show_value=True)
    page.hand(
        radius,
        says="How strongly the state passes itself on. Find where the memory vanishes, where it explodes, and "
        "whether there is a place between.",
    )
    return (radius,)


@app.cell(hide_code=True)
def _(page):
    def power(number):
        """A number as people write it; the page sets its power of ten."""
        return f"{number:.2g}" if 0.01 <= number < 1000 else f"{number:.0e}"

    reach = {"attention": attending()[1:]}
    try:
        from regard.experiments.recall import beginning, gradient

        reach |= {_kind: np.array(gradient(beginning(_kind, 0), 63)) for _kind in ("LSTM", "LSTM, open gate")}
        _told = "The curves of the two LSTMs are those of PyTorch's layer with its own random weights."
    except ImportError:
        _told = "With PyTorch installed, two LSTMs would be drawn here as well."
    page.aside(
        f"An LSTM is a recurrent net whose state passes through a gate that it learns to keep open. {_told} Each "
        "curve is divided by its value one step back, so that only the fading is seen."
    )
    return power, reach


@app.cell(hide_code=True)
def _(page, power, radius, reach):
    _net = recurrent(radius.value)[1:]
    _curves = {"attention": reach["attention"], f"RNN, W of size {radius.value:g}": _net, **reach}
    _shown = {_name: _curve / _curve[0] for _name, _curve in _curves.items()}
    page.figure(
        powers_of(
            np.arange(1, 64),
            _shown,
            says="gradient by distance",
            across="steps back",
            up="gradient that arrives, against one step back",
            height=330,
            width=680,
            colours=("slate", "accent", "faint", "accent2"),
        ),
        "What arrives of a gradient, computed just now with random weights. From 63 steps back: RNN "
        f"{power(_net[-1] / _net[0])}, attention {_shown['attention'][-1]:.1f}.",
    )
    return


@app.cell(hide_code=True)
def _(page, power, reach):
    _lstm = ""
    if "LSTM" in reach:
        _closed, _open = (reach[_kind][-1] / reach[_kind][0] for _kind in ("LSTM", "LSTM, open gate"))
        _lstm = f"The plain LSTM keeps {power(_closed)}, one whose gate starts open {_open:.2f}: gates help. "
    page.say(rf"""
    With $W$ of size 0.8, a gradient from 63 steps back has shrunk to {power(recurrent(0.8)[-1] / recurrent(0.8)[1])}
    of what it was; at size 3 it has grown {power(recurrent(3.0)[-1] / recurrent(3.0)[1])} times, which is no better:
    such a net cannot be steered. There is a narrow place between, and training would have to hold it.
    {_lstm}Attention's curve is rugged, because weights differ, but it does not fall: distance is not in the formula.

    A gradient that does not arrive cannot teach. So let us see what is learned.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Asked again, so many rows later

    A task with nothing but distance in it: pairs of a key and a value are shown, and one key is asked for exactly so
    many rows later. The value is one of eight. One layer of each kind learns for 150 steps, just now; all have about
    as many parameters.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    distance = mo.ui.dropdown(["4", "8", "16", "32"], value="16", label="rows between")
    page.hand(distance, says="Move the question away from the answer. Each choice trains three layers anew.")
    return (distance,)


@app.cell(hide_code=True)
def _(distance, page):
    try:
        from regard.experiments.pairs import VALUES as _VALUES
        from regard.experiments.pairs import AtDistance as _AtDistance
        from regard.experiments.recall import right as _right

        with mo.status.spinner("three layers learn"):
            _found = {
                _kind: _right(_kind, _AtDistance(int(distance.value), seed=0), 150, 0)
                for _kind in ("attention", "LSTM", "LSTM, open gate")
            }
        _piece = page.table(
            ["layer", "steps on the way", "right answers"],
            [
                (_kind, 1 if _kind == "attention" else int(distance.value), f"{_share:.0%}")
                for _kind, _share in _found.items()
            ],
            f"Asked for {distance.value} rows later, after 150 steps of training. By chance: {1 / _VALUES:.1%}.",
        )
    except ImportError as _missing:
        _piece = page.aside(f"This needs PyTorch: {_missing}")
    page.stack(_piece)
    return


@app.cell(hide_code=True)
def _(page):
    page.aside(
        "In fairness: where nearer keys are asked for as well, the path is learned step by step, and an LSTM keeps "
        "*one* pair over all of these distances. What it cannot do is hold many pairs at once in one row of "
        "numbers, while attention goes back and looks. The experiment `recall` and row L2 of the ledger have both "
        "(`regard claims L2`): the claim holds with a condition."
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Does anybody have to wait?

    In the chain the last guest waits for all the others. In the room nobody waits: row $i$ of attention needs
    queries, keys and values, but no other output. Here is the chain in three languages; look for the loop that
    nothing can remove.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    _rng = np.random.default_rng(5)
    page.written(
        "states", _rng.standard_normal((6, 3)), 0.7 * _rng.standard_normal((4, 4)), _rng.standard_normal((3, 4))
    )
    return


@app.cell(hide_code=True)
def _(page):
    try:
        from statistics import median as _median

        import torch as _torch

        from regard.experiments.length import chains as _chains
        from regard.experiments.length import in_turns as _in_turns

        _few, _many = _chains(8), _chains(16)
        _more = {_name: (_many[_name] - _few[_name]) // 8 for _name in _few}
        _lengths = (64, 256, 1024)
        with mo.status.spinner("measuring"):
            _times = {
                _rows: {_name: 1e3 * _median(_t) for _name, _t in _in_turns("cpu", 1, _rows, 2, 0)["forward"].items()}
                for _rows in _lengths
            }
        _ratio = {_rows: _of["LSTM"] / _of["attention"] for _rows, _of in _times.items()}
        _threads = _torch.get_num_threads()
        _piece = page.stack(
            page.say(
                f"Counted in the graph of operations: one more row adds **{_more['attention']}** operations to those "
                f"of attention that must follow one another, and **{_more['LSTM']}** to an LSTM's. So much for the "
                f"order of things. And the clock? Measured just now on this processor, {_threads} "
                f"thread{'s' * (_threads > 1)}, one text, forward:"
            ),
            page.table(
                ["rows", "attention, ms", "LSTM, ms", "LSTM / attention"],
                [(_rows, _of["attention"], _of["LSTM"], _ratio[_rows]) for _rows, _of in _times.items()],
            ),
            page.say(
                f"At {_lengths[-1]:,} rows, four times the width, both do as many multiplications; there the LSTM "
                f"took {_ratio[_lengths[-1]]:.1f} times as long as attention. Beyond that attention's N² weighs more "
                "and more. On one thread there is nobody to work in parallel, so not having to wait wins little; "
                "and an LSTM that is given many texts at once fills its time with them, and is not slower at all. "
                "It is on a GPU, with thousands of workers, that rows which need not wait are many times as fast. "
                "Row L3 of the ledger has all of these (`regard claims L3`) and says: *holds with a condition*."
            ),
        )
    except ImportError as _missing:
        _piece = page.aside(f"The clock needs PyTorch: {_missing}")
    page.stack(_piece)
    return


@app.cell(hide_code=True)
def _(page):
    _n = np.arange(1, 101)
    page.figure(
        lines_of(
            _n,
            {"all pairs, N²": _n.astype(float) ** 2, "longest wait in a chain, N": _n.astype(float)},
            says="pairs and waits",
            across="guests N",
            up="looks, or whispers in a row",
            height=240,
            colours=("slate", "accent"),
            low=0,
        ),
        f"The price. A hundred guests who all look at each other make {_n[-1] ** 2:,} looks, where the chain makes "
        f"{_n[-1] - 1} whispers. Chapter 14 is about that.",
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
