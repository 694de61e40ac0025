"""Check that every relative link of every Markdown file leads to a file, and to a heading where it names one.

Usage: python scripts/check_links.py [FOLDER]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {".git", ".venv", ".relevo", "build", "dist", "node_modules"}
FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s*(\S+)", re.M)


def anchors(text: str) -> set[str]:
    """The anchors of a file's headings, as code hosts make them."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", FENCE.sub("", text), re.M):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return set(found)


def broken(file: Path, root: Path) -> list[str]:
    """One sentence for each link of `file` that leads nowhere."""
    text = FENCE.sub("", file.read_text(encoding="utf-8"))
    problems = []
    for link in LINK.findall(text) + REFERENCE.findall(text):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        where = f"{file.relative_to(root)}: {link}"
        if not target.exists():
            problems.append(f"{where} leads to no file")
        elif parts.fragment and target.suffix == ".md" and parts.fragment not in anchors(target.read_text(encoding="utf-8")):
            problems.append(f"{where} leads to no heading")
    return problems


def main() -> int:
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    files = [file for file in sorted(root.rglob("*.md")) if not LEFT_OUT.intersection(file.relative_to(root).parts)]
    problems = [problem for file in files for problem in broken(file, root)]
    for problem in problems:
        print(problem)
    print(f"{len(files)} files, {len(problems)} broken links")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
