"""Masks: which pairs there are, before softmax and not after it."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Masks: who may read whom")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import i, j, table
    from regard.algebra.mistakes import mistakes_of
    from regard.course import lesson
    from regard.course.figures.masking import leak_of, masked_of, sides_of, sums_of
    from regard.course.widgets import Mistakes


@app.cell(hide_code=True)
def _():
    page = lesson("masks")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    A language model learns by guessing the next word, at every place of a text at once. “The cat sat on the …” is
    five guesses in one: after *the*, after *the cat*, and so on. But the whole text lies there, and attention reads
    everything. The word to be guessed stands right next to the one who guesses. It will be read, the loss will be
    wonderful, and nothing will be learned.

    So some pairs must not be. A **mask** is a rule for pairs: may query $i$ read key $j$? Choose one, and see what
    each row spends its 1 on.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    rule = mo.ui.dropdown(
        {
            "everyone reads everyone": "none",
            "causal: only what came before, and oneself": "causal",
            "padding: not the filling at the end": "padding",
            "causal, and not the filling": "both",
            "a window of three": "window",
            "a prefix of two, read by all; then causal": "prefix",
        },
        value="causal: only what came before, and oneself",
        label="the rule",
        full_width=True,
    )
    page.hand(rule, says="Look at the first row under the causal rule. What can the first word do but read itself?")
    return (rule,)


@app.cell
def _(page, rule):
    tokens = ["the", "cat", "sat", "on", "the", "mat", "·", "·"]  # two places of filling
    _rng = np.random.default_rng(8)
    q, k = _rng.standard_normal((2, 1, 8, 6)) * 1.2
    length = {"lengths": np.array([6])}
    masks = {
        "none": rg.everywhere,
        "causal": rg.causal,
        "padding": rg.padding("lengths"),
        "both": rg.causal & rg.padding("lengths"),
        "window": rg.window(3),
        "prefix": rg.prefix(2),
    }
    reading = rg.Attention(mask=masks[rule.value])
    weights = reading.weights(q, k, **(length if rule.value in ("padding", "both") else {}))[0]
    page.stack(
        page.figure(
            masked_of(weights, weights > 0, tokens, tokens, says="weights under a mask"),
            f"Empty frames are pairs that are not admitted: {int((weights == 0).sum())} of {weights.size}. Each row "
            "still spends one whole.",
        ),
        page.mathematics(reading, "The rule stands under the sum."),
    )
    return k, q, tokens


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Before, or after?

    The mask can be applied in two places, and only one is right. **Before** softmax: the score of a hidden pair
    becomes $-\infty$, so that $e^{-\infty} = 0$, and it has no part in the total either. **After** softmax: the
    weight of a hidden pair is set to 0.

    Both leave zeros where there should be zeros. The difference is in the total. Here is the row of one word, *sat*,
    which must not know what comes after. Raise the score of a word from the future, and watch the weights of the past.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    lift = mo.ui.slider(0.0, 8.0, value=0.0, step=0.25, label="raise the hidden score of “mat” by", show_value=True)
    page.hand(
        lift, says="“sat” may not read “mat”. If the mask holds, nothing that you do to “mat” can be seen in its row."
    )
    return (lift,)


@app.cell
def _(lift, page):
    _words = ["the", "cat", "sat", "on", "the", "mat"]
    _here, _future = 2, 5
    base = np.random.default_rng(5).standard_normal((6, 6)) * 0.6

    def rows(by):
        """The row of “sat”, masked in three ways, when the hidden score is raised by so much."""
        scores = base.copy()
        scores[_here, _future] += by
        nobody = np.zeros((6, 1))  # queries and keys have no say here: the score is a table
        right = rg.Attention(score=table("S")[i, j], mask=rg.causal)
        before = right.weights(nobody, nobody, S=scores)[_here]
        after = mistakes_of(right)["mask after the weights"].weights(nobody, nobody, S=scores)[_here]
        return {"before softmax": before, "after softmax": after, "after, then divided": after / after.sum()}

    at, calm = rows(lift.value), rows(0.0)
    moved = {name: np.abs(at[name] - calm[name]).max() for name in at}
    page.figure(
        leak_of(at, _words, [place > _here for place in range(6)], _future, says="one row, masked in three ways"),
        f"Masked before, the row of “sat” moved by {moved['before softmax']:.1g}. Masked after, by "
        f"{moved['after softmax']:.2f}: it has read the future "
        "through the total."
        if lift.value
        else "Nothing is raised yet. Masked after softmax, the row already lacks what the hidden words took.",
    )
    return base, rows


@app.cell(hide_code=True)
def _(base, page, rows):
    _low, _high = rows(0.0)["after softmax"], rows(5.0)["after softmax"]
    _same = np.abs(rows(5.0)["after, then divided"] - rows(5.0)["before softmax"]).max()
    _scores = base[2].astype(np.float32)
    _scores[5] += 200
    _shares = np.exp(_scores - _scores.max())
    _shares /= _shares.sum()
    _kept = float(_shares[:3].sum())
    page.say(rf"""
    Raised by 5, the hidden score takes the weight of *cat* from {_low[1]:.3f} to {_high[1]:.3f}, and the row no
    longer sums to 1. A model trained that way learns to read the answer off the missing part.

    One may divide once more by what is left: then the total cancels, and the row is the one that was masked before
    (they differ by {_same:.0e}). On paper this is the same thing. In a computer it holds until a hidden score is far
    larger than the rest: raised by 200, in float32, what is left of the row is {_kept:.0f}, and it would be divided
    by that. So: $-\infty$, before.

    ## Every classic mistake, on and off

    There are more ways to get a mask wrong than to get it right, and all of them run. Switch them on, one at a time.
    """)
    return


@app.cell(hide_code=True)
def _(k, page, q, tokens):
    wrong = mo.ui.anywidget(
        Mistakes(rg.Attention(mask=rg.causal), q[0, :6], k[0, :6], tokens[:6], mistake="strict mask")
    )
    page.hand(
        wrong,
        says="Right, wrong, and the difference. Which mistakes let the future in? Which only disturb the past?",
        wide=True,
    )
    return (wrong,)


@app.cell(hide_code=True)
def _(page, wrong):
    _weights = np.array(wrong.found["weights"], float)
    _future = np.nansum(np.triu(_weights, 1))
    _sums = np.array(wrong.found["sums"], float)
    _name = wrong.at["mistake"] or "right"
    page.say(
        f"*{_name}*: weight on the future, all rows together: **{_future:.2f}**. Rows sum to between "
        f"{np.nanmin(_sums):.2f} and {np.nanmax(_sums):.2f}. "
        f"Largest difference from what was meant: {wrong.found['largest']:.2f}."
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## The wrong axis

    One mistake of the list needs a second look. *Softmax over queries* divides each column by its total, not each
    row: `dim=-2` in place of `dim=-1`. The mask is right, no weight stands on the future, and a test that looks for
    zeros is content. But who stands in the total of a column? All queries that may read this key, and these are the
    **later** words. The future is not read; it is in what one is divided by.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    ending = mo.ui.dropdown(["the", "cat", "sat", "on"], value="cat", label="ends with")
    page.hand(ending, says="“the cat sat on the …” Change the last word. “sat” stands before it: may its row move?")
    return (ending,)


@app.cell
def _(ending, k, page, q, tokens):
    by_keys = rg.Attention(mask=rg.causal)
    by_queries = mistakes_of(by_keys)["softmax over queries"]

    def ended(formula, place):
        """The weights of six words, the last of which is the one at this place."""
        six = [0, 1, 2, 3, 4, place]
        return formula.weights(q[0, six], k[0, six])

    _sat, _mat, _other = (tokens.index(word) for word in ("sat", "mat", ending.value))
    (_kept, _same), (_spoilt, _moved) = ((ended(one, _mat), ended(one, _other)) for one in (by_keys, by_queries))
    _sums = _spoilt.sum(-1)
    page.figure(
        leak_of(
            {
                "over keys, either": _kept[_sat],
                "over queries, “mat”": _spoilt[_sat],
                f"over queries, “{ending.value}”": _moved[_sat],
            },
            [*tokens[:5], "…"],
            [place > _sat for place in range(6)],
            _mat,
            says="the row of sat, shared over keys and over queries",
        ),
        f"The row of “sat”, when the last word is “mat” and when it is “{ending.value}”. Shared over keys it moves by "
        f"{np.abs(_same - _kept)[_sat].max():.1g}, over queries by {np.abs(_moved - _spoilt)[_sat].max():.2f}, though "
        "no weight stands on the future. And a row is no budget any more: with “mat” the rows sum to between "
        f"{_sums.min():.2f} and {_sums.max():.2f}.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Exactly 0, and nearly 1

    “Masked weights are exactly 0, and every row sums to exactly 1.” The first half is true: $e^{-\infty}$ is 0, in
    every library, to the last bit. The second is not. A row is six numbers that were each rounded, and their sum is
    rounded again.
    """)
    return


