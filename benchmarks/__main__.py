"""`python -m benchmarks [MEASURE ...] [--repeat N] [--peers FOLDER]`: one table, medians with the spread over the repeats."""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import emitting, measures, peers, streams
from benchmarks.rig import rig

ALL = measures.ALL | streams.ALL | emitting.ALL
GOALS = {
    "hand-off, relevo, p50": "≤ 6",
    "hand-off, relevo, p99": "≤ 25",
    "hand-off, relevo : chain(), p50": "≤ 0.5",
    "200 plans x 20, relevo": "≥ 600",
    "bulk add": "≥ 50000",
    "move among a million, p99": "≤ 10",
    "rows written per move": "1",
    "kill -9 shown, worst": "≤ 2000",
    "kill -9 requeued, worst": "≤ 2000",
    "stream of no-ops, relevo": "≥ 5000",
    "stream, relevo : Celery": "≥ 5",
    "durable steps, one process": "≥ 800",
    "what emitting adds, p95": "≤ 3",
    "idle platform, of one core": "< 2",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("measures", nargs="*", choices=[*ALL, []], help="which measures; all of them by default")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peers", type=Path, help="a folder with the peers' scripts, run once in the same session")
    options = parser.parse_args()
    figures: dict[str, tuple[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="relevo-bench-") as folder, rig(Path(folder)) as servers:
        for round_ in range(options.repeat):
            for name in options.measures or ALL:
                print(f"{name} ({round_ + 1}/{options.repeat}) ...", flush=True)
                for what, figure, unit in ALL[name](servers):
                    figures.setdefault(what, (unit, []))[1].append(figure)
    if options.peers:
        print("peers ...", flush=True)
        with tempfile.TemporaryDirectory(prefix="relevo-peers-") as folder:
            for what, figure, unit in peers.measure(options.peers.absolute(), Path(folder)):
                figures.setdefault(what, (unit, []))[1].append(figure)
    print(f"\n| measure | median | least .. most of {options.repeat} | unit | goal |\n|---|---|---|---|---|")
    for what, (unit, values) in figures.items():
        print(f"| {what} | {statistics.median(values):.4g} | {min(values):.4g} .. {max(values):.4g} | {unit} | {GOALS.get(what, '')} |")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # told to end, it stops what it started, as at Ctrl-C
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Ended before all was measured.")
