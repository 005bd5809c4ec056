"""The tables and the picture of docs/performance.md, from bench/results: no figure there is written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from colours import style
from regard import zoo

RESULTS = Path(__file__).parents[1] / "bench" / "results"
ROW, LEFT, WIDE, TALL = 24, 168, 640, 9  # a row of the picture, its names, its width, a bar


def tables() -> dict[str, str]:
    """Each table of the page as Markdown, by its name there."""
    return {
        "machine": _machine(),
        "speed": _speed(),
        "memory": _memory(),
        "accuracy": _accuracy(),
        "calls": _calls(),
        "models": _models(),
        "decoding": _decoding(),
        "search": _search(),
        "lens": _lens(),
        "check": _check(),
        "formulas": _formulas(),
        "device": _device(),
    }


def _read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _round(value: float, digits: int = 3) -> str:
    """Three digits, and as many as the number has before the point: 1.16, 24.1, 662, 1 028."""
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}".replace(",", "\N{NO-BREAK SPACE}")
    return f"{value:.{digits}g}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


# -- attention -------------------------------------------------------------------------------------------------


def _machine() -> str:
    part = _read("cpu")["speed"]
    machine, versions = part["machine"], part["versions"]
    return (
        f"{machine['cores']} cores of an {machine['model']}, PyTorch {versions['torch']}, Python {machine['python']}."
    )


def _speed() -> str:
    found = _read("cpu")
    speed, peers = found["speed"]["rows"], found["peers"]["rows"]
    rows = [
        [
            zoo.ENTRIES[name].title,
            *(_ratio(row[way]) for way in ("forward", "backward")),
            *(_ratio(peers[name].get(peer)) for peer in ("dense", "flex")),
        ]
        for name, row in speed.items()
    ]
    return _table(["formula", "forward", "backward", "`dense` / `tiled`", "FlexAttention / `tiled`"], rows)


def _memory() -> str:
    rows = [
        [f"{row['n']:,}".replace(",", " "), f"`{row['formula']}`", f"{row['above_inputs_MiB']:.0f} MiB",
         *(_seconds(row.get(way)) for way in ("forward_s", "backward_s"))]
        for row in _read("cpu")["memory"]["rows"]
    ]  # fmt: skip
    return _table(["positions", "formula", "memory beside the inputs", "forward", "backward"], rows)


def _accuracy() -> str:
    part = _read("cpu")["accuracy"]
    worst: dict[str, dict[str, float]] = {}
    for row in part["rows"]:
        kind, cloud = row["dtype"].removeprefix("torch."), row["cloud"]
        found = worst.setdefault(cloud, {})
        found[kind] = max(found.get(kind, 0.0), *row["ratios"].values())
    kinds = list(next(iter(worst.values())))
    rows = [[cloud, *(_ratio(found.get(kind)) for kind in kinds)] for cloud, found in worst.items()]
    return _table(["vectors", *kinds], rows)


def _calls() -> str:
    rows = _read("cpu")["calls"]["rows"]
    found = [[name, _ratio(row["ratio at N 1024"]), f"{row['own_us']:.0f} µs"] for name, row in rows.items()]
    return _table(["", "time / PyTorch's own call, N 1 024", "of which regard's own"], found)


# -- models, search, tools -------------------------------------------------------------------------------------


def _models() -> str:
    found = _read("models")
    training = [
        [f"a training step, {size}: {row['parameters'] / 1e6:.1f} M parameters", _ratio(row["ratio"])]
        for size, row in found["training"].items()
        if "ratio" in row
    ]
    theirs = [
        [f"`hf.use`, {name.replace('llama', 'Llama').replace('bert', 'BERT')}", _ratio(row["ratio"])]
        for name, row in found["hugging_face"].items()
        if "ratio" in row
    ]
    return _table(["", "time / plain PyTorch"], training + theirs)


def _decoding() -> str:
    rows = [(int(length), row) for length, row in _read("models")["decoding"].items() if length.isdigit()]
    found = [
        [_round(length), f"{1e3 * row['cached']:.1f} ms", f"{1e3 * row['whole']:.0f} ms" if "whole" in row else ""]
        for length, row in rows
    ]
    return _table(["tokens so far", "a new token with the cache", "without"], found)


def _search() -> str:
    found = _read("search")["cpu"]
    rows = [
        [
            name.removeprefix("search "),
            f"{found['seconds'][name]:.2f} s",
            *(_ratio(ratio[peer]) for peer in ("peer", "product")),
        ]
        for name, ratio in found["ratios"].items()
        if name.startswith("search ")
    ]  # fmt: skip
    size = f"{_round(found['rows'])} rows of width {found['width']}, {found['queries']} queries, k {found['k']}"
    peak = f"{found['peak_mib']['all rows']:.0f} MiB"
    table = _table(["`geometry.search`", size, "of the fastest peer", "of the product alone"], rows)
    return f"{table}\n\nMemory at the peak, beside the rows: {peak}."


def _lens() -> str:
    found = _read("lens")
    tile, page = found["tiles"]["tile"]["softmax, float16"], found["page"]
    captured = {name: row["ratio"] for name, row in found["capture"]["rows"].items()}
    rows = [
        ["a tile of 256 × 256 in a map of 100 000 × 100 000, totals known", f"{tile['next_ms']:.1f} ms"],
        ["the same, totals not yet known", f"{tile['first_ms']:.0f} ms"],
        ["first picture of 100 000 × 100 000", _seconds(found["tiles"]["first picture"]["softmax"])],
        ["exact overview of 32 768 × 32 768", _seconds(found["tiles"]["overview"]["softmax"]["exact_s"])],
        *([f"forward pass under `capture` / without: {name}", _ratio(ratio)] for name, ratio in captured.items()),
        ["the page, until all heads are drawn", f"{_seconds(page['seconds'])}, {page['bytes'] / 1e3:.0f} kB"],
    ]  # fmt: skip
    return _table(["", ""], rows)


def _check() -> str:
    found = _read("check")
    rows = [[name, _seconds(value)] for name, value in found["seconds"]["seconds"].items()]
    kinds = {"right": "right", "other": "right, of another formula", "broken": "with mistakes"}
    verdicts = [
        f"{row['as they should']} of {row['targets']} {kinds[kind]}"
        for kind, row in found["seconds"]["corpus"].items()
        if kind in kinds
    ]
    return _table(["`regard check`, from the command to the report", ""], rows) + (
        f"\n\nVerdicts on the targets of the tests as they should be: {', '.join(verdicts)}."
    )


def _formulas() -> str:
    found = _read("formula")
    cold = max(row["cold_ms"] for row in found["entries"].values())
    warm = max(row["warm_ms"] for row in found["entries"].values())
    return f"The slowest formula of the zoo takes {_round(cold)} ms to build at first, {_round(warm)} ms again."


def _device() -> str:
    lens, search = _read("lens")["cuda"], _read("search")["cuda"]
    counts = {f"{int(count):,}".replace(",", " "): found for count, found in search["found"].items()}
    metrics = [name for name in next(iter(counts.values())) if name.startswith("search ")]
    rows = [
        *(
            [f"lens: every coarse level of a map of 100 000 × 100 000, {name}", _seconds(row["pyramid_s"])]
            for name, row in lens["rows"].items()
        ),
        *(
            [f"{name}, {count} queries", f"{1e3 * found[name]:.0f} ms"]
            for name in metrics
            for count, found in counts.items()
        ),
    ]
    return f"{search['device']}, PyTorch {search['versions']['torch']}.\n\n" + _table(["", ""], rows)


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{1e3 * value:.0f} ms" if value < 0.1 else f"{value:.1f} s" if value < 60 else f"{value / 60:.0f} min"


# -- the picture -----------------------------------------------------------------------------------------------


def picture() -> str:
    """Bars: the time of each formula beside PyTorch's softmax kernel, forward and backward."""
    rows = _read("cpu")["speed"]["rows"]
    most = max(max(row["forward"], row["backward"]) for row in rows.values())
    scale = (WIDE - LEFT - 48) / most
    height = ROW * len(rows) + 52
    bars = [_bars(place, name, row, scale) for place, (name, row) in enumerate(rows.items())]
    one = LEFT + scale
    rule = (
        f'<path class="line" d="M{one:.0f} 24V{height - 24}"/>'
        f'<text x="{one:.0f}" y="16" text-anchor="middle">PyTorch’s softmax = 1</text>'
    )
    foot = height - 6
    legend = _legend(LEFT, foot, 9, "forward") + _legend(LEFT + 84, foot, 17, "backward")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {height}" width="{WIDE}" height="{height}" '
        f'role="img"><title>Time of each formula beside PyTorch’s softmax kernel</title>\n{style({9, 17})}\n'
        + "\n".join([*bars, rule, legend])
        + "\n</svg>\n"
    )


def _bars(place: int, name: str, row: dict[str, float], scale: float) -> str:
    top = 28 + ROW * place
    ends = [LEFT + scale * row[way] for way in ("forward", "backward")]
    figures = f"{row['forward']:.2f}  {row['backward']:.2f}"
    return (
        f'<text x="{LEFT - 10}" y="{top + 12}" text-anchor="end">{zoo.ENTRIES[name].title}</text>'
        f'<rect class="w9" x="{LEFT}" y="{top}" width="{ends[0] - LEFT:.1f}" height="{TALL}"/>'
        f'<rect class="w17" x="{LEFT}" y="{top + TALL}" width="{ends[1] - LEFT:.1f}" height="{TALL}"/>'
        f"<title>{name}: {figures}</title>"
    )


def _legend(left: int, foot: int, level: int, word: str) -> str:
    square = f'<rect class="w{level}" x="{left}" y="{foot - 9}" width="10" height="10"/>'
    return f'{square}<text x="{left + 16}" y="{foot}">{word}</text>'
