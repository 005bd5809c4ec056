"""How fast the fused engine is on a GPU, beside everything else that computes attention there.

    PYTHONPATH=src:bench python bench/gpu.py                     everything (hours: mostly FlexAttention compiling)
    PYTHONPATH=src:bench python bench/gpu.py --quick --minutes 9 --ahead 14
                                                                 the goals' cases: N 8 192, width 128
    python bench/gpu.py --from --picture OUT --markdown FILE     tables and picture again, from what was kept
    python bench/gpu.py --rehearse                               the whole way on a CPU, tiny: no figure counts

Right first: every result is compared with float64 on the inputs that are timed; a wrong one is marked and not timed.
Peers take turns in random order; each ratio is the median of the ratios of each round. The tables come last.
One process measures and another watches it: a peer that hangs or takes the GPU down is left out, the rest goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from gpu_parts import cases, kept, tables
from gpu_parts.ahead import compile_ahead
from gpu_parts.cases import DIRECTIONS, LABELS, PEERS, REAL, REHEARSAL, Job, Sizes
from gpu_parts.watching import watched

RESULT = Path(__file__).parent / "results" / "gpu.json"


def asked() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=kept.PARTS, metavar="PART", help="speed, decoding, first")
    parser.add_argument("--formulas", nargs="+", choices=LABELS, default=list(LABELS), metavar="NAME")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), metavar="NAME")
    parser.add_argument("--widths", nargs="+", type=int)
    parser.add_argument("--lengths", nargs="+", type=int)
    parser.add_argument("--directions", nargs="+", choices=DIRECTIONS, default=list(DIRECTIONS), metavar="WAY")
    parser.add_argument("--rounds", type=int, help="15, and 10 with --quick; goals ask for at least 10")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="N 8 192, width 128, ten rounds, no eager, no first calls")
    parser.add_argument("--minutes", type=float, default=600.0, help="then it stops and prints what it has")
    parser.add_argument("--patience", type=float, default=180.0, help="seconds after which a silent peer is left out")
    parser.add_argument("--ahead", type=int, default=0, metavar="N", help="first compile all, with N processes")
    parser.add_argument("--json", type=Path, help=f"where to keep what is found ({RESULT.name} in bench/results)")
    parser.add_argument("--markdown", type=Path, help="write the tables there, too")
    parser.add_argument("--picture", type=Path, metavar="OUT", help="write OUT.svg and OUT.png, too")
    parser.add_argument("--from", nargs="*", type=Path, dest="kept", help="measure nothing: join and show these files")
    parser.add_argument("--rehearse", action="store_true", help="on a CPU with tiny sizes; kept only with --json")
    for hidden, kind in (("--worker", Path), ("--until", float)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--first-call", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = options.rounds or (10 if options.quick else 15)
    return options


def jobs(options: argparse.Namespace, sizes: Sizes) -> list[Job]:
    """What was asked for, the most important first."""
    quick = options.quick
    widths = options.widths or list(sizes.widths[:1] if quick else sizes.widths)
    lengths = options.lengths or (
        [cases.AT] if quick and not options.rehearse else list(sizes.lengths[: 1 if quick else None])
    )
    peers = [peer for peer in options.peers if not quick or peer not in ("eager", "compiled")]
    parts = options.parts or (["speed", "decoding"] if quick else list(kept.PARTS))
    found: list[Job] = []
    if "speed" in parts:
        wanted = cases.cases(sizes, options.formulas, widths, lengths, options.directions)
        found += cases.speed_jobs(sizes, wanted, peers)
    if "decoding" in parts:
        few = replace(sizes, decoding_batches=sizes.decoding_batches[:1])
        found += cases.decoding_jobs(few if quick else sizes, peers)
    if "first" in parts:
        found += cases.first_jobs(sizes, peers)
    return sorted(found, key=lambda job: job.rank)


def work(options: argparse.Namespace, sizes: Sizes) -> None:
    """The measuring process."""
    from gpu_parts.peers import CPU, GPU
    from gpu_parts.worker import Worker

    document = kept.load(options.worker)
    document["runs"][-1]["machine"] = kept.machine()
    worker = Worker(document, options.worker, CPU if options.rehearse else GPU, sizes, options.rounds, options.seed)
    worker.run(jobs(options, sizes), options.until)


def first(options: argparse.Namespace, sizes: Sizes) -> None:
    """One first call, in a process of its own."""
    from gpu_parts.peers import CPU, GPU
    from gpu_parts.worker import first_call

    peer, formula, width, n = options.first_call
    print(json.dumps(first_call(peer, formula, int(width), int(n), CPU if options.rehearse else GPU, sizes)))


def measured(options: argparse.Namespace) -> kept.Document:
    """A run from its beginning; what it found is kept after every job."""
    with tempfile.TemporaryDirectory() as somewhere:
        inside = Path(somewhere) / "gpu.json"
        path = options.json or (inside if options.rehearse else RESULT)
        command = [part if not Path(part).is_absolute() else Path(part).name for part in sys.argv[1:]]
        settings = {"command": command, "rounds": options.rounds, "seed": options.seed}
        kept.save(kept.fresh(options.rehearse, settings), path)
        end = time.time() + 60 * options.minutes
        if options.ahead:
            compile_ahead(jobs(options, REAL), REAL, options.ahead, end)
        watched(path, (end - time.time()) / 60, options.patience)
        return kept.load(path)


def shown(document: kept.Document, options: argparse.Namespace) -> None:
    """Markdown, picture, and the tables, last."""
    if options.markdown:
        options.markdown.write_text(tables.markdown(document), encoding="utf-8")
    if options.picture and document["speed"]:
        try:
            from gpu_parts.picture import draw

            print(*draw(document, options.picture))
        except ImportError as missing:
            print(f"no picture: {missing}; make it elsewhere, with --from FILE --picture OUT")
    print(f"\n{tables.terminal(document)}")


def main() -> None:
    """Measure, or show what was measured."""
    options = asked()
    sizes = REHEARSAL if options.rehearse else REAL
    if options.first_call:
        first(options, sizes)
    elif options.worker:
        work(options, sizes)
    elif options.kept is not None:
        document = kept.joined([kept.load(path) for path in options.kept or [RESULT]])
        kept.judge(document)
        if options.json:
            kept.save(document, options.json)
        shown(document, options)
    else:
        print(f"{len(jobs(options, sizes))} jobs, at most {options.minutes:.0f} minutes", flush=True)
        shown(measured(options), options)


if __name__ == "__main__":
    main()
