"""Check that the changelog begins with what is unreleased, knows its kinds of change, and has versions in falling order.

Usage: python scripts/check_changelog.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def problems(text: str) -> list[str]:
    """One sentence for each fault."""
    versions = re.findall(r"^## \[([^\]]+)\]", text, re.M)
    found = [] if versions[:1] == ["Unreleased"] else ["the first section is not [Unreleased]"]
    numbers = [tuple(map(int, version.split("."))) for version in versions if re.fullmatch(r"\d+\.\d+\.\d+", version)]
    if numbers != sorted(numbers, reverse=True) or len(numbers) != len(set(numbers)):
        found.append("the versions are not in falling order")
    found += [f"{kind!r} is not a kind of change" for kind in re.findall(r"^### (.+)$", text, re.M) if kind not in KINDS]
    return found


def main() -> int:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = problems(text)
    for problem in found:
        print(problem)
    entries = len(re.findall(r"^- ", text, re.M))
    print(f"{entries} entries, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
