"""What was found, as text: for the terminal, and for a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .cases import AT, DIRECTIONS, LABELS, PEERS
from .kept import PARTS, Document

COLUMNS = ("cudnn", "flash", "flex", "compiled", "eager")
SHORT = {"cudnn": "cuDNN", "flash": "flash", "flex": "Flex", "compiled": "compiled", "eager": "eager"}
STATES = {"wrong": "wrong", "failed": "failed", "skipped": "–", "right": "–"}
REHEARSED = "REHEARSAL on a CPU with tiny sizes: no figure here is a measurement"


def groups(document: Document) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The cases of one size and direction, in the order of the formulas."""
    found = document["speed"]
    sizes = sorted({(case["width"], case["n"]) for case in found}, key=lambda size: (size[1] != AT, -size[0], size[1]))
    for width, n in sizes:
        for direction in DIRECTIONS:
            some = [case for case in found if (case["width"], case["n"], case["direction"]) == (width, n, direction)]
            if some:
                shape = f"batch {some[0]['batch']}, {some[0]['heads']} heads"
                yield (
                    f"{direction}, width {width}, N {spaced(n)}, {shape}",
                    sorted(some, key=lambda case: list(LABELS).index(case["formula"])),
                )


def spaced(number: int) -> str:
    """8192 as 8 192."""
    return f"{number:,}".replace(",", " ")


def ratio(case: dict[str, Any], peer: str, own: str = "regard", spread: bool = False) -> str:
    """How many times as fast as a peer; with a star where the peer computes softmax instead."""
    facts = case["peers"].get(peer)
    if facts is None:
        return ""
    found = case["ratios"].get(own, {}).get(peer)
    if found is None:
        return STATES.get(facts["state"], "–")
    star = "*" if facts.get("stands_for") else ""
    return f"{found[1]:.2f}{star}" + (f" ({found[0]:.2f}–{found[2]:.2f})" if spread else "")


def rate(case: dict[str, Any], peer: str) -> str:
    """TFLOP/s, or why there are none."""
    facts = case["peers"].get(peer, {"state": "skipped"})
    if "TFLOPs" not in facts:
        return STATES[facts["state"]]
    value = facts["TFLOPs"][1]
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def of_ceiling(case: dict[str, Any], peer: str = "regard") -> str:
    """The share of the rate of a large product of matrices."""
    found = case["peers"].get(peer, {}).get("of_ceiling")
    return f"{100 * found[1]:.0f} %" if found else ""


def error(case: dict[str, Any], own: str = "regard") -> str:
    """The largest relative error of regard, against float64."""
    found = [float(value) for value in case["peers"].get(own, {}).get("error", {}).values()]
    return f"{max(found):.1e}" if found else ""


def verdicts(case: dict[str, Any], own: str = "regard") -> str:
    """The goals, and whether they are reached."""
    words = []
    for goal in case.get("goals", []):
        if goal["own"] == own:
            said = ("reached" if goal["reached"] else "MISSED") if goal["judged"] else "not measured"
            words.append(f"{goal['least']:.2f} × {SHORT[goal['peer']]}: {said}")
    return "; ".join(words)


# -- terminal ----------------------------------------------------------------------------------------------------


def terminal(document: Document) -> str:
    """All of it, to be printed last."""
    lines = [REHEARSED] if document["rehearsal"] else []
    lines += [heading(document), *reasons(document), *_first(document), *_decoding(document)]
    for title, some in sorted(groups(document), key=lambda group: _goals_last(group[1][0])):
        heads = " ".join(f"{SHORT[peer]:>8}" for peer in COLUMNS)
        lines += [
            "",
            title,
            f"{'TFLOP/s, and times as fast as':26} {'regard':>7} {'ceiling':>7} {heads} {'Triton':>7} {'error':>8}",
        ]
        for case in some:
            cells = " ".join(f"{ratio(case, peer):>8}" for peer in COLUMNS)
            own, template = f"{rate(case, 'regard'):>7} {of_ceiling(case):>7}", f"{rate(case, 'regard_triton'):>7}"
            line = f"{LABELS[case['formula']]:26} {own} {cells} {template} {error(case):>8}  {verdicts(case)}"
            other = verdicts(case, "regard_triton") if "regard_triton" in case["ratios"] else ""
            lines.append(line + (f" [Triton: {other}]" if other else ""))
    lines += ["", counted(document), *(f"missed: {name}" for name in missed(document))]
    if document.get("left"):
        lines.append(f"{len(document['left'])} jobs were left when the time was up, first: {document['left'][0]}")
    return "\n".join(lines)


def _goals_last(case: dict[str, Any]) -> tuple[bool, int, int]:
    return case["n"] == AT, case["width"], -case["n"]


def _decoding(document: Document) -> list[str]:
    if not document["decoding"]:
        return []
    lines = ["", f"{'decoding':39} {'GB/s':>7} {'of copy':>8} {'cuDNN':>8} {'flash':>8} {'Flex':>8}  goal"]
    for step in document["decoding"]:
        facts = step["peers"].get("regard", {})
        name = f"{LABELS[step['formula']]}, {step['queries']} × {step['keys']}, {step['heads']}/{step['key_heads']}"
        cells = " ".join(f"{ratio(step, peer):>8}" for peer in ("cudnn", "flash", "flex"))
        rate_, share = (
            (f"{facts['GBps'][1]:.0f}", f"{100 * facts['of_copy'][1]:.0f} %") if "GBps" in facts else ("", "")
        )
        judged = step.get("goal")
        goal = f"{100 * judged['least']:.0f} %: {'reached' if judged['reached'] else 'MISSED'}" if judged else ""
        lines.append(f"{name + ', batch ' + str(step['batch']):39} {rate_:>7} {share:>8} {cells}  {goal}")
    return lines


