"""The peers, measured by their own scripts in a folder beside this repository (`make bench PEERS=FOLDER`): rows for the same table.

The folder has `run.py` (workloads A: one strict line, B: 200 lines of 20, C: bulk enqueue, D: a stream, E: steps) and
`requirements.txt`; what it needs is installed into an environment of its own, without what this Python cannot have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VENV = Path("build/peers").absolute()
# Peers that need a newer Python or a schema that no package has, and those whose defaults only wait.
LEFT_OUT = {"oban", "absurd"}
FIGURES = {
    "A": ("strict line, turnaround p50", "turn_ms_p50", "ms"),
    "B": ("200 lines x 20", "per_s", "jobs/s"),
    "C": ("bulk enqueue", "per_s", "jobs/s"),
    "D": ("stream, one insert each", "per_s", "jobs/s"),
    "E": ("durable steps", "steps_per_s", "steps/s"),
}


def measure(
    folder: Path, home: Path, peers: str = "celery_,procrastinate_,pgqueuer_,dbos_,rq_,dramatiq_"
) -> Iterator[tuple[str, float, str]]:
    """Run the peers' scripts once and give (what, figure, unit). Raises CalledProcessError if they cannot run."""
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        wanted = (folder / "requirements.txt").read_text().splitlines()
        needed = [line for line in wanted if line and not line.startswith("#") and line.split("=")[0].split("-")[0] not in LEFT_OUT]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *needed], check=True)
    results = home / "peers.jsonl"
    command = [str(python), str(folder / "run.py"), "-w", ",".join(FIGURES), "-r", "1", "-p", peers]
    skipped = "batches100,c10-default,limit1-default,fork-default,poll1s-default,partitioned-poll1s-default"
    subprocess.run(
        [*command, "--skip", skipped, "-o", str(results)],
        check=True,
        env={**os.environ, "BENCH_HOME": str(home), "PYTHONPATH": str(folder)},
        stdout=subprocess.DEVNULL,
    )
    for line in results.read_text().splitlines():
        row = json.loads(line)
        if row["kind"] == "run" and "error" not in row and row["workload"] in FIGURES:
            what, key, unit = FIGURES[row["workload"]]
            yield f"{what}, {row['peer']} {row['variant']}", float(row[key]), unit
