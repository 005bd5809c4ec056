"""Scalings for longer texts against Hugging Face's own, and configs that say which."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, GPTNeoXConfig, LlamaConfig, Phi3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

import regard as rg
from regard.inputs.positions import (
    NTK,
    DynamicNTK,
    Linear,
    Llama3,
    LongRoPE,
    Position,
    Rotary,
    Scaling,
    Stretched,
    YaRN,
)

SHORT, LONG = [1.0 + m / 16 for m in range(8)], [1.0 + m for m in range(8)]
ORIGINAL = {"original_max_position_embeddings": 64}
SECTIONS: dict[str, tuple[dict[str, Any], Scaling]] = {
    "linear": ({"rope_type": "linear", "factor": 4.0}, Linear(4.0)),
    "dynamic": ({"rope_type": "dynamic", "factor": 2.0}, DynamicNTK(2.0, 256)),
    "llama3": (
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **ORIGINAL},
        Llama3(8.0, 1.0, 4.0, 64),
    ),
    "yarn": ({"rope_type": "yarn", "factor": 4.0, **ORIGINAL}, YaRN(4.0, 64)),
    "yarn with betas": (
        {"rope_type": "yarn", "factor": 4.0, "beta_fast": 4.0, "beta_slow": 2.0, "truncate": False, **ORIGINAL},
        YaRN(4.0, 64, 4.0, 2.0, truncate=False),
    ),
    "yarn with one beta": (
        {"rope_type": "yarn", "factor": 4.0, "beta_fast": 2.0, "beta_slow": 2.0, "truncate": False, **ORIGINAL},
        YaRN(4.0, 64, 2.0, 2.0, truncate=False),
    ),
    "yarn of long texts": (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2**20},
        YaRN(4.0, 2**20),
    ),
    "yarn with a gain": (
        {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5, **ORIGINAL},
        YaRN(4.0, 64, attention_factor=1.5),
    ),
    "yarn with mscale": (
        {"rope_type": "yarn", "factor": 40.0, "mscale": 0.7, "mscale_all_dim": 1.0, **ORIGINAL},
        YaRN(40.0, 64, attention_factor=(1 + 0.07 * math.log(40)) / (1 + 0.1 * math.log(40))),
    ),
    "longrope": (
        {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG, "factor": 4.0, **ORIGINAL},
        LongRoPE(tuple(SHORT), tuple(LONG), 4.0, 64),
    ),
    "longrope with a gain": (
        {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG, "attention_factor": 1.25, **ORIGINAL},
        LongRoPE(tuple(SHORT), tuple(LONG), 4.0, 64, 1.25),
    ),
}


def llama(**options: Any) -> LlamaConfig:
    sizes = {"hidden_size": 48, "num_attention_heads": 3, "max_position_embeddings": 256}
    return LlamaConfig(**{**sizes, **options})


@pytest.mark.parametrize("base", [1e4, 5e5])
@pytest.mark.parametrize("name", SECTIONS)
def test_frequencies_are_those_of_hugging_face(name: str, base: float) -> None:
    """They compute base ** exponent in float32, which costs about log(base) units in the last place."""
    section, scaling = SECTIONS[name]
    config = llama(rope_parameters={**section, "rope_theta": base})
    rotary = Rotary.from_config(json.loads(config.to_json_string()))
    assert rotary == Rotary(base, scaling=scaling)
    for length in (1, 64, 65, 256, 257, 1000):
        theirs, gain = ROPE_INIT_FUNCTIONS[section["rope_type"]](config, seq_len=length)
        settled = rotary.settled(length)
        np.testing.assert_allclose(settled.frequencies(16), theirs, rtol=(4 + math.log(base)) * 2.0**-23)
        assert settled.scaling.gain == pytest.approx(gain, rel=1e-15)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_model_turns_alike_at_every_length(name: str) -> None:
    section, _ = SECTIONS[name]
    config = llama(rope_parameters={**section, "rope_theta": 1e4})
    rotary, theirs = Rotary.from_config(config.to_dict()), LlamaRotaryEmbedding(config)
    x = torch.zeros(1, 1, 7, 16)
    x[..., :8] = 1.0
    for at in (0, 60, 300):
        cos, sin = theirs(x, torch.arange(at, at + 7)[None])
        turned = rotary.turn(x, at=at)[0, 0]
        tolerance = (8 + 4 * (at + 7) * math.log(1e4)) * 2.0**-23
        torch.testing.assert_close(turned[:, :8], cos[0, :, :8], rtol=0, atol=tolerance)
        torch.testing.assert_close(turned[:, 8:], sin[0, :, 8:], rtol=0, atol=tolerance)


# -- laws ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", [Linear(1), NTK(1), YaRN(1, 64), Llama3(1)], ids=repr)
def test_a_factor_of_one_changes_nothing(scaling: Scaling) -> None:
    settled = scaling.settled(1000)
    np.testing.assert_allclose(settled.frequencies(1e4, 16), Scaling().frequencies(1e4, 16), rtol=1e-15)
    assert settled.gain == 1


def test_ntk_keeps_the_fastest_wave_and_stretches_the_slowest() -> None:
    plain, scaled = (scaling.frequencies(1e4, 16) for scaling in (Scaling(), NTK(4)))
    assert scaled[0] == plain[0]
    assert scaled[-1] == pytest.approx(plain[-1] / 4)
    ratios = np.divide(plain, scaled)
    assert np.all(np.diff(ratios) > 0)


@pytest.mark.parametrize("scaling", [YaRN(4, 4096), Llama3(4, original=4096)], ids=repr)
def test_mixing_keeps_fast_waves_and_squeezes_slow_ones(scaling: Scaling) -> None:
    ratios = np.divide(Scaling().frequencies(1e4, 64), scaling.frequencies(1e4, 64))
    waves = 2 * np.pi / np.asarray(Scaling().frequencies(1e4, 64))
    assert np.all(np.diff(ratios) >= 0)
    np.testing.assert_allclose(ratios[waves < 4096 / 64], 1)
    np.testing.assert_allclose(ratios[waves > 4096 * 2], 4)


def test_dynamic_ntk_grows_with_the_text() -> None:
    scaling = DynamicNTK(2, 100)
    assert scaling.settled(100) == Scaling()
    assert scaling.settled(200) == NTK(3.0)
    assert scaling.frequencies(1e4, 8) == Scaling().frequencies(1e4, 8)


def test_longrope_settles_by_length() -> None:
    scaling = LongRoPE([1.0, 2.0], [3.0, 4.0], 4.0, 16, 1.5)
    assert scaling.settled(16) == Stretched((1.0, 2.0), 1.5)
    assert scaling.settled(17) == Stretched((3.0, 4.0), 1.5)


# -- configs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "rotary"),
    [
        ({}, Rotary()),
        ({"rope_theta": 5e5, "rope_scaling": None}, Rotary(5e5)),
        ({"rope_theta": 1, "rope_parameters": {"rope_theta": 2.0, "rope_type": "default"}}, Rotary(2.0)),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, Rotary(scaling=Linear(2.0))),
        ({"rotary_emb_base": 100, "rotary_pct": 0.25, "hidden_size": 96, "num_attention_heads": 3}, Rotary(100.0, 8)),
        ({"partial_rotary_factor": 0.5, "head_dim": 20, "hidden_size": 7}, Rotary(width=10)),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}, "head_dim": 8}, Rotary(width=4)),
        ({"partial_rotary_factor": 1.0}, Rotary()),
        ({"rotary_dim": 64}, Rotary(width=64)),
        ({"rotary_dim": None}, Rotary()),
        (
            {"max_position_embeddings": 256, "rope_scaling": {"type": "yarn", "factor": 2.0}},
            Rotary(scaling=YaRN(2.0, 256)),
        ),
        (
            {"max_position_embeddings": 256, "rope_scaling": {"type": "yarn", **ORIGINAL}},
            Rotary(scaling=YaRN(4.0, 64)),
        ),
        (
            {"max_position_embeddings": 256, "original_max_position_embeddings": 32, "rope_scaling": {"type": "yarn"}},
            Rotary(scaling=YaRN(8.0, 32)),
        ),
    ],
    ids=str,
)
def test_older_and_newer_configs(config: dict[str, Any], rotary: Rotary) -> None:
    found = Rotary.from_config(config)
    assert found == rotary
    assert isinstance(found.base, float)
    assert Rotary.from_config(config, pairs="interleaved") == rotary.other


def test_gpt_neox_turns_a_part() -> None:
    config = GPTNeoXConfig(hidden_size=48, num_attention_heads=3)
    assert Rotary.from_config(config.to_dict()).turned(16) == 4


def test_phi3_says_the_original_length_beside_the_section() -> None:
    config = Phi3Config(
        hidden_size=48, num_attention_heads=3, max_position_embeddings=256, original_max_position_embeddings=64,
        rope_scaling={"type": "longrope", "short_factor": SHORT, "long_factor": LONG},
    )  # fmt: skip
    scaling = Rotary.from_config(config.to_dict()).scaling
    assert scaling == LongRoPE(tuple(SHORT), tuple(LONG), 4.0, 64)


def test_a_config_that_was_saved_and_read(tmp_path: Any) -> None:
    llama(rope_parameters={**SECTIONS["llama3"][0], "rope_theta": 5e5}).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert Rotary.from_config(saved) == Rotary.from_config(AutoConfig.from_pretrained(tmp_path).to_dict())
    assert Rotary.from_config(saved) == Rotary(5e5, scaling=SECTIONS["llama3"][1])


@pytest.mark.parametrize("scaling", [{"rope_type": "linear", "factor": 2.0}, {}, None], ids=str)
@pytest.mark.parametrize("beside", [{}, {"rope_theta": 9.0}], ids=str)
def test_a_config_with_both_sections_is_read_as_transformers_reads_it(scaling: Any, beside: dict[str, float]) -> None:
    """The older section stands in place of the newer one, its base as well."""
    told = {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}, "rope_scaling": scaling, **beside}
    theirs = LlamaConfig.from_dict(json.loads(json.dumps(told))).to_dict()
    assert Rotary.from_config(told) == Rotary.from_config(theirs)
    assert (Rotary.from_config(told).scaling == Linear(2.0)) is bool(scaling)


KNOWN = "rope_type: one of default, linear, dynamic, yarn, llama3, longrope; got "
REFUSED = [
    ("llama", rg.KindError, "config: a dict, as in json.load or config.to_dict(); got str"),
    ({"rope_scaling": "linear"}, rg.KindError, "rope_scaling: a dict; got 'linear'"),
    ({"rope_scaling": {"type": "su"}}, rg.CallError, KNOWN + "'su'; build Rotary(scaling=…) with your own Scaling"),
    ({"rope_scaling": {"type": "default", "mrope_section": [1, 2]}}, rg.CallError, KNOWN + "mrope_section"),
    (
        {"rope_parameters": {"full": {"rope_type": "default"}, "sliding": {"rope_type": "default"}}},
        rg.CallError,
        'full, sliding; pass {**config, "rope_parameters": config["rope_parameters"]["full"]} for the first of them',
    ),
    (
        {"rope_parameters": {"rope_type": "linear"}},
        rg.CallError,
        "factor: the config must say it for this rope_type; got rope_type",
    ),
    (
        {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}},
        rg.CallError,
        "max_position_embeddings: the config must say it for this rope_type; got rope_parameters",
    ),
    ({"rotary_pct": 0.5}, rg.CallError, "hidden_size: the config must say it for this rope_type; got rotary_pct"),
]


@pytest.mark.parametrize(("config", "error", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_a_config_is_refused_with_the_reason(config: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        Rotary.from_config(config)


def test_a_scaling_of_ones_own() -> None:
    class Slower(Scaling):
        def frequencies(self, base: float, width: int) -> list[float]:
            return [ω / 2 for ω in super().frequencies(base, width)]

    x = np.ones((5, 4))
    rotary: Position = Rotary(scaling=Slower())
    np.testing.assert_array_equal(rotary.turn(x), Rotary(scaling=Linear(2)).turn(x))
