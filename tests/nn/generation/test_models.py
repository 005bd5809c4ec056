"""`generate` with models of ours and of transformers: with and without a cache, alone and in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import regard as rg
from regard import dot, log, n, sqrt, window
from regard.algebra.errors import CallError
from regard.inputs import ALiBi, BytePairs, Learned, NoPosition, Rotary, Sinusoidal
from regard.nn import GPT
from regard.nn.checkpoints import from_hugging_face
from regard.nn.generation import Sampling, generate, greedy, stream

TOKENS = 61
PROMPTS = [[5, 7, 11], [2], [3, 1, 4, 1, 5, 9, 2, 6], [8, 8]]
POSITIONS = {
    "rotary": Rotary(),
    "alibi": ALiBi(4),
    "none": NoPosition(),
    "learned": Learned.random(37, 32, seed=1),
    "sinusoidal": Sinusoidal(32),
}
SAMPLINGS = {"greedy": greedy, "drawn": Sampling(0.9, 23, 0.95)}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Matrices so small that threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def model_of(position: Any = Rotary(), attention: Any = rg.Attention()) -> GPT:  # noqa: B008 - values
    """A model that goes on for long without repeating itself, in float64, so that rounding decides nothing."""
    torch.manual_seed(3)
    return scattered(GPT(TOKENS, 32, 2, 4, 2, attention, position, tied=False).double())


def scattered(model: Any) -> Any:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=0.5)
    return model


def by_hand(model: Any, prompt: list[int], new: int) -> tuple[list[int], Any]:
    """The likeliest token after the whole text, again and again, and log P of each."""
    ids, chances = list(prompt), []
    with torch.no_grad():
        for _ in range(new):
            best = model(torch.tensor([ids]))[0, -1].log_softmax(-1).max(-1)
            chances.append(float(best.values))
            ids.append(int(best.indices))
    return ids[len(prompt) :], pytest.approx(chances, rel=1e-9)


@pytest.mark.parametrize("position", POSITIONS)
def test_greedy_texts_are_those_by_hand(position: str) -> None:
    model = model_of(POSITIONS[position], [rg.Attention(), rg.Attention(mask=window(5))])
    expected = [by_hand(model, prompt, 7) for prompt in PROMPTS]
    for cache in (True, False):
        assert [(text.ids, text.log_probabilities) for text in generate(model, PROMPTS, new=7, cache=cache)] == expected
    assert len({tuple(ids) for ids, _ in expected}) == len(PROMPTS)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_prompt_is_written_the_same_in_any_company(sampling: str) -> None:
    model = model_of()
    options: Any = {"new": 17, "sampling": SAMPLINGS[sampling], "seed": 5, "end": tuple(range(0, TOKENS, 7))}
    together = generate(model, PROMPTS, **options)
    assert len({len(text.ids) for text in together}) > 1  # some left before others
    for prompt, text in zip(PROMPTS, together, strict=True):
        for found in (generate(model, prompt, **options), generate(model, [*PROMPTS[::-1], prompt[:1] * 9], **options)):
            same = found if not isinstance(found, list) else next(one for one in found if one.prompt == prompt)
            assert same.ids == text.ids
            assert same.log_probabilities == pytest.approx(text.log_probabilities, rel=1e-9)
    assert list(stream(model, PROMPTS[2], **options)) == together[2].ids


def test_the_model_writes_by_itself() -> None:
    model, pairs = model_of(), BytePairs.of("x", 256)
    small = GPT(256, 32, 1, 4).double()
    text = small.generate("ab", vocabulary=pairs, new=11, sampling=Sampling(2.0), seed=1)
    assert "".join(small.stream("ab", vocabulary=pairs, new=11, sampling=Sampling(2.0), seed=1)) == text.text
    assert model.training
    assert model.generate(PROMPTS[0], new=3).ids == by_hand(model, PROMPTS[0], 3)[0]


def test_what_the_model_refuses_arrives() -> None:
    with pytest.raises(CallError, match=r"^prompt: 30 tokens \+ 8 new exceed the model's 37 positions; .* pass new=7$"):
        generate(model_of(POSITIONS["learned"]), [1] * 30, new=8)
    assert len(generate(model_of(POSITIONS["learned"]), [1] * 30, new=7).ids) == 7
    with pytest.raises(CallError, match=r"ids: from 0 to 60, as many as the model knows; got 61"):
        generate(model_of(), [61])
    grows = model_of(attention=rg.Attention(score=dot / sqrt(rg.d) - log(n)))
    with pytest.raises(CallError, match="reads n"):
        generate(grows, [1, 2], new=3)
    assert generate(grows, [1, 2], new=3, cache=False).ids == by_hand(grows, [1, 2], 3)[0]


# -- transformers --------------------------------------------------------------------------------------------------

GPT2_SHAPE = GPT2Config(
    vocab_size=TOKENS, n_positions=48, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
)
LLAMA_SHAPE = LlamaConfig(
    vocab_size=TOKENS,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    bos_token_id=0,
    eos_token_id=0,
)


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def theirs(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(1)
    made: Any = {"gpt2": (GPT2LMHeadModel, GPT2_SHAPE), "llama": (LlamaForCausalLM, LLAMA_SHAPE)}[request.param]
    return scattered(made[0](made[1]).double().eval())


def their_ids(model: Any, prompt: list[int]) -> list[int]:
    """What their own greedy search writes, to the token 0 at most."""
    ids = torch.tensor([prompt])
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=11, do_sample=False, pad_token_id=0)
    return out[0, len(prompt) :].tolist()


def test_a_model_of_transformers_writes_the_same(theirs: Any) -> None:
    expected = [their_ids(theirs, prompt) for prompt in PROMPTS]
    ours = from_hugging_face(theirs)
    for cache in (True, False):
        assert [text.ids for text in generate(ours, PROMPTS, new=11, end=0, cache=cache)] == expected
    whole = generate(lambda ids, **_: theirs(ids).logits, PROMPTS, new=11, end=0, cache=False)
    assert [text.ids for text in whole] == expected
