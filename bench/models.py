"""What models on a formula cost beside models that call PyTorch's kernel themselves.

    python bench/models.py                  everything (about 5 minutes)
    python bench/models.py training         a training step of GPT beside a plain PyTorch model of the same shape
    python bench/models.py decoding         a new token with the cache and without, at growing lengths
    python bench/models.py hugging_face     models of transformers under hf.use beside their own sdpa attention

Every figure is a ratio within one run; the parts are kept in bench/results/models.json.
"""

from __future__ import annotations

import os
import statistics
import sys
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")  # some machines announce AMX and die of it

import torch
from machine import in_turns, keep, timed
from torch import nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own name

from regard.inputs import Learned
from regard.nn import GPT, Cache

ROUNDS = 31


def shown(name: str, times: dict[str, float]) -> None:
    """A line of the table: regard beside the other."""
    (ours, first), (peer, second) = times.items()
    print(f"{name:>14}: {ours} {first * 1e3:7.1f} ms, {peer} {second * 1e3:7.1f} ms, {first / second:.3f} ×")


# -- a training step -------------------------------------------------------------------------------------------


class PlainBlock(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)), with one map for q, k and v as is usual."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.into, self.back = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: Any) -> Any:
        batch, rows, dim = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, rows, dim))
        return x + self.back(F.gelu(self.into(self.second(x))))


class Plain(nn.Module):
    """The same model without regard."""

    def __init__(self, tokens: int, length: int, dim: int, depth: int, heads: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, dim), nn.Embedding(length, dim)
        self.blocks, self.norm = nn.Sequential(*(PlainBlock(dim, heads) for _ in range(depth))), nn.LayerNorm(dim)
        self.head = nn.Linear(dim, tokens, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: Any) -> Any:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


SHAPES = {  # tokens, length, dim, depth, heads, batch
    "small": (512, 128, 128, 4, 4, 8),
    "middle": (512, 256, 256, 6, 8, 4),
    "long": (512, 1024, 256, 4, 4, 1),
}


def training() -> dict[str, Any]:
    """A step: forward, loss, backward, optimiser."""
    found = {}
    for name, (tokens, length, dim, depth, heads, batch) in SHAPES.items():
        torch.manual_seed(0)
        ours = GPT(tokens, dim, depth, heads, position=Learned.random(length, dim))
        plain = Plain(tokens, length, dim, depth, heads)
        assert ours.count() == sum(p.numel() for p in plain.parameters())
        ids = torch.randint(0, tokens, (batch, length + 1))
        times = in_turns({"regard": timed(step_of(ours, ids)), "plain": timed(step_of(plain, ids))}, ROUNDS)
        found[name] = {**times, "ratio": times["regard"] / times["plain"], "parameters": ours.count()}
        shown(name, times)
    return found


def step_of(model: Any, ids: Any) -> Any:
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


# -- decoding --------------------------------------------------------------------------------------------------


@torch.no_grad()
def decoding() -> dict[str, Any]:
    """A token at length n from the cache, from the whole text anew, and what it takes to read the cache alone.

    Reading: a sum over the keys and values of every layer; kernel: PyTorch's attention over them, and nothing else. All
    take turns. Growth: how much longer each takes than at the shortest length.
    """
    torch.manual_seed(0)
    model = GPT(512, 256, 6, 8).eval()
    found: dict[str, Any] = {}
    for n in (128, 256, 512, 1024, 2048, 4096, 8192):
        ids = torch.randint(0, 512, (1, n))
        cache = Cache(length=n + 64)
        model(ids, cache=cache)
        runs = {
            "cached": lambda: model(ids[:, :1], cache=cache),  # noqa: B023 - called before the next n
            "kernel": lambda: _attended(cache),  # noqa: B023 - called before the next n
            "read": lambda: _read(cache),  # noqa: B023 - called before the next n
        }
        one = in_turns({name: timed(run) for name, run in runs.items()}, 40)
        if n <= 1024:
            one["whole"] = statistics.median(timed(lambda: model(ids))() for _ in range(5))  # noqa: B023 - called before the next n
            one["times faster"] = one["whole"] / one["cached"]
        found[str(n)] = one
        _show_token(n, one, found["128"])
    return found


def _read(cache: Cache) -> Any:
    return [x[:, :, : cache.most].sum() for kept in cache._kept.values() for x in (kept.keys, kept.values)]


def _attended(cache: Cache) -> Any:
    pairs = [(kept.keys[:, :, : cache.most], kept.values[:, :, : cache.most]) for kept in cache._kept.values()]
    return [F.scaled_dot_product_attention(k[:, :, -1:], k, v) for k, v in pairs]


def _show_token(n: int, one: dict[str, float], first: dict[str, float]) -> None:
    grown = " ".join(f"{name} +{1e3 * (one[name] - first[name]):.2f} ms" for name in ("cached", "kernel", "read"))
    faster = f", {one['times faster']:.1f} × faster than anew" if "whole" in one else ""
    print(f"{n:>6} tokens: {one['cached'] * 1e3:6.2f} ms a token, growth: {grown}{faster}")


# -- transformers ----------------------------------------------------------------------------------------------


@torch.no_grad()
def hugging_face() -> dict[str, Any]:
    """A forward pass over 512 tokens, and one over a padded batch."""
    from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

    import regard.hf

    torch.manual_seed(0)
    sizes = {"hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 6}
    llama = LlamaConfig(**sizes, num_attention_heads=12, num_key_value_heads=4, vocab_size=1024)
    bert = BertConfig(**sizes, num_attention_heads=12, vocab_size=1024)
    models = {"llama": LlamaForCausalLM(llama).eval(), "bert": BertModel(bert).eval()}
    ids = torch.randint(0, 1024, (2, 512))
    padded = torch.ones_like(ids)
    padded[1, :100] = 0
    found = {}
    for name, model in models.items():
        model.set_attn_implementation("sdpa")
        for kind, mask in (("whole", None), ("padded", padded)):

            def run(model: Any = model, mask: Any = mask) -> None:
                model(ids, attention_mask=mask)

            def used(model: Any = model, run: Any = run) -> float:
                with regard.hf.use(model):
                    return timed(run)()

            times = in_turns({"regard": used, "sdpa": timed(run)}, ROUNDS)
            found[f"{name} {kind}"] = {**times, "ratio": times["regard"] / times["sdpa"]}
            shown(f"{name} {kind}", times)
    return found


PARTS = {"training": training, "decoding": decoding, "hugging_face": hugging_face}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        print(part)
        keep("models", part, PARTS[part](), "torch", "transformers", "regard")
