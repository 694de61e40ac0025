"""The words of a command line: text, whatever bytes somebody typed."""

from __future__ import annotations

from collections.abc import Sequence

from ordering.errors import RelevoError


class NoText(RelevoError):
    """A word of the command line holds bytes that are no text in the terminal's encoding."""


def check(words: Sequence[str]) -> None:
    """Raise NoText naming the first word that is no text, and the option that it belongs to."""
    for before, word in zip(("", *words), words, strict=False):
        if not word.isascii() and any("\ud800" <= char <= "\udfff" for char in word):
            whose = f"of {before} " if before.startswith("--") and before.isascii() and "=" not in before else ""
            raise NoText(f"The argument {whose}{_shown(word)} holds bytes that are no text; write it in UTF-8.")


def _shown(word: str) -> str:
    shown = word[:80].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return f"'{shown}'"
