"""Models on a GPU: right first, then a training step and decoding beside a plain PyTorch model.

    python bench/models_gpu.py         prints tables and keeps bench/results/models.json, parts "cuda …"

Right: one pass, and a prompt in chunks with single steps after it, in float32 on the GPU, against float64 on the CPU,
for formulas, positions and prompts of unequal length. Time: GPT beside the model of bench/models.py, in bfloat16.
"""

from __future__ import annotations

import copy
import statistics
from typing import Any

import torch
from machine import in_turns, keep
from models import Plain, shown, step_of

import regard as rg
from regard import d, dot, share, sigmoid, sqdist, sqrt, tanh, window
from regard.inputs import ALiBi, Learned, Offsets, Position, Relative, Rotary
from regard.nn import GPT, Cache

FORMULAS = {
    "softmax": rg.Attention(),
    "window": rg.Attention(mask=window(5)),
    "soft-cap": rg.Attention(score=30 * tanh(dot / sqrt(d) / 30)),
    "Euclid": rg.Attention(score=-sqdist / 2),
    "sigmoid": rg.Attention(weight=sigmoid),
    "sink": rg.Attention(weight=share(rg.exp, sink=1)),
}
POSITIONS: dict[str, Position] = {
    "rotary": Rotary(), "learned": Learned.random(64, 32), "ALiBi": ALiBi(), "relative": Relative.random(4, Offsets(9)),
}  # fmt: skip


@torch.no_grad()
def check() -> int:
    """How many combinations were right."""
    right = 0
    ids, lengths = torch.randint(0, 50, (3, 17)), torch.tensor([11, 7, 2])
    for formula in FORMULAS.values():
        for position in POSITIONS.values():
            torch.manual_seed(0)
            model = GPT(50, 32, 2, 4, 2, formula, position).eval()
            for parameter in model.parameters():
                parameter.mul_(8)
            exact = copy.deepcopy(model).double()(ids)
            plain = float((model(ids) - exact).abs().max())  # what float32 loses on the CPU
            model.cuda()
            tolerance = 3 * plain + 1e-6 * float(exact.abs().max())
            there = ids.cuda()
            whole = model(there).cpu()
            cache = Cache()
            parts = [there[:, :9], there[:, 9:10], there[:, 10:11], there[:, 11:]]
            chunks = torch.cat([model(part, cache=cache) for part in parts], 1).cpu()
            assert (whole - exact).abs().max() < tolerance, (formula, position)
            assert (chunks - exact).abs().max() < tolerance, (formula, position)
            cache = Cache()
            model(there[:, :11], lengths=lengths.cuda(), cache=cache)
            for step in range(3):
                at = lengths + step
                logits = model(there.gather(1, at[:, None].cuda()), cache=cache).cpu()
                wanted = exact[torch.arange(3), at]
                assert (logits[:, 0] - wanted).abs().max() < tolerance, (formula, position, step)
            right += 1
    return right


def seconds(function: Any) -> Any:
    """A run that takes the time of `function` on the GPU."""

    def run() -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        function()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3

    return run


def training() -> dict[str, Any]:
    """A step in bfloat16: GPT, and the plain model."""
    found = {}
    for name, (length, dim, depth, heads, batch) in {
        "small": (1024, 768, 12, 12, 8),
        "large": (2048, 2048, 8, 16, 4),
    }.items():
        ours = GPT(50304, dim, depth, heads, position=Learned.random(length, dim)).cuda().bfloat16()
        plain = Plain(50304, length, dim, depth, heads).cuda().bfloat16()
        ids = torch.randint(0, 50304, (batch, length + 1)).cuda()
        times = in_turns({"regard": seconds(step_of(ours, ids)), "plain": seconds(step_of(plain, ids))}, 15)
        found[name] = {**times, "ratio": times["regard"] / times["plain"], "parameters": ours.count()}
        shown(name, times)
        del ours, plain
    return found


@torch.no_grad()
def decoding() -> dict[str, Any]:
    """A token at length n from the cache, and from the whole text anew."""
    model = GPT(50304, 768, 12, 12).cuda().bfloat16().eval()
    found = {}
    for n in (128, 1024, 8192, 32768):
        ids = torch.randint(0, 50304, (1, n)).cuda()
        cache = Cache(length=n + 64)
        model(ids, cache=cache)
        steps = [seconds(lambda: model(ids[:, :1], cache=cache))() for _ in range(32)]  # noqa: B023 - called before the next n
        whole = [seconds(lambda: model(ids))() for _ in range(3)] if n <= 8192 else []  # noqa: B023 - called before the next n
        found[str(n)] = {
            "cached": statistics.median(steps),
            "whole": statistics.median(whole) if whole else None,
        }
        print(n, {name: value and round(value * 1e3, 2) for name, value in found[str(n)].items()}, "ms")
    return found


@torch.no_grad()
def hugging_face() -> dict[str, Any]:
    """Models of transformers on regard: the error beside that of eager attention, the time beside sdpa's."""
    from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

    import regard.hf

    sizes = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8, "num_attention_heads": 16}
    models = {
        "llama": LlamaForCausalLM(LlamaConfig(**sizes, num_key_value_heads=4, vocab_size=1024)),
        "bert": BertModel(BertConfig(**sizes, vocab_size=1024)),
    }
    ids = torch.randint(0, 1024, (4, 512)).cuda()
    padded = torch.ones_like(ids)
    padded[1, :100] = padded[2, :7] = 0
    found = {}
    for name, model in models.items():
        model.cuda().bfloat16().eval()
        for kind, mask in (("whole", None), ("padded", padded)):

            def run(model: Any = model, mask: Any = mask) -> Any:
                return model(ids, attention_mask=mask)[0]

            real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
            model.set_attn_implementation("eager")
            eager = run()[real]
            exact = copy.deepcopy(model).float()(ids, attention_mask=mask)[0][real]
            model.set_attn_implementation("sdpa")
            with regard.hf.use(model):
                ours = run()[real]

            def used(model: Any = model, run: Any = run) -> float:
                with regard.hf.use(model):
                    run()
                    return seconds(run)()

            times = in_turns({"regard": used, "sdpa": seconds(run)}, 15)
            errors = [float((y.float() - exact).abs().max()) for y in (ours, eager)]
            found[f"{name} {kind}"] = {**times, "ratio": times["regard"] / times["sdpa"], "errors": errors}
            shown(f"{name} {kind}", times)
            print("   error", errors[0], "eager's", errors[1])
    return found


if __name__ == "__main__":
    print(check(), "combinations of formula and position are right")
    for part, measure in {"training": training, "decoding": decoding, "hugging_face": hugging_face}.items():
        print(part)
        keep("models", f"cuda {part}", measure(), "torch", "transformers")
