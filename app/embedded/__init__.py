"""Real servers for a machine that has none: PostgreSQL and Valkey out of wheels, as child processes of whoever asks.

Neither class starts anything by itself: `prepare()` makes the folder ready, `command()` and `env()` say what to run in the
foreground, `ready()` says whether it answers. `running()` does all of it for callers without a supervisor.
"""

from app.embedded.postgres import Postgres
from app.embedded.server import EmbeddedError, Server, running, start_and_wait, stop
from app.embedded.valkey import Valkey

__all__ = ["EmbeddedError", "Postgres", "Server", "Valkey", "running", "start_and_wait", "stop"]
