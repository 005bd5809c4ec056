"""Chapter 10: learning the matrices."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Learning the matrices")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import d, dot, relu, share, sigmoid, sqdist, sqrt
    from regard.course import lesson
    from regard.course.figures.arcs import arcs_of
    from regard.course.figures.party import guests_of, parts_of
    from regard.course.figures.pull import pull_of
    from regard.course.figures.scales import powers_of
    from regard.course.programs.c10_learning.phrases import TESTED, learn_phrases
    from regard.experiments.phrase_family import Family
    from regard.train.toy.numpy_lesson import initial, loss_and_gradient
    from regard.train.toy.task import NAMES, Task


@app.cell(hide_code=True)
def _():
    page = lesson("learning")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    We have used $W_Q$, $W_K$ and $W_V$ for six chapters as if someone had written them down. Nobody does. There is
    not even an equation to solve for them, as there was for the axes of the data. They begin as random numbers, and
    then one question is asked again and again: *if this number were a little larger, would the answers be a little
    better?*

    Here is a task small enough to watch. Six guests meet. Each wears a name, seeks the name of another guest, and
    holds a colour:

    $$x_i = [\ \text{name} \mid \text{sought} \mid \text{colour}\ ]$$

    Each is to come back with the colour of the guest whom it seeks. It cannot know it alone: $i$ has to ask, the
    right $j$ has to answer, and $j$'s colour has to be handed over. Exactly three jobs, and exactly three matrices.
    """)
    return


@app.cell
def _():
    attention, task, STEPS = rg.Attention(), Task(guests=6, names=8), 200

    def descended(rate):
        """Three random matrices, moved 200 times: a ball that rolls downhill, on new parties at every step."""
        rng = np.random.default_rng(0)
        W = initial(task, rng)
        speed = [0 * w for w in W]
        kept, losses = [W], []
        for _step in range(STEPS):
            loss, dW = loss_and_gradient(attention, W, task.draw(50, rng))
            losses.append(loss)
            if not loss < 1e3:  # it ran away
                break
            speed = [0.9 * u + dw for u, dw in zip(speed, dW, strict=True)]
            W = type(W)(*(w - rate * u for w, u in zip(W, speed, strict=True)))
            kept.append(W)
        return kept, np.array(losses)

    return STEPS, attention, descended, task


@app.cell(hide_code=True)
def _(STEPS, page):
    steps_taken = mo.ui.slider(0, STEPS, value=0, step=2, label="steps taken", show_value=True, full_width=True)
    rate = mo.ui.slider(
        steps=[0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 5, 10], value=0.3, label="learning rate", show_value=True
    )
    page.hand(
        steps_taken,
        rate,
        says="Before the first step nobody knows whom to ask. Now drag the steps, slowly, and watch the frames. "
        "Then try a rate that is too small, and one that is too large: the training is run anew for each.",
    )
    return rate, steps_taken


@app.cell(hide_code=True)
def _(descended, rate):
    moments, losses = descended(rate.value)
    return losses, moments


@app.cell(hide_code=True)
def _(attention, losses, moments, page, rate, steps_taken, task):
    _W = moments[min(steps_taken.value, len(moments) - 1)]
    _x, _t, _name, _partner = (part[0] for part in task.draw(1, np.random.default_rng([0, 1])))
    _weights = attention.weights(_x @ _W.Q, _x @ _W.K)
    _got = attention(_x @ _W.Q, _x @ _W.K, _x @ _W.V)
    _on = float(_weights[np.arange(task.guests), _partner].mean())
    _ran = len(losses) < len(moments) + 1 and not losses[-1] < 1e3
    _told = (
        f"With this rate the loss runs away: after {len(losses)} steps it is beyond a thousand, and training was "
        "stopped."
        if _ran
        else f"Loss of each step's parties; chance is {task.chance:.2f}, what reading all guests alike would get."
    )
    page.stack(
        page.figure(
            guests_of(
                _weights,
                [NAMES[one] for one in _name],
                _partner,
                _x[:, task.parts["colour"]],
                _t,
                _got,
                says="weights of six guests on each other",
            ),
            f"A party that is never learned from, after {min(steps_taken.value, len(moments) - 1)} steps at rate "
            f"{rate.value:g}. The frame marks whom each guest seeks; on average it holds {_on:.0%} of the weight.",
        ),
        page.figure(
            powers_of(
                np.arange(len(losses)),
                {"loss": losses},
                says="the loss, step by step",
                across="step",
                up="loss",
                height=230,
                mark=min(steps_taken.value, len(losses) - 1),
                levels={"chance": task.chance},
                low=1e-6,
            ),
            _told,
        ),
    )
    return


