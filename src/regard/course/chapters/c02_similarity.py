"""How similar are two vectors: Euclid, dot product, cosine, correlation."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="How similar are two vectors?")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import cosine, geometry
    from regard.course import lesson
    from regard.course.figures.arrows import landmarks_of, pair_of, people_of
    from regard.course.figures.likeness import neighbours_of, tiles_of
    from regard.course.figures.photograph import in_grey
    from regard.inputs import patches


@app.cell(hide_code=True)
def _():
    page = lesson("similarity")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    A row of $X$ is a patch, and a patch is a vector: a list of numbers, or an arrow from the origin. In chapter 1
    each row took most from the rows *like* it. We passed quickly over that word. What makes two arrows alike?

    Three answers come to mind, and all three are good.

    - Their ends lie **close** together: the distance $\|x - y\|$ is small.
    - They pull **together**: the dot product $x \cdot y = \sum_a x_a y_a$ is large.
    - They point the **same way**, however long they are: the cosine of the angle between them is near 1.

    Turn the arrow $y$ and see what each of them says.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    angle = mo.ui.slider(-180, 180, value=50, step=5, label="angle of y", show_value=True)
    length = mo.ui.slider(0.25, 2, value=1.5, step=0.25, label="length of y", show_value=True)
    page.hand(
        angle,
        length,
        says="Turn *y* past a right angle. **Does the distance stop growing at 90°?** Then make *y* longer: "
        "which of the three does not notice?",
    )
    return angle, length


@app.cell
def _(angle, length, page):
    x = np.array([1.0, 0.0])
    y = length.value * np.array([np.cos(np.radians(angle.value)), np.sin(np.radians(angle.value))])
    three = geometry.distance(x, y), geometry.inner(x, y), geometry.cosine(x, y)
    page.figure(
        pair_of(x, y, says="two vectors, and three measures over the angle between them"),
        f"x has length 1, y has length {length.value:g}, and they are {abs(angle.value)}° apart. Dashed, the distance: "
        "{:.2f}. The dot product is {:.2f}, the cosine {:.2f}.".format(*map(float, three)),
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## One idea, three faces

    They are not three inventions. Multiply out the square of the distance:

    $$\|x - y\|^2 = \|x\|^2 + \|y\|^2 - 2\, x \cdot y$$

    Everything is dot products: a length is the root of $x \cdot x$, a distance is the length of a difference, and the
    cosine is the dot product of the two directions,

    $$\cos\theta = \frac{x \cdot y}{\|x\|\,\|y\|}$$

    At a right angle $x \cdot y = 0$, and what is left is the theorem of Pythagoras.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.figure(
        landmarks_of(says="vectors of length 1 at 0, 90 and 180 degrees, and a right triangle with its squares"),
        "Three angles to remember, for vectors of length 1. On the right: where $x \\cdot y = 0$, the squares "
        "over the short sides "
        "make the square over the long one.",
    )
    return


@app.cell
def _(page):
    _turns = np.radians([0, 90, 120, 180])
    _unit = np.stack([np.cos(_turns), np.sin(_turns)], axis=-1)
    far = geometry.distances(_unit[:1], _unit)[0]
    page.say(f"""
    Hold the two lengths fixed. Then the only thing left to move is $-2\\, x \\cdot y$: **to rank by dot product is to
    rank by distance, backwards.** One sometimes reads that the distance is then greatest for vectors at a right
    angle, which have nothing to do with each other. It is not: at 0°, 90°, 120° and 180° it is {far[0]:.2f},
    {far[1]:.2f}, {far[2]:.2f} and {far[3]:.2f}. What is most unlike you is not what has nothing to do with you, but
    your opposite.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## On real patches

    Now on vectors with 256 numbers: patches of 16 × 16 pixels of the photograph. Take one, make it brighter, give it
    more contrast. To you it stays the same piece of roof. To which of the measures does it? A fourth one joins them
    here, the **correlation**.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    brightness = mo.ui.slider(-60, 80, value=40, step=5, label="brighter by", show_value=True)
    contrast = mo.ui.slider(0.2, 1.6, value=0.6, step=0.1, label="contrast times", show_value=True)
    page.hand(
        brightness,
        contrast,
        says="Find a setting where the changed patch is *farther* from itself than a patch of something else. "
        "Then look for one that the correlation minds.",
    )
    return brightness, contrast


@app.cell
def _(brightness, contrast, page):
    tiles = patches(in_grey(), 16, rest="crop")
    all_rows = np.asarray(tiles.vectors, float) / 255  # 0 is black, 1 is white
    roof, other = all_rows[tiles.grid.at(375, 245)], all_rows[tiles.grid.at(400, 450)]
    changed = contrast.value * (roof - roof.mean()) + roof.mean() + brightness.value / 255

    def four(x, y):
        centred = x - x.mean(), y - y.mean()
        return [
            float(geometry.distance(x, y)),
            float(geometry.inner(x, y)),
            float(geometry.cosine(x, y)),
            float(geometry.cosine(*centred)),
        ]

    _names = ["distance", "dot product", "cosine", "correlation"]
    _shown = {"a piece of roof": roof, "the same, changed": changed, "leaves": other}
    page.stack(
        page.figure(tiles_of({name: 255 * row.reshape(16, 16) for name, row in _shown.items()}, says="three patches")),
        page.table(
            ["roof with …", "itself", "itself, changed", "leaves"],
            zip(_names, four(roof, roof), four(roof, changed), four(roof, other), strict=True),
        ),
    )
    return all_rows, four, other, roof, tiles


