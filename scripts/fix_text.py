"""Take spaces from the ends of lines and end every text file with one newline.

Usage: python scripts/fix_text.py [--check]     --check changes nothing and exits 1 if something would be changed
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {".py", ".md", ".toml", ".yaml", ".yml", ".txt", ".cfg"}
FOLDERS = ("ordering", "workers", "app", "relevo", "monitoring", "scripts", "tests", "benchmarks", "examples", "docs")


def tidy(text: str) -> str:
    """The text as it should be."""
    body = re.sub(r"[ \t]+$", "", text.replace("\r\n", "\n"), flags=re.M).rstrip("\n")
    return body + "\n" if body else ""


def main() -> int:
    files = [file for file in ROOT.iterdir() if file.suffix in KINDS]
    files += [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in KINDS and file.is_file()]
    changed = 0
    for file in sorted(files):
        text = file.read_bytes().decode("utf-8")
        if (better := tidy(text)) != text:
            changed += 1
            print(f"{file.relative_to(ROOT)} is not tidy")
            if "--check" not in sys.argv[1:]:
                file.write_bytes(better.encode("utf-8"))
    print(f"{len(files)} files, {changed} not tidy")
    return 1 if changed and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
