"""Values, and the convex cloud: y = Σ_j w_j v_j, three matrices, and the whole way from X to Y."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Values, and the convex cloud")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import dot, each, sigmoid
    from regard.course import lesson
    from regard.course.figures.charts import matrix_of
    from regard.course.figures.cloud import chain_of, reach_of
    from regard.course.figures.jobs import jobs_of, seen
    from regard.course.figures.qkv import qkv_of
    from regard.course.figures.spectra import spectra_of
    from regard.course.widgets import Plane


@app.cell(hide_code=True)
def _():
    page = lesson("values")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    Chapter 5 ended with a row of weights: never negative, together 1. That is whom to listen to. Nothing has been
    said yet.

    What is said is a **value**: each token $j$ holds a vector $v_j$ ready, and token $i$ receives all of them, each
    as loud as its weight:

    $$y_i = \sum_j w_{ij}\, v_j$$

    This is an average, and averages have a home. Between two points it lies on the line from one to the other; among
    many, inside the shape that a rubber band around them would take. In the plane below discs are keys: what is
    found. Squares are values: what is sent, with their rubber band. The point $x$ is the query itself, no matrix
    stands before it yet. **Drag it**, and try to get $y$ out.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    names = ["boat", "water", "sky", "shore", "tree"]
    keys = np.array([[1.5, 0.4], [0.2, 1.6], [-1.3, 1.0], [-1.2, -0.9], [0.7, -1.4]])
    values = np.array([[2.4, 0.9], [1.4, 2.3], [-1.2, 2.0], [-1.6, -0.2], [1.0, -0.9]])
    cloud = mo.ui.anywidget(
        Plane(keys, values=values, labels=names, query=[1.4, 1.2], attention=rg.Attention(score=dot))
    )
    page.hand(
        cloud,
        says="Pull the query in any direction, and far. What does y do when the query is long? When it is nearly zero?",
    )
    return cloud, keys, names, values


@app.cell(hide_code=True)
def _(cloud, names, page, values):
    _w, _y = np.array(cloud.found["weights"]), np.array(cloud.found["y"])
    _first = int(_w.argmax())
    page.figure(
        chain_of(values, _w, _y, names, says="the sum of values by their weights, arrow after arrow"),
        "The same sum, drawn: from zero, each value shortened to its weight, one after the other. The last arrow "
        f"ends at y = ({_y[0]:.2f}, {_y[1]:.2f}). Just now {names[_first]} brings {_w[_first]:.0%} of it, and the "
        f"weights sum to {_w.sum():.3f}.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Nowhere else

    You cannot get it out. Turn the query once around, and $y$ draws a closed path inside the cloud. A short query
    reads all alike and stays near the middle; a long one makes softmax sharp, and $y$ runs from corner to corner,
    without ever leaving.
    """)
    return


