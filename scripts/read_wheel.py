"""Read the newest wheel of a folder and check that it holds what a user needs, and nothing else.

Usage: python scripts/read_wheel.py FOLDER
"""

from __future__ import annotations

import sys
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
METADATA = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE"}


def main() -> int:
    wheels = sorted(Path(sys.argv[1]).glob("*.whl"), key=lambda file: file.stat().st_mtime)
    if not wheels:
        print(f"there is no wheel in {sys.argv[1]}")
        return 1
    with zipfile.ZipFile(wheels[-1]) as wheel:
        names = set(wheel.namelist())
        entry_points = "".join(wheel.read(name).decode() for name in names if name.endswith("/entry_points.txt"))
    # Whatever is there, pages and their styles too: without them the board does not start.
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    sources = {file.relative_to(ROOT).as_posix() for file in files}
    problems = [f"{name} is missing" for name in sorted(sources - names)]
    for name in sorted(names):
        path = PurePosixPath(name)
        if path.parts[0] not in PACKAGES and not (path.parts[0].endswith(".dist-info") and path.name in METADATA):
            problems.append(f"{name} does not belong into the wheel")
    if "relevo = relevo:main" not in entry_points:
        problems.append("the command relevo is missing")
    for problem in problems:
        print(problem)
    print(f"{wheels[-1].name}: {len(names)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
