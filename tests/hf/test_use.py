"""What `use` changes and gives back: other formulas, where queries stand, restoring, refusals."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
import torch
import transformers

import regard as rg
from hf import tiny
from regard import Attention, hf, i, j, window
from regard.algebra.errors import CallError, KindError

NEAR = 1e-5


def near(got: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool((got - expected).abs().max() <= NEAR * expected.abs().max())


def logits(model: Any, *arguments: Any, **options: Any) -> torch.Tensor:
    with torch.no_grad():
        return tiny.first(model(*arguments, **options))


def banded(width: int, length: int = 13) -> torch.Tensor:
    """j ≤ i < j + width as numbers that eager attention adds."""
    admitted = torch.ones(length, length, dtype=torch.bool).tril().triu(1 - width)
    return torch.where(admitted, 0.0, torch.finfo(torch.float32).min)[None, None]


# -- other formulas --------------------------------------------------------------------------------------------


def test_a_window_is_what_eager_attention_does_with_that_mask() -> None:
    model, words = tiny.model("llama"), tiny.tokens()
    expected = logits(model, words, attention_mask=banded(4))
    for attention in (Attention(mask=window(4)), lambda own: Attention(own.score, own.weight, own.mask & window(4))):
        with hf.use(model, attention) as user:
            assert near(logits(model, words), expected)
        assert set(map(repr, user.formulas.values())) == {"softmax(dot / sqrt(d), mask=(j <= i) & (i - j <= 3))"}


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_models_own_mask_stays(side: str) -> None:
    """Formulas without a mask of their own read neither padding nor what comes later."""
    model, mask = tiny.model("llama"), tiny.padded(side)
    words, others = tiny.tokens(), tiny.tokens()
    others[mask == 0] = 3
    with hf.use(model, Attention(score=rg.dot / 7)):
        got, changed = (logits(model, text, attention_mask=mask) for text in (words, others))
        assert near(changed[mask.bool()], got[mask.bool()])
        assert near(
            logits(model, words[:, :9], attention_mask=mask[:, :9])[mask[:, :9].bool()], got[:, :9][mask[:, :9].bool()]
        )


@pytest.mark.parametrize("name", ["llama", "mistral"])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("attention", [Attention(mask=window(3)), Attention(rg.dot / 3 - (i - j) / 2)], ids=str)
def test_positions_count_along_the_keys(name: str, cache: str, attention: Attention) -> None:
    """A step of decoding is the last row of the whole text, whatever keys a cache still holds."""
    model, words = tiny.model(name), tiny.tokens()
    made = transformers.StaticCache(config=model.config, max_cache_len=17) if cache == "static" else None
    with torch.no_grad(), hf.use(model, attention):
        whole = model(words).logits
        begun = model(words[:, :7], use_cache=True, past_key_values=made)
        rest = [
            model(words[:, at:end], past_key_values=begun.past_key_values, cache_position=torch.arange(at, end)).logits
            for at, end in ((7, 10), (10, 11), (11, 13))
        ]
    assert near(torch.cat([begun.logits, *rest], 1), whole)


def test_position_bias_is_replaced_or_read_by_name() -> None:
    model, inputs = tiny.model("t5"), tiny.inputs("t5")
    own = logits(model, **inputs)
    with hf.use(model, lambda own: own):
        assert near(logits(model, **inputs), own)
    with hf.use(model, Attention(score=rg.dot)) as user:
        assert not near(logits(model, **inputs), own)
    assert not any("position_bias" in repr(formula) for formula in user.formulas.values())
    biased = Attention(rg.dot + rg.table("position_bias")[rg.h, i, j])
    with hf.use(model, biased, where=lambda name: name.startswith("encoder")):
        assert near(logits(model, **inputs), own)


def test_rows_of_a_bias_begin_with_the_first_query() -> None:
    """Steps of decoding with a table that is read by i, and a formula that counts i from the first key."""
    model, inputs = tiny.model("t5"), tiny.inputs("t5")
    words = inputs.pop("decoder_input_ids")

    def windowed(own: Attention) -> Attention:
        return Attention(own.score, own.weight, window(3) if own.mask is None else own.mask & window(3))

    with torch.no_grad(), hf.use(model, windowed, where=lambda name: "decoder" in name and "SelfAttention" in name):
        whole = model(**inputs, decoder_input_ids=words).last_hidden_state
        begun = model(**inputs, decoder_input_ids=words[:, :3], use_cache=True)
        rest = model(**inputs, decoder_input_ids=words[:, 3:], past_key_values=begun.past_key_values)
    assert near(rest.last_hidden_state, whole[:, 3:])


def test_least_numbers_of_a_mask_are_truths() -> None:
    """Whatever the score and the weight: what is masked by numbers is not read."""
    model, words = tiny.model("llama"), tiny.tokens()
    with hf.use(model, Attention(weight=rg.each(lambda s: s**2))) as user:
        masked = logits(model, words, attention_mask=banded(13))
        assert near(masked, logits(model, words))
    assert all(formula.mask is not None for formula in user.formulas.values())


def test_a_module_that_denies_to_be_causal() -> None:
    """Its model makes a causal mask all the same, and eager attention obeys it."""
    model, words = tiny.model("llama"), tiny.tokens()
    expected = logits(model, words)
    model.model.layers[1].self_attn.is_causal = False
    with hf.use(model):
        assert near(logits(model, words), expected)


def test_tables_of_the_caller() -> None:
    model, words = tiny.model("bert"), tiny.tokens()
    scale = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    with hf.use(model, Attention(rg.table("slope")[rg.h] * rg.dot), slope=scale):
        sloped = logits(model, words)
    with hf.use(model, Attention(rg.h * rg.dot)):
        assert near(logits(model, words), sloped)


def test_where_leaves_others_as_they_are() -> None:
    model, words = tiny.model("llama"), tiny.tokens()
    with hf.use(model, Attention(mask=window(2)), where=lambda name: ".1." in name) as user:
        logits(model, words)
    first, second = (repr(user.formulas[f"model.layers.{layer}.self_attn"]) for layer in (0, 1))
    assert "i - j" in second
    assert "i - j" not in first


def test_what_ran_is_told() -> None:
    model = tiny.model("gpt_oss")
    with hf.use(model) as user:
        assert user.calls == 0
        logits(model, tiny.tokens())
        assert user.calls == 2
        assert "on regard" in repr(user)
    assert repr(user).startswith('GptOssForCausalLM, restored, 2 calls\n  share(exp(s), sink=exp(table("sink")[h]))')


# -- restoring -------------------------------------------------------------------------------------------------


def registered() -> list[Any]:
    return [
        kind._global_mapping.get("regard")
        for kind in (transformers.AttentionInterface, transformers.AttentionMaskInterface)
    ]


def hooks(model: Any) -> int:
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


def test_all_is_as_before() -> None:
    model = tiny.model("llama")
    model.set_attn_implementation("sdpa")
    before = hooks(model)
    with hf.use(model):
        assert model.config._attn_implementation == "regard"
        assert None not in registered()
    assert (model.config._attn_implementation, hooks(model), registered()) == ("sdpa", before, [None, None])


def test_all_is_as_before_after_an_exception() -> None:
    model = tiny.model("llama")
    with pytest.raises(ZeroDivisionError), hf.use(model):
        1 / 0  # noqa: B018
    assert (model.config._attn_implementation, registered()) == ("eager", [None, None])


def test_plain_call() -> None:
    model = tiny.model("llama")
    own = logits(model, tiny.tokens())
    user = hf.use(model, Attention(mask=window(2)))
    assert not near(logits(model, tiny.tokens()), own)
    user.restore()
    user.restore()
    assert logits(model, tiny.tokens()).equal(own)


def test_every_config_of_a_composite_model() -> None:
    sizes = {"hidden_size": 48, "intermediate_size": 53, "num_hidden_layers": 1, "num_attention_heads": 6}
    config = transformers.CLIPConfig(
        text_config={**sizes, "vocab_size": 97, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
        vision_config={**sizes, "image_size": 28, "patch_size": 4}, projection_dim=11, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.CLIPModel(config).eval()
    inputs = {"input_ids": tiny.tokens(), **tiny.inputs("vit")}
    with torch.no_grad():
        eager = model(**inputs).logits_per_image
        with hf.use(model) as user:
            assert near(model(**inputs).logits_per_image, eager)
    assert {name.partition(".")[0] for name in user.formulas} == {"text_model", "vision_model"}
    configs = (model.config, model.config.text_config, model.config.vision_config)
    assert {config._attn_implementation for config in configs} == {"eager"}


def test_one_use_inside_another() -> None:
    model, words = tiny.model("llama"), tiny.tokens()
    own = logits(model, words)
    with hf.use(model, Attention(mask=window(2))):
        outer = logits(model, words)
        with hf.use(model, Attention(mask=window(5))):
            assert not near(logits(model, words), outer)
        assert near(logits(model, words), outer)
    assert logits(model, words).equal(own)


def test_two_models_at_once_that_share_a_config() -> None:
    first = tiny.model("llama")
    second = transformers.LlamaForCausalLM(first.config).eval()
    second.load_state_dict(first.state_dict())
    words = tiny.tokens()
    one, two = hf.use(first, Attention(mask=window(2))), hf.use(second, Attention(mask=window(5)))
    narrow, wide = logits(first, words), logits(second, words)
    assert not near(narrow, wide)
    one.restore()
    assert near(logits(second, words), wide)
    with pytest.raises(CallError, match="shares its config object; give each model its own"):
        logits(first, words)
    two.restore()
    assert (first.config._attn_implementation, registered()) == ("eager", [None, None])
    assert not near(logits(first, words), narrow)


def test_threads() -> None:
    models = [tiny.model("llama"), tiny.model("llama")]
    formulas = [Attention(mask=window(2)), Attention(mask=window(5))]
    expected, got = [], [[], []]
    for model, formula in zip(models, formulas, strict=True):
        with hf.use(model, formula):
            expected.append(logits(model, tiny.tokens()))

    def run(at: int) -> None:
        for _ in range(5):
            with hf.use(models[at], formulas[at]):
                got[at].append(logits(models[at], tiny.tokens()))

    threads = [threading.Thread(target=run, args=(at,)) for at in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(ran) for ran in got] == [5, 5]
    assert all(near(one, expected[at]) for at in (0, 1) for one in got[at])


def test_a_model_is_not_kept_alive() -> None:
    import gc
    import weakref

    model = tiny.model("bert")
    kept = weakref.ref(model)
    hf.use(model).restore()
    with hf.use(model):
        logits(model, tiny.tokens())
    del model
    gc.collect()
    assert kept() is None


# -- refusals --------------------------------------------------------------------------------------------------


def refused(model: Any, text: str, **options: Any) -> None:
    before = model.config._attn_implementation
    user = hf.use(model)
    with pytest.raises(CallError, match=text):
        logits(model, **options)
    assert model.config._attn_implementation == before
    assert "restored" in repr(user)


def test_no_model_of_transformers() -> None:
    with pytest.raises(KindError, match=r"model: a model of transformers; got Linear; .* take regard.hf.rerouted"):
        hf.use(torch.nn.Linear(2, 3))  # type: ignore[arg-type]


@pytest.mark.parametrize("attention", [3, "softmax(dot)", torch.zeros(2)])
def test_no_formula(attention: Any) -> None:
    with pytest.raises(KindError, match="attention: an Attention, or a function from the model's own to another; got"):
        hf.use(tiny.model("bert"), attention)


def test_a_function_that_gives_no_formula() -> None:
    model = tiny.model("bert")
    with (
        pytest.raises(KindError, match=r"attention: the function returns an Attention; got Expression"),
        hf.use(
            model,
            lambda own: own.score,  # type: ignore[arg-type,return-value]
        ),
    ):
        logits(model, tiny.tokens())


def test_tables_that_do_not_fit() -> None:
    model, slope = tiny.model("bert"), torch.ones(6)
    with pytest.raises(CallError, match="tables: sink are names of the model's own; got them; choose other names"):
        hf.use(model, Attention(), sink=slope)
    with pytest.raises(
        CallError, match="tables: belong to a formula; got slope and no attention=; pass both or neither"
    ):
        hf.use(model, slope=slope)
    with pytest.raises(CallError, match=r"tables: those that the formula reads; .* does not read slope"):
        hf.use(model, Attention(), slope=slope)
    with pytest.raises(CallError, match=r"tables: those that the formula reads; .* also reads slope"):
        hf.use(model, Attention(rg.table("slope")[rg.h] * rg.dot))
    assert registered() == [None, None]


def test_a_model_that_does_not_ask() -> None:
    config = transformers.BloomConfig(vocab_size=97, hidden_size=48, n_layer=1, n_head=6)
    with pytest.raises(
        CallError, match="ask transformers' AttentionInterface; BloomModel has BloomAttention; where it"
    ):
        hf.use(transformers.BloomModel(config))
    assert registered() == [None, None]


def test_a_part_that_goes_its_own_way() -> None:
    """The pooling head of SigLIP is PyTorch's own module."""
    config = transformers.SiglipVisionConfig(
        hidden_size=48, intermediate_size=53, num_hidden_layers=1, num_attention_heads=6, image_size=28, patch_size=4
    )
    model = transformers.SiglipVisionModel(config).eval()
    pixels = tiny.inputs("vit")["pixel_values"]
    refused(
        model,
        r"head.attention \(MultiheadAttention\) of SiglipVisionModel computes its attention itself",
        pixel_values=pixels,
    )
    expected = logits(model, pixel_values=pixels)
    with hf.use(model, where=lambda name: "head" not in name) as user:
        assert near(logits(model, pixel_values=pixels), expected)
    assert user.calls == 1


