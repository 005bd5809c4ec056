"""What `generate` and `stream` refuse, and how they say it."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import numpy as np
import pytest
import torch

from nn.generation.histories import TOKENS, Historian, histories
from regard.algebra.errors import CallError, KindError, MissingExtra
from regard.inputs import Characters, Words
from regard.nn import GPT
from regard.nn.generation import Sampling, generate, greedy, stream

__all__ = ["histories"]  # a fixture

MODEL = Historian()
WORDS = Words.of("a b c d e f g", specials=("<end>", "<pad>", "<s>"), unknown="<?>")

CALLS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no prompt": ([], {}, r"prompts: at least one token to begin with; got none; pass a text, a list of texts, ids"),
    "no ids": ([[1], []], {}, r"prompts\[1\]: at least one token to begin with; got none; begin with a special token"),
    "no tokens": (torch.zeros(3, 0, dtype=torch.int64), {}, r"prompts\[0\]: at least one token to begin with"),
    "empty text": (["a", ""], {"vocabulary": WORDS}, r"prompts\[1\]: at least one token to begin with; got ''; begin"),
    "text alone": ("a b", {}, r"prompts: a text needs a vocabulary to become ids; got 'a b' and no vocabulary; pass"),
    "texts alone": ([[1], "a"], {}, r"prompts\[1\]: a text needs a vocabulary to become ids; got 'a' and no vocab"),
    "axes": (
        torch.zeros(2, 3, 5, dtype=torch.int64),
        {},
        r"prompts: ids of shape \(N\) or \(B, N\); got shape \(2, 3, 5",
    ),
    "no new": ([1], {"new": 0}, r"new: how many tokens to write at most, at least 1; got 0"),
    "new as text": ([1], {"new": "7"}, r"new: how many tokens to write at most, at least 1; got '7'"),
    "empty stop": ("a", {"vocabulary": WORDS, "stop": ("b", "")}, r"stop: texts of at least one character; got ''"),
    "stop alone": ([1], {"stop": "b"}, r"stop: texts are found by a vocabulary; got 'b' and no vocabulary; pass voc"),
    "end alone": ([1], {"end": "<end>"}, r"end: a name is found in a vocabulary; got '<end>' and no vocabulary; pass"),
    "end unknown": (
        "a",
        {"vocabulary": WORDS, "end": "</s>"},
        r"end: a special token of the vocabulary, '<end>', '<pad>', '<s>'; got '</s>'; pass stop='</s>' if",
    ),
    "end no special": ("a", {"vocabulary": WORDS, "end": "b"}, r"end: a special token .*; got 'b'; pass stop='b' if"),
    "vocabulary too small": (
        [1],
        {"vocabulary": Characters.of("ab"), "sampling": Sampling(50), "seed": 1},
        r"vocabulary: a token for each id of the model; got \d+, where it has 2 tokens; pass the vocabulary that",
    ),
}
KINDS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "number": (5, {}, r"prompts: a text, a list of texts, ids, or a list of lists of ids; got int"),
    "bytes": (b"ab", {}, r"prompts: a text, a list of texts, .*; got bytes"),
    "reals": (torch.zeros(3), {}, r"prompts: ids are integers; got torch.float32"),
    "truths": (np.ones((2, 3), bool), {}, r"prompts: ids are integers; got bool"),
    "uneven": ([[1, 2], 3], {}, r"prompts\[1\]: a text, .*, and not both at once; got an id beside a list or a text"),
    "beside": ([3, "a"], {"vocabulary": WORDS}, r"prompts\[0\]: a text, .*; got an id beside a list or a text"),
    "deep": ([[[1]]], {}, r"prompts\[0\]: ids are integers; got \[1\] at position 0"),
    "real": ([[1, 2.0]], {}, r"prompts\[0\]: ids are integers; got 2.0 at position 1"),
    "truth": ([[True]], {}, r"prompts\[0\]: ids are integers; got True at position 0"),
    "nothing": ([None], {}, r"prompts\[0\]: a text, .*; got NoneType"),
    "stop": ("a", {"vocabulary": WORDS, "stop": 3}, r"stop: a text, or texts, at which to stop; got 3; end= takes ids"),
    "stops": (
        "a",
        {"vocabulary": WORDS, "stop": ["b", 3]},
        r"stop: a text, or texts, at which to stop; got \['b', 3\]",
    ),
    "end": ([1], {"end": 2.0}, r"end: the id of a token, or the name of a special token, or several; got 2.0"),
    "negative end": ([1], {"end": (2, -1)}, r"end: the id of a token, .*; got -1"),
    "vocabulary": (
        "a",
        {"vocabulary": {"a": 1}},
        r"vocabulary: one of regard.inputs, .*; got dict; BytePairs.wrap takes",
    ),
    "sampling": ([1], {"sampling": 0.7}, r"sampling: greedy or a Sampling, such as .*; got 0.7"),
    "seed": ([1], {"seed": 0.5}, r"seed: an integer, or None to draw from PyTorch's own state; got 0.5"),
    "cache": ([1], {"cache": None}, r"cache: True or False; got None; each call makes its own Cache"),
}


@pytest.mark.parametrize("name", CALLS)
def test_refuses_what_does_not_fit(name: str) -> None:
    prompts, options, text = CALLS[name]
    with pytest.raises(CallError, match=f"^{text}"):
        generate(MODEL, prompts, **options)


@pytest.mark.parametrize("name", KINDS)
def test_refuses_other_kinds(name: str) -> None:
    prompts, options, text = KINDS[name]
    with pytest.raises(KindError, match=f"^{text}"):
        generate(MODEL, prompts, **options)


@pytest.mark.parametrize("name", sorted({*CALLS, *KINDS} - {"vocabulary too small"}))  # seen when such an id comes
def test_a_stream_refuses_when_it_is_asked_for(name: str) -> None:
    """Not at its first piece; and it speaks of one prompt."""
    prompt, options, text = {**CALLS, **KINDS}[name]
    with pytest.raises((CallError, KindError), match=f"^{text.replace('prompts', 'prompt', 1)}"):
        stream(MODEL, prompt, **options)


def test_a_stream_is_of_one_prompt() -> None:
    with pytest.raises(CallError, match=r"prompt: one at a time; got 2; call stream on each, or generate on all"):
        stream(MODEL, [[1], [2]])


# -- the model -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [generate, stream])
def test_a_function_that_cannot_be_called_as_a_model_is(write: Any) -> None:
    text = (
        r"^model: called as model\(ids, lengths=None, cache=None\); got \(ids\): .* 'lengths'; pass lambda ids, \*\*_"
    )
    with pytest.raises(KindError, match=text):
        write(lambda ids: ids, [1])
    with pytest.raises(KindError, match=r"^model: called as model\(ids, lengths=None\); got \(ids, \*, cache\): "):
        write(lambda ids, *, cache: ids, [1], cache=False)


def test_a_wrapped_function_is_called_as_it_is() -> None:
    @functools.wraps(lambda ids: ids)
    def model(ids: Any, **_: Any) -> Any:
        return torch.zeros(*ids.shape, 3)

    assert generate(model, [1], new=2).ids == [0, 0]


def test_the_methods_of_a_model_tell_their_options() -> None:
    for method, function in ((GPT.generate, generate), (GPT.stream, stream)):
        assert inspect.signature(method) == inspect.signature(function)
        assert method.__doc__ == function.__doc__


class Short(Historian):
    longest = 13


@pytest.mark.parametrize("write", [generate, stream])
def test_refuses_more_than_the_model_has_positions(write: Any) -> None:
    list(write(Short(), [[1] * 6], new=7))
    cases = {
        (7, 7): r"^prompt: 7 tokens \+ 7 new exceed the model's 13 positions; shorten it to 6 tokens, or pass new=6$",
        (13, 7): r"^prompt: 13 tokens \+ 7 new exceed the model's 13 positions; shorten it to 6 tokens$",
        (3, 64): r"^prompt: 3 tokens \+ 64 new exceed the model's 13 positions; pass new=10$",
        (99, 64): r"^prompt: 99 tokens \+ 64 new exceed the model's 13 positions; shorten it and pass a smaller new=$",
    }
    for (given, new), text in cases.items():
        with pytest.raises(CallError, match=text):
            write(Short(), [1] * given, new=new)


def test_says_which_prompt_is_too_long() -> None:
    with pytest.raises(CallError, match=r"^prompts\[1\]: 11 tokens \+ 5 new exceed the model's 13 positions; shorten"):
        generate(Short(), [[1], [1] * 11, [2, 3]], new=5)


def test_the_models_own_error_arrives_as_it_is() -> None:
    error = CallError("cache: the formula reads n; pass cache=False")

    def model(ids: Any, **options: Any) -> Any:
        raise error

    with pytest.raises(CallError) as caught:
        generate(model, [1])
    assert caught.value is error


@pytest.mark.parametrize("sampling", [greedy, Sampling(top_k=3)])
def test_numbers_that_are_none_are_told_with_their_text(sampling: Sampling) -> None:
    """The text by its place among the prompts, also after others have left."""

    def model(ids: Any, **options: Any) -> Any:
        logits = MODEL(ids, **options)
        model.step += 1  # type: ignore[attr-defined]
        if model.step < 3:  # type: ignore[attr-defined]
            logits[:, -1, 0] = -1e9
            logits[0, -1, 0] = 1e9 if model.step == 2 else -1e9  # type: ignore[attr-defined]
        else:
            logits[1, -1] = torch.nan
        return logits

    model.step = 0  # type: ignore[attr-defined]
    with pytest.raises(CallError, match=r"logits: finite, .*; got NaN in text 2; look at the model's numbers"):
        generate(model, [[1], [2], [3]], end=0, sampling=sampling, seed=1)


class Output:
    logits = torch.zeros(1, 1, TOKENS)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        (None, KindError, r"model: called on ids it gives a tensor of logits; got NoneType$"),
        (Output(), KindError, r"model: .*; got Output; pass lambda ids, \*\*_: model\(ids\).logits, with cache=False"),
        (
            torch.zeros(1, TOKENS),
            CallError,
            r"model: called on ids \(1, 3\) it gives logits \(1, 3, V\), one row for .*; got \(1, 11\)",
        ),
        (torch.zeros(1, 1, TOKENS), CallError, r"model: .*; got \(1, 1, 11\)"),
        (
            torch.zeros(1, 3, TOKENS, dtype=torch.int64),
            KindError,
            r"logits: a tensor of real numbers, .*; got torch.int64",
        ),
    ],
)
def test_refuses_what_are_no_logits(given: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        generate(lambda ids, **options: given, [1, 2, 3])


def test_refuses_what_is_no_model() -> None:
    with pytest.raises(KindError, match=r"model: called on ids it gives logits; got str"):
        generate("gpt2", [1, 2, 3])  # type: ignore[arg-type]


# -- progress ------------------------------------------------------------------------------------------------------


def test_a_bar_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    generate(MODEL, [1], new=2)
    with pytest.raises(MissingExtra, match=r"this needs rich, .*regard\[cli\]"):
        generate(MODEL, [1], new=2, progress=True)
    with pytest.raises(KindError, match=r"progress: True or False; got 1"):
        generate(MODEL, [1], new=2, progress=1)  # type: ignore[arg-type]
