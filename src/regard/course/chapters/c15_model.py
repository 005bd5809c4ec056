"""Look into a real model: the lens, and what heads measure."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Look into a real model")

with app.setup(hide_code=True):
    from pathlib import Path

    import marimo as mo
    import numpy as np

    import regard as rg
    import regard.viewer
    from regard.course import lesson
    from regard.course.figures.lenses import photograph_of, sentence_of, wall_of
    from regard.course.programs.c15_model.in_numpy import reach
    from regard.viewer.widget import LensWidget


@app.cell(hide_code=True)
def _():
    page = lesson("model")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    Until now every head was ours: made by hand, or learned on the spot. Here are heads that nobody designed.
    **MiniLM** is an encoder that reads sentences, **SmolLM2** a decoder that writes them, and a small **vision
    transformer** tells cats from trucks. A look at each is kept in this package, so nothing is downloaded and PyTorch
    is not needed.

    What is kept is not the weights. It is $q$, $k$ and one total for each row; from these, any weight follows by the
    formula.
    """)
    return


@app.cell
def _(page):
    gallery = Path(regard.viewer.__file__).parent / "gallery"
    minilm = rg.Lens.open(gallery / "1-encoder-animal.lens")
    smollm = rg.Lens.open(gallery / "4-decoder-bakery.lens")
    cat = rg.Lens.open(gallery / "5-vision-cat.lens")
    page.mathematics(
        smollm[0].formula,
        f"What every layer of SmolLM2 computes, as the lens found it: {len(smollm)} "
        f"layers of {smollm[0].shape[1]} heads, "
        f"{smollm.bytes / 1e6:.1f} MB for {smollm[0].shape[2]} tokens.",
    )
    return cat, minilm, smollm


@app.cell(hide_code=True)
def _(page):
    page.say(
        """
        ## The lens

        This is the lens itself, on MiniLM. Each small square under *Heads* is one head. Point at a word: what does it
        read? It opens on *it*, in the head that knows what *it* is.
        """,
        resting="""
        ## The lens

        With Python behind this page, the lens itself stands here, on MiniLM, with every word and every head of it. A
        plain page shows one row: what *it* reads, in the head that knows what *it* is. `regard lens --gallery` opens
        the rest.
        """,
    )
    return


