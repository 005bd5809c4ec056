"""A matrix that is not symmetric: queries and keys."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="A matrix that is not symmetric: queries and keys")

with app.setup(hide_code=True):
    from importlib.util import find_spec

    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import dot, geometry, table
    from regard.course import lesson
    from regard.course.figures.photograph import in_grey
    from regard.course.figures.roles import directed_of, middle_of, scene_of, signed_of, turned_of
    from regard.course.figures.sideways import sideways
    from regard.inputs import patches


@app.cell(hide_code=True)
def _():
    page = lesson("queries")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say("""
    A patch shows a dark curved shape. Is it a boat, or the roof of a hut? The patch beside it decides: with water
    below, it is a boat. **The boat needs the water.** And the water? It knows very well that it is water: it has
    waves. It can do without the boat.

    No distance can say that. Distances, cosines, Mahalanobis: in all of them the boat is as near to the water as the
    water to the boat. And boat and water do not even look alike. We need a score that has a direction.

    ## Two numbers for each

    Begin as small as possible, with a single question: **“What am I lying on?”** Give each patch two numbers.

    - How much it **asks** that question. A boat asks it a lot, water hardly at all.
    - How much it **answers** it. Water answers well, and so does the shore. A boat does not.

    The score of a pair is the one's asking times the other's answering.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    hull_asks = mo.ui.slider(-1, 4, value=3, step=0.2, label="how much a hull asks", show_value=True)
    waves_answer = mo.ui.slider(-1, 4, value=2, step=0.2, label="how much waves answer", show_value=True)
    tied = mo.ui.switch(value=False, label="one matrix for both roles")
    page.hand(
        hull_asks,
        waves_answer,
        tied,
        says="Move the two numbers. Then turn the switch on, so that everyone answers as much as it asks. "
        "**What happens to the two arrows, whatever you do?**",
    )
    return hull_asks, tied, waves_answer


