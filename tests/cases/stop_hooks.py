"""A module of a project that is in the way of a worker's stop, as the environment says."""

import os
import threading
import time
from pathlib import Path

from celery import signals

if "PROBE_THREAD" in os.environ:
    threading.Thread(target=threading.Event().wait, name="never-ends").start()


@signals.worker_process_init.connect(weak=False)
def start_late(**_: object) -> None:
    """A pool process is not ready as long as the file exists."""
    held = Path(os.environ.get("PROBE_HELD", "/nonexistent"))
    while held.exists():
        time.sleep(0.02)
