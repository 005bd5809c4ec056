"""Formulas of many kinds, as text: every score meets a weight and a mask, and each of these stands in one at least."""

from __future__ import annotations

SCORES = (
    "dot / sqrt(d)",
    "-sqdist / 2",
    "8 * cosine",
    "30 * tanh(dot / sqrt(d) / 30)",
    "dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j)",
    "dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * abs(i - j)",
    'dot / sqrt(d) + table("bias")[h, i - j + 300]',
    'dot(table("M")) / d',
    '-sqdist(table("P")) / d',
    'dot / sqrt(d) + table("whole")[h, i, j]',
    'dot / sqrt(d) + table("row")[h, i] * table("col")[h, j]',
    'table("col")[h, j] + dot * table("temp")[h] / d',
    "log(1 + exp(dot / sqrt(d)))",
    "-abs(i - j) / 8",
    "dot * cosine / d - sqdist / d",
    "dot / sqrt(d) + 0.1 * sqrt(abs(i - j) + 1)",
    "2 + dot / sqrt(d) - log(1 + abs(i - j)) / 4",
    'dot / sqrt(d) * (1 + table("gate")[b, h, i, j])',
    "minimum(dot, 2) / sqrt(d)",
    "where(dot > 0, dot, dot / 10) / sqrt(d)",
    'dot / sqrt(d) + table("bucket")[h, minimum(maximum(i - j, 0), 63)]',
    "sin(dot / sqrt(d)) + cos(sqdist / d)",
    "erf(dot / sqrt(d)) * gelu(cosine)",
    "softplus(dot / sqrt(d)) - floor(dot / 8)",
    "sqrt(1 + dot ** 2 / d)",
    "abs(dot / sqrt(d)) ** 1.5",
    "(dot / d) ** 3",
    "dot / sqrt(d) + (i % 7) * (j % 5) / 10",
    "-sqrt(sqdist)",
    'dot / sqrt(d) - table("kind")[h, (i + 2 * j) % 7]',
)
WEIGHTS = (
    "softmax",
    "each(sigmoid(s))",
    "share(exp(s), sink=1)",
    "each(relu(s) / n)",
    "softmax",
    "share(relu(s) ** 2)",
    'share(exp(s), sink=exp(table("rest")[h]))',
    "share(exp(s) + exp(s / 2))",
    "share(softplus(s))",
    "each(exp(-s ** 2))",
    "share(1 / (1 + s ** 2))",
)
MASKS = (
    "",
    "j <= i",
    "(j <= i) & (i - j < 100)",
    'equal(table("ids")[b, i], table("ids")[b, j])',
    'j < table("lengths")[b]',
    'given("seen")',
    "dot > 0",
    "(i - j) % 4 <= 1",
    "(j < 10) | (j <= i)",
)


def text(score: str, weight: str, mask: str) -> str:
    """One formula."""
    return f"{weight}({score}, mask={mask})" if mask else f"{weight}({score})"


def formulas() -> list[str]:
    """One for each score; weights and masks take turns."""
    turns = zip(SCORES, range(len(SCORES)), strict=True)
    return [text(score, WEIGHTS[place % len(WEIGHTS)], MASKS[place % len(MASKS)]) for score, place in turns]
