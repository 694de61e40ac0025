"""What a service does not need is not imported by its start: each import is paid by every worker and feeder."""

import subprocess
import sys

import pytest

LATER = {"alembic", "mako", "httpx", "psutil", "typer"}


@pytest.mark.parametrize("service", ["workers.worker", "workers.feeder"])
def test_costly_imports_come_when_they_are_needed(service: str) -> None:
    code = f"import {service}, workers.builtin, sys; print(*sorted(set(sys.modules) & {LATER!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []
