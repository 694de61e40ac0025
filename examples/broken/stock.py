"""A stocktaking that fails until it is repaired: `count` wants a sheet with figures, and `prepare` leaves it empty.

Usage: python3 stock.py prepare|count|repair|report
"""

import sys
from pathlib import Path

SHEET = Path(__file__).parent / "build" / "sheet.txt"


def prepare() -> None:
    """Lay out an empty sheet."""
    SHEET.parent.mkdir(exist_ok=True)
    SHEET.write_text("")


def count() -> None:
    """Add the figures up; fail where there are none."""
    figures = SHEET.read_text().split()
    if not figures:
        sys.exit(f"{SHEET.name} holds no figures")
    print(sum(map(int, figures)))


def repair() -> None:
    """Fill in the figures and count them."""
    SHEET.write_text("3\n5\n8\n")
    count()


def report() -> None:
    """Say what was counted."""
    print(f"stock: {len(SHEET.read_text().split())} kinds")


if __name__ == "__main__":
    {"prepare": prepare, "count": count, "repair": repair, "report": report}[sys.argv[1]]()
