"""JSON as people read it: indented, cut where it is long, in pieces of one kind each, so that a page can colour them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ordering.model import Json

SHOWN = 10_000  # characters
TOKEN = re.compile(r'("(?:\\.|[^"\\])*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null)|([^"\d\-tfn]+|.)', re.DOTALL)
# What turns the direction of its neighbours, or is not to be seen: as the escape that JSON has for it.
HIDDEN = re.compile("[\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


@dataclass(frozen=True)
class Piece:
    """A part of the text and what it is: `k` a key, `s` a text, `n` a number or a word, or nothing."""

    kind: str
    text: str


@dataclass(frozen=True)
class JsonText:
    """The pieces, the whole length in characters, and how many characters were left out at the end."""

    pieces: list[Piece]
    length: int
    left_out: int

    @property
    def lines(self) -> int:
        """How many lines are shown."""
        return 1 + sum(piece.text.count("\n") for piece in self.pieces)


def readable(value: Json, shown: int = SHOWN) -> JsonText:
    """`value`, indented."""
    try:
        written = json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:  # what `ordering` stores is never nested so deeply
        written = json.dumps(str(value))
    return _pieces(written, shown)


def editable(value: Json) -> str:
    """`value` as a form holds it: indented, whole, what is not to be seen as escapes."""
    return _escaped(json.dumps(value, ensure_ascii=False, indent=2))


def _escaped(written: str) -> str:
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def of_text(written: str, shown: int = SHOWN) -> JsonText:
    """JSON that is text already: indented where it is whole, as it is where it was cut off."""
    try:
        return readable(json.loads(written), shown)
    except (ValueError, RecursionError):
        return _pieces(written, shown)


def _pieces(written: str, shown: int) -> JsonText:
    written = _escaped(written)
    cut = written[:shown]
    pieces: list[Piece] = []
    for text, colon, number, word, other in TOKEN.findall(cut):
        if text:
            pieces.append(Piece("k" if colon else "s", text))
        kind = "n" if number or word else ""
        rest = colon or number or word or ("" if text else other)
        if rest and pieces and pieces[-1].kind == kind == "":
            pieces[-1] = Piece("", pieces[-1].text + rest)
        elif rest:
            pieces.append(Piece(kind, rest))
    return JsonText(pieces, len(written), len(written) - len(cut))