@app.cell
def _(hull_asks, page, tied, waves_answer):
    names = ["boat", "water", "shore", "sky"]
    #                 hull waves sand blue   what is to be seen in each patch
    x = np.array([[1.0, 0.0, 0.0, 0.0],  # boat
                  [0.0, 1.0, 0.0, 0.5],  # water
                  [0.0, 0.2, 1.0, 0.0],  # shore
                  [0.0, 0.0, 0.0, 1.0]])  # sky  # fmt: skip
    W_asks = np.array([[hull_asks.value], [0.2], [0.2], [0.0]])  # (4, 1)
    W_answers = W_asks if tied.value else np.array([[0.1], [waves_answer.value], [1.5], [0.0]])
    asks, answers = x @ W_asks, x @ W_answers  # one number for each patch
    scores = rg.Attention(score=dot).scores(asks, answers)  # s_ij = asks_i · answers_j
    _there, _back = scores[0, 1], scores[1, 0]
    _told = (
        f"With one matrix for both, both directions are {_there:.2f}. And whoever asks most finds itself: "
        f"the boat's own score is {scores[0, 0]:.1f}."
        if tied.value
        else f"From boat to water {_there:.2f}, from water to boat {_back:.2f}."
    )
    page.stack(
        page.figure(
            sideways(
                directed_of(asks[:, 0], answers[:, 0], says="boat and water, and the two scores between them"), 400
            )
        ),
        page.figure(
            signed_of(scores, names, names, says="the scores of all pairs", lit=[(0, 1), (1, 0)], corner="asks ↓"),
            f"The scores of all pairs: the row asks, the column answers. {_told}",
        ),
    )
    return names, x


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    That is all there is to it. The number for asking is called the **query**, the number for answering the **key**.
    They are not two mysterious things that come from somewhere: both are computed from the same patch, by two
    matrices. **Every patch has both.** In its row of the table it asks, with its query; in its column it answers, with
    its key.

    $$q_i = x_i W_Q \qquad k_j = x_j W_K \qquad s_{ij} = q_i \cdot k_j$$

    With the switch on there was only one matrix $W$, and then nothing helps. The score is $x_i W W^\top x_j^\top$, and
    $W W^\top$ is symmetric, whatever $W$ is: to ask and to answer are then one and the same.

    ## Many questions at once

    One question is little. Let a patch have $d$ of them: its query is a list of how much it asks each, its key a list
    of how much it answers each. The dot product adds up over the questions. Here are two: “What am I lying on?” and
    “Where does my colour come from?” Water asks the second one, and the sky answers it.
    """)
    return


@app.cell
def _(names, page, x):
    #                  ground colour
    W_Q = np.array([[3.0, 0.2], [0.2, 2.0], [0.2, 0.5], [0.0, 0.1]])  # hull, waves, sand, blue
    W_K = np.array([[0.1, 0.1], [2.0, 0.1], [1.5, 0.3], [0.0, 1.5]])
    Q, K = x @ W_Q, x @ W_K
    S = Q @ K.T
    _questions = ["ground?", "colour?"]
    _most = [names[j] for j in np.argmax(S, axis=1)]
    page.beside(
        page.figure(
            signed_of(Q, names, _questions, says="queries", cell=58),
            "**Q** = X W_Q: what each asks. The boat is all hull, so its row is the row of *hull* in W_Q.",
        ),
        page.figure(
            signed_of(K, names, _questions, says="keys", cell=58),
            "**K** = X W_K: what the same four answer.",
        ),
        page.figure(
            signed_of(S, names, names, says="scores", cell=58),
            f"**S** = Q Kᵀ. Boat to water: {Q[0, 0]:.1f} × {K[1, 0]:.1f} by the ground and {Q[0, 1]:.1f} × "
            f"{K[1, 1]:.2f} by the colour, together {S[0, 1]:.1f}. The boat asks most of the {_most[0]}, the water of "
            f"the {_most[1]}, the shore of the {_most[2]}.",
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    In a trained model nobody has written these questions down. They are whatever numbers made the loss fall, and
    there may be 64 of them in one head. Often no word fits them. But this is what they are: **d questions, each asked
    so much and answered so much.**

    ## Two arrows for one point

    The same without names, as geometry. Three patches are points in the plane. $W_Q$ turns each of them into its
    query, $W_K$ into its key. As long as both turn alike, query and key of a point lie upon each other: it asks for
    what it is.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    turn_q = mo.ui.slider(-180, 180, value=0, step=5, label="W_Q turns by", show_value=True)
    turn_k = mo.ui.slider(-180, 180, value=0, step=5, label="W_K turns by", show_value=True)
    page.hand(
        turn_q,
        turn_k,
        says="Turn one of them and watch the framed pair: **boat to water, water to boat.** Then turn both by "
        "the same angle. What changes, and what does not?",
    )
    return turn_k, turn_q


@app.cell
def _(page, turn_k, turn_q):
    def turning(degrees):
        """The matrix that turns a row vector by so many degrees."""
        a = np.radians(degrees)
        return np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])

    three = ["boat", "water", "sky"]
    points = np.array([[1.0, 0.15], [0.2, 1.05], [-0.85, 0.6]])
    Wq, Wk = turning(turn_q.value), turning(turn_k.value)
    q, k = points @ Wq, points @ Wk
    s = rg.Attention(score=dot).scores(q, k)
    form = geometry.BilinearForm.of(Wq, Wk)  # M = Wq Wkᵀ
    page.beside(
        page.figure(
            turned_of(q, k, three, says="queries and keys of three points"),
            "Each point as it asks, *q* in orange, and as it answers, *k* in blue.",
        ),
        page.figure(
            signed_of(
                s, three, three, says="scores", lit=[(0, 1), (1, 0)], digits=2, most=1.2, cell=76, corner="asks ↓"
            ),
            f"Boat to water {s[0, 1]:.2f}, water to boat {s[1, 0]:.2f}. "
            f"The part of M that is not symmetric has {form.asymmetry:.0%} of its size.",
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    Turned by the same angle, all arrows move and no score does. The scores do not see $W_Q$ and $W_K$ at all, only
    what stands between the two points:

    $$s_{ij} = x_i\, W_Q W_K^\top\, x_j^\top = x_i\, M\, x_j^\top$$

    There it is again, the matrix between two vectors. In chapter 3 it was $\Sigma^{-1}$: measured, symmetric. Now it
    is $M = W_Q W_K^\top$: learned, and free to have a direction. At a quarter turn between them it has nothing else:
    $s_{ij} = {-s_{ji}}$, and nobody asks anything of itself.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        rg.Attention(score=dot(table("M"))),
        "Attention with a matrix in the middle, as the library writes it. Its $q$ and $k$ are whatever stands on the "
        "two sides of M, here $x_i$ and $x_j$ themselves, and it writes vectors as columns.",
    )
    return


@app.cell
def _(page):
    # the matrix in the middle, recovered from scores alone
    def some(name, top, left):
        return np.asarray(patches(in_grey(name)[top : top + 64, left : left + 64] / 255, 4).vectors)

    pagoda, lake, flower = some("china", 150, 150), some("china", 240, 400), some("flower", 150, 250)
    ask, reply = (np.random.default_rng(_seed).standard_normal((16, 4)) for _seed in (2, 3))
    recovered = [
        np.linalg.pinv(a) @ ((a @ ask) @ (b @ reply).T) @ np.linalg.pinv(b.T)
        for a, b in ((pagoda, lake), (lake, pagoda), (flower, flower))
    ]
    off = max(float(np.abs(one - ask @ reply.T).max()) for one in recovered)
    _ours = np.concatenate([pagoda[:1], lake[:1]])
    _shares = [
        float(rg.Attention().weights(c @ ask, c @ reply)[0, 1])
        for c in (np.vstack([_ours, lake]), np.vstack([_ours, flower]))
    ]
    page.say(f"""
    ### One matrix, for all pairs

    It is sometimes told otherwise: that with queries and keys the matrix in the middle changes with the pair that is
    compared. It does not. Take random $W_Q$, $W_K$, compute the scores of pagoda with lake, of lake with pagoda, of a
    flower with itself, and work out from each table of scores which matrix must have stood in the middle. It is the
    same one three times, to within {off:.0e}. What changes with the pair is the *score*; and what changes with the
    company is the *share* of attention: one and the same pair of patches gets {max(_shares) / min(_shares):.1f} times
    as much among patches of the {"lake" if _shares[0] > _shares[1] else "flower"} as among those of the
    {"flower" if _shares[0] > _shares[1] else "lake"}.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    inner = mo.ui.slider(steps=[1, 2, 4, 8, 16, 32, 64], value=8, label="d, the number of questions", show_value=True)
    page.hand(inner, says="Patches of 64 numbers; W_Q and W_K are 64 × d. How rich can M be?")
    return (inner,)


