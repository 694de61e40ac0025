"""Write docs/evidence.md from the JUnit reports of a run of the cases: which failures were tried, and how each ended.

Usage: python scripts/write_evidence.py REPORT.xml...
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
HEAD = """# Evidence

What happened when the failures of `tests/cases/` were last tried, {length}. Each test ends with the same
checks: nothing lost, order kept, never two bodies of a serial plan at once, one end per attempt, as many starts as attempts on
record, no more messages than runnable heads, nothing running without a process nor a process without an item, counts that agree
with the database, and no traceback in any log.

{when} on {where}: {passed} passed, {failed} failed, {skipped} skipped, {seconds:.0f} s in all.

| case | tests | result | seconds |
|---|---|---|---|
"""


def title(file: Path) -> str:
    """The first line of a test file's docstring."""
    found = re.search(r'"""(.+?)(?:"""|\n)', file.read_text(encoding="utf-8"))
    return found.group(1).strip().rstrip(".") if found else file.stem


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    suites = [suite for report in sys.argv[1:] for suite in ElementTree.parse(report).getroot().iter("testsuite")]
    rows: dict[str, list[ElementTree.Element]] = defaultdict(list)
    for case in (case for suite in suites for case in suite.iter("testcase")):
        rows[case.get("classname", "").replace(".", "/") + ".py"].append(case)

    def total(name: str) -> float:
        return sum(float(suite.get(name, 0)) for suite in suites)

    tests, failed, skipped = int(total("tests")), int(total("failures") + total("errors")), int(total("skipped"))
    scale = float(os.environ.get("RELEVO_TEST_SCALE", "0.05"))
    length = "at full length, by `make cases`" if scale == 1 else f"in their short form (rounds and durations times {scale:g})"
    where = f"{platform.system()} with {os.cpu_count()} processors, Python {platform.python_version()}"
    text = HEAD.format(
        length=length, when=suites[0].get("timestamp", "")[:10], where=where,
        passed=tests - failed - skipped, failed=failed, skipped=skipped,
        seconds=total("time"),
    )  # fmt: skip
    for name, cases in sorted(rows.items()):
        bad = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
        left_out = [case.get("name") for case in cases if case.find("skipped") is not None]
        result = "passed" if not bad else f"**failed**: {', '.join(map(str, bad))}"
        result += f" ({len(left_out)} skipped)" if left_out else ""
        seconds = sum(float(case.get("time", 0)) for case in cases)
        text += f"| {title(ROOT / name)} | {len(cases)} | {result} | {seconds:.0f} |\n"
    (ROOT / "docs" / "evidence.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
