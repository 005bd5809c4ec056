"""The lens: the model's own weights, from any model, from arrays, from weights; and what stands along their axes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import (
    BartConfig,
    BartModel,
    BertConfig,
    BertModel,
    PreTrainedTokenizerFast,
    ViTConfig,
    ViTModel,
)

import regard as rg
from regard.algebra.errors import CallError, KindError, RegardError
from regard.inputs.text import Characters
from regard.nn import GPT, ViT
from regard.viewer.capturing import capture
from regard.viewer.entering.running import lens_of_capture
from regard.viewer.keeping.table import short
from regard.viewer.lenses import Lens
from regard.viewer.looking import Told, lens
from regard.viewer.record import Axis, Captured, Missing

B, H, N, M, D = 2, 3, 5, 7, 11
WORDS = ["one", "two", "three", "four", "five", "six", "seven"]


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def softmax(s: Any) -> Any:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def bert(**options: Any) -> BertModel:
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 22,
        "num_attention_heads": 2,
        "num_hidden_layers": 3,
        "intermediate_size": 13,
        "vocab_size": 31,
    }
    return BertModel(BertConfig(**sizes, max_position_embeddings=37, attn_implementation="eager", **options)).eval()


def labels(seen: Lens, captured: Captured, batch: int = 0) -> tuple[Any, Any]:
    axes = seen.axes[batch]
    return axes[captured.query].labels, axes[captured.key].labels


# -- arrays ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor, jnp.asarray, lambda x: x.tolist()])
@pytest.mark.parametrize("lead", [(), (H,), (B, H)])
def test_arrays_of_any_kind(make: Any, lead: Any) -> None:
    q, k, v = draw(*lead, N, D), draw(*lead, M, D, seed=1), draw(*lead, M, 13, seed=2)
    seen = lens(q=make(q), k=make(k), v=make(v), tokens=" ".join(WORDS))
    wanted = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(D)).reshape(-1, max(1, *lead[-1:], 1), N, M)
    for batch, one in enumerate(wanted):
        np.testing.assert_allclose(seen.weights(0, batch=batch), one, atol=1e-6)
    assert seen.weights(0).dtype == (np.float64 if make(q).__class__ is list else np.float32)
    queries, keys = labels(seen, seen[0])
    assert keys == ("one", *(f" {word}" for word in WORDS[1:]))
    assert queries == keys[M - N :]  # queries are the last rows of the keys


def test_tables_masks_and_the_first_row() -> None:
    q, k = draw(B, H, N, D), draw(B, H, M, D, seed=1)
    allowed = draw(B, 1, N, M, seed=3) < 0.5
    formula = rg.Attention(rg.dot + rg.table("bias")[rg.h], mask=rg.given("allowed") & rg.causal)
    seen = lens(q=q, k=k, attention=formula, bias=draw(H), allowed=allowed, start=1)
    wanted = formula.weights(q, k, bias=draw(H), allowed=allowed, start=1)
    np.testing.assert_allclose(seen.weights(0, batch=1), wanted[1], atol=1e-6)
    jax_seen = lens(
        q=jnp.asarray(q), k=jnp.asarray(k), attention=formula, bias=jnp.asarray(draw(H)), allowed=allowed, start=1
    )
    np.testing.assert_allclose(jax_seen.weights(0, batch=1), wanted[1], atol=1e-6)


def test_parts_of_weights() -> None:
    q, k = draw(B, H, N, D), draw(B, H, M, D, seed=1)
    for formula in (
        rg.Attention(),
        rg.Attention(weight=rg.share(rg.exp(rg.s), over=rg.i)),
        rg.Attention(weight=rg.sigmoid),
    ):
        for make in (np.asarray, torch.as_tensor):
            seen = lens(q=make(q), k=make(k), attention=formula)
            whole = formula.weights(q, k)
            for rows, columns in (
                (slice(1, 4), slice(2, 5)),
                ([4, 0], [6, 1, 3]),
                (2, np.array([5, 2])),
                (slice(None), 3),
            ):
                wanted = whole[1][:, np.atleast_1d(np.arange(N)[rows])][:, :, np.atleast_1d(np.arange(M)[columns])]
                np.testing.assert_allclose(seen.weights(0, None, 1, rows, columns), wanted, atol=1e-6)
                np.testing.assert_allclose(seen.weights(0, 2, 1, rows, columns), wanted[2], atol=1e-6)


def test_totals_are_those_of_the_rows() -> None:
    q, k = draw(B, H, N, D), draw(B, H, M, D, seed=1)
    seen = lens(q=torch.as_tensor(q), k=torch.as_tensor(k))
    wanted = np.log(np.exp(q @ np.swapaxes(k, -1, -2) / np.sqrt(D)).sum(-1))
    np.testing.assert_allclose(seen.totals(0, batch=1), wanted[1], rtol=1e-5)
    np.testing.assert_allclose(seen.totals("attention", 2, 1), wanted[1, 2], rtol=1e-5)
    with pytest.raises(CallError, match="totals: of a weight that shares"):
        lens(q=q, k=k, attention=rg.Attention(weight=rg.sigmoid)).totals(0)


def test_tokens_of_both_sides_of_a_batch_and_of_a_grid() -> None:
    q, k = draw(B, H, N, D), draw(B, H, M, D, seed=1)
    seen = lens(q=q, k=k, tokens={"query": WORDS[:N], "key": WORDS})
    assert [len(one) for one in labels(seen, seen[0])] == [N, M]
    seen = lens(q=k, k=k, tokens=[WORDS, [*WORDS[:2], "end"]])
    assert labels(seen, seen[0], 1)[1] == ("one", " two", " end", "", "", "", "")
    image = np.arange(11 * 16 * 3, dtype=np.uint8).reshape(11, 16, 3)
    seen = lens(q=k, k=k, grid=(2, 3), image=image)
    axis = seen.axes[0][seen[0].key]
    assert (axis.grid, axis.special, axis.labels[:2]) == ((2, 3), {0}, ("[class]", "0, 0"))
    assert seen.image is not None
    assert seen.image.startswith(b"\x89PNG")


@pytest.mark.parametrize("lead", [(), (H,), (B, H)])
def test_weights_are_kept_as_they_are(lead: Any, tmp_path: Path) -> None:
    w = softmax(draw(*lead, N, M))
    for given in (w, torch.as_tensor(w), w.astype(np.float64), w.astype(np.float16), w.tolist()):
        seen = lens(weights=given, tokens={"key": WORDS})
        wanted = np.asarray(given if not isinstance(given, torch.Tensor) else given.numpy())
        np.testing.assert_array_equal(seen.weights(0), wanted.reshape(-1, *(lead[-1:] or (1,)), N, M)[0])
        assert labels(seen, seen[0])[1][0] == "one"
        np.testing.assert_array_equal(Lens.open(seen.save(tmp_path / "w.lens")).weights(0), seen.weights(0))


def test_weights_of_several_layers() -> None:
    several = [softmax(draw(B, H, N, M, seed=seed)) for seed in range(3)]
    for given in (several, tuple(map(torch.as_tensor, several)), dict(zip("abc", several, strict=True))):
        seen = lens(weights=given)
        assert len(seen) == 3
        np.testing.assert_array_equal(seen.weights(2, batch=1), several[2][1])
    assert [one.name for one in seen] == ["a", "b", "c"]
    np.testing.assert_array_equal(lens(weights=np.eye(3, dtype=int)).weights(0, 0), np.eye(3))


# -- models ------------------------------------------------------------------------------------------------------------


def test_the_models_own_weights_of_ids_as_they_come() -> None:
    model, ids = bert(), torch.randint(0, 31, (B, 13))
    eager = model(ids, output_attentions=True).attentions
    mask = torch.ones_like(ids)
    mask[1, -4:] = 0
    for inputs in (ids, (ids,), {"input_ids": ids}, {"input_ids": ids, "attention_mask": mask}):
        if isinstance(inputs, dict) and "attention_mask" in inputs:
            eager = model(**inputs, output_attentions=True).attentions
        seen = lens(model, inputs)
        assert len(seen) == 3
        assert seen.model == "BertModel, 3 layers of 2 heads"
        for place in range(3):
            for batch in range(B):
                np.testing.assert_allclose(seen.weights(place, batch=batch), eager[place][batch].detach(), atol=1e-5)


def wordpieces() -> Any:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "sat"]
    backend = Tokenizer(models.WordPiece({word: place for place, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def test_texts_with_a_tokenizer_of_transformers() -> None:
    model, tokenizer = bert(), wordpieces()
    seen = lens(model, ["The cats  sat", "THE cat"], tokenizer=tokenizer)
    assert labels(seen, seen[0])[0] == ("[CLS]", "The", " cat", "s", "  sat", "[SEP]")
    axis = seen.axes[1]["tokens"]
    assert (axis.labels, axis.special) == (("[CLS]", "THE", " cat", "[SEP]", "[PAD]", "[PAD]"), {0, 3, 4, 5})
    encoded = tokenizer(["The cats  sat", "THE cat"], padding=True, return_tensors="pt")
    wanted = model(**encoded, output_attentions=True).attentions[2][1].detach()
    np.testing.assert_allclose(seen.weights(2, batch=1), wanted, atol=1e-5)
    assert np.all(seen.weights(2, batch=1, columns=[4, 5]) == 0)
    ids = lens(model, encoded, tokenizer=tokenizer)
    assert labels(ids, ids[0])[0] == ("[CLS]", "the", " cat", "s", " sat", "[SEP]")
    tokenizer.pad_token = None
    with pytest.raises(CallError, match="pad token"):
        lens(model, ["the", "cat"], tokenizer=tokenizer)


def test_a_mode_is_restored_and_no_gradient_is_kept() -> None:
    model = bert(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5).train()
    model.encoder.layer[1].eval()
    ids = torch.randint(0, 31, (1, 5))
    one, two = lens(model, ids), lens(model, ids)
    assert model.training
    assert model.encoder.layer[0].training
    assert not model.encoder.layer[1].training
    np.testing.assert_array_equal(one.weights(2), two.weights(2))
    assert not one[0].q.requires_grad


def test_layers_heads_half_and_a_folder(tmp_path: Path) -> None:
    model, ids = bert(), torch.randint(0, 31, (1, 13))
    told: list[tuple[int, int]] = []
    seen = lens(
        model, ids, layers=[0, 2], heads=[1], half=True, values=False, folder=tmp_path / "a.lens",
        progress=lambda *now: told.append(now),
    )  # fmt: skip
    assert len(seen) == len(told) == 2
    assert (seen[0].heads, seen[0].v, str(seen[0].q.dtype)) == ((1,), None, "float16")
    np.testing.assert_allclose(seen.weights(1, 0), lens(model, ids).weights(2, 1), atol=2e-3)
    np.testing.assert_array_equal(Lens.open(tmp_path / "a.lens").weights(1), seen.weights(1))


def test_a_decoder_and_its_encoder_stand_on_their_own_axes() -> None:
    torch.manual_seed(0)
    sizes = {"d_model": 22, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 31}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 7, "decoder_ffn_dim": 7}
    model = BartModel(BartConfig(**sizes, **heads, max_position_embeddings=37))
    vocabulary = Characters.of("abcdefghijk")
    for length in (5, 7):  # as many as the encoder reads, too
        inputs = {
            "input_ids": torch.tensor([vocabulary.encode("abcdefg")]),
            "decoder_input_ids": torch.arange(length)[None],
        }
        seen = lens(model, inputs, tokenizer=vocabulary)
        names = {one.name: (one.query, one.key) for one in seen}
        assert names == {
            "encoder.layers.0.self_attn": ("tokens", "tokens"),
            "decoder.layers.0.self_attn": ("decoder tokens", "decoder tokens"),
            "decoder.layers.0.encoder_attn": ("decoder tokens", "tokens"),
        }
        assert seen.axes[0]["tokens"].labels == tuple("abcdefg")


@pytest.mark.parametrize("given", [True, False], ids=["image=", "pixel_values"])
def test_an_image_and_its_patches(given: bool) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 22, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 7}
    model = ViTModel(ViTConfig(**sizes, image_size=(15, 25), patch_size=5))
    image = np.random.default_rng(0).integers(0, 256, (40, 30, 3), np.uint8)
    seen = lens(model, image=image) if given else lens(model, {"pixel_values": torch.randn(1, 3, 15, 25)})
    axis = seen.axes[0][seen[0].key]
    assert (axis.grid, axis.special, len(axis)) == ((3, 5), {0}, 16)
    from regard.viewer.entering.pictures import colours

    assert seen.image is not None
    assert colours(seen.image).shape == (15, 25, 3)
    small = image[:15, :25]
    for handed, wanted in ((small, True), (image, False)):  # one of another size would lie beside the patches
        shown = lens(model, {"pixel_values": torch.randn(1, 3, 15, 25)}, image=handed).image
        assert (colours(shown).tolist() == small.tolist()) is wanted


def test_models_of_regard() -> None:
    torch.manual_seed(0)
    vocabulary = Characters.of("the cat sat")
    gpt = GPT(len(vocabulary), dim=20, depth=2, heads=2)
    seen = lens(gpt, "the cat", tokenizer=vocabulary)
    assert seen.axes[0][seen[1].key].labels == tuple("the cat")
    assert seen.title == "GPT: the cat"
    assert np.triu(seen.weights(1, 0), 1).max() == 0
    vit = ViT((6, 10), patch=2, classes=3, dim=22, depth=1, heads=2)
    assert lens(vit, torch.randn(2, 3, 6, 10)).axes[1]["patches and 1"].grid == (3, 5)


def test_a_capture_becomes_a_lens(tmp_path: Path) -> None:
    model, ids = bert(), torch.randint(0, 31, (1, 5))
    with capture(model, folder=tmp_path / "a.lens") as seen:
        model(ids)
    made = lens_of_capture(model, seen, told=Told(tokens=WORDS[:5], title="mine"))
    assert (made.title, labels(made, made[0])[0][0]) == ("mine", "one")
    assert Lens.open(tmp_path / "a.lens").title == "mine"


def test_a_model_that_attends_to_nothing_is_told() -> None:
    with pytest.raises(CallError, match="model: one that calls attention; got Linear"):
        lens(nn.Linear(3, 5), torch.ones(2, 3))


# -- wrong uses --------------------------------------------------------------------------------------------------------

A = draw(N, D)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, CallError, "got none of them"),
        ({"q": A}, CallError, "both q= and k=; got q alone"),
        ({"q": A, "k": A, "weights": A}, CallError, "got q and k and weights"),
        ({"model": bert, "q": A, "k": A}, CallError, "got model and q and k"),
        ({"model": A}, KindError, "pass arrays as q=, k= or weights="),
        ({"model": bert, "inputs": A}, KindError, "model: a module of PyTorch; got function"),
        ({"model": bert()}, CallError, "inputs: what the model is called with"),
        ({"model": bert(), "inputs": "a text"}, CallError, "tokenizer: needed for a text"),
        ({"model": bert(), "inputs": A}, KindError, "torch.as_tensor"),
        ({"model": bert(), "inputs": torch.ones(1, 5, dtype=int), "bias": A}, CallError, "got bias"),
        ({"model": bert(), "inputs": A, "attention": rg.Attention()}, CallError, "attention: "),
        ({"model": bert(), "inputs": torch.ones(1, 5, dtype=int), "tokens": ["a"]}, CallError, "tokens: for each of 5"),
        ({"model": bert(), "inputs": torch.ones(1, 5, dtype=int), "progress": 3}, KindError, "progress: "),
        ({"q": A, "k": A, "inputs": A}, CallError, "inputs: of a model"),
        ({"q": A, "k": A, "tokens": ["a", "b"]}, CallError, "tokens: for each of 5 places.*; got 1 × 2"),
        ({"q": A, "k": A, "tokens": {"rows": ["a"]}}, CallError, 'tokens: by "query" and "key"'),
        ({"q": A, "k": A, "grid": (7, 9)}, CallError, "grid: for each of 5 places"),
        ({"q": A, "k": A, "grid": 3}, KindError, "grid: \\(rows, columns\\)"),
        ({"q": A, "k": A, "attention": "softmax"}, KindError, "attention: an Attention"),
        ({"q": A, "k": A, "bias": A}, RegardError, "bias"),
        ({"q": A, "k": draw(N, 3)}, CallError, "width"),
        ({"weights": draw(N)}, CallError, "weights: \\(queries, keys\\)"),
        ({"weights": ()}, CallError, "attn_implementation"),
        ({"weights": (None, None)}, CallError, "attn_implementation"),
        ({"weights": A, "v": A}, CallError, "weights: alone"),
        ({"weights": "text"}, RegardError, "weights"),
    ],
)  # fmt: skip
def test_wrong_uses_are_told(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        lens(**options)


# -- the lens itself ---------------------------------------------------------------------------------------------------


def hand_made() -> Lens:
    axes = [{"t": Axis("t", tuple("abcde")), "s": Axis("s", tuple("abcdefg"))}]
    layers = [
        Captured(
            f"enc.layer.{place}.self",
            rg.Attention(mask=rg.causal),
            draw(1, 6, N, D),
            draw(1, 3, M, D),
            query="t",
            key="s",
        )
        for place in range(4)
    ]
    layers.append(
        Captured("last", rg.Attention(weight=rg.sigmoid), draw(1, 1, N, 2), draw(1, 1, N, 2), query="t", key="t")
    )
    missing = [Missing(f"m{place}", "why") for place in range(11)]
    return Lens(layers, axes, title="T", model="words", missing=missing, notes=["a note"])


def test_layers_by_number_and_by_name() -> None:
    seen = hand_made()
    assert seen[0] is seen["enc.layer.0.self"] is next(iter(seen))
    assert seen[-1] is seen["last"]
    assert (len(seen), seen.batches) == (5, 1)
    assert seen.bytes == 4 * 4 * (6 * N + 3 * M) * D + 4 * 4 * N
    for wrong in (5, -6):
        with pytest.raises(IndexError, match="layer: from 0 to 4"):
            seen[wrong]
    with pytest.raises(CallError, match=r"layer: one of enc\.layer\.0\.self"):
        seen["first"]
    for wrong_kind in (1.0, True, None):
        with pytest.raises(KindError, match="layer: "):
            seen[wrong_kind]  # type: ignore[index]
    with pytest.raises(CallError, match="head"):
        seen.weights(0, head=6)
    with pytest.raises(CallError, match="batch"):
        seen.weights(0, batch=1)
    with pytest.raises(KindError, match="batch: a whole number"):
        seen.weights(0, batch=slice(None))  # type: ignore[arg-type]


def test_the_table() -> None:
    lines = repr(hand_made()).splitlines()
    assert lines[:2] == ["Lens: T", "words"]
    assert re.split(r"\s{2,}", lines[2].strip()) == [
        "0–3", "enc.layer.*.self", "6 heads on 3 of 11", "5 × 7", "softmax(dot / sqrt(d)), j <= i",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", lines[3].strip())[0] == "4"
    assert lines[4] == "9.1 kB kept in float32; all weights would be 3.5 kB"
    assert lines[5] == "missing, 11:"
    assert lines[-2:] == ["  and 3 more", "note: a note"]
    assert short(rg.Attention(weight=rg.softmax)) == "softmax(dot / sqrt(d))"


def test_axes_that_do_not_fit_are_refused() -> None:
    captured = Captured("x", rg.Attention(), draw(2, 1, N, 2), draw(2, 1, M, 2), query="t", key="t")
    axis = Axis("t", tuple("abcde"))
    for axes, words in (([], "for each of 2"), ([{}] * 2, "no axis 't'"), ([{"t": axis}] * 2, "7 places for x; got 5")):
        with pytest.raises(CallError, match=words):
            Lens([captured], axes)


def test_a_notebook_without_the_widget_sees_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = hand_made()
    monkeypatch.setattr(Lens, "widget", lambda self: (_ for _ in ()).throw(ImportError("anywidget")))
    assert seen._repr_mimebundle_() == {"text/plain": repr(seen)}


def test_importing_the_viewer_is_light() -> None:
    program = (
        "import sys, regard.viewer, regard.viewer.lenses, regard.viewer.looking, regard.viewer.keeping.store\n"
        "heavy = {'torch', 'transformers', 'starlette', 'anywidget', 'PIL', 'safetensors', 'rich', 'jax'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.strip() == "[]", done.stderr
