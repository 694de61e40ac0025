"""Count the lines of each package, compare them with the last count, and refuse a file of more than 300.

Usage: python scripts/count_lines.py [FILE]     FILE keeps the last count (default build/lines.json)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("ordering", "workers", "app", "relevo", "monitoring", "scripts", "tests", "benchmarks", "examples")
LIMIT = 300


def main() -> int:
    kept = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "lines.json"
    last = json.loads(kept.read_text()) if kept.exists() else {}
    now, too_long = {}, []
    for package in PACKAGES:
        files = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in sorted((ROOT / package).rglob("*.py"))}
        now[package] = sum(files.values())
        change = f" ({now[package] - last[package]:+d})" if package in last else ""
        print(f"{package:<11} {len(files):>4} files {now[package]:>6} lines{change}")
        too_long += [f"{file.relative_to(ROOT)} has {lines} lines, more than {LIMIT}" for file, lines in files.items() if lines > LIMIT]
    for sentence in too_long:
        print(sentence)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(now))
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
