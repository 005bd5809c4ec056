"""Chapter 5: from score to weight."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="From score to weight")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import d, dot, relu, share, sigmoid, sqrt
    from regard.algebra.mistakes import mistakes_of
    from regard.course import lesson
    from regard.course.figures.charts import curves_of, matrix_of


@app.cell(hide_code=True)
def _():
    page = lesson("weight")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    We left chapter 4 with a score for every pair: $s_{ij} = q_i \cdot k_j$. It can be any number. A share of attention
    cannot: shares are never negative, and a reader has only one whole to give away.

    So two things must happen. Every score must become a number that is not negative; call the function that does it
    $\psi$. And each query's numbers must be divided by their sum over the keys:

    $$w_{ij} = \frac{\psi(s_{ij})}{\sum_{j'} \psi(s_{ij'})}$$

    That is all. With $\psi = \exp$ it has a name, **softmax**. Here are five scores; choose a $\psi$, and move the
    third score.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    psi = mo.ui.dropdown(["exp", "relu", "relu²", "sigmoid", "softplus"], value="exp", label="ψ")
    third = mo.ui.slider(-4, 6, value=1, step=0.1, label="score of the third key", show_value=True)
    page.hand(psi, third, says="Which ψ lets one key take nearly everything? Which gives nothing at all to some?")
    return psi, third


@app.cell
def _(page, psi, third):
    functions = {
        "exp": rg.softmax,
        "relu": share(relu),
        "relu²": share(lambda s: relu(s) ** 2),
        "sigmoid": share(sigmoid),
        "softplus": share(rg.softplus),
    }
    scores = np.array([-1.0, 0.5, third.value, 2.0, -0.5])
    # one query that is 1, and keys that are the scores: the dot product is then the score itself
    shares = rg.Attention(score=dot, weight=functions[psi.value]).weights(np.ones((1, 1)), scores[:, None])
    page.figure(
        matrix_of(shares, ["w"], [f"{score:.1f}" for score in scores], says="five weights", top=1, cell=84),
        f"Weights of five keys, by their scores, for ψ = {psi.value}. Together: {shares.sum():.3f}.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        rg.Attention(weight=share(lambda s: relu(s) ** 2)),
        "The same equation with $\\psi(s) = \\max(s, 0)^2$, as the library prints it.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Why $\sqrt{d}$?

    Take queries and keys whose $d$ entries are random, around 0 and each of spread 1. A dot product adds $d$ products
    of two such numbers, each of spread 1 again. Variances add, so the score has variance $d$: its spread is
    $\sqrt d$. No limit theorem is needed.

    Softmax cares about differences of scores. If they lie 8 apart, the larger one gets $e^8 \approx 3000$ times as
    much, and the others are not heard. Move $d$, and see how evenly a query spreads its attention, with the division by
    $\sqrt d$ and without.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    width = mo.ui.slider(steps=[1, 2, 4, 8, 16, 32, 64, 128, 256], value=64, label="d", show_value=True)
    page.hand(width, says="The width of queries and keys.")
    return (width,)


@app.cell
def _(page, width):
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 16, width.value))
    with_root, without = rg.Attention(score=dot / sqrt(d)), rg.Attention(score=dot)

    def evenness(weights):
        """Entropy over its largest value, ln n: 1 where all keys are read alike, 0 where one takes all."""
        return float(-(weights * np.log(weights + 1e-300)).sum(-1).mean() / np.log(weights.shape[-1]))

    soft, hard = with_root.weights(q, k), without.weights(q, k)
    page.beside(
        page.figure(
            matrix_of(soft, says="weights with the root", cell=20),
            f"**With** √d. Evenness {evenness(soft):.2f}; the largest weight is {soft.max():.2f}.",
        ),
        page.figure(
            matrix_of(hard, says="weights without", cell=20),
            f"**Without**. Evenness {evenness(hard):.2f}; the scores spread {without.scores(q, k).std():.1f}.",
        ),
    )
    return evenness, with_root, without


@app.cell
def _(evenness, page, with_root, without):
    widths = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
    draws = [np.random.default_rng(1).standard_normal((2, 64, width)) for width in widths]
    even = {
        "with √d": [evenness(with_root.weights(*draw)) for draw in draws],
        "without": [evenness(without.weights(*draw)) for draw in draws],
    }
    page.figure(
        curves_of(
            np.log2(widths),
            even,
            says="evenness of attention against the width",
            across="log₂ d",
            up="evenness of a row",
            low=0,
            high=1,
        ),
        f"At d = 4 the row is still even without the root, {even['without'][2]:.2f} where it could be "
        f"{even['with √d'][2]:.2f}; at 64 it is {even['without'][6]:.2f}, and a query reads little more than one key. "
        "A missing root hides in small tests.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(rg.Attention(), "Softmax attention, whole. Everything in it now has a reason.")
    return


@app.cell(hide_code=True)
def _(page, with_root):
    _q, _k = np.random.default_rng(0).standard_normal((2, 16, 64))
    _rows = mistakes_of(with_root)["softmax over queries"].weights(_q, _k).sum(axis=-1)
    page.say(rf"""
    ## Along which axis?

    The sum in $w_{{ij}}$ runs over $j$, the keys: **each row is one query's budget**. Summed over queries instead, the
    columns sum to 1, and the rows to whatever comes of it: among 16 random queries and keys, one query then spends
    {_rows.min():.2f} and another {_rows.max():.2f}. The program runs all the same. What it does to a mask, chapter 8
    shows.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## In three languages

    The whole equation, as the library prints it. Look for the one line where each row is divided by its sum.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    x = np.random.default_rng(2).standard_normal((5, 8))
    page.printed(rg.Attention(), x, x, x)
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
