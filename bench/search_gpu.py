"""Exact search on a GPU: right first, then beside a plain product with `torch.topk`.

    python bench/search_gpu.py         prints a table and keeps bench/results/search.json, part "cuda"

Right: the indices are those of a float64 product or of float64 differences, on clouds with near ties and far from the
origin, in full precision and with TF32. Time: one million vectors of width 384 in float32, for 100 queries and 10 000.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from machine import in_turns, keep

from regard.geometry import BilinearForm, Mahalanobis, search

K = 10


def oracle(queries: Any, corpus: Any, metric: Any) -> Any:
    """The indices by brute force in float64."""
    x, y = queries.double(), corpus.double()
    if isinstance(metric, Mahalanobis):
        x, y, metric = metric.whiten(x), metric.whiten(y), "euclidean"
    if isinstance(metric, BilinearForm):
        x, metric = x @ metric.matrix, "dot"
    if metric == "cosine":
        x, y = (part / part.norm(dim=1, keepdim=True) for part in (x, y))
    scores = torch.stack([-(y - row).square().sum(dim=1) for row in x]) if metric == "euclidean" else x @ y.T
    return torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :K]


def check(device: str) -> int:
    """Every metric on awkward clouds; how many cases were right."""
    generator = torch.Generator(device).manual_seed(0)

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator, device=device)

    near = normal(1, 67) + 1e-5 * normal(20_011, 67)
    right = 0
    for name, corpus in {"plain": normal(20_011, 67), "far": normal(20_011, 67) + 1e4, "near": near}.items():
        queries = corpus[:13] + 0.1 * corpus.std() * normal(13, 67)
        metrics = [
            "dot",
            "cosine",
            "euclidean",
            Mahalanobis.fit(corpus.double()),
            BilinearForm(normal(67, 67).double()),
        ]
        for metric in metrics:
            for precision in ("highest", "high"):
                torch.set_float32_matmul_precision(precision)
                found = search(queries, corpus, K, metric=metric, block=4099, progress=False)
                same = torch.equal(found.indices, oracle(queries, corpus, metric))
                assert same, (name, metric, precision)
                right += 1
    torch.set_float32_matmul_precision("highest")
    host = search(queries, near.cpu().numpy(), K, metric="euclidean", progress=False)  # the corpus stays on the host
    assert torch.equal(host.indices, oracle(queries, near, "euclidean"))
    return right + 1


def plain(queries: Any, corpus: Any, block: int = 2**17) -> Any:
    """A product in blocks with the k largest of each."""
    found = [torch.topk(queries @ corpus[first : first + block].T, K) for first in range(0, len(corpus), block)]
    values, indices = (torch.cat(parts, dim=1) for parts in zip(*found, strict=True))
    return torch.gather(indices, 1, torch.topk(values, K).indices)


def synchronised(run: Any) -> Any:
    """A run that takes the time until the device is done."""

    def timed() -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        return time.perf_counter() - began

    return timed


def main() -> None:
    """Check, measure, print the table, keep it as JSON."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"{check(device)} cases right on {device}")
    if device == "cpu":
        return
    corpus, rows = torch.randn(1_000_000, 384, device=device), {}
    for count in (100, 10_000):
        queries = torch.randn(count, 384, device=device)
        runs = {"plain product + topk": synchronised(lambda queries=queries: plain(queries, corpus))}
        for metric in ("dot", "cosine", "euclidean"):
            runs[f"search {metric}"] = synchronised(
                lambda metric=metric, queries=queries: search(queries, corpus, K, metric=metric, progress=False)
            )
        rows[count] = in_turns(runs, 3)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        runs["search euclidean"]()
        peak = (torch.cuda.max_memory_allocated() - before) / 2**20
        for name, seconds in rows[count].items():
            ratio = seconds / rows[count]["plain product + topk"]
            print(f"{count:6} queries  {name:22} {seconds * 1e3:9.1f} ms {ratio:6.2f} ×")
        print(f"{count:6} queries  peak memory beside the corpus {peak:.0f} MiB")
        rows[count]["peak MiB, euclidean"] = peak
    keep("search", "cuda", {"device": torch.cuda.get_device_name(), "found": rows}, "torch", "numpy")


if __name__ == "__main__":
    main()