@app.cell
def _(page):
    _rng = np.random.default_rng(11)
    many_q, many_k = _rng.standard_normal((2, 2000, 6, 8)).astype(np.float32)
    many = rg.Attention(mask=rg.causal).weights(many_q, many_k)
    last = many[:, -1].sum(axis=-1, dtype=np.float32)  # the last row reads all six
    steps = np.rint((last.astype(float) - 1) * 2.0**24)
    page.figure(
        sums_of(steps, says="what rows of six sum to in float32"),
        f"The last rows of {len(last)} attentions with N = 6, in float32: {np.mean(last != 1):.0%} do not sum to "
        "exactly 1. Weights above the "
        f"diagonal that are not exactly 0: {int(np.count_nonzero(np.triu(many, 1)))} of {many.shape[0] * 15}.",
    )
    return (many,)


@app.cell(hide_code=True)
def _(many, page):
    _one = next(one for one in many if one[-1].sum(dtype=np.float32) != 1)
    page.figure(
        masked_of(
            _one,
            np.tri(6),
            [f"q {row}" for row in range(6)],
            [f"k {column}" for column in range(6)],
            says="six by six",
            cell=46,
        ),
        "One of them, N = 6. Its rows sum to "
        + ", ".join(f"{total:.7f}" for total in _one.sum(-1, dtype=np.float32))
        + ".",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Encoder, decoder, both

    The same block, three rules. An **encoder** has the whole text and reads it whole. A **decoder** writes, so each
    place reads its past. And a translator has a source, read whole, and a target that reads its own past and all of
    the source: *cross-attention*, queries from one text and keys from another.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.figure(
        sides_of(8, 6, says="the pairs that an encoder, a decoder, and both admit"),
        "Rows are queries, columns are keys. Where the target reads the source there are as many columns as the "
        "source has words, and nothing to hide.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Two shapes that look alike

    Texts of a batch have different lengths, so the short ones are filled up, and the filling must be hidden. The mask
    for it has one row for each **text**: `(B, N)`. A causal mask has one row for each **query**: `(N, N)`. Scores are
    `(B, H, N, N)`, and shapes are matched from the right. So what does a `(B, N)` mask meet there?
    """)
    return


@app.cell
def _(page):
    def hide(scores, keep):
        """What one writes at first."""
        return np.where(keep, scores, -np.inf)

    lengths = np.array([4, 1, 2, 3])  # four texts of four places: B = N
    keep = np.arange(4) < lengths[:, None]  # (B, N)
    try:
        hide(np.zeros((3, 1, 4, 4)), keep[:3])
        told = "no error"
    except ValueError as error:
        told = str(error)
    silent = hide(np.zeros((4, 1, 4, 4)), keep)[1, 0]  # text 1 has one word
    meant = hide(np.zeros((4, 1, 4, 4)), keep[:, None, None, :])[1, 0]

    def drawn(scores, says):
        """The pairs that are still admitted."""
        there = np.isfinite(scores)
        return masked_of(1.0 * there, there, [f"q {n}" for n in range(4)], list("0123"), says=says, cell=40)

    page.stack(
        page.say(
            f"Three texts of four places: `{told}`. Good: an error. Four texts of four places, B = N: no error at all."
        ),
        page.beside(
            page.figure(
                drawn(meant, "meant"),
                "Text 1 has one word, and this is its mask: `keep[:, None, None, :]`, (B, 1, 1, N).",
            ),
            page.figure(
                drawn(silent, "made of it"),
                "And this is what `(B, N)` made of it: query n is masked as if it were text n. It runs, and reads "
                "filling.",
            ),
        ),
        page.say(
            'In a formula the question cannot arise: `rg.padding("lengths")` says that key $j$ is kept where '
            "$j$ is below the length of text $b$."
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(rg.Attention(mask=rg.causal & rg.padding("lengths")), "Causal, and no filling. $b$ is the text.")
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## In three languages

    Causal attention, as the library prints it, run on the same numbers.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.printed(rg.Attention(mask=rg.causal), *np.random.default_rng(9).standard_normal((3, 6, 8)))
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
