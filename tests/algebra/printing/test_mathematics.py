"""LaTeX, MathML and Unicode: well formed for every formula, and as mathematics writes it."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

import regard as rg
from regard import d, dot, exp, h, i, j, share, sqdist, sqrt, table, zoo
from strategies import Case, cases


def balanced(text: str) -> bool:
    depth = 0
    for mark in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if mark == "{" else -1
        assert depth >= 0
    return depth == 0 and text.count(r"\left") == text.count(r"\right")


@settings(max_examples=100)
@given(cases())
def test_every_formula_prints(case: Case) -> None:
    latex = case.attention.latex()
    assert balanced(latex)
    assert latex.count(r"\begin{cases}") == latex.count(r"\end{cases}")
    ET.fromstring(case.attention.mathml())
    assert case.attention.unicode().startswith("yᵢ = Σ")


LATEX = {
    r"y_i = \sum_{j} \operatorname{softmax}_j\left(\frac{q_i^\top k_j}{\sqrt{d}}\right)\, v_j": rg.Attention(),
    r"y_i = \sum_{j \,:\, j \le i} \operatorname{softmax}_j\left(q_i^\top M k_j\right)\, v_j": rg.Attention(
        score=dot(table("M")), mask=j <= i
    ),
    r"y_i = \sum_{j} \operatorname{relu}\left(-\left\lVert q_i - k_j \right\rVert^2\right)\, v_j": rg.Attention(
        score=-sqdist, weight=rg.relu
    ),
}


@pytest.mark.parametrize("latex", LATEX)
def test_latex_as_written(latex: str) -> None:
    assert LATEX[latex].latex() == latex


def test_shared_weights_are_set_in_full() -> None:
    parts = rg.Attention(weight=share(exp, sink=exp(table("sink")[h]))).latex().split(r",\quad ")
    assert parts[1:4] == [
        r"w_{ij} = \frac{\psi\left(s_{ij}\right)}{Z_i}",
        r"Z_i = \exp\left(\mathrm{sink}_{h}\right) + \sum_{j} \psi\left(s_{ij}\right)",
        r"\psi\left(s\right) = \exp\left(s\right)",
    ]


def test_parts_print_too() -> None:
    assert (dot / sqrt(d)).latex() == r"\frac{q_i^\top k_j}{\sqrt{d}}"
    assert ((j <= i) & (i - j < 4)).latex() == r"j \le i \wedge i - j \le 3"


def test_unicode_as_written() -> None:
    assert zoo.causal_dot().unicode() == "yᵢ = Σ[j: j ≤ i] softmaxⱼ(qᵢ·kⱼ / √d) vⱼ"
    assert zoo.euclidean().unicode() == "yᵢ = Σⱼ softmaxⱼ(−‖qᵢ−kⱼ‖² / 2) vⱼ"
    assert zoo.relu_over_n().unicode() == "yᵢ = Σⱼ (relu(qᵢ·kⱼ / √d) / n) vⱼ"


def test_a_notebook_shows_the_equation() -> None:
    assert rg.Attention()._repr_latex_().startswith("$\\displaystyle y_i")
