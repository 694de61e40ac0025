"""The command `relevo`. It has a package of its own so that a user's package `app`, found first, is not taken for ours."""

import sys
from pathlib import Path


def main() -> None:
    """Run the command line."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from app.cli import main as run

    run()
