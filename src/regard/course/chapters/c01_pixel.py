"""A pixel and its neighbours: what the number 142 means."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="A pixel and its neighbours")

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np

    import regard as rg
    from regard import sqdist, table
    from regard.claims.rows.elements import SEGMENTS
    from regard.course import lesson
    from regard.course.figures.cutting import informed_of, table_of
    from regard.course.figures.photograph import in_colour, in_grey
    from regard.course.figures.pixels import nearest_of, numbers_of, twins, windows_of
    from regard.inputs import patches, unit


@app.cell(hide_code=True)
def _():
    page = lesson("pixel")
    page.opening()
    return (page,)


@app.cell(hide_code=True)
def _(page):
    grey, colours = in_grey(), in_colour()
    page.say(f"""
    A photograph in grey is a table of numbers: 0 is black, 255 is white. The one below has {grey.shape[0]} rows and
    {grey.shape[1]} columns, so {grey.size:,} numbers. One of them is **142**.

    What is it? A roof, a leaf, a wave? Here are four pixels with that value. They look alike, because they are: the
    same number. The only thing that differs is what stands around them, and that is still covered. Uncover it.
    """)
    return colours, grey


@app.cell(hide_code=True)
def _(page):
    radius = mo.ui.slider(
        steps=[0, 1, 2, 4, 7, 11, 16, 24, 36, 48, 640], value=0, label="neighbours on each side", show_value=True
    )
    value = mo.ui.slider(40, 215, value=142, label="the number", show_value=True)
    page.hand(
        radius,
        value,
        says="Move the first slider to the right, slowly. **When do you know what A is? And D?** Then choose "
        "another number.",
    )
    return radius, value


@app.cell(hide_code=True)
def _(colours, grey, page, radius, value):
    places = twins(grey, colours, value.value)
    _all = int(np.sum(grey == value.value))
    _seen = (2 * radius.value + 1) ** 2
    page.figure(
        windows_of(
            grey,
            places,
            radius.value,
            says="four pixels of one value, and what is around them",
            whole=radius.value > 48,
        ),
        f"Four of the {_all:,} pixels of this photograph with the value {value.value}. "
        + (
            "Now all of it is uncovered."
            if radius.value > 48
            else f"Each is seen with {_seen - 1:,} neighbours."
            if _seen > 1
            else "None of their neighbours is shown yet."
        ),
    )
    return


@app.cell(hide_code=True)
def _(grey, page):
    _inside = {
        name: sum(int(np.sum(grey[top:low, left:right] == 142)) for top, left, low, right in boxes)
        for name, boxes in SEGMENTS.items()
    }
    _there = " and ".join(f"{count} times in the {name}" for name, count in _inside.items() if count)
    _empty = " and ".join(f"the {name}" for name, count in _inside.items() if not count)
    _told = _there + (f", and not once in {_empty}" if _empty else "")
    page.say(f"""
    ## Information, and meaning

    The number alone is information: so bright, no brighter. What it *means* is a matter of its neighbours. In boxes
    drawn by hand around the sky, the water, the pagoda and the trees, 142 occurs {_told}. No rule that is given
    the number 142 and nothing else can tell where it is looking.

    Close by, the difference is plain. These are the numbers around two such pixels:
    """)
    return


@app.cell(hide_code=True)
def _(grey, page):
    pair = [nearest_of(grey, _place, 142) for _place in ((376, 243), (365, 434))]
    page.figure(
        numbers_of(grey, pair, ["on a roof", "among leaves"], says="the numbers around two pixels of the value 142"),
        f"Two pixels of the value {grey[pair[0]]}, and the 24 numbers around each. The spread of these numbers is "
        + " and ".join(f"{float(grey[_r - 2 : _r + 3, _c - 2 : _c + 3].std()):.0f}" for _r, _c in pair)
        + ". Beside them, the same from further away.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.aside("""
    It is true of words as well. “Bank” between *river* and *fish* is not “bank” between *loan* and *interest*.
    Everything in this course about patches of a picture holds for words of a sentence: rows of numbers, each of which
    has to find out what it is by looking at the others.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    ## A picture becomes a table

    To let pixels look at each other we need them in a shape that one can calculate with. A single pixel is too little
    to begin with, so we take small squares, **patches**, and write the numbers of each in one long row. The rows, one
    below the other, are a matrix $X$: one row for each patch.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    size = mo.ui.slider(steps=[8, 16, 28, 32, 56, 112], value=32, label="pixels on a side of a patch", show_value=True)
    row = mo.ui.slider(0, 195, value=24, label="row", show_value=True)
    page.hand(size, row, says="Follow one patch into its row. What happens to the table when patches grow?")
    return row, size


