"""Bring the board's words into the catalogues of messages: `python scripts/words.py` adds what is new and drops what is not said any more.

With `--check` nothing is written; it ends with 1 and names what a catalogue lacks.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from babel.messages.catalog import Catalog, Message  # noqa: E402 - the project may not be installed
from babel.messages.extract import extract_from_dir  # noqa: E402
from babel.messages.pofile import read_po, write_po  # noqa: E402

from app import language, problem  # noqa: E402

HEADER = "# Words of Relevo's board. `make words` adds what is new; write the translation behind msgstr.\n"
METHODS = [("templates/**.html", "jinja2"), ("**.py", "python")]
KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2)}
PLACEHOLDER = re.compile(r"%\((\w+)\)[a-z]|\{(\w+)\}")
Key = str | tuple[str, str]


def said() -> dict[Key, list[str]]:
    """Every message of templates and code, and the files that say it."""
    found: dict[Key, list[str]] = {}
    for file, _line, message, _comments, _context in extract_from_dir(str(ROOT / "app"), METHODS, {}, KEYWORDS):
        key: Key = tuple(message) if isinstance(message, tuple) else message  # type: ignore[assignment]
        if key and (isinstance(key, tuple) or key.strip()):
            found.setdefault(key, []).append(file)
    for kind in (*problem.KINDS.values(), *problem.OF_STATUS.values(), problem.DEFECT):
        found.setdefault(kind.title, []).append("problem.py")
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
    for key in messages:
        singular = key[0] if isinstance(key, tuple) else key
        message = known.get(singular)
        strings = [] if message is None else list(message.string) if isinstance(message.string, (tuple, list)) else [message.string]
        if message is None or message.fuzzy or not strings or not all(strings):
            wrong.append(f"{name}: {singular!r} has no translation ({', '.join(sorted(set(messages[key])))}).")
        elif isinstance(key, tuple) != message.pluralizable:
            wrong.append(f"{name}: {singular!r} is said with a plural in one place and without one in another.")
        else:
            wrong += [f"{name}: {singular!r} and its translation have other placeholders." for each in strings if names(each) - names(*_parts(key))]
    spoken = {key[0] if isinstance(key, tuple) else key for key in messages}
    wrong += [f"{name}: {message.id!r} is not said any more." for message in known if message.id and _first(message) not in spoken]
    return wrong


def names(*texts: str) -> set[str]:
    """The placeholders in the texts."""
    return {found[1] or found[2] for each in texts for found in PLACEHOLDER.finditer(each)}


def _parts(key: Key) -> tuple[str, ...]:
    return key if isinstance(key, tuple) else (key,)


def _first(message: Message) -> str:
    return str(message.id[0] if isinstance(message.id, (tuple, list)) else message.id)


def update(name: str) -> None:
    """Write a language's file anew: what is said, in the order of the words, with the translations that are known."""
    known = catalogue(name)
    fresh = Catalog(locale=name, header_comment=HEADER, charset="utf-8", fuzzy=False)
    fresh._num_plurals, fresh._plural_expr = 2, "(n != 1)"  # CLDR has a third form, of millions, which nothing here needs
    for key in sorted(said(), key=lambda key: _parts(key)[0].lower()):
        old = known.get(_parts(key)[0])
        keeps = old is not None and old.pluralizable == isinstance(key, tuple)
        fresh.add(key, old.string if keeps and old is not None else ("", "") if isinstance(key, tuple) else "")
    file_of(name).parent.mkdir(parents=True, exist_ok=True)
    with file_of(name).open("wb") as target:
        write_po(target, fresh, width=0, omit_header=False, sort_output=False)
    text = file_of(name).read_text(encoding="utf-8")
    # Dates and versions would differ each time.
    kept = [line for line in text.splitlines() if not re.match(r'"(POT-Creation|PO-Revision|Project-Id|Report-Msgid|Last-Tr|Generated)', line)]
    file_of(name).write_text("\n".join(kept).rstrip() + "\n", encoding="utf-8")


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
