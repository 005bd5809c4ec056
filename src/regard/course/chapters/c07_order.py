"""Order: f(P X) = P f(X) without positions; places that are added, turned, or subtracted."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Order: the same words in another place")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import d, dot, i, j, sqrt
    from regard.claims.rows.positions import PHRASES, PLACES, WORDS
    from regard.course import lesson
    from regard.course.figures.charts import matrix_of
    from regard.course.figures.positions import stairs_of, turned_of, waves_of
    from regard.course.figures.wording import Laid, orders_of, phrases_of
    from regard.inputs.positions import ALiBi, Learned, NoPosition, Rotary, Sinusoidal


@app.cell(hide_code=True)
def _():
    page = lesson("order")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    Look at the formula once more, and search it for the place of a word:

    $$y_i = \sum_j \operatorname{softmax}_j\!\left(\frac{q_i \cdot k_j}{\sqrt d}\right) v_j$$

    It is not there. $i$ and $j$ only say which vector is meant. A sum does not care in which order it is added up, so
    a word receives the same whether the others stand left or right of it, near or far.

    Here is a sentence, each word a vector of eight numbers drawn at random, sent through one attention. Then the same
    words in another order. A line joins each word to where it went: **whole** if its output is the same as before,
    **dotted** if it is not.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    orders = {
        "the cat chased the dog": [0, 4, 2, 3, 1],
        "cat the chased dog the (backwards)": [4, 3, 2, 1, 0],
        "chased the cat the dog": [2, 0, 4, 3, 1],
    }
    other = mo.ui.dropdown(list(orders), value="the cat chased the dog", label="the other order")
    scheme = mo.ui.dropdown(["none", "sinusoidal", "learned", "rotary", "ALiBi"], value="none", label="positions")
    hides = mo.ui.switch(value=False, label="causal mask")
    page.hand(
        other,
        scheme,
        hides,
        says="First other orders, without positions. Then turn things on one by one: "
        "which of them tells attention who chased whom?",
    )
    return hides, orders, other, scheme


@app.cell
def _(hides, orders, other, page, scheme):
    words = "the dog chased the cat".split()
    _rng = np.random.default_rng(7)
    meaning = {word: _rng.standard_normal(8) for word in sorted(set(words))}  # “the” is one vector, twice
    x = np.array([meaning[word] for word in words])
    Wq, Wk, Wv = _rng.standard_normal((3, 8, 8)) / 8**0.5
    positions = {
        "none": NoPosition(),
        "sinusoidal": Sinusoidal(),
        "learned": Learned(0.7 * _rng.standard_normal((16, 8))),
        "rotary": Rotary(),
        "ALiBi": NoPosition(),  # it stands in the score, below
    }

    def attend(x, name, mask):
        """One attention over x, with a kind of position, and with a mask or without."""
        position = positions[name]
        near = abs(i - j) / 2 if name == "ALiBi" else 0
        x = position.add(x)
        q, k = position.turn_pair(x @ Wq, x @ Wk)
        return rg.Attention(score=dot / sqrt(d) - near, mask=mask)(q, k, x @ Wv)

    _order, _mask = orders[other.value], rg.causal if hides.value else None
    before, after = attend(x, scheme.value, _mask), attend(x[_order], scheme.value, _mask)
    _moved, _mean = np.abs(after - before[_order]).max(), np.abs(after.mean(0) - before.mean(0)).max()
    page.figure(
        orders_of(
            words, before, [words[at] for at in _order], after, _order, says="outputs of the words in two orders"
        ),
        f"Largest change of a word's output: {_moved:.1g}. Of the mean of all outputs: {_mean:.1g}. "
        + (
            "Every word went along with its output, and none of them knows who chased whom."
            if _moved < 1e-9
            else "Now the order is in the outputs."
        ),
    )
    return attend, words, x


@app.cell(hide_code=True)
def _(attend, orders, page, words, x):
    def change(name, mask, order):
        return np.abs(attend(x[order], name, mask) - attend(x, name, mask)[order]).max()

    _swap, _back = list(orders.values())[:2]
    _rows = np.abs(attend(x[_swap], "none", None) - attend(x, "none", None)).max()
    page.say(rf"""
    This has a name: attention is **equivariant**. Write $P$ for a shuffling of the rows, and $f$ for attention; then

    $$f(P X) = P\, f(X)$$

    One often reads that attention is *invariant*, $f(PX) = f(X)$. That is wrong as it stands: the rows do change
    places, here by up to {_rows:.2f}. Only what is summed over all {len(words)} rows stays the same. The difference
    matters: a model that marks each word as noun or verb needs its rows in place; one that judges the whole sentence
    by its mean cannot tell who chased whom.

    You will have seen three more things.

    - With positions the outputs change (rotary: {change("rotary", None, _swap):.2f}).
    - **A causal mask alone tells order**, without any position: {change("none", rg.causal, _swap):.2f}. A word that
      may read only what stands before it knows what that was. “Positions must be added” is true only where everybody
      reads everybody.
    - ALiBi without a mask does not notice a sentence read backwards: nothing changes beyond rounding
      ({change("ALiBi", None, _back):.0e}). It knows how *far* a word is, and not on which side. Distance is not
      direction.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Added: the same word becomes another vector

    The oldest remedy is to give every *place* a vector too, and to add it: $x_i + p_i$. One of the texts that this
    course grew from does it with eleven words and five places, in two dimensions, so that it can be drawn. Its three
    phrases all have a “cat” in them, at three different places.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    _vectors, _places = {word: np.array(pair) for word, pair in WORDS.items()}, np.array(PLACES)
    laid = []
    for _text, _wanted in PHRASES.items():
        _words = _text.split()
        _x = np.array([_vectors[word] for word in _words]) + _places
        laid.append(Laid(_words, _x, _words.index("cat"), _words.index(_wanted)))
    page.table(
        ["phrase", "place of “cat”", "“cat” itself", "+ its place", "= what enters"],
        [
            [
                " ".join(one.words),
                one.cat,
                *(f"({a:.2f}, {b:.2f})" for a, b in (_vectors["cat"], _places[one.cat], one.x[one.cat])),
            ]
            for one in laid
        ],
        "One word, three vectors.",
    )
    return (laid,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    The text then asks for something: “cat” should read *sat* in the first phrase, *typed* in the second and *is* in
    the third. Whatever the two matrices are, in the end “cat” asks with some vector $u = W_K q$, and the word wins
    that lies farthest in the direction of $u$. Turn $u$, and see whether you can make all three coloured words win.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    asks = mo.ui.slider(0, 359, value=60, step=1, label="direction of the question, degrees", show_value=True)
    page.hand(asks, says="A ring marks the winner. “sat” can be reached. Can “typed” alone? Can “is”?")
    return (asks,)


@app.cell
def _(asks, laid, page):
    _angle = np.deg2rad(asks.value)
    _all = np.deg2rad(np.arange(0, 360, 0.1))
    _turns = np.column_stack([np.cos(_all), np.sin(_all)])

    def alone(one):
        """The share of all directions in which the wanted word wins, by itself."""
        scores = _turns @ one.x.T
        others = np.delete(scores, one.wanted, axis=1).max(1)
        return np.mean(scores[:, one.wanted] > others + 1e-9)

    shares = [alone(one) for one in laid]
    page.figure(
        phrases_of(laid, [np.cos(_angle), np.sin(_angle)], says="three phrases in the plane, and who wins"),
        f"Of all directions the wanted word wins alone in {shares[0]:.0%}, {shares[1]:.0%} and {shares[2]:.0%}. Only "
        "a corner of the cloud can win, as in "
        "chapter 6. “typed” at its place is the same vector as “the” at its own; “is” lies inside.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    _rng = np.random.default_rng(2)
    _words = {word: _rng.standard_normal(16) for word in WORDS}
    _places, _pairs, _scores, _cases = _rng.standard_normal((len(PLACES), 16)), [], [], []
    for _text, _wanted in PHRASES.items():
        _x = np.array([_words[word] for word in _text.split()]) + _places
        _cat = _x[_text.split().index("cat")]
        _pairs += [np.outer(_cat, other).ravel() for other in _x]
        _scores += [5.0 * (word == _wanted) for word in _text.split()]
        _cases.append((_x, _cat, _text.split().index(_wanted)))
    _M = np.linalg.lstsq(np.array(_pairs), np.array(_scores), rcond=None)[0].reshape(16, 16)
    _attention = rg.Attention(score=dot(rg.table("M")))
    _found = [_attention.weights(cat[None], x, M=_M)[0, wanted] for x, cat, wanted in _cases]
    page.say(rf"""
    So in two dimensions it cannot be done, whatever the training. In sixteen it is easy: {len(_scores)} wishes, one
    for each word of the three phrases, and {_M.size} numbers in the matrix between query and key to fulfil them. One
    matrix for all three phrases gives the wanted words the weights {_found[0]:.2f}, {_found[1]:.2f} and
    {_found[2]:.2f}. To add a place is enough, where there is room.

    ## Four ways to tell a place

    | | what is done | what the score knows |
    |---|---|---|
    | **sinusoidal** | waves of many lengths are added to $x_i$ | the words, the places, and their products |
    | **learned** | a table with a row for each place is added | the same, up to the end of the table |
    | **rotary** | $q_i$ and $k_j$ are turned by an angle that grows with the place | the words and $i - j$ |
    | **ALiBi** | a slope times the distance is subtracted from the score | the words, less what is far |

    Below the same word stands at all places at once, and one query looks at it from place $i$. Without positions all
    scores would be alike.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    kind = mo.ui.dropdown(["none", "sinusoidal", "learned", "rotary", "ALiBi"], value="sinusoidal", label="positions")
    stands = mo.ui.slider(0, 23, value=8, label="place of the query", show_value=True)
    page.hand(
        kind, stands, says="Move the query along. Which pictures move with it unchanged, and which change their shape?"
    )
    return kind, stands


@app.cell
def _(kind, page, stands):
    _rng = np.random.default_rng(4)
    _n, _width = 24, 32
    word = _rng.standard_normal(_width) * 0.2
    tables = {
        "sinusoidal": Sinusoidal(),
        "learned": Learned(0.7 * _rng.standard_normal((_n, _width))),
        "rotary": Rotary(),
    }
    position = tables.get(kind.value, NoPosition())
    _x = position.add(np.tile(word, (_n, 1)))
    _q, _k = position.turn_pair(_x, _x)
    _score = dot / sqrt(d) - (abs(i - j) / 4 if kind.value == "ALiBi" else 0)
    seen = rg.Attention(score=_score).scores(_q, _k)
    page.figure(
        stairs_of(seen[stands.value], stands.value, says="the score of one word at every place"),
        {
            "none": "No positions: every place is alike.",
            "sinusoidal": "Sinusoidal: a hill around the query, and far places are told apart by waves.",
            "learned": "Learned, before anything was learned: every place is known, and near ones are not alike yet.",
            "rotary": "Rotary: the same picture wherever the query stands. It depends on i − j alone.",
            "ALiBi": "ALiBi: a straight slope down on both sides.",
        }[kind.value],
    )
    return


@app.cell
def _(page):
    page.figure(
        waves_of(Sinusoidal().add(np.zeros((32, 32))), says="sinusoidal positions, 32 places by 32 numbers"),
        "The sinusoidal table: 32 places down, 32 numbers across. Like the hands of many clocks, some fast, some "
        "slow: no two rows are alike, and "
        "nothing has to be learned. The slowest hardly move within 32 places; they are there for long texts.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Turned: rotary

    Most models of today turn. Take two numbers of $q$ as an arrow in the plane, and turn it by an angle that grows
    with its place; do the same with $k$:

    $$(R_i q) \cdot (R_j k) = q \cdot (R_{j - i}\, k)$$

    A dot product depends on the angle *between* two arrows. If both are turned by the same amount, nothing happens to
    it; what remains is the difference of their places. Lengths stay as they are, and values are not turned at all.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    first = mo.ui.slider(0, 12, value=1, label="place of q", show_value=True)
    second = mo.ui.slider(0, 12, value=0, label="place of k", show_value=True)
    page.hand(first, second, says="Move q alone. Then move both by the same number of places.")
    return first, second


@app.cell
def _(first, page, second):
    _q, _k = np.array([[1.2, 0.5]]), np.array([[1.0, -0.3]])
    turned = Rotary().turn(_q, at=first.value)[0], Rotary().turn(_k, at=second.value)[0]
    _shifted = Rotary().turn(_q, at=first.value + 1000)[0] @ Rotary().turn(_k, at=second.value + 1000)[0]
    page.figure(
        turned_of(_q[0], _k[0], first.value, second.value, turned, says="a query and a key, turned by their places"),
        f"i − j = {first.value - second.value}: q · k = {turned[0] @ turned[1]:.3f}. A thousand places further on, "
        f"both: {_shifted:.3f}.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        ALiBi().join(rg.Attention(mask=rg.causal)),
        "And subtracted: ALiBi under a causal mask, as the library prints it. h is the head, H how many there are: "
        "some look near, some far.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    _slopes = 2.0 ** (-8 * (np.arange(4) + 1) / 4)
    _q = np.zeros((1, 4, 8, 4))
    _weights = ALiBi().join(rg.Attention(mask=rg.causal)).weights(_q, _q)[0, :, -1]
    page.figure(
        matrix_of(
            _weights,
            [f"slope {slope:.3g}" for slope in _slopes],
            [str(at) for at in range(8)],
            says="ALiBi's last row in four heads",
            cell=52,
        ),
        "What the last of eight places reads, in four heads, where all words are alike: the first head looks near, "
        "the last one far.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## In three languages

    Rotary positions, and the scores that come of them.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.written("scores", *np.random.default_rng(5).standard_normal((2, 6, 8)))
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
