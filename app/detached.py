"""Started as a script by `relevo up --detach`: leaves its parent, then holds the platform.

    python -P detached.py DESCRIPTOR       settings in the environment; DESCRIPTOR is told, in one line, how the start went

A script and no module, so that Relevo's `app` is found by its place and not a package `app` of the user's.
"""

import os
import sys
from pathlib import Path


def main() -> int:
    report = int(sys.argv[1])
    if os.fork():
        os._exit(0)
    os.set_inheritable(report, False)
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

    from app import platform
    from workers import settings

    return platform.hold_detached(settings.load(), report)


if __name__ == "__main__":
    sys.exit(main())