def test_a_module_that_did_not_ask_this_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("bert")
    layer = model.encoder.layer[1].attention.self
    monkeypatch.setattr(layer, "forward", lambda states, *_, **__: (states, None))
    refused(
        model, r"encoder.layer.1.attention.self \(BertSelfAttention\) of BertModel ran without", input_ids=tiny.tokens()
    )


def test_a_forward_without_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("bert")
    monkeypatch.setattr(model, "forward", lambda input_ids: input_ids)
    refused(model, "no attention module of BertModel ran", input_ids=tiny.tokens())
    model.encoder = None
    with pytest.raises(CallError, match="BertModel has no module that is known as an attention"):
        hf.use(model)


def test_an_attention_that_does_more_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose own eager attention scales once more than the call says."""
    from transformers.models.bert import modeling_bert

    own = modeling_bert.eager_attention_forward
    monkeypatch.setattr(
        modeling_bert,
        "eager_attention_forward",
        lambda module, q, *rest, **options: own(module, q * 1.01, *rest, **options),
    )
    model = tiny.model("bert")
    for _ in range(2):  # once refused, it stays so
        text = r"encoder.layer.0.attention.self \(BertSelfAttention\) does more than it says"
        refused(model, text, input_ids=tiny.tokens())


@pytest.mark.parametrize(("option", "text"), [
    ("cu_seq_lens_q", "cu_seq_lens_q: model.layers.0.self_attn .* packed into one row"),
    ("head_mask", "head_mask: model.layers.0.self_attn .* a factor of each head's weights"),
    ("cache", "cache: model.layers.0.self_attn .* a paged cache"),
    ("indices", "indices: model.layers.0.self_attn .* keys chosen by number"),
])  # fmt: skip
def test_options_that_change_numbers(option: str, text: str) -> None:
    refused(tiny.model("llama"), text, input_ids=tiny.tokens(), **{option: torch.ones(6, dtype=torch.long)})


def test_options_without_effect_pass() -> None:
    model = tiny.model("llama")
    expected = logits(model, tiny.tokens())
    with hf.use(model):
        assert near(logits(model, tiny.tokens(), something_of_a_trainer=torch.ones(3)), expected)


def test_queries_that_stand_nowhere() -> None:
    """Cross-attention reads another text: i and j are not of one axis."""
    model, inputs = tiny.model("bart"), tiny.inputs("bart")
    with (
        pytest.raises(CallError, match=r"7 queries and 13 keys and does not say where the queries stand"),
        hf.use(model, Attention(mask=window(4))),
    ):
        logits(model, **inputs)
    with hf.use(model, Attention(mask=window(4)), where=lambda name: "encoder_attn" not in name) as user:
        logits(model, **inputs)
    assert user.calls == 6


def test_a_copy_of_a_model_under_use() -> None:
    model = tiny.model("bert")
    with hf.use(model):
        copied = copy.deepcopy(model)
        with pytest.raises(
            CallError, match=r"BertSelfAttention belongs to no model under regard.hf.use, but to a copy"
        ):
            logits(copied, tiny.tokens())
