"""The command `relevo`. It has a package of its own so that a user's package `app`, found first, is not taken for ours."""

import signal
import sys
from pathlib import Path


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while the modules are loaded ends the process without a word
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from app.cli import main as run

    run()
