"""A program for the platform's tests: one call of `app.platform` with the settings of the environment, its answer as JSON.

Exit code: the call's own where it has one, that of its error (with the sentence on stdout), else 0.
"""

import json
import sys
from dataclasses import asdict, is_dataclass
from typing import Any

from app import platform
from app.home import PlatformError
from workers import settings


def main() -> int:
    chosen = settings.load()
    calls: dict[str, Any] = {
        "up": lambda: platform.up(chosen),
        "detach": lambda: platform.up(chosen, detach=True),
        "ensure": lambda: platform.ensure_up(chosen),
        "down": lambda: platform.down(chosen),
        "status": lambda: platform.status(chosen),
        "urls": lambda: platform.urls(chosen),
    }
    try:
        answer = calls[sys.argv[1]]()
    except PlatformError as error:
        print(error)  # noqa: T201
        return error.exit_code
    print(json.dumps(asdict(answer) if is_dataclass(answer) and not isinstance(answer, type) else answer, default=str))  # noqa: T201
    if isinstance(answer, platform.Status):
        return answer.exit_code
    return answer if type(answer) is int else 0


if __name__ == "__main__":
    sys.exit(main())
