"""What `use` changes and gives back: other formulas, where queries stand, restoring, refusals."""

from __future__ import annotations

import copy
import math
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


# -- the length of the text ------------------------------------------------------------------------------------

BY_LENGTH = Attention(rg.dot / rg.sqrt(rg.d) - rg.log(rg.n), rg.sigmoid)


def test_n_is_the_length_of_a_text_that_is_all_there() -> None:
    """With a mask of all ones and without a cache too; every step of a text alike where it is run as a whole."""
    model, words = tiny.model("llama"), tiny.tokens()
    with hf.use(model, BY_LENGTH):
        got = logits(model, words)
        assert near(logits(model, words, attention_mask=torch.ones_like(words), use_cache=False), got)
        text = model.generate(words, max_new_tokens=3, do_sample=False, use_cache=False)
    with hf.use(model, Attention(rg.dot / rg.sqrt(rg.d) - math.log(13), rg.sigmoid)):
        assert near(logits(model, words), got)
    assert text.shape == (2, 16)


def with_cache(kind: str) -> Any:
    """A second pass, or the first on a static cache, or on a text that is padded."""

    def run(model: Any, words: torch.Tensor) -> None:
        if kind in ("left", "right"):
            model(words, attention_mask=tiny.padded(kind))
        elif kind == "static":
            model(words, past_key_values=transformers.StaticCache(config=model.config, max_cache_len=17))
        else:
            begun = model(words[:, :7], use_cache=True)
            model(words[:, 7:8] if kind == "step" else words[:, 7:], past_key_values=begun.past_key_values)

    return run


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        ("left", "a mask"),
        ("right", "a mask"),
        ("static", "17 keys for 13 queries"),
        ("step", "8 keys for 1 queries"),
        ("rest", "13 keys for 6 queries"),
    ],
)
@pytest.mark.parametrize("attention", [BY_LENGTH, lambda own: Attention(own.score / rg.n, own.weight, own.mask)])
def test_n_is_refused_where_it_is_another_number(kind: str, held: str, attention: Any) -> None:
    model = tiny.model("llama")
    text = rf"n: the length of the text, .* model.layers.0.self_attn got {held}, .* reads n; write i \+ 1 .*use_cache="
    with torch.no_grad(), pytest.raises(CallError, match=text), hf.use(model, attention):
        with_cache(kind)(model, tiny.tokens())


def test_the_models_own_formula_beside_n() -> None:
    """Modules that where= leaves as they are may have a cache."""
    model, inputs = tiny.model("bart"), tiny.inputs("bart")
    with hf.use(model, Attention(rg.dot / rg.n), where=lambda name: "encoder.layers" in name) as user:
        logits(model, **inputs)
    assert sum(formula.uses("n") for formula in user.formulas.values()) == 2


# -- gradient checkpointing ------------------------------------------------------------------------------------


def learning(reentrant: bool) -> Any:
    model = tiny.model("llama").train()
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    return model


def gradients(model: Any) -> list[torch.Tensor]:
    return [weight.grad for weight in model.parameters() if weight.grad is not None]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_inside_of_the_block(reentrant: bool) -> None:
    attention, words = Attention(rg.dot / 3, rg.sigmoid), tiny.tokens()
    plain, model = tiny.model("llama").train(), learning(reentrant)
    function = model.model.layers[0]._gradient_checkpointing_func
    for one in (plain, model):
        one.enable_input_require_grads()
        with hf.use(one, attention):
            one(words, labels=words, use_cache=False).loss.backward()
    assert all(near(got, expected) for got, expected in zip(gradients(model), gradients(plain), strict=True))
    assert model.model.layers[0]._gradient_checkpointing_func is function


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("when", ["before", "within"])
def test_checkpoints_after_the_block(reentrant: bool, when: str) -> None:
    """Neither gradients of two formulas nor an error of the checkpoint's own."""
    model, words = tiny.model("llama").train(), tiny.tokens()
    if when == "before":
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    model.enable_input_require_grads()
    with hf.use(model, Attention(rg.dot / 3, rg.sigmoid)):
        if when == "within":
            model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        loss = model(words, labels=words, use_cache=False).loss
    with pytest.raises(CallError, match=r"use: the backward pass runs layers again, .* inside the with block"):
        loss.backward()
    assert all(gradient.isfinite().all() for gradient in gradients(model))
    model(words, labels=words, use_cache=False).loss.backward()  # the model itself is as before