def _first(document: Document) -> list[str]:
    lines = ["", f"{'first call, empty caches':38} {'forward':>9} {'backward':>9}"] if document["first"] else []
    for call in document["first"]:
        name = f"{PEERS[call['peer']]}, {LABELS[call['formula']]}"
        if "failed" in call:
            lines.append(f"{name:38} failed: {call['failed'].strip().splitlines()[-1]}")
            continue
        goal = call.get("goal")
        said = f"  at most {goal['most']:.0f} s: {'reached' if goal['reached'] else 'MISSED'}" if goal else ""
        lines.append(f"{name:38} {call.get('forward_s', 0):7.1f} s {call.get('backward_s', 0):7.1f} s{said}")
    return lines


def heading(document: Document) -> str:
    """Where, from the last run, and when."""
    run = document["runs"][-1]
    days = sorted({day(document, item) for part in PARTS for item in document[part]} or {run["made"][:10]})
    machine = run.get("machine", {})
    versions = ", ".join(f"{name} {version}" for name, version in machine.get("versions", {}).items() if version)
    ceilings = [case["ceiling"][1] for case in document["speed"] if "ceiling" in case]
    limit = f"; ceiling {min(ceilings):.0f}–{max(ceilings):.0f} TFLOP/s" if ceilings else ""
    where = machine.get("gpu", machine.get("processor", "unknown"))
    return f"{where}, {versions}, {' and '.join(days)}, bfloat16{limit}"


def day(document: Document, item: dict[str, Any]) -> str:
    """When a case, a step of decoding or a first call was measured."""
    return str(document["runs"][item["run"]]["made"][:10])


def reasons(document: Document) -> list[str]:
    """Why a peer is missing: once for each reason."""
    found: dict[str, list[str]] = {}
    for case in [*document["speed"], *document["decoding"]]:
        for peer, facts in case["peers"].items():
            if facts["state"] in ("wrong", "failed", "skipped"):
                text = f"{PEERS[peer]} {facts['state']}: {facts['reason'].splitlines()[0][:140]}"
                found.setdefault(text, []).append(f"{case['formula']} {case.get('direction', 'decoding')}")
    return [
        f"{text}  [{places[0]}{f' and {len(places) - 1} more' if places[1:] else ''}]" for text, places in found.items()
    ]


def counted(document: Document) -> str:
    """How many goals are reached."""
    judged = [goal["reached"] for case in document["speed"] for goal in case.get("goals", []) if goal["judged"]]
    judged += [step["goal"]["reached"] for step in document["decoding"] if "goal" in step]
    judged += [call["goal"]["reached"] for call in document["first"] if "goal" in call]
    return f"{sum(judged)} of {len(judged)} goals that were measured are reached"


def missed(document: Document) -> Iterator[str]:
    """The goals that are not reached, with what is."""
    for case in document["speed"]:
        where = f"{LABELS[case['formula']]}, {case['direction']}, width {case['width']}"
        for goal in case.get("goals", []):
            if goal["judged"] and not goal["reached"]:
                found = f"{goal['ratio']:.2f} × {SHORT[goal['peer']]}, goal {goal['least']:.2f}"
                yield f"{PEERS[goal['own']]}: {where}: {found} ({day(document, case)})"
    for step in document["decoding"]:
        if "goal" in step and not step["goal"]["reached"]:
            yield f"decoding of {step['queries']} × {step['keys']}, {step['heads']}/{step['key_heads']}"
    for call in document["first"]:
        if "goal" in call and not call["goal"]["reached"]:
            yield f"first call of {LABELS[call['formula']]}"


# -- Markdown ----------------------------------------------------------------------------------------------------


def markdown(document: Document) -> str:
    """The same for a document, with quartiles."""
    lines = [
        "# Speed on the GPU",
        "",
        "Made by `bench/gpu.py`; [bench/README.md](../bench/README.md) says what is counted.",
        "",
    ]
    lines += [f"**{REHEARSED}.**", ""] if document["rehearsal"] else []
    lines += [
        f"{heading(document)}. Ratios are medians over rounds, with quartiles: above 1, regard is the faster.",
        "",
    ]
    for title, some in groups(document):
        lines += [f"## {title[0].upper()}{title[1:]}", "", *_table(document, some, "regard")]
        if any("regard_triton" in case["ratios"] for case in some):
            lines += ["The Triton template in place of the one for Hopper:", ""]
            lines += _table(document, some, "regard_triton")
    for title, table in (("Decoding", _decoding(document)), ("First calls", _first(document))):
        lines += [f"## {title}", "", "```text", *table[1:], "```", ""] if table else []
    lines += [
        "`*`: the peer computes softmax (or causal softmax) on the same inputs, as a yardstick.",
        "",
        counted(document) + ".",
        "",
        *(f"- missed: {name}" for name in missed(document)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _table(document: Document, some: list[dict[str, Any]], own: str) -> list[str]:
    """Cases of one size and direction as rows, of one of regard's templates."""
    some = [case for case in some if own in case["peers"]]
    peers = [peer for peer in COLUMNS if any(peer in case["ratios"].get(own, {}) for case in some)]
    heads = ["formula", "TFLOP/s", "of the ceiling", *(f"× {SHORT[peer]}" for peer in peers), "error", "goal", "day"]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for case in some:
        cells = [ratio(case, peer, own, spread=True) for peer in peers]
        measured = rate(case, own), of_ceiling(case, own)
        said = error(case, own), verdicts(case, own), day(document, case)
        lines.append(_row([LABELS[case["formula"]], *measured, *cells, *said]))
    return [*lines, ""]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
