"""Flower beside the platform: what it shows is what the workers tell through the broker. `python -P -m workers.flower`.

It reads only: who wants to act does so in the plan, where every act is checked and kept in the trail.
"""

from __future__ import annotations

import argparse
import atexit
import importlib
import importlib.util
import logging
import signal
import sys
from types import ModuleType
from typing import Any

from ordering.model import DEFAULT_QUEUE
from workers import service
from workers.celeryapp import celery
from workers.loopback import is_loopback
from workers.settings import Settings, SettingsError

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 5555
COLUMNS = "name,args,kwargs,state,result,received,started,runtime,worker,uuid"

logger = logging.getLogger(__name__)


class NoFlower(SettingsError):
    """It is not installed."""

    def __init__(self) -> None:
        super().__init__("Flower is not installed: install it with `pip install 'relevo[flower]'`.")


def parser() -> argparse.ArgumentParser:
    """The options of `relevo flower`."""
    made = argparse.ArgumentParser(prog="relevo flower", description="Run Flower for what passes through the broker.")
    made.add_argument("--host", default=DEFAULT_HOST, help="where to listen; beyond this machine only with RELEVO_FLOWER_AUTH")
    made.add_argument("--port", type=int, default=DEFAULT_PORT, help="at which port")
    return made


def run(settings: Settings) -> int:
    """Serve until TERM or INT. Raises SettingsError where it cannot listen, or would let anybody in."""
    chosen = parser().parse_args()
    if settings.flower_auth is None and not is_loopback(chosen.host):
        raise SettingsError(
            f"--host is {chosen.host!r}, which others can reach: set RELEVO_FLOWER_AUTH to user:password, or leave --host out to serve "
            "this machine only."
        )
    celery.conf.update(broker_url=settings.require_broker(), task_default_queue=DEFAULT_QUEUE)
    served = _made(settings, chosen)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        served.start_http_server()
    except OSError as error:
        raise SettingsError(f"--host and --port: {chosen.host}:{chosen.port} cannot be listened on ({error.strerror}).") from None
    logger.info("Serving Flower at http://%s:%s", chosen.host, chosen.port)
    service.say_ready()
    served.start()
    return 0


def _made(settings: Settings, chosen: argparse.Namespace) -> Any:
    if importlib.util.find_spec("flower") is None:
        raise NoFlower
    command, options, urls = (_part(each) for each in ("command", "options", "urls"))
    # Whatever else Flower can be told comes by its own variables, FLOWER_...; what ours are for is ours.
    command.apply_env_options()
    told = options.options
    told.address, told.port, told.read_only, told.tasks_columns = chosen.host, chosen.port, True, COLUMNS
    told.basic_auth = [settings.flower_auth] if settings.flower_auth else []
    command.extract_settings()
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    made = _part("app").Flower(capp=celery, options=told, **urls.settings)
    atexit.register(made.stop)
    return made


def _part(name: str) -> ModuleType:
    return importlib.import_module(f"flower.{name}")


if __name__ == "__main__":
    service.main(run)
