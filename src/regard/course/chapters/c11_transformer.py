"""Chapter 11: a whole transformer, on images and on text."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="A whole transformer, on images and on text")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard.course import lesson
    from regard.course.figures.block import block_of
    from regard.course.figures.painted import against_line, painted, photograph
    from regard.course.figures.scales import lines_of, powers_of
    from regard.course.programs.c11_transformer.stream import flow
    from regard.course.programs.c11_transformer.writer import (
        against_counts,
        counted,
        fresh,
        help_pages,
        train_writer,
        written_by,
    )


@app.cell(hide_code=True)
def _():
    page = lesson("transformer")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    Attention lets rows read each other, and that is all it does. An output is an average of values: no new direction,
    no thought, only a better mixture. To write or to see, five plain things have to stand around it.

    - **A way in.** A word is a number in a list, a patch is pixels. An *embedding* makes a row of either; a position
      is added or turned in.
    - **A residual.** What a part makes is *added* to what was there, so nothing is lost by looking.
    - **A norm.** Before each part, every row is brought to mean 0 and spread 1, so the part always reads numbers of
      one size.
    - **A feed-forward.** Two matrices with a bend between them, on each row by itself: here the mixture becomes
      something new.
    - **A way out.** One more matrix turns the last rows into scores for words, or for classes. It is called a *head*
      too, though it has nothing to do with those of chapter 9.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    choices = ["nothing", "residual", "normalisation", "attention", "feed-forward", "residual and feed-forward"]
    left_out = mo.ui.dropdown(choices, value="nothing", label="left out")
    page.hand(
        left_out,
        says="Leave a part out of the block, and see what becomes of random rows on their way through twelve "
        "random blocks: how long they grow, and how alike they become.",
    )
    return (left_out,)


@app.cell(hide_code=True)
def _(left_out, page):
    _gone = set() if left_out.value == "nothing" else set(left_out.value.split(" and "))
    _stream, _full = flow(_gone), flow()
    _layers = np.arange(13)
    _name = "whole block" if not _gone else "without it"
    _lengths = {_name: _stream.lengths} | ({"whole block": _full.lengths} if _gone else {})
    _alike = {_name: _stream.alike} | ({"whole block": _full.alike} if _gone else {})
    page.stack(
        page.figure(
            block_of(_gone, blocks="× 12"),
            "One block. The thick line is the stream of rows; each part reads it through a norm and adds to it. "
            + (f"Left out: {left_out.value}." if _gone else ""),
        ),
        page.beside(
            page.figure(
                powers_of(
                    _layers, _lengths, says="length of rows", across="blocks passed", up="length of a row", width=420,
                    height=250, colours=("accent", "faint"), high=1000,
                ),
                f"Length of a row: {_stream.lengths[0]:.1f} at first, {_stream.lengths[-1]:,.1f} behind the last "
                "block.",
            ),
            page.figure(
                lines_of(
                    _layers, _alike, says="how alike rows are", across="blocks passed", up="cosine between rows",
                    width=420, height=250, low=0, high=1, colours=("accent", "faint"),
                ),
                f"How alike any two rows are: {_stream.alike[0]:.2f} at first, {_stream.alike[-1]:.2f} at the end. "
                "At 1 all rows point the same way, and nobody can be told from anybody.",
            ),
        ),
    )  # fmt: skip
    return


@app.cell(hide_code=True)
def _(page):
    _whole, _bare, _loud = flow(), flow({"residual"}), flow({"normalisation"})
    page.say(rf"""
    Without the residual, rows are averages of averages: after four blocks any two of them have cosine
    {_bare.alike[4]:.2f}, where the whole block has {_whole.alike[4]:.2f}. Without the norm the sums feed on
    themselves: rows grow from {_loud.lengths[0]:.1f} to {_loud.lengths[-1]:,.0f}, against {_whole.lengths[-1]:.0f} in
    the whole block. Without attention nothing bad happens, and nothing good either: no row ever hears of another.

    The weights here are random. What training makes of each block, we measure below.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        r"x \leftarrow x + \mathrm{attention}(\mathrm{norm}(x)) \qquad x \leftarrow x + "
        r"\mathrm{bend}(\mathrm{norm}(x)\, W_1)\, W_2",
        "A block. Inside its first half stands what we had all along:",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        rg.Attention(mask=rg.causal), "with a causal mask where the model writes, and without where it sees."
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## “Without a bend it is all one linear map”

    One sometimes reads that layers of self-attention, however many, are together one linear function, and that the
    feed-forward is there to break that. The second half is fair. The first is wrong, and it is easy to see how: if
    the weights are *held fixed*, attention is linear. But they are not; they depend on what is read.

    So we ask for the best linear map, whatever it may be, from the input of two layers to their output, on a few
    hundred random inputs. If the claim held, every point would lie on the line.
    """)
    return


@app.cell
def _(page):
    rng = np.random.default_rng(11)
    inputs, Wq, Wk, Wv = rng.standard_normal((211, 5, 3)), *rng.standard_normal((3, 3, 3))
    fixed = rg.Attention().weights(*rng.standard_normal((2, 5, 3)))

    def misfit(layer):
        """Two layers against the best linear map: both outputs, and what it misses."""
        outputs = layer(layer(inputs)).reshape(211, -1)
        given = np.column_stack([inputs.reshape(211, -1), np.ones(211)])
        nearest = given @ np.linalg.lstsq(given, outputs, rcond=None)[0]
        return nearest[:, 0], outputs[:, 0], np.linalg.norm(outputs - nearest) / np.linalg.norm(outputs)

    free = misfit(lambda x: rg.Attention()(x @ Wq, x @ Wk, x @ Wv))
    held = misfit(lambda x: fixed @ (x @ Wv))
    page.beside(
        *(
            page.figure(
                against_line(
                    found[0] / found[1].std(), found[1] / found[1].std(), says=name, across="best linear map",
                    up="two layers", tone=tone,
                ),
                f"{name}: the best linear map misses **{found[2]:.0%}**.",
            )
            for name, found, tone in (("Weights from what is read", free, "accent2"), ("Held fixed", held, "slate"))
        )
    )  # fmt: skip
    return


@app.cell(hide_code=True)
def _(page):
    page.say("The whole block, three times, with one head and without what is learned in the norm:")
    return


@app.cell(hide_code=True)
def _(page):
    _rng = np.random.default_rng(4)
    _small = [_rng.standard_normal(shape) / 3 for shape in ((8, 8), (8, 8), (8, 8), (8, 16), (16, 8))]
    page.written("block", _rng.standard_normal((5, 8)), *_small)
    return


@app.cell(hide_code=True)
def _(page):
    text = help_pages()
    page.say(rf"""
    ## On text: a GPT of two blocks

    Every Python carries a text, the pages of `help()`. We take {len(text.learned):,} of its characters to learn from,
    and hold out {len(text.held):,} that follow. The model gets 64 characters and must name the next one, at every
    place at once: the causal mask of chapter 8 makes that fair. It is trained below, while this page is made.
    """)
    return (text,)


@app.cell
def _(text):
    STEPS, EVERY = 160, 20
    model = fresh(text)  # rg.nn.GPT(len(text.letters), dim=64, depth=2, heads=4)
    with mo.status.spinner("training a small GPT"):
        run = train_writer(model, text, STEPS, EVERY)
    counts = counted(text)
    return EVERY, STEPS, counts, model, run


@app.cell(hide_code=True)
def _(EVERY, STEPS, page):
    step = mo.ui.slider(0, STEPS, value=STEPS, step=EVERY, label="steps of training", show_value=True, full_width=True)
    temperature = mo.ui.slider(0.1, 1.5, value=0.6, step=0.1, label="temperature", show_value=True)
    page.hand(
        step,
        temperature,
        says="Let it write after “the ”: before training, after a few steps, at the end. Temperature divides the "
        "scores before the next character is drawn: near 0 it takes the likeliest, above 1 it gambles.",
    )
    return step, temperature


@app.cell(hide_code=True)
def _(counts, model, page, run, step, temperature, text):
    _wrote = written_by(model, run.states[step.value], text, "the ", 150, temperature.value)
    page.stack(
        page.say(f"> **the** {_wrote.strip()} …"),
        page.figure(
            lines_of(
                list(run.nats),
                {"GPT": list(run.nats.values())},
                says="nats on held-out text",
                across="steps of training",
                up="nats for each held-out character",
                mark=step.value,
                levels={"no context": counts[1], "1 character": counts[2], "2 characters": counts[3]},
            ),
            f"After {step.value} steps {run.nats[step.value]:.2f} nats, which is like choosing among "
            f"{np.exp(run.nats[step.value]):.0f} characters. The dashed lines are counted: how often each character "
            f"followed the ones before it. {against_counts(run.nats[step.value], counts)}",
        ),
    )
    return


@app.cell(hide_code=True)
def _(STEPS, page, run):
    page.say(rf"""
    In these few seconds it went from {run.nats[0]:.2f} to {run.nats[STEPS]:.2f} nats. On a text this short and in a
    time this short, counting is hard to beat. What the model has and the counts do not is that it goes on: it has no
    window of two, and more text makes it better for a long while.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    lacking = mo.ui.dropdown(
        ["choose one", "residual", "normalisation", "attention", "feed-forward"],
        value="choose one",
        label="train it without",
    )
    page.hand(lacking, says="Train the same model again, for as many steps, with one part of its blocks left out.")
    return (lacking,)


