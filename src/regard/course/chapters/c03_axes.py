"""The axes of the data: covariance, principal components, whitening, Mahalanobis."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="The axes of the data")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import geometry, sqdist, table
    from regard.course import lesson
    from regard.course.figures.charts import matrix_of
    from regard.course.figures.clouds import components_of, rebuilt_of, whitened_of
    from regard.course.figures.photograph import in_grey
    from regard.course.widgets import Ellipse
    from regard.inputs import patches


@app.cell(hide_code=True)
def _():
    page = lesson("axes")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    grey = in_grey()[90:420, 60:440].astype(float)  # pagoda, trees and a piece of the lake
    _left, _right = grey[:, :-1] - grey.mean(), grey[:, 1:] - grey.mean()
    _along, _across = np.abs(_left + _right) / 2**0.5, np.abs(_left - _right) / 2**0.5
    page.say(f"""
    Take a pixel of the photograph, and the pixel to its right. Two numbers, so one point in the plane. Do it five
    hundred times, and there is a cloud. It is no round cloud: neighbours are nearly equal, so it lies along the
    diagonal, long and thin.

    In such a cloud, is a step of 40 far? Along the diagonal, where both pixels become brighter, it is nothing:
    {(_along > 40).mean():.0%} of all pairs lie farther than that from the middle. Across the diagonal, where one
    becomes brighter than the other, it is a lot: only {(_across > 40).mean():.0%} lie so far out. Euclid, who counts
    all directions alike, cannot know. **The data knows.**
    """)
    return (grey,)


@app.cell(hide_code=True)
def _(page):
    lag = mo.ui.slider(
        steps=[1, 2, 3, 5, 8, 13, 21, 34, 55, 89], value=2, label="pixels from one to the other", show_value=True
    )
    turn = mo.ui.slider(0, 360, value=0, step=10, label="turn the whitened cloud by", show_value=True)
    page.hand(
        lag,
        turn,
        says="Take pixels that are farther apart. **What becomes of the ellipse, and of the two steps?** Then "
        "turn the whitened cloud: do any numbers change?",
    )
    return lag, turn


@app.cell
def _(grey, lag, page, turn):
    rng = np.random.default_rng(4)
    rows, columns = rng.integers(0, 330, 500), rng.integers(0, 380 - 90, 500)
    pairs = np.stack([grey[rows, columns], grey[rows, columns + lag.value]], axis=-1)  # (500, 2)

    covariance = geometry.covariance(pairs)
    A = geometry.whitening(covariance, "pca")
    _angle = np.radians(turn.value)
    R = np.array([[np.cos(_angle), -np.sin(_angle)], [np.sin(_angle), np.cos(_angle)]])
    white = (pairs - pairs.mean(axis=0)) @ (R @ A).T

    _fair = geometry.Mahalanobis(covariance).distances(np.zeros((1, 2)), 40 * np.array([[1, 1], [-1, 1]]) / np.sqrt(2))[
        0
    ]
    page.figure(
        whitened_of(pairs, white, R @ A, 40, says="a cloud of pairs of pixels, and the same whitened",
                    names=("a pixel, and another to its right", "whitened: every spread is 1")),
        f"Left: {len(pairs)} pairs of pixels, {lag.value} apart, with correlation "
        f"{np.corrcoef(pairs.T)[0, 1]:.2f}; the ellipse is two spreads "
        f"away, and both arrows are 40 long. Right: the same, each axis divided by its spread. The ellipse is a "
        f"circle, and the two steps "
        f"are no longer alike. Mahalanobis says {_fair[0]:.2f} and {_fair[1]:.2f}.",
    )  # fmt: skip
    return covariance, pairs


@app.cell
def _(covariance, page, pairs):
    found = geometry.axes(covariance)
    _along = found.coordinates(pairs - pairs.mean(axis=0))
    page.say(rf"""
    ## Its own axes

    What did we do? First the **covariance**, the mean product of what deviates together:

    $$\Sigma_{{ab}} = \operatorname{{mean}}\,(x_a - \mu_a)(x_b - \mu_b)$$

    For this cloud it is {covariance[0, 0]:.0f} and {covariance[1, 1]:.0f} on the diagonal, the variances of the two
    pixels, and {covariance[0, 1]:.0f} beside it: what they share. A symmetric matrix like this one has axes of its
    own, at right angles:

    $$\Sigma = Q\, \Lambda\, Q^\top$$

    The columns of $Q$ are directions, and $\lambda_j$ is the variance *along direction $j$*: measured here along the
    two axes, {_along[:, 0].var(ddof=1):.0f} and {_along[:, 1].var(ddof=1):.0f}; the eigenvalues say
    {found.values[0]:.0f} and {found.values[1]:.0f}. That is not the variance of a pixel, which is
    {covariance[0, 0]:.0f}. One direction is *both brighter*, the other is *one brighter than the other*.
    """)
    return (found,)


@app.cell(hide_code=True)
def _(page):
    page.say("""
    The same can be done with more than two pixels. A patch of 8 × 8 pixels is a point in a space of 64 dimensions.
    Its axes are vectors with 64 numbers, so they are little pictures themselves: the **principal components** of this
    photograph.
    """)
    return


@app.cell
def _(page):
    cut = patches(in_grey(), 8, rest="crop")
    many = np.asarray(cut.vectors, float)
    components = geometry.Axes.of(many)
    page.figure(
        components_of(
            components.vectors, components.shares, 8, says="the first sixteen principal components as little images"
        ),
        f"The sixteen directions along which {len(many):,} patches vary most, and the share of all variance "
        f"along each. The first "
        f"says how bright a patch is; then come slopes, then stripes. Together they hold "
        f"{components.shares[:16].sum():.1%}.",
    )
    return components, cut, many


@app.cell(hide_code=True)
def _(page):
    kept = mo.ui.slider(
        steps=[0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64], value=3, label="components kept", show_value=True
    )
    page.hand(kept, says="Describe each patch by so few numbers. When can you count the storeys? When the balusters?")
    return (kept,)


@app.cell
def _(components, cut, kept, many, page):
    middle = many.mean(axis=0)
    _Q = components.vectors[:, : kept.value]
    rebuilt = cut.grid.image((many - middle) @ _Q @ _Q.T + middle)
    _left = 1 - components.shares[: kept.value].sum()
    page.figure(
        rebuilt_of(in_grey()[150:350, 60:400], rebuilt[150:350, 60:400], ("64 numbers a patch", f"{kept.value} of 64"),
                   says="the photograph, and what the first components make of it"),
        f"{kept.value} of 64 numbers for each patch; {max(_left, 0):.2%} of the variance is left out.",
    )  # fmt: skip
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## Whitening, and a fair distance

    Now make the data round. Turn it to its axes, divide each by its spread $\sqrt{\lambda_j}$:

    $$A = \Lambda^{-1/2}\, Q^\top$$

    After that every direction has variance 1 and no two of them share anything. That is **whitening**, and where the
    cloud is round Euclid is right. So the fair distance is Euclid's *after* whitening:

    $$\|A x - A y\|^2 = (x - y)^\top A^\top A\, (x - y) = (x - y)^\top\, \Sigma^{-1} (x - y)$$

    It carries the name of **Mahalanobis**. You turned the whitened cloud above and no distance changed. That is no
    accident: for any rotation $R$, the matrix $RA$ whitens as well, and $(RA)^\top RA = A^\top A = \Sigma^{-1}$.
    There are many whitenings, and one distance.
    """)
    return


