"""Write docs/evidence.md from the JUnit reports of runs of the cases: which failures were tried, and how each ended.

Usage: python scripts/write_evidence.py [COMMIT=]REPORT.xml...

A test that is in several reports counts as in the last one. COMMIT is what was run: without it, what is checked out.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
HEAD = """# Evidence

What happened when the failures of `tests/cases/` were last tried, {length}. Each test ends with the same
checks: nothing lost, order kept, never two bodies of a serial plan at once, one end per attempt, as many starts as attempts on
record, no more messages than runnable heads, nothing running without a process nor a process without an item, counts that agree
with the database, and no traceback in any log.

{when} on {where}: {passed} passed, {failed} failed, {skipped} skipped, {seconds:.0f} s in all; {commits}.

| case | tests | result | seconds |
|---|---|---|---|
"""


class Tried(NamedTuple):
    """One test: the commit that was run, the day, and its element of the report."""

    commit: str
    day: str
    case: ElementTree.Element

    def ended(self, *words: str) -> bool:
        return any(self.case.find(word) is not None for word in words)

    @property
    def seconds(self) -> float:
        return float(self.case.get("time", 0))


def title(file: Path) -> str:
    """The first line of a test file's docstring."""
    found = re.search(r'"""(.+?)(?:"""|\n)', file.read_text(encoding="utf-8"))
    return found.group(1).strip().rstrip(".") if found else file.stem


def checked_out() -> str:
    """The commit that is checked out, as short as git has it."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "a tree without git"


def read(reports: list[str]) -> list[Tried]:
    """The tests of all reports, each once."""
    tried: dict[tuple[str | None, str | None], Tried] = {}
    for report in reports:
        commit, _, path = report.rpartition("=")
        for suite in ElementTree.parse(path).getroot().iter("testsuite"):
            for case in suite.iter("testcase"):
                if not case.get("classname"):
                    continue  # a test that was under way when the run was stopped
                tried[case.get("classname"), case.get("name")] = Tried(commit or checked_out(), suite.get("timestamp", "")[:10], case)
    return list(tried.values())


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    tried = read(sys.argv[1:])
    rows: dict[str, list[Tried]] = defaultdict(list)
    for each in tried:
        rows[each.case.get("classname", "").replace(".", "/") + ".py"].append(each)
    failed, skipped = sum(each.ended("failure", "error") for each in tried), sum(each.ended("skipped") for each in tried)
    scale = float(os.environ.get("RELEVO_TEST_SCALE", "0.05"))
    text = HEAD.format(
        length="at full length, by `make cases`" if scale == 1 else f"in their short form (rounds and durations times {scale:g})",
        when=max(each.day for each in tried),
        where=f"{platform.system()} with {os.cpu_count()} processors, Python {platform.python_version()}",
        passed=len(tried) - failed - skipped,
        failed=failed,
        skipped=skipped,
        seconds=sum(each.seconds for each in tried),
        commits=", ".join(f"{count} at commit {commit}" for commit, count in Counter(each.commit for each in tried).most_common()),
    )
    for name, tests in sorted(rows.items()):
        bad = [str(each.case.get("name")) for each in tests if each.ended("failure", "error")]
        left_out = sum(each.ended("skipped") for each in tests)
        result = "passed" if not bad else f"**failed**: {', '.join(bad)}"
        result += f" ({left_out} skipped)" if left_out else ""
        text += f"| {title(ROOT / name)} | {len(tests)} | {result} | {sum(each.seconds for each in tests):.0f} |\n"
    (ROOT / "docs" / "evidence.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
