"""The way from X to Y, every matrix drawn as large as it is: X → Q, K, V → scores → weights → Y.

X  N × d      W_Q, W_K  d × d_k      W_V  d × d_v      Q, K  N × d_k      V  N × d_v      S, A  N × N      Y  N × d_v
"""

from __future__ import annotations

from ..._drawing.svg import Drawing, shade

UNIT = 9.0
ROWS = (92.0, 240.0, 388.0)  # the middles of the three roads
TONES = {"Q": "accent", "K": "slate", "V": "accent2"}
PLAIN = "ink"


def qkv_of(
    N: int, d: int, d_k: int, d_v: int, *, says: str = "from X to Y", lit: str = "", causal: bool = False
) -> str:
    """Shapes at every step; `lit` names a matrix to point out, `causal` leaves out what lies in the future."""
    drawing = Drawing(760, 480)
    x = _matrix(drawing, "X", (84, ROWS[1]), N, d, PLAIN, lit)
    made = {}
    for role, y, width in zip("QKV", ROWS, (d_k, d_k, d_v), strict=True):
        matrix = _matrix(drawing, f"W_{role}", (222, y), d, width, TONES[role], lit, hollow=True)
        made[role] = _matrix(drawing, role, (348, y), N, width, TONES[role], lit)
        drawing.arrow((x.right + 8, ROWS[1] + (y - ROWS[1]) * 0.12), (matrix.left - 8, y), "faint", 1.4)
        drawing.arrow((matrix.right + 7, y), (made[role].left - 7, y), "faint", 1.4)
    high = (ROWS[0] + ROWS[1]) / 2
    scores = _matrix(drawing, "S", (500, high), N, N, PLAIN, lit, causal=causal)
    weights = _matrix(drawing, "A", (690, high), N, N, PLAIN, lit, filled=True, causal=causal)
    result = _matrix(drawing, "Y", (690, ROWS[2]), N, d_v, "accent2", lit, filled=True)
    for role, y, end in (("Q", ROWS[0], high - 12), ("K", ROWS[1], high + 12)):
        drawing.arrow((made[role].right + 7, y), (scores.left - 8, end), "faint", 1.4)
    drawing.text((500, scores.top - 14), "Q Kᵀ / √d_k", "soft", 13, serif=True, italic=True)
    drawing.text((690, weights.top - 14), "each row sums to 1", "soft", 13, serif=True, italic=True)
    _across(drawing, scores.right, weights.left, high, "softmax")
    _across(drawing, made["V"].right, result.left, ROWS[2], "Y = A V")
    drawing.arrow((690, weights.bottom + 24), (690, result.top - 7), "faint", 1.4)
    return drawing.svg(says)


def _across(drawing: Drawing, left: float, right: float, y: float, says: str) -> None:
    drawing.arrow((left + 8, y), (right - 8, y), "faint", 1.4)
    drawing.text(((left + right) / 2, y - 12), says, "soft", 13, serif=True, italic=True)


class _Edges:
    """Where a matrix ends."""

    def __init__(self, middle: tuple[float, float], rows: int, columns: int) -> None:
        self.left, self.right = middle[0] - columns * UNIT / 2, middle[0] + columns * UNIT / 2
        self.top, self.bottom = middle[1] - rows * UNIT / 2, middle[1] + rows * UNIT / 2


def _matrix(
    drawing: Drawing, name: str, middle: tuple[float, float], rows: int, columns: int, tone: str, lit: str = "", *,
    hollow: bool = False, filled: bool = False, causal: bool = False,
) -> _Edges:  # fmt: skip
    """A grid of cells with its name and shape below."""
    edges = _Edges(middle, rows, columns)
    depth = 0.0 if hollow else 0.62 if filled else 0.3
    for i in range(rows):
        for j in range(columns):
            hidden = causal and j > i
            corner = (edges.left + j * UNIT, edges.top + i * UNIT)
            fill = "none" if hollow or hidden else shade(depth, tone)
            drawing.rect(corner, UNIT - 1, UNIT - 1, fill, tone if hollow else "hair" if hidden else "none", 0.8, 1.5)
    if lit == name:
        width, height = edges.right - edges.left, edges.bottom - edges.top
        drawing.rect((edges.left - 5, edges.top - 5), width + 9, height + 9, "none", "accent", 2, 5)
    _named(drawing, name, (middle[0], edges.bottom + 13), f"{rows} × {columns}", tone)
    return edges


def _named(drawing: Drawing, name: str, place: tuple[float, float], shape: str, tone: str) -> None:
    letter, _, below = name.partition("_")
    low = f'<tspan dy="3" font-size="10">{below}</tspan>' if below else ""
    drawing.add(
        "text", f'<tspan font-style="italic" font-family="var(--serif)" font-size="15">{letter}{low}</tspan>'
        f'<tspan dx="6" dy="{-3 if below else 0}" fill="var(--soft)" font-size="12">{shape}</tspan>',
        x=place[0], y=place[1] + 4, fill=f"var(--{tone})", text_anchor="middle",
    )  # fmt: skip
