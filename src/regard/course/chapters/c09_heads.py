"""Heads: slices of the width, each with a question of its own, and one product for all of them."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Heads: several questions at once")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import d, dot, h, sqrt, table
    from regard.course import lesson
    from regard.course.figures.charts import curves_of, matrix_of
    from regard.course.figures.headed import sentence, slices_of, wall_of
    from regard.course.figures.sideways import sideways
    from regard.course.widgets import Matrix


@app.cell(hide_code=True)
def _():
    page = lesson("heads")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    *The animal didn't cross the street because it was too tired.* Be the word **it**. You want to know whom you stand
    for. You also want your verb, *was*. And the word before you, since *because it* is not *though it*. Three
    questions; and one row of weights, with one whole to spend.

    So a layer asks several questions at once. Each is a **head**: its own $W_Q$, its own $W_K$, its own row of
    weights for every word. Here are five heads of a real model (MiniLM, an encoder of six layers with twelve heads
    each) on this sentence. Point at a word; then change the head.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    tokens, found = sentence("1-encoder-animal")
    heads = {
        "layer 3, head 1": found[3, 1],
        "layer 0, head 2": found[0, 2],
        "layer 1, head 8": found[1, 8],
        "layer 4, head 5": found[4, 5],
        "layer 0, head 8": found[0, 8],
    }
    live = mo.ui.anywidget(Matrix(tokens, heads, head="layer 3, head 1", query=tokens.index("it")))
    page.hand(
        live, says="Start with “it” in layer 3, head 1. Then see what the same word reads in the other four.", wide=True
    )
    return found, heads, live, tokens


@app.cell(hide_code=True)
def _(found, heads, live, page, tokens):
    _it, _animal, _street = (tokens.index(word) for word in ("it", "animal", "street"))
    _The, _the = tokens.index("The"), tokens.index("the")
    _n = np.arange(len(tokens))
    _before, _after, _first = (
        found[0, 2][_n[1:], _n[:-1]].mean(),
        found[1, 8][_n[:-1], _n[1:]].mean(),
        found[4, 5][:, 0].mean(),
    )
    _most = {name: tokens[int(np.argmax(weights[_it]))] for name, weights in heads.items()}
    page.say(rf"""
    Chosen now: **{tokens[live.at["query"]]}** in {live.at["head"]} reads **{tokens[live.found["most"]]}** most, with
    {max(live.found["weights"]):.0%}.

    Layer 3, head 1 lets *it* read *animal* with {found[3, 1][_it, _animal]:.0%} of its weight and *street* with
    {found[3, 1][_it, _street]:.0%}. Layer 0, head 2 reads the word before, with {_before:.0%}; layer 1, head 8 the
    word after, with {_after:.0%}. Layer 4, head 5 has nothing to ask here: it rests on the first token, with
    {_first:.0%}. Layer 0, head 8 looks for the same word again: *The* reads *the* with {found[0, 8][_The, _the]:.0%},
    and *the* reads *The* with {found[0, 8][_the, _The]:.0%}. There is only one *it*, so *it* finds nothing there and
    rests on the first token too, with {found[0, 8][_it, 0]:.0%}. Nobody told them to. What *it* reads most, head by
    head: {", ".join(f"*{word}*" for word in _most.values())}.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    floor = mo.ui.slider(0, 5, value=3, label="layer", show_value=True)
    page.hand(
        floor,
        says="All twelve heads of a layer, side by side. Queries run down, keys across; a diagonal is a "
        "word that reads its neighbour or itself.",
    )
    return (floor,)


