"""A program for the supervisor's tests: supervises the stand-in services that its argument describes, until a signal ends it.

Argument: a JSON list of {name, code, within, start}; `code` is Python, with `ready()` and `say(text)` at hand; `within` and `start`: the
seconds that it may take to stop and to be ready. They are started one after the other, and all together when a second argument is
there. Exit code: 0, 1 when one of them had to be killed, 3 with a sentence when one did not start.
"""

import json
import os
import sys

from app.child import Service
from app.servicelog import ServiceLog
from app.supervise import ServiceFailed, StopAsked, Supervisor

PRELUDE = """
import os, signal, subprocess, sys, time
def say(text):
    print(text, flush=True)
def ready():
    os.write(int(os.environ["RELEVO_READY_FD"]), b"1")
def wait():
    while True:  # not pause(), which hears nothing of a signal that came just before it
        time.sleep(0.05)
"""


def service(name: str, code: str, within: float) -> Service:
    return Service(name, lambda: [sys.executable, "-c", PRELUDE + code], lambda: dict(os.environ), stop_within=lambda: within)


def main() -> int:
    told = json.loads(sys.argv[1])
    bounds = [each.pop("start") for each in told]
    services = [service(**each) for each in told]
    with ServiceLog() as log, Supervisor(log) as supervisor:
        try:
            for together, within in [(services, max(bounds))] if sys.argv[2:] else zip([[each] for each in services], bounds, strict=True):
                supervisor.start(together, within=within)
            log.note("all started")
            supervisor.run()
        except ServiceFailed as error:
            log.note(f"failed: {error}")
            return 3
        except StopAsked:
            log.note("stopped early")
        return 0 if supervisor.stop() else 1


if __name__ == "__main__":
    sys.exit(main())