@app.cell(hide_code=True)
def _(attention, page, task):
    from regard.train.toy import learn

    whole = learn(attention, steps=200)
    _before, _after = whole.reached(whole.before), whole.reached(whole.after)
    page.say(rf"""
    On a thousand new parties, {_before.found:.0%} of the guests read the right one most before training, and
    {_after.found:.0%} after it. The weight on the one who is sought grew from {_before.partner:.2f}, an equal share
    being {1 / task.guests:.2f}, to {_after.partner:.2f}.

    And what have the matrices become? A score is $x_i\, W_Q W_K^\top x_j^\top$, so $W_Q W_K^\top$ says which part of
    the asker meets which part of the answerer. Nobody told it that *sought* belongs to *name*.
    """)
    return (whole,)


@app.cell(hide_code=True)
def _(page, task, whole):
    (_meets, _), (_meets_later, _) = whole.shares(whole.before), whole.shares(whole.after)
    page.beside(
        page.figure(
            parts_of(whole.before.Q @ whole.before.K.T, task.parts, task.parts, says="before"),
            f"$W_Q W_K^\\top$ **before**. Of its size, {_meets:.0%} lies where *sought* (of the asker, down) meets "
            "*name* (of the answerer, across).",
        ),
        page.figure(
            parts_of(whole.after.Q @ whole.after.K.T, task.parts, task.parts, says="after"),
            f"**After** 200 steps: {_meets_later:.0%}. A diagonal: who seeks Ada meets who is Ada.",
        ),
    )
    return


