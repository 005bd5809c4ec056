"""How fast the lens is: tiles of long maps, from q and k alone, on NumPy; capture; the page.

    python bench/lens.py            everything (some minutes)
    python bench/lens.py tiles      a tile at the finest level, the first and the next; overviews, first and exact
    python bench/lens.py capture    a forward pass of 2 048 tokens under `capture`, beside the same without
    python bench/lens.py page       bytes and time until a sentence can be pointed at, in Chromium

Every time is kept with that of the bare product q kᵀ of the same cells beside it; the parts are in
bench/results/lens.json. Nothing else should run meanwhile.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from machine import in_turns, keep, timed

import regard as rg
from regard.viewer.record import Captured
from regard.viewer.weighing.tiles import SIDE, Pyramid

WIDTH = 64
LONG, MIDDLE, TOKENS = 100_000, 32_768, 2048
SENT = ("responseBodySize", "responseHeadersSize")
GOALS = {"tile_ms": 30, "overview_s": 10, "first_picture_s": 2}
FORMULAS = {
    "softmax": rg.Attention(),
    "causal": rg.Attention(mask=rg.causal),
    "soft-capped": rg.parse("softmax(30 * tanh(dot / (30 * sqrt(d))))"),
    "sigmoid": rg.parse("each(sigmoid(s))(dot / sqrt(d) - log(n))"),
}


def captured(n: int, formula: rg.Attention, dtype: Any = np.float16) -> Captured:
    """One head of a long text that nobody wrote."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((1, 1, n, WIDTH), np.float32).astype(dtype) for _ in range(2))
    return Captured("layer", formula, q, k, start=0)


def least(run: Callable[[], float], times: int = 5) -> float:
    """The shortest of several runs."""
    return min(run() for _ in range(times))


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def bare(rows: int, n: int) -> float:
    """The seconds of the product alone, in float32."""
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((rows, WIDTH), np.float32), rng.standard_normal((n, WIDTH), np.float32)
    step = max(1, 2**18 // rows)
    return least(lambda: seconds(lambda: [q @ k[first : first + step].T for first in range(0, n, step)]))


def tiles() -> None:
    """Tiles at the finest level, and overviews."""
    found = {"goals": GOALS, "tile": _finest(), "first picture": _first(), "overview": _overviews()}
    keep("lens", "tiles", found, "regard", "numpy")


def _finest() -> dict[str, dict[str, float]]:
    """Milliseconds of one tile of a long map: when nothing is known, and when its rows' totals are."""
    rows: dict[str, dict[str, float]] = {}
    product = bare(SIDE, LONG)
    for name, formula in FORMULAS.items():
        for dtype in ("float16", "float32"):
            call = captured(LONG, formula, dtype)

            def first(call: Captured = call) -> float:
                call.known.clear()
                return seconds(lambda: Pyramid(call, 0, 0).tile(0, 300, 150))

            pyramid = Pyramid(call, 0, 0)
            row = {"first_ms": 1e3 * least(first), "product_ms": 1e3 * product}
            row["next_ms"] = 1e3 * least(lambda pyramid=pyramid: seconds(lambda: pyramid.tile(0, 300, 151)), 9)
            rows[f"{name}, {dtype}"] = row
            print(f"tile of {LONG}², {name}, {dtype}: {row}", flush=True)
    return rows


def _first() -> dict[str, float]:
    """Seconds until the coarsest level of a long map shows something."""
    found = {}
    for name, formula in FORMULAS.items():
        pyramid = Pyramid(captured(LONG, formula), 0, 0)
        found[name] = seconds(lambda pyramid=pyramid: pyramid.tile(pyramid.levels - 1, 0, 0))
        pyramid.coarse.close()
        print(f"first picture of {LONG}², {name}: {found[name]:.2f} s", flush=True)
    return found


def _overviews() -> dict[str, dict[str, float]]:
    """Seconds until a whole map is exact."""
    product = bare(SIDE, MIDDLE) * MIDDLE / SIDE
    rows = {}
    for name, formula in FORMULAS.items():
        pyramid = Pyramid(captured(MIDDLE, formula), 0, 0)
        rows[name] = {"exact_s": seconds(pyramid.coarse.run), "product_s": product}
        print(f"overview of {MIDDLE}², {name}: {rows[name]}", flush=True)
    return rows


def capture() -> None:
    """A forward pass under `capture` / the same without, for models of the shapes that people run."""
    import torch

    torch.manual_seed(0)
    rows = {}
    for name, (model, inputs) in _models().items():
        runs = {"bare": timed(partial(model, **inputs)), "captured": timed(partial(_captured, model, inputs))}
        with torch.no_grad():
            took = in_turns(runs, 5)
        kept = _captured(model, inputs).bytes
        rows[name] = {**took, "ratio": took["captured"] / took["bare"], "bytes_kept": kept}
        print(f"capture at {TOKENS} tokens, {name}: {rows[name]}", flush=True)
    keep("lens", "capture", {"goal_ratio": 1.2, "tokens": TOKENS, "rows": rows}, "regard", "torch", "transformers")


def _captured(model: Any, inputs: Any) -> Any:
    with rg.capture(model) as seen:
        model(**inputs)
    return seen


def _models() -> dict[str, Any]:
    """Llama as SmolLM2 is, but of six layers; BERT as MiniLM is; a GPT of regard."""
    import torch
    from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

    from regard.nn import GPT

    ids = torch.randint(0, 1000, (1, TOKENS))
    sizes = {"vocab_size": 1000, "num_hidden_layers": 6, "max_position_embeddings": TOKENS}
    llama = LlamaConfig(hidden_size=576, intermediate_size=1536, num_attention_heads=9, num_key_value_heads=3, **sizes)
    bert = BertConfig(hidden_size=384, intermediate_size=1536, num_attention_heads=12, **sizes)
    return {
        "Llama": (LlamaModel(llama).eval(), {"input_ids": ids, "use_cache": False}),
        "BERT": (BertModel(bert).eval(), {"input_ids": ids}),
        "GPT of regard": (GPT(tokens=1000, dim=384, depth=6, heads=6).eval(), {"ids": ids}),
    }


def page() -> None:
    """The gallery's first sentence in Chromium: what comes over the wire, and when its heads are drawn."""
    from playwright.sync_api import sync_playwright

    from regard.viewer.server import serve, shipped

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    times, sizes = [], []
    with serve([], shipped=shipped(), browser=False, background=True) as served, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for _ in range(6):
            context = chromium.new_context()
            tab, seen = context.new_page(), list[int]()
            tab.on("requestfinished", lambda one, seen=seen: seen.append(sum(one.sizes()[name] for name in SENT)))
            start = time.perf_counter()
            tab.goto(served.url)
            tab.locator(".wall-cell canvas.here").nth(71).wait_for()  # the wall of six layers of twelve heads
            times.append(time.perf_counter() - start)
            sizes.append(sum(seen))
            context.close()
        chromium.close()
    found = {"goal_bytes": 300_000, "goal_s": 1.0, "bytes": max(sizes), "seconds": sorted(times[1:])[2]}
    print(f"page: {found}")
    keep("lens", "page", found, "regard", "playwright")


PARTS = {"tiles": tiles, "capture": capture, "page": page}


def main() -> None:
    """The parts that were asked for, or all."""
    for name in sys.argv[1:] or PARTS:
        print(f"-- {name}")
        PARTS[name]()


if __name__ == "__main__":
    main()
