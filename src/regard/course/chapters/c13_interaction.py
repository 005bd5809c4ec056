"""What one layer cannot do: three cards that sum to ten."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="What one layer cannot do")

with app.setup(hide_code=True):
    from itertools import combinations
    from math import ceil, log
    from time import perf_counter, process_time

    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import dot, equal, exp, i, j, share
    from regard.course import lesson
    from regard.course.figures.cards import cards_of, clock_of
    from regard.course.figures.costs import costs_of
    from regard.course.programs.c13_interaction.in_numpy import attend
    from regard.course.programs.c13_interaction.learning import problem, rehearsed
    from regard.course.programs.c14_length.in_numpy import attend as over_tokens


@app.cell(hide_code=True)
def _():
    page = lesson("interaction")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    Eight cards lie on the table. The first one asks two questions.

    **Match 2.** Is there a card that, with me, makes ten?

    **Match 3.** Are there *two* cards that, with me, make ten?

    Only the last digit counts: twenty is as good as ten. So think of a clock with ten hours, where 7 + 3 is 0 again.
    Arcs above the cards show which pairs are read, bars below which single cards. The arrow on each clock points at
    what is missing.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    mine = mo.ui.slider(0, 8, value=3, step=1, label="the card that asks", show_value=True)
    hours = mo.ui.slider(9, 16, value=10, step=1, label="hours of the clock", show_value=True)
    page.hand(
        mine, hours, says="Change the card, then the clock. When does one other card answer, when do two, when nobody?"
    )
    return hours, mine


@app.cell(hide_code=True)
def _(hours, matching, mine, page, unit):
    M = hours.value
    cards = np.array([mine.value, 5, 1, 2, 8, 4, 0, 8])
    pairs = np.array(list(combinations(range(1, len(cards)), 2)))
    sums = (cards[pairs].sum(1)) % M

    # one query, the first card; keys are the other cards, then all pairs of them
    _asked, _flip = unit(cards[:1], M), np.array([1, -1])
    single = matching(M, len(cards)).weights(_asked, unit(cards[1:], M) * _flip)[0]
    double = matching(M, len(pairs)).weights(_asked, unit(sums, M) * _flip)[0]

    _missing = -mine.value % M
    _chosen = {tuple(pair): weight for pair, weight in zip(pairs.tolist(), double, strict=True)}
    _ones = [(int(card), str(card), weight) for card, weight in zip(cards[1:], single, strict=True)]
    _twos = [(int(s), f"{cards[a]}+{cards[b]}", w) for s, (a, b), w in zip(sums, pairs, double, strict=True)]

    def _told(found, what):
        return f"**Yes**: {what}" if found.sum() > 0.5 else "**No**"

    page.stack(
        page.figure(
            cards_of(cards.tolist(), [0, *single], _chosen, says="eight cards, with the pairs and cards that are read"),
            f"Match 2: {_told(single, 'one card completes it')}. Match 3: {_told(double, 'two cards complete it')}. "
            f"Below: the same query on both clocks, other keys.",
        ),
        page.beside(
            page.figure(clock_of(_ones, M, _missing, f"{len(_ones)} cards, each at its hour", rest=1 - single.sum())),
            page.figure(
                clock_of(_twos, M, _missing, f"{len(_twos)} pairs, each at the hour of its sum", rest=1 - double.sum())
            ),
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## One look finds one card: matrices by hand

    Put a card $x$ at the angle $\theta = 2\pi x / M$ and give it two numbers, $(\cos\theta, \sin\theta)$. Cards $i$
    and $j$ make 0 exactly where $\theta_i + \theta_j$ is a full turn, and there the cosine of the sum is 1. School
    knows what that cosine is:

    $$\cos(\theta_i + \theta_j) = \cos\theta_i \cos\theta_j - \sin\theta_i \sin\theta_j = q_i \cdot k_j$$

    A dot product! The query is the card as it is, $W_Q = I$. The key is the card seen in a mirror,
    $W_K = \mathrm{diag}(1, -1)$. Nothing is learned, nothing is approximate.

    Two details remain. The score is made sharp by a factor $\beta$, and lowered until a hit is above 0 and a miss
    below. And there must be a way to say *nobody*: a sink, one more 1 in the total, which takes what no card
    deserves.
    """)
    return


@app.cell
def _(page):
    W_Q, W_K = np.eye(2), np.diag([1, -1])

    def unit(x, hours):
        """A card as a point of the clock."""
        angle = 2 * np.pi * np.asarray(x) / hours
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    def matching(hours, keys, mask=None):
        """Attention that reads what completes the query; 0 is halfway between a hit and the nearest miss."""
        miss = float(np.cos(2 * np.pi / hours))
        beta = ceil(2 * (log(keys) + 5) / (1 - miss))
        return rg.Attention(beta * dot - round(beta * (1 + miss) / 2), share(exp, sink=1), mask=mask)

    hand_made = matching(10, 8, mask=~equal(i, j))
    page.mathematics(
        hand_made, "The whole of it for ten hours and eight cards. A card does not match itself: $j \\ne i$."
    )
    return W_K, W_Q, hand_made, matching, unit