@app.cell(hide_code=True)
def _(EVERY, STEPS, lacking, page, run, text):
    if lacking.value == "choose one":
        _piece = page.say(
            "*Which part would you miss most?* Guess first. The library's own experiment, four blocks and 300 "
            "steps, is row T3 of the ledger (`regard claims T3`): without residual it loses most, then attention, "
            "normalisation, feed-forward."
        )
    else:
        from torch import nn as _nn

        from regard.experiments.blocks import no_residual as _alone
        from regard.experiments.rewired import Nothing as _Nothing
        from regard.nn.style import Style as _Style

        _options = {
            "residual": {"style": _Style(residual=_alone)},
            "normalisation": {"style": _Style(norm=_nn.Identity)},
            "feed-forward": {"style": _Style(feed_forward=_Nothing)},
            "attention": {"attention": rg.Attention(mask=(rg.i <= rg.j) & (rg.j <= rg.i))},  # each row reads itself
        }
        with mo.status.spinner(f"training without {lacking.value}"):
            _less = train_writer(fresh(text, **_options[lacking.value]), text, STEPS, 2 * EVERY)
        _whole = {_at: run.nats[_at] for _at in _less.nats}
        _lost = _less.nats[STEPS] - run.nats[STEPS]
        _piece = page.figure(
            lines_of(
                list(_less.nats),
                {"whole": list(_whole.values()), f"no {lacking.value}": list(_less.nats.values())},
                says="with and without",
                across="steps of training",
                up="nats for each held-out character",
                height=260,
                colours=("slate", "accent"),
            ),
            f"Without {lacking.value}: {_less.nats[STEPS]:.2f} nats after {STEPS} steps, {_lost:+.2f} against the "
            "whole model. With two blocks and few steps the order may differ from that of a deeper model.",
        )
    page.stack(_piece)
    return


