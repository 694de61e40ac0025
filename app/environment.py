"""The environment of the processes that the platform starts."""

from __future__ import annotations

import os
import site
from pathlib import Path

from app.child import READY_FD
from workers.settings import Settings

#: The folder that holds the packages `app`, `ordering` and `workers`.
ROOT = Path(__file__).resolve().parent.parent


def of_settings(settings: Settings) -> dict[str, str]:
    """This process's environment with `settings` in it, and with paths that hold in any working directory."""
    kept = {name: value for name, value in os.environ.items() if name != READY_FD}
    ours: dict[str, object] = {
        "RELEVO_DATABASE_URL": settings.database_url,
        "RELEVO_BROKER_URL": settings.broker_url,
        "RELEVO_HOME": settings.home,
        "RELEVO_HOST": settings.host,
        "RELEVO_PORT": settings.port,
        "RELEVO_EXPORTER_HOST": settings.exporter_host,
        "RELEVO_EXPORTER_PORT": settings.exporter_port,
        "RELEVO_TOKENS_FILE": settings.tokens_file,
        "RELEVO_SHELL_OVER_HTTP": settings.shell_over_http,
        "RELEVO_FLOWER_AUTH": settings.flower_auth,
        "RELEVO_FLOWER_URL": settings.flower_url,
        "RELEVO_GRAFANA_URL": settings.grafana_url,
        "RELEVO_CATALOGUE": settings.catalogue,
        "RELEVO_LOG": settings.log,
    }
    return kept | {name: "" if value is None else str(value) for name, value in ours.items()} | _python_path()


def of_service(settings: Settings, database_url: str, broker_url: str) -> dict[str, str]:
    """As `of_settings`, with the URLs of what runs."""
    urls = {"RELEVO_DATABASE_URL": database_url, "RELEVO_BROKER_URL": broker_url}
    # Output goes through a pipe, where Python would hold it back.
    return of_settings(settings) | urls | {"PYTHONUNBUFFERED": "1"}


def _python_path() -> dict[str, str]:
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    installed = {os.path.realpath(path) for path in [*site.getsitepackages(), site.getusersitepackages()]}
    # A checkout is found by its place. Last, since a user's project may have packages of the same names.
    if str(ROOT) not in installed and str(ROOT) not in paths:
        paths.append(str(ROOT))
    return {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}