@app.cell
def _(W_K, W_Q, hand_made, page, unit):
    rng = np.random.default_rng(0)
    many, found = problem(rng, 2000, 8, 10, order=2)  # 2000 hands of 8 cards, and the truth
    _x = unit(many, 10)
    _read = hand_made.weights(_x @ W_Q, _x @ W_K).sum(-1)  # what was not left to the sink
    right = ((_read > 0.5) == found).mean()
    page.say(f"""
    Tried on {many.shape[0]:,} hands, {found.size:,} questions, of which {found.mean():.0%} have a match:
    **{right:.2%} right**. A yes is read with {_read[found].min():.3f} or more, a no with {_read[~found].max():.3f} or
    less.
    """)
    return (rng,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Two others never meet

    Now for two cards at once. Look at what a head can tell its readout about the others:

    $$y_i = \frac{\sum_j \psi(s_{ij})\, v_j}{\sum_j \psi(s_{ij})}$$

    Above and below there is a sum over $j$, and each term has seen $i$ and one other card. No term holds $j$ and $k$
    together. Here are four hands for a card 0 on the clock of ten. Two of them complete it, two do not:
    """)
    return


@app.cell
def _(W_K, W_Q, page, unit):
    hands = {(1, 9): "yes", (6, 4): "yes", (1, 4): "no", (6, 9): "no"}

    def sums_of(others):
        """What a head adds up for card 0: two numbers above the line, one below."""
        scores = unit([0], 10) @ W_Q @ (unit(others, 10) @ W_K).T
        values = np.concatenate([unit(others, 10), np.ones((2, 1))], axis=1)
        return (np.exp(3 * scores) @ values)[0]

    added = {others: sums_of(others) for others in hands}
    _gap = np.abs(added[1, 9] + added[6, 4] - added[1, 4] - added[6, 9]).max()
    _rows = [
        (f"0 with {a} and {b}", says, *(round(float(one), 3) + 0.0 for one in added[a, b]))
        for (a, b), says in hands.items()
    ]
    page.stack(
        page.table(["hand", "makes 0?", "Σ ψ v, first", "Σ ψ v, second", "Σ ψ"], _rows),
        page.say(f"""
        Add up the two hands that say yes, number by number. Then the two that say no. The sums are the same; they
        differ by {_gap:.0e}. They must: both times the cards 1, 9, 6 and 4 were added, whatever ψ and v are. So **no
        line through these numbers has both yes on one side and both no on the other**.

        A clever readout may bend its line, and for two cards it can. For $N$ cards it would have to get all of them
        back out of the sums. That is a theorem: for numbers up to $N^2$, heads × width × digits of a single layer
        must grow nearly like $N$ (Sanford, Hsu and Telgarsky, below). Where there are few different cards, there is a
        way out: let $y$ count how many there are of each, and leave the puzzle to the readout. But then attention has
        not solved it.
        """),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Can it learn to?

    Perhaps our matrices are bad, and learned ones are better. So one layer learns, here and now: queries, keys and
    values of cards, and behind it a readout with a hidden layer, in NumPy, with the library's gradients. Three times
    the same code, the same width and the same number of steps. Half of all questions have a match, so guessing is
    right half of the time.
    """)
    return


@app.cell
def _(page):
    with mo.status.spinner("three layers learn"):
        _start = perf_counter()
        learned = {
            "two cards": rehearsed(order=2, reads=1, count=8, top=11),
            "three cards": rehearsed(order=3, reads=1, count=8, top=29),
            "three, over pairs": rehearsed(order=3, reads=2, count=8, top=29),
        }
        _seconds = perf_counter() - _start
    _rows = [
        ("Match 2", "cards", 7, f"{learned['two cards']:.0%}"),
        ("Match 3", "cards", 7, f"{learned['three cards']:.0%}"),
        ("Match 3", "pairs of cards", 21, f"{learned['three, over pairs']:.0%}"),
    ]
    page.table(
        ["asked", "keys are", "keys for a card", "right, on new hands"],
        _rows,
        f"Learned in {_seconds:.0f} seconds on this machine. Clocks of 11 and 29 hours, so "
        f"that half of the questions have a match. "
        "A pair comes with the hour of its sum; all else is the same in all three.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    The last line shows the way out. Nothing says that a key must be *one* token. Let it be a pair, and one look is
    enough again.

    ## Attention over pairs

    For every $i$, score all pairs $(j, k)$; one unit of attention is shared among them:
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        r"y_i = \sum_{j,k} w_{ijk}\, (v_j \circ u_k) \qquad w_{ijk} = \frac{\exp s_{ijk}}{\sum_{l,m} \exp s_{ilm}}"
        r" \qquad s_{ijk} = \sum_c q_{ic}\, a_{jc}\, b_{kc}",
        "Third-order attention. The library does not have it as a formula yet: it is to "
        "come. Here it stands in plain programs.",
    )
    return


