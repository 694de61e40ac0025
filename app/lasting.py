"""A length of time as people write it, and as `given.duration` reads it."""

from __future__ import annotations

from datetime import timedelta


def lasting(length: timedelta) -> str:
    """`length` in days, hours, minutes and seconds: 30d, 1h30m, 0s."""
    left, said = length.total_seconds(), ""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if left >= size:
            said += f"{int(left // size)}{unit}"
            left %= size
    return said + f"{left:g}s" if left or not said else said
