"""The command line as a person calls it: a process of its own."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tests.cases.kit import Kit

LONGEST = 60.0  # seconds that any command may take; a hang is a defect


def popen(kit: Kit, *arguments: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    """Begin `relevo` with these arguments on the case's database; `environment` changes what it is given."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "app.cli", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=kit.folder, env=kit.environment(**(environment or {})),
    )  # fmt: skip


def call(kit: Kit, *arguments: str, code: int = 0, environment: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Run `relevo` with these arguments and expect the exit code; what it wrote to its output (a pipe) and to stderr."""
    process = popen(kit, *arguments, environment=environment)
    try:
        out, err = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"relevo {arguments[:3]} did not end within {LONGEST} s") from None
    assert process.returncode == code, f"relevo {arguments[:3]} ended with {process.returncode}: {err[-3000:]!r}"
    assert b"Traceback" not in err
    return out.decode(), err.decode()


def rows(kit: Kit, *arguments: str) -> list[Any]:
    """The lines of JSON that `relevo ... --json` prints."""
    return [json.loads(line) for line in call(kit, *arguments, "--json")[0].splitlines()]