@app.cell
def _(inner, page):
    _draws = np.random.default_rng(2)
    between = geometry.BilinearForm.of(*_draws.standard_normal((2, 64, inner.value)), scale=inner.value**-0.5)
    signs = between.signature
    worst = geometry.axes(between.symmetric).vectors[:, -1]  # a unit vector
    _told = (
        f"And it measures no lengths. If $x M x^\\top$ were a dot product “in M's geometry”, every vector would "
        f"have a squared length "
        f"above 0; the unit vector that fares worst here has {float(between(worst, worst)):.1f}. The symmetric "
        f"part of M has "
        f"{signs.positive} positive, {signs.negative} negative and {signs.zero} zero eigenvalues."
    )
    page.stack(
        page.figure(
            middle_of(
                between.matrix, between.terms[1], between.rank, says="the matrix in the middle, and its singular values"
            ),
            f"M has 64 × 64 = {64 * 64:,} entries. It is made of 2 × 64 × {inner.value} = "
            f"{2 * 64 * inner.value:,} numbers, and its rank "
            f"is {between.rank}: as many questions as there are, and no more.",
        ),
        page.say(_told),
    )
    return


@app.cell(hide_code=True)
def _(page):
    _draw = np.random.default_rng(5)
    _Wq, _S = _draw.standard_normal((6, 3)), _draw.standard_normal((3, 3))
    _same = geometry.BilinearForm.of(_Wq, _Wq @ (_S + _S.T)).asymmetry
    _other = geometry.BilinearForm.of(_Wq, _Wq @ _S).asymmetry
    page.aside(rf"""
    Two different matrices do not always make a direction. If $W_K = W_Q S$ with a symmetric $S$, then
    $M = W_Q S\, W_Q^\top$ is symmetric again: of one such M {_same:.0%} is not symmetric, of one whose $S$
    is not symmetric {_other:.0%}. And $W_Q = W_K = 1$, the identity, is the plain dot product of chapter 2.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## Does it come about by itself?

    We chose the numbers for boat and water by hand. Would a model find them? Here are scenes of 5 × 5 patches: hulls,
    which are all drawn alike; ground, which is either waves or blades of grass; and noise. The model is to name every
    patch. A hull is a *boat* if there is water somewhere in the picture, else a *hut*; water is water, whatever else
    there is. Nobody tells the model who should read whom.
    """)
    return