@app.cell(hide_code=True)
def _(floor, found, page):
    _maps = found[floor.value]
    _flat = _maps.reshape(len(_maps), -1)
    _alike = np.corrcoef(_flat)[np.triu_indices(len(_maps), 1)]
    page.figure(
        wall_of(
            _maps,
            [f"head {one}" for one in range(len(_maps))],
            says="twelve heads of one layer",
            lit=1 if floor.value == 3 else None,
        ),
        f"Layer {floor.value} on the same sentence. Two of its heads are alike by {_alike.mean():.2f} on average "
        f"(correlation of their maps), from {_alike.min():.2f} to {_alike.max():.2f}.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## What one head cannot do

    Could one head not read both, half and half? Let us try. At a party, every guest wants to hear a story from A
    *and* one from B, and to know which was whose. There are eight stories. One head spends a share $t$ of its weight
    on A and the rest on B, and what it brings back is the mixture. Below, two parties: in the second A and B have
    exchanged their stories.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    share = mo.ui.slider(0.0, 1.0, value=0.5, step=0.05, label="share of the weight that goes to A", show_value=True)
    page.hand(
        share,
        says="At one half the two rows are the same. At 1, B is not heard at all. Is there a better place between?",
    )
    return (share,)


@app.cell
def _(page, share):
    role = np.eye(3)[[0, 1, 2, 2]]  # the keys: A, B, and two others
    told = np.eye(8)  # the values: a story is one of eight
    reader = rg.Attention(score=dot)

    def asks(t):
        """A query that gives A the share t and B the rest; 0 is as good as e⁻³⁰."""
        return np.array([[np.log(max(t, 1e-13)), np.log(max(1 - t, 1e-13)), -30.0]])

    def brought(t, a, b):
        """What one head brings, for every party: stories a and b of A and B; the others tell story 0."""
        values = np.stack([told[a], told[b], told[np.zeros_like(a)], told[np.zeros_like(a)]], axis=-2)
        return reader(np.broadcast_to(asks(t), (len(a), 1, 3)), np.broadcast_to(role, (len(a), 4, 3)), values)[:, 0]

    _a, _b = np.array([3, 6]), np.array([6, 3])
    _one = brought(share.value, _a, _b).round(9)
    _two = np.hstack([brought(1.0, _a, _b), brought(0.0, _a, _b)]).round(9)
    _names = ["A tells 3, B tells 6", "A tells 6, B tells 3"]
    page.stack(
        page.figure(
            matrix_of(_one, _names, [str(n) for n in range(8)], says="what one head brings", top=1, cell=46),
            f"**One head.** The two parties differ by {np.abs(_one[0] - _one[1]).max():.2f}.",
        ),
        page.figure(
            sideways(
                matrix_of(_two, _names, [str(n % 8) for n in range(16)], says="what two heads bring", top=1, cell=30),
                560,
            ),
            "**Two heads**, one for A and one for B, side by side. They differ by "
            f"{np.abs(_two[0] - _two[1]).max():.2f}, and each half says whose it is.",
        ),
    )
    return (brought,)


@app.cell
def _(brought, page):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 8, (2, 1500))

    def right(y):
        """Answers that the best linear map of y gets right: who told what, A and B."""
        y = np.column_stack([y, np.ones(len(y))])
        guesses = [y @ np.linalg.lstsq(y, np.eye(8)[one], rcond=None)[0] for one in (a, b)]
        return np.mean([guess.argmax(1) == one for guess, one in zip(guesses, (a, b), strict=True)])

    shares = np.linspace(0, 1, 11)
    ones = [right(brought(t, a, b)) for t in shares]
    both = right(np.hstack([brought(1.0, a, b), brought(0.0, a, b)]))
    page.figure(
        curves_of(shares, {"two heads": np.full(11, both), "one head": ones}, says="right answers, one head and two",
                  across="share of the weight that goes to A", up="right answers", low=0, high=1),
        "“What did A tell? What did B?”, answered by the best linear map of what was brought, for 1500 parties. One "
        f"head: {min(ones):.2f} to {max(ones):.2f}, wherever it "
        f"looks; (1 + 1/8) / 2 = {(1 + 1 / 8) / 2:.2f} is one answer known and the other guessed. Two heads: "
        f"{both:.2f}. `regard experiment heads` trains such models, with the same outcome.",
    )  # fmt: skip
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Slices of the width

    Several heads need not cost more. Take $Q$, $K$ and $V$ as they are, $N \times D$, and cut their columns into $H$
    slices of $D / H$. Each slice is a head: it makes its own $N \times N$ weights, and mixes its own slice of the
    values. The results stand side by side again, $N \times D$, and a last matrix $W_O$ lets what one head found reach
    the columns of another. Choose how many.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    count = mo.ui.slider(steps=[1, 2, 4, 8], value=2, label="heads", show_value=True)
    page.hand(count, says="What grows with the number of heads? What does not?")
    return (count,)


@app.cell(hide_code=True)
def _(count, page):
    _H, _N, _D = count.value, 6, 8
    page.figure(
        slices_of(_N, _D, _H, says="the width cut into heads"),
        f"{_H} head{'s' * (_H > 1)} of {_D // _H} column{'s' * (_D > _H)}. Learned numbers: 4 × {_D}² = {4 * _D**2}, "
        f"for any number of heads. Weights: {_H} × {_N}² = {_H * _N**2}. "
        f"Scores are divided by √{_D // _H}, the width of a head, not of the model.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.stack(
        page.mathematics(
            r"\operatorname{head}_h = \operatorname{softmax}\!\left(\frac{Q_h K_h^\top}{\sqrt{D / H}}\right) V_h "
            r"\qquad Y = \left[\operatorname{head}_1, \ldots, \operatorname{head}_H\right] W_O",
            "Brackets put matrices side by side.",
        ),
        page.mathematics(
            rg.Attention(score=dot(table("M")[h]) / sqrt(d)),
            "Or, in the words of chapter 4: every head $h$ has its own matrix $M_h$ between two tokens, its own "
            "notion of what is relevant. Each has rank $D / H$ at most.",
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Still one product

    A loop over heads is how one thinks of it. A computer need not loop: with the heads as an axis of their own,
    `(H, N, D / H)`, one product of arrays does all of them. The only art is in cutting and joining: *reshape, then
    exchange the axes*; afterwards *exchange, then reshape*. The wrong order has the right shape and the wrong
    numbers.
    """)
    return


@app.cell
def _(page):
    _rng = np.random.default_rng(1)
    N, D, H = 10, 12, 3
    Q, K, V = _rng.standard_normal((3, N, D))
    attention = rg.Attention()

    parts = [slice(one * D // H, (one + 1) * D // H) for one in range(H)]
    loop = np.hstack([attention(Q[:, own], K[:, own], V[:, own]) for own in parts])

    def split(x):
        return x.reshape(N, H, D // H).swapaxes(0, 1)  # (H, N, D / H)

    at_once = attention(split(Q), split(K), split(V))
    joined = at_once.swapaxes(0, 1).reshape(N, D)
    careless = at_once.reshape(N, D)  # the shape is right
    page.table(
        ["how the heads were joined", "shape", "largest difference from the loop"],
        [
            ["exchange the axes, then reshape", f"{joined.shape}", f"{np.abs(joined - loop).max():.1g}"],
            ["reshape alone", f"{careless.shape}", f"{np.abs(careless - loop).max():.2f}"],
        ],
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## In three languages

    Plain Python loops over the heads; the other two take them all at once. The numbers agree.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    _rng = np.random.default_rng(3)
    page.written("multihead", _rng.standard_normal((5, 8)), *_rng.standard_normal((4, 8, 8)) / 8**0.5, 2)
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