@app.cell
def _(keys, names, page, values):
    around = np.linspace(0, 2 * np.pi, 181)
    turning = np.column_stack([np.cos(around), np.sin(around)])
    softmax, unshared = rg.Attention(score=dot), rg.Attention(score=dot, weight=each(sigmoid))
    paths = {f"length {length}": softmax(length * turning, keys, values) for length in (0.5, 1.5, 6)}
    outside = unshared(1.5 * turning, keys, values)  # each weight by itself, divided by nothing
    page.figure(
        reach_of(values, names, paths, says="outputs while the query turns, inside the cloud"),
        "The outputs of queries of three lengths. It is the division by the total that keeps them in: with sigmoid "
        f"weights, which share no total, y reaches {np.abs(outside).max():.1f} along an axis, and no value goes past "
        f"{np.abs(values).max():.1f}.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        rg.Attention(), "The whole of it. The weights decide where in the cloud; the values are the cloud."
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## One patch, three jobs

    Why should a token not simply send itself, $v_j = x_j$? Because being found and being useful are different things.
    A library card has words on it by which the book is found; nobody borrows the card.

    So the same patch does three jobs. As a **query** it looks for something, as a **key** it lets itself be found, as
    a **value** it sends something. Here is a head of a small vision model that learned them, on a photograph it never
    saw. Move the patch.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    down = mo.ui.slider(0, 15, value=6, label="down", show_value=True)
    across = mo.ui.slider(0, 15, value=5, label="across", show_value=True)
    head = mo.ui.dropdown({"layer 3, head 3": (3, 3), "layer 0, head 1": (0, 1), "layer 2, head 0": (2, 0)},
                          value="layer 3, head 3", label="head")  # fmt: skip
    page.hand(
        down,
        across,
        head,
        says="Put it on an eye, then on the background. Reading and being read are not the same picture.",
    )
    return across, down, head


@app.cell(hide_code=True)
def _(across, down, head, page):
    _found = seen(*head.value)
    _at = 1 + down.value * 16 + across.value
    _reads, _read = _found.weights[_at, 1:], _found.weights[1:, _at]
    page.figure(
        jobs_of(_found, down.value, across.value),
        f"Bright is much weight. The patch gives away 1 in all; it receives {_read.sum():.2f} from the {len(_read)} "
        "patches together. The ten patches that it reads most and the ten that read it most have "
        f"{len({*np.argsort(-_reads)[:10]} & {*np.argsort(-_read)[:10]})} in common.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Three matrices, written by hand

    Learned matrices are hard to read. So let us write some. Four guests come to a party. Each wears a name tag (jazz,
    cooking or sailing), has something they would like to hear about, and one story to tell, good or sad. A guest is
    the vector of all this, eight numbers:

    - $W_Q$ picks out columns 4 to 6, what the guest **looks for**;
    - $W_K$ picks out columns 1 to 3, the **name tag**;
    - $W_V$ picks out columns 7 and 8, the **story**.

    Nothing else happens: zeros and ones, three times. Try what a guest hears if the values are $x$ itself.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    sends = mo.ui.radio(["V = x W_V", "V = x"], value="V = x W_V", label="what is sent", inline=True)
    sharp = mo.ui.slider(0.0, 8.0, value=4.0, step=0.5, label="how strictly tags are matched", show_value=True)
    page.hand(sends, sharp, says="Ada looks for sailing. Who tells her a story, and what else does she get to hear?")
    return sends, sharp


@app.cell
def _(page, sends, sharp):
    guests = ["Ada", "Ben", "Cleo", "Dan"]
    columns = ["jazz", "cook", "sail", "jazz?", "cook?", "sail?", "good", "sad"]
    x = np.array(
        [
            [1, 0, 0, 0, 0, 1, 1, 0],  # Ada plays jazz, would like to hear about sailing, has a good story
            [0, 1, 0, 1, 0, 0, 0, 1],
            [0, 0, 1, 0, 1, 0, 0, 1],  # Cleo sails, and her story is a sad one
            [0, 1, 0, 0, 0, 1, 1, 0],
        ],
        float,
    )
    everything = np.eye(8)
    Wq, Wk, Wv = sharp.value * everything[:, 3:6], everything[:, 0:3], everything[:, 6:8]
    own = sends.value == "V = x"
    party = rg.Attention(score=dot)
    heard = party(x @ Wq, x @ Wk, x if own else x @ Wv)
    _listens = party.weights(x @ Wq, x @ Wk)
    _told = (
        "and most are about who spoke, not what was told."
        if own
        else f"good {heard[0, 0]:.2f} and sad {heard[0, 1]:.2f}: stories, and nothing else."
    )
    page.stack(
        page.figure(
            matrix_of(x, guests, columns, says="four guests", digits=0, cell=48),
            "X, one row for each guest. The first three columns are the tag, the next three the wish, the last two "
            "the story.",
        ),
        page.beside(
            page.figure(
                matrix_of(_listens, guests, guests, says="who listens to whom", top=1, cell=44, lit=0),
                f"A = softmax(Q Kᵀ): Ada gives Cleo, who sails, {_listens[0, 2]:.0%}.",
            ),
            page.figure(
                matrix_of(heard, guests, columns if own else columns[6:], says="what is heard", top=1, cell=44, lit=0),
                f"Y. Ada's output has {heard.shape[1]} numbers, {_told}",
            ),
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    With $V = x$ Ada hears everything that Cleo is: her tag, her wish, her story. That is not wrong, and a matrix
    further on may sort it out. With $W_V$ the sorting is done before the mixing, when it is still known who is who.
    And a value may have any width: here keys have three numbers and values two. Only queries and keys must fit each
    other.

    ## The whole way, with its shapes

    This is the picture to keep. Move the sizes and watch which matrices grow.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    tokens = mo.ui.slider(3, 12, value=7, label="N, tokens", show_value=True)
    width = mo.ui.slider(3, 12, value=8, label="d, width", show_value=True)
    keyed = mo.ui.slider(1, 8, value=3, label="d_k", show_value=True)
    sent = mo.ui.slider(1, 8, value=5, label="d_v", show_value=True)
    page.hand(
        tokens, width, keyed, sent, says="Which size changes the matrices that are learned? Which makes A larger?"
    )
    return keyed, sent, tokens, width


@app.cell(hide_code=True)
def _(keyed, page, sent, tokens, width):
    _learned = width.value * (2 * keyed.value + sent.value)
    page.figure(
        qkv_of(
            tokens.value,
            width.value,
            keyed.value,
            sent.value,
            says="from X to Y: three matrices, scores, weights, output",
        ),
        f"Learned are the three hollow ones: {_learned} numbers, whatever N is. A has {tokens.value}² = "
        f"{tokens.value**2} entries, whatever the widths are.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        r"Q = X W_Q \qquad K = X W_K \qquad V = X W_V \qquad Y = \operatorname{softmax}\!\left(\frac{Q "
        r"K^\top}{\sqrt{d_k}}\right) V",
        "The same as a line. Rows are tokens, so matrices stand on the right.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## It mixes; it makes nothing new

    $Y = A V$: each row of $Y$ is a mixture of rows of $V$. If the values fill only $r$ directions, so do the outputs,
    however clever the weights are. New directions come from elsewhere, from a bend such as $\max(\cdot, 0)$ on each
    number. That is the other half of a transformer's block (chapter 11).
    """)
    return


@app.cell(hide_code=True)
def _(page):
    rank = mo.ui.slider(1, 8, value=3, label="directions that the values fill", show_value=True)
    page.hand(rank, says="Can attention bring more directions out than went in?")
    return (rank,)


@app.cell
def _(page, rank):
    _rng = np.random.default_rng(6)
    _q, _k = _rng.standard_normal((2, 12, 4))
    _v = _rng.standard_normal((12, rank.value)) @ _rng.standard_normal((rank.value, 8))
    _mixed = rg.Attention()(_q, _k, _v)
    page.figure(
        spectra_of(
            {"V": _v, "Y = A V": _mixed, "max(Y, 0)": np.maximum(_mixed, 0)}, says="directions of V, Y and a bent Y"
        ),
        "Each column is a direction, as tall as the data is wide along it (roots of singular values). Attention "
        "keeps their number or lowers it; the bend may add some.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## In three languages

    One function from X and its matrices to Y. Leave $W_V$ out, and the values are X itself.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    _rng = np.random.default_rng(3)
    page.printed(
        rg.Attention(), _rng.standard_normal((5, 6)), *_rng.standard_normal((2, 6, 4)), _rng.standard_normal((6, 3)),
        form="self_attention",
    )  # fmt: skip
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
