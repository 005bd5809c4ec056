"""Patches of an image: the row of the one that is pointed at is painted over it, or what comes through all layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard.viewer.weighing.rollout import rollout
from regard.viewer.work import Stop

ROWS, COLUMNS = 5, 7
COVERS = """([rows, columns]) => {
  const canvas = document.querySelector('.image-over'), context = canvas.getContext('2d');
  return Array.from({ length: rows * columns }, (_, patch) => {
    const x = ((patch % columns) + 0.5) / columns, y = (Math.floor(patch / columns) + 0.5) / rows;
    return context.getImageData(Math.floor(x * canvas.width), Math.floor(y * canvas.height), 1, 1).data[3];
  });
}"""


def covers(tab: Any) -> Any:
    """How much of each patch is painted over, in its middle."""
    tab.settled()
    return np.array(tab.page.evaluate(COVERS, [ROWS, COLUMNS]))


def covered(weights: Any, place: int) -> Any:
    """√ of the weight, against the largest of another patch."""
    most = np.delete(weights, place).max()
    return 255 * 0.88 * np.sqrt(np.minimum(1, weights / most))


def pointed(tab: Any, place: int) -> None:
    row, column = divmod(place, COLUMNS)
    tab.page.mouse.move(*tab.at(".image-over", (column + 0.5) / COLUMNS, (row + 0.5) / ROWS))


def test_a_pointed_patch_paints_its_row(opened: Any, lenses: Any, read: Any) -> None:
    for layer in (0, 2):
        tab = opened("image", layer=layer, sense="reads")
        assert tab.page.get_attribute(".tab[aria-selected=true]", "data-view") == "image"
        for place in (9, 31):
            pointed(tab, place)
            row = lenses["image"].weights(layer, 0)[place]
            best = int(row.argmax())
            told = tab.says(
                ".view-image .map-told", rf"^patch {place // 7}, {place % 7} reads most patch (\d), (\d)    (\S+)$"
            )
            assert 7 * int(told[1]) + int(told[2]) == best
            assert abs(read.number(told[3]) - row[best]) < 6e-4
            found = covers(tab)
            np.testing.assert_allclose(found, covered(row, place), atol=3)
            others = np.arange(35) != place
            assert found[np.flatnonzero(others)[row[others].argmax()]] == found[others].max() > 220


def test_who_reads_a_patch_is_painted_too(opened: Any, lenses: Any) -> None:
    tab = opened("image", layer=1, sense="read")
    pointed(tab, 16)
    tab.says(".view-image .map-told", "^patch 2, 2 is read most by")
    np.testing.assert_allclose(covers(tab), covered(lenses["image"].weights(1, 0)[:, 16], 16), atol=3)
    tab.page.mouse.click(*tab.at(".image-over", 0.5, 0.5))
    tab.linked(key=17)
    tab.page.keyboard.press("ArrowRight")
    tab.linked(key=18)
    tab.page.keyboard.press("ArrowDown")
    tab.linked(key=25)


def test_rollout_paints_what_comes_through_all_layers(opened: Any, lenses: Any) -> None:
    tab = opened("image", layer=1, sense="reads")
    tab.page.click(".view-image [data-name=rollout]")
    for residual, place in ((0.5, 10), (0.2, 24)):
        tab.page.fill(".rollout input", str(residual))
        pointed(tab, place)
        reached = np.asarray(rollout(lenses["image"], 0, place, "mean", residual, Stop()))
        best = int(reached.argmax())
        tab.says(
            ".view-image .map-told",
            rf"^patch {place // 7}, {place % 7} receives most from patch {best // 7}, {best % 7} ",
        )
        np.testing.assert_allclose(covers(tab), covered(reached, place), atol=3)
    tab.page.click("[data-name=over] [data-value=max]")
    tab.linked(over="max")
    asked = "performance.getEntriesByType('resource').map((one) => one.name).filter((one) => one.includes('/rollout?'))"
    tab.until(f"{asked}.some((one) => one.includes('how=max'))")
    assert sum("how=mean" in one for one in tab.page.evaluate(asked)) >= 2
    tab.page.click(".view-image [data-name=layer]")
    tab.says(".view-image .map-told", "reads most")