@app.cell
def _(colours, page, row, size):
    image = colours[100:324, 190:414]  # 224 × 224 pixels, three colours each
    cut = patches(image, size.value)
    again = cut.image()  # and back
    changed = int(np.sum(again != image))
    lit = min(row.value, len(cut) - 1)
    page.figure(
        table_of(image, size.value, cut.vectors, lit, says="an image, and the matrix of its patches"),
        f"{len(cut)} patches of {size.value} × {size.value} pixels with 3 colours: X is **{cut.shape[0]} × "
        f"{cut.shape[1]}**, "
        f"{cut.vectors.size:,} numbers, as many as in the image. Put together again, {changed} of them differ: "
        "it is the same picture, bit for bit.",
    )
    return cut, image


@app.cell(hide_code=True)
def _(image, page):
    _words = page.say("""
    In NumPy the whole of it is to split two axes, exchange two, and join again. In plain Python it is four loops,
    which may be easier to believe.
    """)
    page.stack(_words, page.written("to_rows", image[:64, :96].astype(float), 32))
    return


@app.cell(hide_code=True)
def _(page):
    page.say(r"""
    ## From isolated to informed

    In $X$ no row knows of any other. Row 24 holds a piece of the pagoda, row 25 the lake beside it, and neither can
    tell. What we want is a second matrix $Y$ of the same shape, in which each row has looked at the others and taken
    from each as much as concerns it:

    $$y_i = \sum_j w_{ij}\, x_j \qquad w_{ij} \ge 0 \qquad \sum_j w_{ij} = 1$$

    Read it slowly: the new row $i$ is an average of all rows $j$, and $w_{ij}$ is **how much $i$ takes from $j$**.
    That is all that attention does. The rest of this course is about where the numbers $w_{ij}$ come from.

    To see it at work now, borrow a simple rule: take much from patches that look like yourself, little from the others.
    """)
    return


@app.cell(hide_code=True)
def _(page):
    asking = mo.ui.slider(0, 48, value=25, label="the patch that asks", show_value=True)
    choosy = mo.ui.slider(
        steps=[0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1], value=0.01, label="how choosy", show_value=True
    )
    page.hand(
        asking,
        choosy,
        says="Choose who asks: a patch of sky, of roof, of water. Then make it less and more choosy. **What "
        "is Y at 0? What at 1?**",
    )
    return asking, choosy


@app.cell
def _(asking, choosy, image, page):
    X = patches(unit(image), 32)
    x = np.asarray(X.vectors, float)
    likeness = rg.Attention(score=-sqdist * table("choosy"))
    weights = likeness.weights(x, x, choosy=choosy.value)  # w_ij: 49 × 49
    y = likeness(x, x, x, choosy=choosy.value)  # each row an average of rows
    informed = np.rint(255 * X.grid.image(y)).astype(np.uint8)
    most = np.argsort(-weights[asking.value])[:3]
    page.figure(
        informed_of(
            image, informed, 32, weights[asking.value], asking.value, says="isolated patches, informed patches, arrows"
        ),
        f"Patch {asking.value} takes most from patches "
        + ", ".join(f"{j} ({weights[asking.value, j]:.0%})" for j in most)
        + f". X and Y are both {y.shape[0]} × {y.shape[1]}; the weights are {weights.shape[0]} × {weights.shape[1]}, "
        f"and this row of them sums to {weights[asking.value].sum():.3f}.",
    )
    return likeness, weights


@app.cell(hide_code=True)
def _(likeness, page):
    page.mathematics(
        likeness,
        "The borrowed rule, as the library prints it. What $q$, $k$ and $v$ are for is told in chapters 4 and 6; here "
        "all three are the rows of X themselves. Why a distance, why an exponential, why a share of the total: that is "
        "chapters 2 to 5. Not choosy at all, everyone takes the average of all; very choosy, everyone keeps to itself.",
    )
    return


@app.cell(hide_code=True)
def _(page):
    page.say("""
    Look at what this rule cannot do. A patch of boat finds other boats; what would tell it that it *is* a boat is the
    water, which looks nothing like it. To be **like** something and to **need** something are two things. We begin
    with likeness, because it is simpler, and arrive at need in chapter 4.
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
