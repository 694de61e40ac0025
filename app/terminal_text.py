"""Text of unknown origin, made safe to show on a terminal: nothing hidden, nothing that steers it."""

from __future__ import annotations

import re

KEPT = frozenset("\u200c\u200d")  # joiners: some scripts and emoji need them, and they steer nothing
LINE_END = re.compile(r"[\r\n\t]+")
COLOUR = re.compile("\x1b\\[[0-9;:]*m")


def one_line(value: str, limit: int = 500) -> str:
    """`value` on one line of at most `limit` characters; control characters and direction overrides are shown as escapes."""
    cut = LINE_END.sub(" ", value[: limit + 1])  # cut before any work: a title may be long
    shown = "".join(_shown(char) for char in cut)
    return shown if len(cut) <= limit and len(shown) <= limit else shown[: limit - 1] + "…"


def many_lines(value: str) -> str:
    """As `one_line` without a limit, but lines and tabs are kept; a program's colours are left out."""
    lines = COLOUR.sub("", value).replace("\r\n", "\n")
    return "".join(char if char in "\n\t" else _shown(char) for char in lines)


def _shown(char: str) -> str:
    return char if char.isprintable() or char in KEPT else char.encode("unicode_escape").decode()