@app.cell(hide_code=True)
def _(page, task, whole):
    def lies(matrix, part):
        """How much of a matrix lies in the rows of one part of a guest."""
        return float(np.sum(matrix[task.parts[part]] ** 2) / np.sum(matrix**2))

    _was, _is = (
        (lies(one.Q, "sought"), lies(one.K, "name"), lies(one.V, "colour")) for one in (whole.before, whole.after)
    )
    page.say(rf"""
    Each matrix by itself tells the same. Of $W_Q$, {_is[0]:.0%} lies in the rows of *sought* ({_was[0]:.0%} before);
    of $W_K$, {_is[1]:.0%} in those of *name* ({_was[1]:.0%}); of $W_V$, {_is[2]:.0%} in those of *colour*
    ({_was[2]:.0%}). So the **query** has become *whom I seek*, the **key** *who I am*, and the **value** *what I
    hold*.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Why does a weight rise?

    Each step needs the slope of the loss for every number in the matrices. Computers find it by walking the formula
    backwards, and attention's part of that walk is short enough to do by hand.

    Take one query. It has scores $s_j$, unshared weights $\psi_j = \psi(s_j)$ with total $Z = \sum_j \psi_j$, and
    $y = \sum_j \psi_j v_j / Z$. What comes after attention tells us $dy$: how the loss changes with each entry of $y$.
    What if $\psi_j$ grows by a little?

    - The sum gains $v_j$, so the loss changes by $dy \cdot v_j / Z$.
    - The total $Z$ grows as well, so all that was there shrinks: that takes off $dy \cdot y / Z$.

    Call $\delta = dy \cdot y$: what the present mixture costs. Then
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.stack(
        page.mathematics(r"d\psi_j = \frac{dy \cdot v_j - \delta}{Z} \qquad ds_j = \psi'(s_j)\, d\psi_j"),
        page.mathematics(
            r"dq_i = \sum_j ds_{ij} \frac{k_j}{\sqrt{d}} \qquad dk_j = \sum_i ds_{ij} \frac{q_i}{\sqrt{d}}"
        ),
        page.mathematics(r"dv_j = \sum_i w_{ij}\, dy_i \qquad dW_Q = x^\top dq"),
        page.say(
            r"For softmax $\psi = \exp$ is its own slope, and $\psi_j / Z$ is the weight: "
            r"$ds_j = w_j\,(dy \cdot v_j - \delta)$. This is a slope, and descent goes against it: a score is raised "
            r"if its value costs less than the mixture, lowered if it costs more. Every key is judged against the "
            r"company it is in."
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    right = mo.ui.slider(-1.5, 1.5, value=0.45, step=0.05, label="wanted, across", show_value=True)
    high = mo.ui.slider(-1.4, 1.4, value=0.35, step=0.05, label="wanted, up", show_value=True)
    moved = mo.ui.slider(0, 80, value=0, step=1, label="steps of descent on the scores", show_value=True)
    page.hand(
        right,
        high,
        moved,
        says="Six values, one query. Move what is wanted: the dashed line through *y* is where dy · v = δ. "
        "Then take steps. What if you want something outside of the cloud?",
    )
    return high, moved, right


@app.cell
def _(high, moved, page, right):
    values = np.array([[-1.2, 0.5], [-0.3, 1.15], [1.1, 0.75], [1.2, -0.55], [0.1, -1.1], [-1.0, -0.7]])
    wanted = np.array([right.value, high.value])
    scores, _trace = np.array([0.2, -0.3, 0.0, 0.3, 0.1, -0.2]), []
    for _at in range(moved.value + 1):
        weights = np.exp(scores) / np.exp(scores).sum()
        y = weights @ values
        dy = 2 * (y - wanted)  # L = ‖y − wanted‖²
        delta = dy @ y
        ds = weights * (values @ dy - delta)
        _trace.append(y)
        if _at < moved.value:
            scores = scores - ds
    page.figure(
        pull_of(values, weights, -ds, _trace, wanted, dy, delta, says="values in the plane and how their scores move"),
        "Discs are as large as their weights; ▲ and ▼ say how each score is about to move. On the tinted side it "
        f"rises. Together the changes are {abs(ds.sum()):.2f}: what one gains the others lose. Loss "
        f"{np.sum((y - wanted) ** 2):.3f}.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Do not believe it: nudge

    A derivative can be checked without any calculus. Move one number by a hair, $h = 10^{-5}$, both ways, and see how
    far $L$ moves. The library has the derivative of every formula, `attention.vjp`; here are four of them, each
    nudged at every one of its numbers just now.
    """)
    return


