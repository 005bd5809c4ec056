"""From one character before, to a few, to all of them, weighted by what they are.

bigram            p(t | the 1 character before)                      counted
n-gram            p(t | the n − 1 characters before)                 counted
weights by place  y_i = Σ_j w(i − j) v_j                             learned; what stands at j has no say in its weight
self-attention    y_i = Σ_j w(x_i, x_j, i − j) v_j                   learned

All that learn see as many characters, the same at each step: the training text three times over. Counts need it once. A
model of context c reads c characters and nothing beyond: its two blocks read windows a and b with a + b − 1 = c.

An n-gram of n characters looks at the n − 1 before the last one: 1 for a bigram. A text that calls the bigram's window
N = 2 and then lets an N-gram look at t − 1 … t − N has its window one character longer than its bigram's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from ..algebra.masks import causal, window
from ..attention import Attention
from ..nn.gpt import GPT
from ..train import ngrams as counted
from ..train.data.tokens import Tokens
from .language import BATCH, WINDOW, NextCharacter, characters, small_gpt, trained
from .record import Cell, Experiment, Outcome, Scale, Table, Tell, shares

CONTEXTS = (1, 2, 4, 8, 64)
PLACED = (8, 64)  # contexts in which weights by place are learned as well
COUNTED = (0, 1, 2, 4, 8, 16)  # an n-gram reads n − 1 characters; beyond 16 nothing changes
PASSES = 3
TOLD = 0.03  # nats: less is not told apart; two seeds of one such model, in `weights`, end 0.02 apart


# -- the models ------------------------------------------------------------------------------------------------


def windows(context: int) -> list[Attention]:
    """The formulas of two blocks, after which a row has read so many characters, its own among them."""
    if context >= WINDOW:
        return [Attention(mask=causal)]
    a = context // 2 + 1
    return [Attention(mask=window(a)), Attention(mask=window(context - a + 1))]


def attentive(tokens: int, context: int, seed: int) -> GPT:
    """Self-attention over so many characters."""
    return small_gpt(tokens, seed=seed, attention=windows(context))


def placed_alone(tokens: int, context: int, seed: int) -> GPT:
    """The same with q_i = b_q and k_j = b_k in every row: turned by their places, s_ij = b_q · R_(j−i) b_k."""
    model = attentive(tokens, context, seed)
    for block in model.decoder.blocks:
        for layer in (block.attention.query, block.attention.key):
            nn.init.zeros_(layer.weight).requires_grad_(False)
            nn.init.normal_(layer.bias)  # from two vectors of zeros no gradient leads away
    return model


# -- the measure -----------------------------------------------------------------------------------------------


def by_counting(tokens: Tokens, context: int) -> float:
    """Nats for each held-out character, by counts of (context + 1)-grams."""
    model = counted.fit(tokens.training_ids, context + 1, tokens.vocabulary_size)
    found = [model.nats(part, first=context) for part in tokens.held_out_ids(before=context)]
    return float(np.concatenate(found).mean())


def one_pass(tokens: Tokens) -> int:
    """In how many steps as many characters are read as the training text has."""
    learned = sum(stop - start for start, stop in tokens.training)
    return round(learned / (BATCH * WINDOW))


def run(scale: Scale, tell: Tell) -> Outcome:
    """Count, and learn, with longer and longer contexts."""
    tokens = characters()
    task = NextCharacter(scale.seed, tokens, scale.steps(1200, least=8))
    models = {f"context {context}": attentive(tokens.vocabulary_size, context, scale.seed) for context in CONTEXTS}
    models |= {f"by place {context}": placed_alone(tokens.vocabulary_size, context, scale.seed) for context in PLACED}
    told, steps = shares(["counting", *models], tell), scale.steps(one_pass(tokens))
    told("counting", 0.0)
    grams = {context: by_counting(tokens, context) for context in COUNTED}
    curves = {}
    for name, model in models.items():
        hear = partial(told, name)
        history = trained(model, task, PASSES * steps, seed=scale.seed, every=steps, tell=hear)
        curves[name] = history.series("loss")[1]
    return outcome_of(grams, curves)


def outcome_of(grams: dict[int, float], curves: dict[str, list[float]]) -> Outcome:
    """The table and the answer, from nats by the number of characters read, and by models after each pass."""
    best = min(grams, key=lambda context: grams[context])
    attention = {context: curves[f"context {context}"][-1] for context in CONTEXTS}
    placed = {context: curves[f"by place {context}"][-1] for context in PLACED}
    numbers = {"ngram_best": grams[best], "ngram_best_context": float(best)}
    numbers |= {"attention_best": min(attention.values()), "placed_best": min(placed.values())}
    for name, found in {"ngram": grams, "attention": attention, "placed": placed}.items():
        numbers |= {f"{name}_{context}": loss for context, loss in found.items()}
    names = {0: "0, unigram", 1: "1, bigram", 2: "2, trigram"}
    rows = tuple(
        (names.get(context, str(context)), *(_cell(found, context) for found in (grams, placed, attention)))
        for context in sorted({*grams, *attention})
    )
    columns = ("characters read", "n-gram, counted", "weights by place", "self-attention")
    series = {name: [list(found), list(found.values())] for name, found in _named(grams, placed, attention)}
    return Outcome(answer(numbers), Table(columns, rows), numbers, {**series, "curves": curves})


def _named(*found: dict[int, float]) -> Iterator[tuple[str, dict[int, float]]]:
    return zip(("grams", "placed", "attention"), found, strict=True)


def _cell(found: dict[int, float], context: int) -> Cell:
    return round(found[context], 3) if context in found else "–"


def answer(numbers: dict[str, float]) -> str:
    """What the numbers say."""
    first, few, whole = (numbers[f"attention_{context}"] for context in (1, 8, 64))
    content, ngram = numbers["placed_best"] - numbers["attention_best"], numbers["ngram_best"]
    longer = "better still" if few - whole > TOLD else "no better"
    told = "cannot be told from" if abs(content) < TOLD else "are better than" if content > 0 else "are worse than"
    wins = "is beaten" if ngram > numbers["attention_best"] else "is still ahead"
    return (
        f"One character before gives {first:.2f} nats (counted: {numbers['ngram_1']:.2f}), 8 give {few:.2f}, and all "
        f"64 {whole:.2f}: {longer}. In this time weights from content {told} weights that know the place alone "
        f"({content:+.2f} nats). Counting, with {numbers['ngram_best_context']:.0f} characters and {ngram:.2f} nats, "
        f"{wins} after {PASSES} passes through this short text."
    )


# -- the picture -----------------------------------------------------------------------------------------------


def draw(outcome: Outcome, figure: Any) -> None:
    """Left: loss against how much is read. Right: pass after pass, darker with longer contexts."""
    left, right = figure.subplots(1, 2, width_ratios=(3, 2), sharey=True)
    labels = {"grams": "n-gram, counted", "placed": "weights by place", "attention": "self-attention"}
    for (name, label), colour in zip(labels.items(), ("C5", "C2", "C0"), strict=True):
        contexts, losses = outcome.series[name]
        left.plot(contexts, losses, "o-", color=colour, label=label)
    left.set_xscale("symlog", base=2, linthresh=1)
    left.set_xticks([0, 1, 2, 4, 8, 16, 32, 64], "0 1 2 4 8 16 32 64".split())
    left.minorticks_off()
    left.set(xlabel="characters read", ylabel="held-out nats per character", title="At the end")
    left.legend()
    shades = {"context 1": "#b9c7d1", "context 2": "#8fa6b5", "context 4": "#64859a", "context 8": "#3f677f"}
    for name, losses in outcome.series["curves"].items():
        colour = "C2" if name.startswith("by place") else shades.get(name, "C0")
        right.plot(range(1, len(losses) + 1), losses, "o-", color=colour)
        if name in ("context 1", "context 2", "context 4"):
            read = f"{name.removeprefix('context ')} read"
            right.annotate(read, (1, losses[0]), (0, 6), textcoords="offset points", color=colour, fontsize=10)
    best = outcome.numbers["ngram_best"]
    right.axhline(best, color="C5", linestyle="--")
    right.annotate("best n-gram", (1, best), (0, 5), textcoords="offset points", color="#6b768c", fontsize=10)
    right.set_xticks(range(1, PASSES + 1))
    right.set(xlabel="passes through the text", title="On the way")


EXPERIMENT = Experiment(
    "ngrams",
    "What is gained from bigram to n-gram to self-attention?",
    ("L1",),
    2.5,
    run,
    draw,
)
