"""Started as a script by `relevo serve` and `relevo up`: the HTTP service.

    python -P serving.py       settings in the environment

A script and no module, so that Relevo's `app` is found by its place and not a package `app` of the user's.
"""

import sys
from pathlib import Path


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

    from app import serve
    from workers import service

    service.main(serve.serve)


if __name__ == "__main__":
    main()