@app.cell(hide_code=True)
def _(model, page):
    from regard.viewer.vision import model as _vision

    _same = {type(_part).__name__ for _part in (*model.decoder.blocks, *_vision().encoder.blocks)}
    page.say(rf"""
    ## On images: the same block

    A vision transformer cuts an image into patches, makes a row of each, and adds one row that stands for no patch,
    the *class token*, from which the answer is read. Then come the same blocks, without the mask: in the library the
    {len(model.decoder.blocks)} blocks of the writer above and the {len(_vision().encoder.blocks)} of the vision model
    that ships with it are of one class, `{", ".join(sorted(_same))}`. Choose a photograph and a block, and see what
    the class token reads.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    from regard.viewer.vision import FOLDER as _FOLDER
    from regard.viewer.vision import lens_of_image, predicted

    def opened(name):
        """A photograph that is there."""
        from PIL import Image

        shipped = {"a cat": "5-vision-cat", "a rocket": "6-vision-rocket", "a cup of coffee": "7-patches-coffee"}
        if name in shipped:
            return Image.open(_FOLDER.parent / f"{shipped[name]}.lens" / "image.png").convert("RGB")
        from sklearn.datasets import load_sample_image

        return Image.fromarray(load_sample_image({"a flower": "flower.jpg", "a temple": "china.jpg"}[name]))

    subject = mo.ui.dropdown(
        ["a cat", "a rocket", "a cup of coffee", "a flower", "a temple"], value="a cat", label="photograph"
    )
    layer = mo.ui.slider(1, 6, value=5, step=1, label="block", show_value=True)
    head = mo.ui.dropdown(
        ["all four heads, on average", "1", "2", "3", "4"], value="all four heads, on average", label="head"
    )
    page.hand(subject, layer, head, says="Bright is what the class token reads in this block.")
    return head, layer, lens_of_image, opened, predicted, subject


@app.cell(hide_code=True)
def _(lens_of_image, opened, predicted, subject):
    picture = opened(subject.value)
    lens, guesses = lens_of_image(picture), predicted(picture)
    return guesses, lens, picture


@app.cell(hide_code=True)
def _(guesses, head, layer, lens, page, picture, subject):
    _which = head.value if head.value.startswith("all") else f"head {head.value}"
    _heads = range(4) if head.value.startswith("all") else [int(head.value) - 1]
    _rows = [np.asarray(lens.weights(layer.value - 1, head=_h))[0] for _h in _heads]
    _row = np.mean(_rows, axis=0)
    _map, _address = _row[1:].reshape(16, 16), photograph(picture)
    _top = np.sort(_map.reshape(-1))[::-1]
    _needed = int(np.searchsorted(np.cumsum(_top), 0.5 * _top.sum())) + 1
    page.beside(
        page.figure(
            painted(_address, says=subject.value),
            f"The model takes {subject.value} for: "
            + ", ".join(f"{name} {chance:.0%}" for name, chance in guesses)
            + ".",
        ),
        page.figure(
            painted(_address, _map, says="what the class token reads"),
            f"Block {layer.value}, {_which}. Half of what it reads of the image lies in {_needed} of 256 patches; it "
            f"keeps {_row[0]:.0%} for itself.",
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.aside(
        "It knows airplane, automobile, bird, cat, deer, dog, frog, horse, ship and truck, and takes every image "
        "for one of them: a rocket, a cup, a flower and a temple are none, and it has no way to say so. Where it "
        "looks is not yet why it answers; chapter 15 asks that."
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