@app.cell
def _(covariance, page, pairs):
    _x, _y = pairs[0], pairs[1]
    ways = {
        "PCA: Λ^(−½) Qᵀ": geometry.whitening(covariance, "pca"),
        "ZCA: Q Λ^(−½) Qᵀ": geometry.whitening(covariance, "zca"),
        "Cholesky: L⁻¹": geometry.whitening(covariance, "cholesky"),
    }
    for _seed in range(2):
        _turned = np.linalg.qr(np.random.default_rng(_seed).standard_normal((2, 2)))[0]
        ways[f"a random rotation, {_seed + 1}"] = geometry.whitening(covariance, _turned)
    page.table(
        ["whitening", "A₁₁", "‖A x − A y‖", "AᵀA off Σ⁻¹ by"],
        [
            (
                name,
                float(way[0, 0]),
                f"{np.linalg.norm(way @ (_x - _y)):.9f}",
                f"{np.abs(way.T @ way - np.linalg.inv(covariance)).max():.0e}",
            )
            for name, way in ways.items()
        ],
        "Five whitenings of the cloud above: five matrices, one distance.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ### Who is near depends on what counts as far

    Pull at the ellipse: it says how far the data usually goes in each direction. What lies on it is at distance 1,
    whichever way.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    _points = np.random.default_rng(7).multivariate_normal([0, 0], [[2.2, 1.5], [1.5, 1.5]], 18)
    ellipse = mo.ui.anywidget(Ellipse(_points, query=_points.mean(axis=0)))
    page.hand(
        ellipse,
        wide=True,
        says="Drag the axes of the ellipse, and its middle. **Find one where the nearest by Euclid and the "
        "nearest by Mahalanobis are not the same point.**",
    )
    return


@app.cell
def _(page):
    people = {
        "Ada": (170, 38.0),
        "Bo": (171, 43.5),
        "Cy": (178, 38.5),
        "Di": (158, 36.5),
        "Ed": (184, 45.0),
        "Flo": (163, 41.0),
    }
    in_centimetres = np.array(list(people.values()))
    in_metres = in_centimetres / [100, 1]
    clouds = in_centimetres, in_metres
    _euclid = [geometry.distances(cloud)[0] for cloud in clouds]
    _fair = [geometry.Mahalanobis.fit(cloud).distances(cloud)[0] for cloud in clouds]
    page.table(
        ["from Ada to", "Euclid, cm", "in m", "fair, cm", "in m"],
        [(name, *(float(one[at]) for one in (*_euclid, *_fair))) for at, name in enumerate(people) if at],
        "The people of chapter 2, by Euclid and, fairly, by Mahalanobis. Euclid changes his mind with the unit; "
        "Mahalanobis does not. In both units Bo is now "
        "far: someone of Ada's height with such feet is rare.",
    )
    return (in_centimetres,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## And it is an attention

    Put $-\tfrac12 d^2$ into an exponential, and near means much, far means little. With that each row takes from
    those that are near *as the data sees it*. In the library's words:
    """)
    return


@app.cell
def _(in_centimetres, page):
    attention = rg.Attention(score=-sqdist(table("P")) / 2)  # P = Σ⁻¹
    metric = geometry.Mahalanobis.fit(in_centimetres)
    weights = attention.weights(in_centimetres, in_centimetres, P=metric.precision)
    _names = "Ada Bo Cy Di Ed Flo".split()
    page.stack(
        page.mathematics(attention, r"A matrix $P = \Sigma^{-1}$ between two vectors, one and the same for all pairs."),
        page.figure(
            matrix_of(weights, _names, _names, says="weights between the people", cell=58),
            "Who takes how much from whom, among the six.",
        ),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    Keep the form of this in mind: **a matrix between two vectors**. $\Sigma^{-1}$ was measured, once, from the data,
    without knowing what we want to do. And it is symmetric: Ada is as far from Bo as Bo from Ada. The next chapter
    asks for a matrix that is *learned*, and that need not be symmetric.
    """)
    return


@app.cell(hide_code=True)
def _(covariance, page, pairs):
    _words = page.say("Three programs, and each whitens in its own way. They agree.")
    page.stack(_words, page.written("mahalanobis", pairs[0], pairs[1], covariance))
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