def test_checkpoints_of_a_use_inside_another() -> None:
    model, words = learning(False), tiny.tokens()
    with hf.use(model, Attention(rg.dot / 3)):
        with hf.use(model, Attention(rg.dot / 5)):
            loss = model(words, labels=words, use_cache=False).loss
        with pytest.raises(CallError, match="use: the backward pass runs layers again"):
            loss.backward()
        model(words, labels=words, use_cache=False).loss.backward()


def test_checkpoints_of_a_use_that_ends_before_the_one_inside() -> None:
    """Each takes out its own of the functions that stand around the model's, and never stands there twice."""
    model, words = learning(False), tiny.tokens()
    layer = model.model.layers[0]
    own = layer._gradient_checkpointing_func
    outer, inner = hf.use(model, Attention(rg.dot / 3)), hf.use(model, Attention(rg.dot / 5))
    for _ in range(3):
        model(words, labels=words, use_cache=False).loss.backward()
    assert layer._gradient_checkpointing_func.before.before is own
    outer.restore()
    model(words, labels=words, use_cache=False).loss.backward()
    assert layer._gradient_checkpointing_func.before is own
    inner.restore()
    assert layer._gradient_checkpointing_func is own


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


@pytest.mark.parametrize(
    ("attention", "got"),
    [
        (rg.softmax, r"Weight; for example Attention\(weight=softmax\)"),
        (rg.sigmoid, r"Function; for example Attention\(weight=sigmoid\)"),
        (rg.dot, "PairExpression"),
        (rg.causal, "Mask"),
        (Attention, "the class Attention"),
        (torch.nn.Linear(2, 3), "Linear"),
        (lambda: Attention(), r"<lambda>\(\)"),
        (lambda own, mask: own, r"<lambda>\(own, mask\)"),
    ],
)
def test_what_can_be_called_and_is_no_function_of_a_formula(attention: Any, got: str) -> None:
    text = f"attention: an Attention, or a function from the model's own to another; got {got}"
    with pytest.raises(KindError, match=text):
        hf.use(tiny.model("bert"), attention)
    with pytest.raises(KindError, match=text):
        hf.rerouted(attention)
    assert registered() == [None, None]


def test_a_function_that_fails_says_what_it_was_given() -> None:
    model = tiny.model("bert")
    with pytest.raises(AttributeError, match="scroe") as raised, hf.use(model, lambda own: own.scroe):  # type: ignore[attr-defined]
        logits(model, tiny.tokens())
    assert raised.value.__notes__ == [
        "attention: a function from the model's own formula to another; it was given softmax(dot / sqrt(d))"
    ]


def test_where_that_chooses_nothing() -> None:
    model = tiny.model("bert")
    with pytest.raises(CallError, match=r"where: true for one .* of BertModel .* encoder.layer.0.attention.self, enc"):
        hf.use(model, Attention(mask=window(4)), where=lambda name: "layers.1" in name)
    with pytest.raises(KindError, match=r"where: a function of the names of modules, .* got 'layer.1'; for example"):
        hf.use(model, Attention(mask=window(4)), where="layer.1")  # type: ignore[arg-type]
    assert (hooks(model), registered()) == (0, [None, None])


def test_a_use_that_is_over() -> None:
    model = tiny.model("bert")
    user = hf.use(model)
    with pytest.raises(CallError, match="use: one with block for each; BertModel was entered before"), user, user:
        pass
    with pytest.raises(CallError, match=r"use: one with .* BertModel was restored before, .* call regard.hf.use"), user:
        pass


@pytest.mark.parametrize("attention", [None, Attention(), lambda own: own])
def test_a_keyword_that_is_misspelt(attention: Any) -> None:
    with pytest.raises(CallError, match=r"tables: .*wher.*; did you mean where=\?"):
        hf.use(tiny.model("bert"), attention, wher=lambda name: True)


def test_a_table_that_is_misspelt() -> None:
    sloped = Attention(rg.table("slope")[rg.h] * rg.dot)
    with pytest.raises(CallError, match=r"does not read slop; did you mean slope=\?"):
        hf.use(tiny.model("bert"), sloped, slop=torch.ones(6))


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