@app.cell(hide_code=True)
def _(minilm, page):
    _labels = minilm.axes[0]["tokens"].labels
    _still = sentence_of(_labels, minilm.weights(3, head=1)[10], 10, says="what the word it reads, in layer 3, head 1")
    lens = mo.ui.anywidget(LensWidget(minilm, height=680, **minilm.begin))
    page.hand(
        mo.Html(f'<div style="height:680px;overflow:auto;border-radius:6px">{lens}</div>'),
        says="Point at words, choose other heads. Find one that only ever looks at the word before. "
        "Where do most heads look?",
        wide=True,
        resting=f"<figure>{_still}</figure>",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Measured, not guessed

    A picture of one head on one sentence persuades too easily: among hundreds of heads, some show anything. So
    measure all of them. A measure is a mean of weights over places with a meaning: on the token before, on the first
    token, on itself.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    model = mo.ui.dropdown(["MiniLM", "SmolLM2"], value="MiniLM", label="model")
    measure = mo.ui.dropdown(
        ["the token before", "the first token", "itself", "tokens read, of all"],
        value="the token before",
        label="measure",
    )
    page.hand(
        model, measure, says="Choose a measure. Its best head is framed, and read out below the wall, from one token."
    )
    return measure, model


@app.cell
def _(minilm, smollm):
    def all_weights(lens):
        """(layers, heads, n, n)."""
        return np.stack([lens.weights(layer) for layer in range(len(lens))])

    lenses = {"MiniLM": minilm, "SmolLM2": smollm}
    weights = {name: all_weights(lens) for name, lens in lenses.items()}
    readable = {"MiniLM": np.full(16, 16), "SmolLM2": np.arange(1, 47)}  # how many tokens each row may read

    def before(w):
        return np.diagonal(w, -1, -2, -1).mean(-1)

    def first(w):
        return w[..., 1:, 0].mean(-1)

    def itself(w):
        return np.diagonal(w, 0, -2, -1)[..., 1:].mean(-1)

    def spread(w, allowed):
        return (reach(w) / allowed)[..., 1:].mean(-1)

    return before, first, itself, lenses, readable, spread, weights


@app.cell(hide_code=True)
def _(before, first, itself, lenses, measure, model, page, readable, spread, weights):
    _w, _allowed = weights[model.value], readable[model.value]
    _values = {
        "the token before": lambda: before(_w),
        "the first token": lambda: first(_w),
        "itself": lambda: itself(_w),
        "tokens read, of all": lambda: spread(_w, _allowed),
    }[measure.value]()
    _best = tuple(int(place) for place in np.unravel_index(_values.argmax(), _values.shape))
    _labels, _query = lenses[model.value].axes[0]["tokens"].labels, {"MiniLM": 10, "SmolLM2": 34}[model.value]
    page.stack(
        page.figure(
            wall_of(_values, lit=_best, top=1.0, says=f"{measure.value}, for every head of {model.value}"),
            f"{model.value}, {measure.value}: largest in layer {_best[0]}, head "
            f"{_best[1]} with **{_values.max():.2f}**; "
            f"the mean of all heads is {_values.mean():.2f}.",
        ),
        page.figure(
            sentence_of(_labels, _w[_best][_query], _query, says="one row of that head"),
            f"What “{_labels[_query].strip()}” reads there.",
        ),
    )
    return


@app.cell
def _(before, first, itself, minilm, page, readable, spread, weights):
    _mini, _smol = weights["MiniLM"], weights["SmolLM2"]
    _words = [label.strip() for label in minilm.axes[0]["tokens"].labels]
    _it, _animal, _street = (_words.index(word) for word in ("it", "animal", "street"))
    linking = _mini[:, :, _it, _animal]
    _at = np.unravel_index(linking.argmax(), linking.shape)
    _even = {name: (1 / allowed[1:]).mean() for name, allowed in readable.items()}
    _reads = {name: float(np.median(spread(weights[name], readable[name]))) for name in weights}
    page.say(f"""
    ## What one reads in texts about attention, and what is there

    *Trained heads show a bright diagonal.* **Not so.** A token reads itself with {itself(_mini).mean():.2f} in MiniLM
    and {itself(_smol).mean():.2f} in SmolLM2, on average over heads; an even share would be {_even["MiniLM"]:.2f} and
    {_even["SmolLM2"]:.2f}. What is bright is the first token: {first(_smol).mean():.2f} in SmolLM2,
    {first(_mini).mean():.2f} in MiniLM, where it is `[CLS]`.

    *Some heads read the token before.* **Yes**, and one of MiniLM's does nothing else: {before(_mini).max():.4f}. The
    best one of SmolLM2 has {before(_smol).max():.2f}.

    *A pronoun finds what it means.* **One head does, here.** Layer {_at[0]}, head {_at[1]}: “it” reads “animal” with
    {linking.max():.2f} and “street” with {_mini[_at][_it, _street]:.2f}; the mean head gives the animal
    {linking.mean():.2f}. That head was chosen because it does, on this sentence. On sentences it was not chosen on it
    keeps about half of that: see E1 in the ledger, `regard claims E1`.

    *Softmax concentrates.* **Often.** The median head reads {_reads["MiniLM"]:.0%} of the tokens in MiniLM,
    {_reads["SmolLM2"]:.0%} in SmolLM2, counted by entropy as below. Some heads read nearly all.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## How many tokens does a row read?

    Entropy tells: $H_i = -\sum_j w_{ij} \log w_{ij}$. If one token takes all, $H = 0$ and $e^H = 1$. If $n$ are read
    alike, $e^H = n$. So $e^{H}$ counts tokens, and needs no threshold. Here it is, run on a head of SmolLM2.
    """)
    return


@app.cell(hide_code=True)
def _(page, weights):
    page.written("reach", weights["SmolLM2"][17, 4].astype(float))
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## In a picture

    The same in the vision transformer. Its class token collects what is needed to say *cat*. Its row of weights, laid
    over the photograph it was given:
    """)
    return


@app.cell(hide_code=True)
def _(page):
    layer = mo.ui.slider(0, 5, value=3, step=1, label="layer", show_value=True)
    head = mo.ui.slider(0, 3, value=3, step=1, label="head", show_value=True)
    page.hand(
        layer, head, says="Go up through the layers. Where does the class token begin to look, where does it end?"
    )
    return head, layer


@app.cell
def _(cat, head, layer, page):
    row = cat.weights(layer.value, head=head.value)[0, 1:]  # the class token's, on the 256 patches
    _top = np.sort(row)[::-1]
    page.figure(
        photograph_of(cat.image, row, (16, 16), says="what the class token reads of a photograph of a cat"),
        f"Layer {layer.value}, head {head.value}: bright is what is read. Half of it falls on "
        f"{int(np.searchsorted(np.cumsum(_top), row.sum() / 2)) + 1} of {len(row)} patches. "
        f"Photograph: Chelsea, by Stefan van der Walt, CC0.",
    )
    return


@app.cell
def _(page, smollm, weights):
    _values = np.repeat(np.linalg.norm(np.asarray(smollm[18].v[0], dtype=float), axis=-1), 3, axis=0)  # 9 heads on 3
    lengths = _values[8]
    _weight = float(weights["SmolLM2"][18, 8, 1:, 0].mean())
    page.say(f"""
    ## What a weight says, and what it does not

    Layer 18, head 8 of SmolLM2 puts **{_weight:.1%}** of its weight on the first token, whatever that is. Does it
    think of nothing else? Look at the value: what the first token *says* there has length {lengths[0]:.1f}, that of
    the others {lengths[1:].mean():.1f} on average. This head is resting. A row must sum to 1, so a head that has
    nothing to do puts its weight where it does least harm.

    So a weight says **what was read**. It does not say how much was said there ($w_{{ij}} v_j$ does), and not
    **whether it mattered**. For that one has to intervene: block the weight, run the model again, and see what it
    answers. It was done with SmolLM2, on “The capital of Italy is” and its like (P8 in the ledger,
    `regard experiment blocked`). It knows most of the capitals. With the country blocked in every layer it names one
    and the same city for all of them. With the country blocked in the first third of the layers nothing changes:
    there was a weight, and it did not matter.
    """)
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
    page.stack(
        page.say(r"""
        ## Where to go from here

        You know all of it now: score, weight, value, order, mask, head, block, and how it learns. What is left is
        yours.
        """),
        page.table(
            ["to", "write"],
            [
                ("look at a text of your own", "`regard lens \"She sat by the bank and watched the river.\"`"),
                ("look at a photograph", "`regard lens --image cat.jpg`"),
                ("have your own attention checked", "`regard check model.py:attend`"),
                ("train a transformer", "`regard train --help`"),
                ("see what is true of what is said", "`regard claims`"),
                ("write a formula nobody has tried", "`rg.Attention(score=…, weight=…, mask=…)`"),
            ],
        ),
        page.say("""
        Each of these has a page in the documentation: the formula, running it, laws, checking, the lens,
        training, the ledger.
        """),
    )  # fmt: skip
    return


@app.cell(hide_code=True)
def _(page):
    page.closing()
    return


if __name__ == "__main__":
    app.run()