@app.cell
def _(page):
    rng = np.random.default_rng(3)
    q, k, v, back = rng.standard_normal((4, 5, 4))  # `back` is dy, and L = Σ dy·y

    def nudged(formula, h=1e-5):
        """(L(x + h) − L(x − h)) / 2h for every number x of q, k and v."""
        slopes = np.zeros((3, 5, 4))
        for place in np.ndindex(slopes.shape):
            hair = np.zeros_like(slopes)
            hair[place] = h
            up, down = ((back * formula(*(np.stack([q, k, v]) + sign * hair))).sum() for sign in (1, -1))
            slopes[place] = (up - down) / (2 * h)
        return slopes

    formulas = {
        "softmax": rg.Attention(),
        "max(s, 0)², shared": rg.Attention(weight=share(lambda s: relu(s) ** 2)),
        "sigmoid, nothing shared": rg.Attention(weight=sigmoid),
        "softmax of −distance²": rg.Attention(score=-sqdist / sqrt(d)),
    }
    rows = []
    for name, formula in formulas.items():
        by_formula, by_hand = np.stack(formula.vjp(q, k, v, back)[:3]), nudged(formula)
        rows.append((name, by_hand.size, float(np.abs(by_hand).max()), f"{np.abs(by_formula - by_hand).max():.0e}"))
    page.table(
        ["formula", "numbers nudged", "largest slope", "largest difference"],
        rows,
        "By the formula, and by hand with a hair's breadth.",
    )
    return back, k, q, v


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        rg.Attention(score=dot / sqrt(d), weight=share(lambda s: relu(s) ** 2)),
        "The second of them. Any formula that you can write has such a derivative, so any of them can be learned with.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    The whole step back, three times. In plain Python each number is in sight; in NumPy it is six lines, each the
    mirror of a forward line; PyTorch remembers the forward lines and walks back by itself.
    """)
    return


@app.cell(hide_code=True)
def _(back, k, page, q, v):
    page.written("backward", q, k, v, back)
    return


@app.cell(hide_code=True)
def _(page, whole):
    try:
        from regard.train.toy import learn_with_torch

        _twin = learn_with_torch(whole.attention, steps=100)
        _ours = whole.losses[:100]
        _gap = float(np.max(np.abs(_twin.losses - _ours) / _ours))
        _piece = page.stack(
            page.say(
                "So NumPy with the formula above, and PyTorch with its own walk, should learn alike: same first "
                "matrices, same parties. They do."
            ),
            page.figure(
                powers_of(
                    np.arange(100),
                    {"NumPy": _ours, "PyTorch": _twin.losses},
                    says="two curves on each other",
                    across="step",
                    up="loss",
                    height=230,
                    colours=("slate", "accent"),
                    widths=(7, 1.8),
                ),
                f"Two curves that lie on each other: over 100 steps they differ by {_gap:.0e} of the loss at most.",
            ),
        )
    except ImportError as _missing:
        _piece = page.aside(f"The same curve in PyTorch is left out here: {_missing}")
    page.stack(_piece)
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Words: what does “cat” read?

    Now with language. A reader of one look gets a phrase and must name the word that comes next; it may use only what
    “cat” has read. *The cat **sat** on the* … mat; had it *jumped*, it would be the table. Some phrases stand behind
    a sentence about a dog that sat somewhere else, so reading everything alike will not do. The three phrases below
    are never learned from.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    with mo.status.spinner("learning phrases"):
        read = learn_phrases()
    lived = mo.ui.slider(
        steps=[one.step for one in read], value=0, label="steps taken", show_value=True, full_width=True
    )
    page.hand(lived, says="The reader was trained just now, in NumPy alone. Drag through its life.")
    return lived, read


@app.cell(hide_code=True)
def _(lived, page, read):
    _now = next(one for one in read if one.step == lived.value)
    _pictures = [
        arcs_of(phrase.words, weights, phrase.cat, phrase.decisive, phrase.answer, says=" ".join(phrase.words))
        for phrase, weights in zip(Family().three(), _now.three, strict=True)
    ]
    page.figure(
        "".join(_pictures),
        f"What “cat” reads after {_now.step} steps; the word that decides is underlined. Over {TESTED} phrases held "
        f"out: weight on the deciding word {_now.on:.2f}, right answers {_now.right:.0%}.",
    )
    return


@app.cell(hide_code=True)
def _(page, read):
    _first, _last = read[0], read[-1]
    page.say(rf"""
    Before training “cat” gives the deciding word {_first.on:.0%}, no more than any other word, and {_first.right:.0%}
    of the held-out phrases end right. After {_last.step} steps it is {_last.on:.0%}, and {_last.right:.0%} end right.
    And it is this one weight that does it: take it away and let the others share it, and {_last.without:.0%} are
    left.

    Begin with other random numbers and the three pictures differ in detail; in some phrase a neighbour of the
    deciding word may serve as well. What the reader learns is to be right. The weights are how.
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
