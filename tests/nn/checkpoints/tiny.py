"""Tiny models of transformers, none of whose numbers is what it was made with."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from regard.inputs.positions import Rotary

V, ROWS, LONGEST = 31, 17, 23  # sizes are different primes where they may be
IDS = torch.randint(V, (3, ROWS), generator=torch.Generator().manual_seed(0))
LENGTHS = torch.tensor([17, 11, 1])
INSIDE = torch.arange(ROWS) < LENGTHS[:, None]

TOKENS = {"vocab_size": V, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
GPT2 = TOKENS | {"n_embd": 15, "n_layer": 2, "n_head": 3, "n_inner": 19, "n_positions": LONGEST}
BERT = TOKENS | {
    "hidden_size": 15, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 19,
    "max_position_embeddings": LONGEST, "type_vocab_size": 3,
}  # fmt: skip
LLAMA = TOKENS | {
    "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 8,
    "intermediate_size": 19, "max_position_embeddings": LONGEST,
}  # fmt: skip


def made(kind: str, sizes: dict[str, Any], **options: Any) -> Any:
    """A model by the name of its class, in float64."""
    model_class = getattr(transformers, kind)
    with silent():
        config = model_class.config_class(**{**sizes, **options, "attn_implementation": "eager"})
        model = model_class(config)
    for seed, parameter in enumerate(model.parameters()):
        nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(seed))
    return model.double().eval()


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """transformers without its advice."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity(logging.ERROR)
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)


# -- in float64 all the way: transformers has cosines, RMS norms and eager weights in float32, in any model ---------


class ExactRotary(nn.Module):
    """Cosines and sines of the angles."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.rotary, self.width = Rotary.from_config(config.to_dict()), config.head_dim

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        ω = torch.tensor(self.rotary.frequencies(self.width), dtype=torch.float64)
        angles = (position_ids[..., None] * ω).repeat(1, 1, 2)
        gain = self.rotary.scaling.gain
        return angles.cos() * gain, angles.sin() * gain


class ExactNorm(nn.Module):
    """g ⊙ x / √(mean(x²) + ε)."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight, self.epsilon = norm.weight, norm.variance_epsilon

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x * (x.square().mean(-1, keepdim=True) + self.epsilon).rsqrt()


def exact(model: Any) -> Any:
    """The same model with rotary positions, norms and attention in float64."""
    inner = model.get_decoder()
    inner.rotary_emb, inner.norm = ExactRotary(model.config), ExactNorm(inner.norm)
    for layer in inner.layers:
        layer.input_layernorm = ExactNorm(layer.input_layernorm)
        layer.post_attention_layernorm = ExactNorm(layer.post_attention_layernorm)
    model.set_attn_implementation("sdpa")
    return model
