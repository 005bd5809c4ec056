"""Exact search beside its peers: one million vectors of width 384 in float32, 100 queries, the 10 nearest.

    python bench/search.py             prints a table and keeps bench/results/search.json
    python bench/search.py --rows 100000 --rounds 3

Peers, in the same run and in turns: scikit-learn's brute force (Euclidean; its cosine), and a plain blocked matrix
product with the k largest of each block kept (`+ top`). The product alone finds nothing: it is the floor for all.
Memory is what a search allocates at its peak, beside the corpus, and must not grow with it.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from machine import in_turns, keep, timed
from sklearn.neighbors import NearestNeighbors

from regard.geometry import Mahalanobis, search

WIDTH, QUERIES, K = 384, 100, 10
GOAL = 1.2
METRICS = ("dot", "cosine", "euclidean")
FLOOR = 4096  # rows of a block of the plain product: the fastest of 1024 to 65 536 here


def plain(queries: Any, corpus: Any) -> None:
    """The product alone."""
    for first in range(0, len(corpus), FLOOR):
        queries @ corpus[first : first + FLOOR].T


def plain_top(queries: Any, corpus: Any, block: int = 65536) -> Any:
    """The product, and the k largest of each block by partition."""
    values, indices = [], []
    for first in range(0, len(corpus), block):
        scores = queries @ corpus[first : first + block].T
        part = np.argpartition(scores, -K, axis=1)[:, -K:]
        values.append(np.take_along_axis(scores, part, axis=1))
        indices.append(part + first)
    best = np.argsort(-np.concatenate(values, axis=1), axis=1)[:, :K]
    return np.take_along_axis(np.concatenate(indices, axis=1), best, axis=1)


def torch_top(queries: Any, corpus: Any, block: int = 65536) -> Any:
    """The same in PyTorch."""
    found = [torch.topk(queries @ corpus[first : first + block].T, K) for first in range(0, len(corpus), block)]
    values = torch.cat([part.values for part in found], dim=1)
    indices = torch.cat([part.indices + number * block for number, part in enumerate(found)], dim=1)
    return torch.gather(indices, 1, torch.topk(values, K).indices)


def brute(corpus: Any, metric: str) -> NearestNeighbors:
    """scikit-learn's brute force; fitting copies nothing."""
    return NearestNeighbors(n_neighbors=K, algorithm="brute", metric=metric).fit(corpus)


def peak_mib(run: Callable[[], object]) -> float:
    """What a run allocates at its peak, in MiB."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main() -> None:
    """Measure, print the table, keep it as JSON."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=5)
    asked = arguments.parse_args()
    rng = np.random.default_rng(0)
    corpus = rng.standard_normal((asked.rows, WIDTH), dtype=np.float32)
    queries = rng.standard_normal((QUERIES, WIDTH), dtype=np.float32)
    tensors = torch.from_numpy(queries), torch.from_numpy(corpus)
    metrics: dict[str, Any] = {name: name for name in METRICS} | {"mahalanobis": Mahalanobis.fit(corpus[:20_000])}

    near, apart = brute(corpus, "euclidean"), brute(corpus, "cosine")
    floor = {"product alone": lambda: plain(queries, corpus)}
    peers = {
        "plain product + top": lambda: plain_top(queries, corpus),
        "torch product + top": lambda: torch_top(*tensors),
        "scikit-learn euclidean": lambda: near.kneighbors(queries),
        "scikit-learn cosine": lambda: apart.kneighbors(queries),
    }
    ours = {f"search {name}": lambda metric=metric: search(queries, corpus, K, metric=metric, progress=False)
            for name, metric in metrics.items()}  # fmt: skip
    ours |= {f"search {name}, torch": lambda metric=name: search(*tensors, K, metric=metric, progress=False)
             for name in METRICS}  # fmt: skip
    assert np.array_equal(plain_top(queries, corpus), ours["search dot"]().indices)
    assert np.array_equal(near.kneighbors(queries)[1], ours["search euclidean"]().indices)

    seconds = in_turns({name: timed(run) for name, run in (floor | peers | ours).items()}, asked.rounds)
    fastest, least = min(seconds[name] for name in peers), seconds["product alone"]
    small = corpus[: asked.rows // 4]
    memory = {
        "a quarter of the rows": peak_mib(lambda: search(queries, small, K, metric="euclidean", progress=False)),
        "all rows": peak_mib(ours["search euclidean"]),
    }
    print(f"{asked.rows} × {WIDTH} float32, {QUERIES} queries, k = {K}")
    print(f"{'':26} {'seconds':>8} {'of the fastest peer':>20} {'of the product alone':>21}")
    for name, time in seconds.items():
        print(f"{name:26} {time:8.3f} {time / fastest:20.2f} {time / least:21.2f}")
    print(f"goal: at most {GOAL} of the fastest peer for dot, cosine and Euclidean")
    print("peak memory in MiB: " + ", ".join(f"{name} {size:.1f}" for name, size in memory.items()))
    facts = {"rows": asked.rows, "width": WIDTH, "queries": QUERIES, "k": K, "goal": GOAL}
    ratios = {name: {"peer": time / fastest, "product": time / least} for name, time in seconds.items()}
    found = {"seconds": seconds, "ratios": ratios, "peak_mib": memory}
    keep("search", "cpu", facts | found, "regard", "numpy", "torch", "scikit-learn")


if __name__ == "__main__":
    main()
