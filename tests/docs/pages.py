"""The pages of docs/, read by the tests: their text, the words in their tables, and the routes that they name."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CODE = re.compile(r"`([^`\n]+)`")


def page(name: str) -> str:
    """The text of one page, by its name below docs/."""
    return (DOCS / name).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The cells of all rows of all tables, without heads."""
    found = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in found if not set("".join(cells)) <= set("-| ")]


def named(text: str) -> set[str]:
    """Everything that stands in the first cell of a row as code."""
    return {word for cells in rows(text) for word in CODE.findall(cells[0])}


def routes(text: str) -> set[tuple[str, str]]:
    """Method and path of each route in a table: `GET`, `PATCH /a/{b}` are two, and so are `POST /a/b`, `/c` (the last word differs)."""
    found: set[tuple[str, str]] = set()
    for cells in rows(text):
        methods: list[str] = []
        path = ""
        for word in CODE.findall(cells[0]):
            method, _, rest = word.partition(" ")
            if method.isupper():
                methods = [method] if path else [*methods, method]
                if rest.startswith("/"):
                    path = rest
            elif word.startswith("/") and path:
                path = path.rpartition("/")[0] + word
            else:
                continue
            found |= {(each, path) for each in methods if path}
    return found
