"""Maps and tables of the ledger's page: a cell for each number, and every text is escaped."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from regard.claims.plots import grid, heat, side_by_side

HOSTILE = "<script>&\"'"


def test_every_text_is_escaped() -> None:
    joined = side_by_side(heat([[1]], HOSTILE), grid([HOSTILE], [[HOSTILE, HOSTILE]]))
    assert "<script" not in joined
    assert [element.text for element in ET.fromstring(joined).iter()].count(HOSTILE) == 5


def test_the_first_cell_of_a_row_is_its_name() -> None:
    (row,) = ET.fromstring(grid(["", "1"], [["weights", "0.5"]])).iter("tbody")
    assert [(cell.tag, cell.text) for cell in row[0]] == [("th", "weights"), ("td", "0.5")]
