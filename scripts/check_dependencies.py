"""Check what the project needs: every requirement is installed in a fitting version, and pinned in the lock.

Usage: python scripts/check_dependencies.py [--lock]
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent


def declared() -> list[Requirement]:
    """What pyproject.toml asks for, with the development tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [Requirement(each) for each in project["project"]["dependencies"] + project["dependency-groups"]["dev"]]


def against_installed() -> tuple[int, list[str]]:
    """How many distributions are needed in all, and what is wrong with them."""
    wanted, seen, problems = declared(), set[str](), list[str]()
    while wanted:
        requirement = wanted.pop()
        extras = requirement.extras or {""}
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        try:
            found = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:
            problems.append(f"{requirement} is not installed")
            continue
        if not requirement.specifier.contains(found.version, prereleases=True):
            problems.append(f"{requirement} is needed, and {found.version} is installed")
        if requirement.name not in seen:
            seen.add(requirement.name)
            inner = [Requirement(each) for each in found.requires or []]
            wanted += [each for each in inner if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)]
    return len(seen), problems


def against_lock() -> tuple[int, list[str]]:
    """How many requirements pyproject.toml has, and which of them the lock does not pin as asked."""
    lock = (ROOT / "requirements.lock").read_text()
    pinned = {canonicalize_name(name): version for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock, re.M)}
    problems = []
    for requirement in declared():
        version = pinned.get(canonicalize_name(requirement.name))
        if version is None:
            problems.append(f"{requirement} is not in the lock")
        elif not requirement.specifier.contains(version, prereleases=True):
            problems.append(f"{requirement} is asked for, and the lock pins {version}")
    return len(declared()), problems


def main() -> int:
    count, problems = against_lock() if "--lock" in sys.argv[1:] else against_installed()
    for problem in problems:
        print(problem)
    print(f"{count} requirements, {len(problems)} wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