@app.cell
def _(page, rng):
    def triple(x, hours, beta):
        """β cos(θ_i + θ_j + θ_k) as a sum of four products: q, a and b of width 4."""
        angle = 2 * np.pi * np.asarray(x) / hours
        cos, sin = np.cos(angle), np.sin(angle)
        q, a, b = (cos, -cos, -sin, -sin), (cos, sin, cos, sin), (cos, sin, sin, cos)
        return beta * np.stack(q, -1), np.stack(a, -1), np.stack(b, -1)

    _x = rng.integers(10, size=6)
    page.written("attend", *triple(_x, 10, 3.0), *rng.standard_normal((2, 6, 3)))
    return (triple,)


@app.cell
def _(page, triple):
    def third_order(x, hours):
        """Match 3 for every card: does any pair of others complete it?"""
        n = len(x)
        q, a, b = triple(x, hours, 1.0)
        apart = ~np.eye(n, dtype=bool)
        admitted = apart[:, :, None] & apart[:, None, :] & apart[None]
        scores = np.where(admitted, np.einsum("ic,jc,kc->ijk", q, a, b), -np.inf)
        miss = np.cos(2 * np.pi / hours)
        beta = 2 * (2 * log(n) + 5) / (1 - miss)
        weights = np.exp(beta * (scores - (1 + miss) / 2))  # against the sink, which has exp(0) = 1
        return weights.sum((1, 2)) / (1 + weights.sum((1, 2)))

    hands_of_eight, triples = problem(np.random.default_rng(3), 400, 8, 29, order=3)
    _said = np.array([third_order(hand, 29) > 0.5 for hand in hands_of_eight])
    page.say(f"""
    By hand again: $\\cos(\\theta_i + \\theta_j + \\theta_k)$ is a sum of four products of three, so width 4 is
    enough. On {triples.size:,} questions on a clock of 29 hours it is right in **{(_said == triples).mean():.2%}**.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## What it costs

    Attention looks at $N^2$ pairs $(i, j)$. Attention over pairs looks at $N^3$ triples. Twice as many tokens: four
    times the work for one, eight times for the other. Measured on this machine, a moment ago:
    """)
    return


@app.cell
def _(page):
    def seconds(run, *arrays):
        """The best of three runs, in seconds of the processor: what the work takes where nothing disturbs it."""
        return min(_timed(run, arrays) for _ in range(3))

    def _timed(run, arrays):
        start = process_time()
        run(*arrays)
        return process_time() - start

    def _vectors(n, count):
        return np.random.default_rng(0).standard_normal((count, n, 4))

    sizes = {"N²": [1024, 1448, 2048, 2896], "N³": [72, 91, 114, 144]}
    spent = {
        "N²": [seconds(over_tokens, *_vectors(n, 3), n) for n in sizes["N²"]],
        "N³": [seconds(attend, *_vectors(n, 5)) for n in sizes["N³"]],
    }
    powers = {name: np.polyfit(np.log(sizes[name]), np.log(spent[name]), 1)[0] for name in sizes}
    _at = 1000
    _long = {name: float(spent[name][-1]) * (_at / sizes[name][-1]) ** round(powers[name]) for name in sizes}
    page.figure(
        costs_of(
            {
                "over tokens": (sizes["N²"], spent["N²"], powers["N²"]),
                "over pairs": (sizes["N³"], spent["N³"], powers["N³"]),
            },
            says="seconds against N, for attention over tokens and over pairs",
        ),
        f"Slopes: **{powers['N²']:.2f}** and **{powers['N³']:.2f}**. At N = {_at:,} that is about "
        f"{_long['N²']:.2g} s against {_long['N³']:.0f} s, "
        f"and {8 * _at**3 / 2**30:.0f} GiB for the weights of all triples.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    So models rarely do that. They stack layers instead: a first layer writes a neighbour's number into each token, a
    second one reads tokens that now hold two. That solves Match 3 where the two others stand side by side. For cards
    anywhere on the table, the authors of the theorem suspect that no small number of layers is enough.
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
    page.closing()
    return


if __name__ == "__main__":
    app.run()
