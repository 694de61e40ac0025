"""What nobody needs yet is not imported at the start: each import is paid by every worker, feeder and command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LATER = {"alembic", "mako", "httpx", "psutil", "typer"}


@pytest.mark.parametrize("service", ["workers.worker", "workers.feeder"])
def test_costly_imports_come_when_they_are_needed(service: str) -> None:
    code = f"import {service}, workers.builtin, sys; print(*sorted(set(sys.modules) & {LATER!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


def test_a_command_loads_no_broker_no_server_and_no_celery(tmp_path: Path) -> None:
    later = {"redis", "celery", "kombu", "fastapi", "uvicorn", "jinja2", "httpx", "alembic", "structlog"}
    code = f"""import sys
from app import cli
try:
    cli.main()
except SystemExit as end:
    assert end.code == 3, end.code
print(*sorted(set(sys.modules) & {later!r}))"""
    given = {name: value for name, value in os.environ.items() if not name.startswith("RELEVO_")}
    environment = {**given, "RELEVO_HOME": str(tmp_path)}  # where no platform is up
    done = subprocess.run(
        [sys.executable, "-c", code, "plan", "list"], capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    assert done.stdout.split() == []