@app.cell
def _(four, other, page, roof):
    gap = abs(np.corrcoef(roof, other)[0, 1] - four(roof, other)[3])
    page.say(f"""
    The correlation does not move: it first takes each vector's own mean away, and then asks for the cosine.
    **Correlation is a cosine**, of vectors that were centred; NumPy's `corrcoef` says the same, to within {gap:.0e}.
    Brightness is what is subtracted, contrast is what is divided away.

    The plain cosine hardly moves either, but for a poorer reason. Pixels are never negative, so all patches point
    into the same corner of their space: even roof and leaves have a cosine of {four(roof, other)[2]:.2f}, where their
    correlation is {four(roof, other)[3]:.2f}. Which measure is right? That depends on what you want to overlook.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    chosen = mo.ui.dropdown(
        {
            "a roof": (375, 245),
            "leaves": (400, 450),
            "the lake": (262, 430),
            "the sky": (40, 420),
            "a balcony": (216, 200),
        },
        value="a roof",
        label="patch",
    )
    page.hand(
        chosen,
        says="Ask for the six patches that are most similar, by each of the four. Which one always answers *sky*?",
    )
    return (chosen,)


@app.cell
def _(all_rows, chosen, page, tiles):
    asked = tiles.grid.at(*chosen.value)
    _rows = all_rows - all_rows.mean(axis=1, keepdims=True)  # for the correlation
    found = {
        "distance": geometry.search(all_rows[asked : asked + 1], all_rows, k=7, metric="euclidean"),
        "dot product": geometry.search(all_rows[asked : asked + 1], all_rows, k=6, metric="dot"),
        "cosine": geometry.search(all_rows[asked : asked + 1], all_rows, k=7, metric="cosine"),
        "correlation": geometry.search(_rows[asked : asked + 1], _rows, k=7, metric="cosine"),
    }
    _kept = {
        name: [(int(j), float(v)) for j, v in zip(one.indices[0], one.values[0], strict=True) if j != asked][:6]
        for name, one in found.items()
    }
    page.figure(
        neighbours_of(
            255 * all_rows[asked].reshape(16, 16),
            {
                name: ([255 * all_rows[j].reshape(16, 16) for j, _ in pairs], [v for _, v in pairs])
                for name, pairs in _kept.items()
            },
            says="the most similar patches by four measures",
        ),
        f"The nearest of {len(all_rows):,} patches, by each measure. The dot product prefers what is long, and "
        f"among patches "
        "long means bright.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## What fools Euclid

    Distance adds up squares, one for each coordinate, and trusts that they may be added. Here are people by height
    and shoe size. Who is most like Ada?
    """)
    return


@app.cell(hide_code=True)
def _(page):
    unit_of_height = mo.ui.dropdown({"centimetres": 1.0, "inches": 1 / 2.54, "metres": 0.01}, value="centimetres",
                                    label="height in")  # fmt: skip
    page.hand(unit_of_height, says="Nobody grows when you change the unit.")
    return (unit_of_height,)


@app.cell
def _(page, unit_of_height):
    people = {
        "Ada": (170, 38.0),
        "Bo": (171, 43.5),
        "Cy": (178, 38.5),
        "Di": (158, 36.5),
        "Ed": (184, 45.0),
        "Flo": (163, 41.0),
    }
    measured = np.array(list(people.values())) * [unit_of_height.value, 1]
    apart = geometry.distances(measured[:1], measured)[0]
    _nearest = list(people)[1 + int(np.argmin(apart[1:]))]
    page.figure(
        people_of(list(people), measured, unit_of_height.selected_key, says="people by height and shoe size"),
        f"Both directions are drawn to one scale, as Euclid sees them. In {unit_of_height.selected_key} the "
        f"nearest to Ada is "
        f"**{_nearest}**; the numbers are distances from her.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    In centimetres the height decides, in metres the shoe. And there is a second trouble, in any unit: tall people
    have large feet. The two coordinates say partly the same thing, and Euclid counts it twice. In a patch it is worse
    still: neighbouring pixels are almost copies of each other.

    A fair distance would have to know how far each direction usually varies, and what goes with what. That is chapter
    3. Before we go, a score that is a cosine, as the library writes it: this *is* an attention already.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.mathematics(
        rg.Attention(score=10 * cosine),
        "Everyone takes from those who point the same way. Ten, because a cosine alone is too shy: it only goes "
        "from −1 to 1.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## In three languages

    The four measures of two patches, each as a few lines.
    """)
    return


@app.cell(hide_code=True)
def _(other, page, roof):
    page.written("measures", roof, other)
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