@app.cell
def _(page):
    mo.stop(find_spec("torch") is None, page.aside("PyTorch is not installed here: `pip install regard[torch]`."))
    import torch

    from regard.experiments.scenes import GROUND, HULL, drawn_scenes

    def learned(seed, steps=160, width=32, d=16):
        """One layer of attention that names patches: its weights on new scenes, before and after training."""
        torch.manual_seed(seed)
        first, values = torch.nn.Linear(16, width), torch.nn.Linear(width, width)
        ask, reply = (torch.nn.Linear(width, d, bias=False) for _ in range(2))  # W_Q and W_K
        names = torch.nn.Sequential(torch.nn.Linear(2 * width, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))
        parts = torch.nn.ModuleList([first, values, ask, reply, names])
        descent = torch.optim.Adam(parts.parameters(), 4e-3)

        def read(scenes):
            x = torch.tanh(first(patches(scenes.pixels, 4, layout="bchw").vectors))
            weights = torch.softmax(ask(x) @ reply(x).mT / d**0.5, dim=-1)
            return weights, names(torch.cat([x, weights @ values(x)], dim=-1))

        new = drawn_scenes(100, seed=1, step=10**6)
        before = read(new)[0].detach().numpy()
        for step in range(steps):
            scenes = drawn_scenes(24, seed=0, step=step)
            loss = torch.nn.functional.cross_entropy(read(scenes)[1].flatten(0, 1), scenes.names.flatten())
            descent.zero_grad()
            loss.backward()
            descent.step()
        after, told = read(new)
        return new, before, after.detach().numpy(), (told.argmax(-1) == new.names).numpy()

    trained = [learned(seed) for seed in range(3)]
    new, _, after, _ = trained[1]
    hulls, grounds = ((new.kinds == kind).numpy() for kind in (HULL, GROUND))

    def lift(weights, readers, read):
        """How much of their weight goes there, over the share of the patches that lie there: 1 by chance."""
        return float((weights * read[:, None, :]).sum(-1)[readers].mean() / read.mean())

    _one, _two = int(np.argmax(hulls[0])), int(np.argmax(grounds[0]))
    page.stack(
        page.figure(
            scene_of(
                new.pixels[0, 0].numpy(), 4, after[0], [_one, _two],
                ["what a hull reads", "what a patch of ground reads"], grounds[0],
                says="a scene, and what two of its patches read",
            ),
            "A scene that the model has not seen: four patches of ground, framed in blue, four hulls, noise. "
            "The arrows are what the patch framed "
            "in orange has learned to read, where it is more than 5%.",
        ),
        page.table(
            ["who reads whom, times chance", "before training", "after"],
            [
                (
                    name,
                    ", ".join(f"{lift(before, *kinds):.2f}" for _, before, _, _ in trained),
                    ", ".join(f"{lift(after, *kinds):.2f}" for _, _, after, _ in trained),
                )
                for name, kinds in {"hull to ground": (hulls, grounds), "ground to hull": (grounds, hulls)}.items()
            ],
            f"One layer, trained just now three times, 160 steps each; "
            f"{np.mean([right[hulls].mean() for *_, right in trained]):.0%} of the hulls "
            "are named right. `regard experiment direction` does it with care: more layers and heads, and with "
            "those weights taken away again.",
        ),
    )  # fmt: skip
    return


@app.cell(hide_code=True)
def _(page, x):
    _draw = np.random.default_rng(3)
    _words = page.say("""
    ## The same in three languages

    From here on it is only a matter of writing it down. What the three programs do after the scores, softmax, is
    chapter 5.
    """)
    page.stack(_words, page.printed(rg.Attention(), x, *_draw.standard_normal((2, 4, 2)), form="self_attention"))
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
