"""Bring the board's words into the catalogues of messages: `python scripts/words.py` adds what is new and drops what is not said any more.

With `--check` nothing is written; it ends with 1 and names what a catalogue lacks.
"""

from __future__ import annotations

import re
import sys
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from babel.messages.catalog import Catalog, Message  # noqa: E402 - the project may not be installed
from babel.messages.extract import extract_from_dir  # noqa: E402
from babel.messages.pofile import read_po, write_po  # noqa: E402

from app import language, problem  # noqa: E402

VARYING = re.compile(r'"(POT-Creation|PO-Revision|Project-Id|Report-Msgid|Last-Tr|Language-Team|Generated)')
HEADER = "# Words of Relevo's board. `make words` adds what is new; write the translation behind msgstr.\n"
METHODS = [("templates/**.html", "jinja2"), ("**.py", "python")]
KEYWORDS: dict[str, Any] = {"_": None, "gettext": None, "ngettext": (1, 2), "pgettext": ((1, "c"), 2)}
PLACEHOLDER = re.compile(r"%\((\w+)\)[a-z]|\{(\w+)\}")


class Said(NamedTuple):
    """A message: what it is said of where one word of English is several of another language, and its plural if it has one."""

    text: str
    plural: str = ""
    context: str | None = None

    @property
    def id(self) -> str | tuple[str, str]:
        """What a catalogue knows it by."""
        return (self.text, self.plural) if self.plural else self.text


def said() -> dict[Said, list[str]]:
    """Every message of templates and code, and the files that say it."""
    found: dict[Said, list[str]] = {}
    for file, _line, message, _comments, context in extract_from_dir(str(ROOT / "app"), METHODS, {}, KEYWORDS):
        parts = message if isinstance(message, tuple) else (message,)
        if parts[0].strip():
            found.setdefault(Said(parts[0], parts[1] if len(parts) > 1 else "", context), []).append(file)
    for kind in (*problem.KINDS.values(), *problem.OF_STATUS.values(), problem.DEFECT):
        found.setdefault(Said(kind.title), []).append("problem.py")
    return found


def catalogue(name: str) -> Catalog:
    """The messages of a language as they stand in its file."""
    path = file_of(name)
    if not path.exists():
        return Catalog(locale=name)
    with path.open("rb") as source:
        return read_po(source, locale=name)


def file_of(name: str) -> Path:
    """Where a language's messages are."""
    return language.LOCALE / name / "LC_MESSAGES" / "relevo.po"


def lacking(name: str) -> list[str]:
    """What is wrong with a catalogue, one sentence each."""
    known, messages = catalogue(name), said()
    wrong = []
    for each, files in messages.items():
        message = known.get(each.text, each.context)
        strings = [] if message is None else _strings(message)
        if message is None or message.fuzzy or not strings or not all(strings):
            wrong.append(f"{name}: {each.text!r} has no translation ({', '.join(sorted(set(files)))}).")
        elif bool(each.plural) != message.pluralizable:
            wrong.append(f"{name}: {each.text!r} is said with a plural in one place and without one in another.")
        elif any(placeholders(string) - placeholders(each.text, each.plural) for string in strings):
            wrong.append(f"{name}: {each.text!r} and its translation have other placeholders.")
    spoken = {(each.text, each.context) for each in messages}
    return wrong + [
        f"{name}: {each.id!r} is not said any more." for each in known if each.id and (_first(each), each.context) not in spoken
    ]


def placeholders(*texts: str) -> set[str]:
    """The names in the texts that are filled in."""
    return {found[1] or found[2] for each in texts for found in PLACEHOLDER.finditer(each)}


def _strings(message: Message) -> list[str]:
    return list(message.string) if isinstance(message.string, (tuple, list)) else [message.string or ""]


def _first(message: Message) -> str:
    return str(message.id[0] if isinstance(message.id, (tuple, list)) else message.id)


def update(name: str) -> None:
    """Write a language's file anew: what is said, in the order of the words, with the translations that are known."""
    known = catalogue(name)
    fresh = Catalog(locale=name, header_comment=HEADER, charset="utf-8", fuzzy=False)
    # CLDR has a third form, of millions, which nothing here needs.
    fresh._num_plurals = 2  # type: ignore[assignment]
    fresh._plural_expr = "(n != 1)"  # type: ignore[assignment]
    for each in sorted(said(), key=lambda each: (each.text.lower(), each.context or "")):
        old = known.get(each.text, each.context)
        kept = None if old is None or old.pluralizable != bool(each.plural) else old.string
        fresh.add(each.id, kept or (("", "") if each.plural else ""), context=each.context)
    written = BytesIO()
    write_po(written, fresh, width=0, sort_output=False)
    # Dates and versions would differ each time.
    lines = [each for each in written.getvalue().decode().splitlines() if not VARYING.match(each)]
    file_of(name).parent.mkdir(parents=True, exist_ok=True)
    file_of(name).write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def main() -> int:
    """Update, or check, every language but the source."""
    wrong: list[str] = []
    for name in sorted(set(language.NAMES) - {language.SOURCE}):
        if "--check" not in sys.argv:
            update(name)
        wrong += lacking(name)
    print("\n".join(wrong) if wrong else "Every word has its translation.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
