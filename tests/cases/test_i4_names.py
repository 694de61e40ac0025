"""I4: titles in every script come back as they were given, and nothing in them reaches a neighbour or the terminal."""

import json
import unicodedata

import pytest

from ordering import add, items
from ordering.errors import Invalid
from ordering.items import Edit
from ordering.model import NewItem
from tests.cases import commandline
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit
from tests.cases.line import act, shown

OVERRIDE = "\N{RIGHT-TO-LEFT OVERRIDE}"
NAMES = {
    "arabic": "\u062a\u0642\u0631\u064a\u0631 123 \u0661\u0662\u0663",
    "unclosed override": f"invoice{OVERRIDE}gpj.exe",
    "family": "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}\u200d\N{BOY}",
    "combining": "a" + "\N{COMBINING ACUTE ACCENT}" * 200,
    "long": "\N{GREEK SMALL LETTER OMEGA}" * 10_000,
    "newline and tab": "one\ntwo\tthree\r\nfour",
    "dotted i": "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}stanbul \N{LATIN SMALL LETTER DOTLESS I}",
    "decomposed": unicodedata.normalize("NFD", "\N{LATIN SMALL LETTER E WITH ACUTE}") + "te\N{LATIN SMALL LETTER E WITH ACUTE}",
    "terminal": "\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b2J",
    "markup": "[bold]not bold[/bold] <script>alert(1)</script> :smile: {0} %s",
    "spaces around": "  both  ",
}
INVISIBLE = ["\u200b", "\u200b\u200d\ufeff", " \t ", "\u202e", "\u2060\u00ad", "\u0301"]


@pytest.fixture
def named(kit: Kit) -> dict[str, int]:
    """An item of each name, beside a neighbour with an ordinary one."""
    kit.plan("a", start=False)
    return {name: kit.add_many("a", [NewItem("probe.nap", title=title), NewItem("probe.nap", title="neighbour")], start=False)[0]
            for name, title in NAMES.items()}  # fmt: skip


def test_as_given_or_refused(kit: Kit, named: dict[str, int]) -> None:
    for name, item in named.items():
        assert kit.item(item).title == NAMES[name]
        act(kit, items.edit, item, Edit(title="x"), actor=ACTOR)
        act(kit, items.edit, item, Edit(title=NAMES[name]), actor=ACTOR)
        assert kit.item(item).title == NAMES[name]
        assert kit.sql("select after->>'title' as title from relevo.event order by id desc limit 1")[0].title == NAMES[name]
    before = shown(kit, "a")
    for title in (*INVISIBLE, "x" * 12_001):
        with pytest.raises(Invalid, match=r"^title: "):
            act(kit, add.add, "a", NewItem("probe.nap", title=title), actor=ACTOR)
        with pytest.raises(Invalid, match=r"^title: "):
            act(kit, items.edit, before[0], Edit(title=title), actor=ACTOR)
    assert shown(kit, "a") == before, "names have no say in the order"
    checks(kit)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_the_command_line_in_any_locale(kit: Kit, named: dict[str, int], locale: str) -> None:
    environment = {"LANG": locale, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    out, err = commandline.call(kit, "plan", "show", "a", "--limit", "100", environment=environment)
    assert err == ""
    assert harmless(out)
    rows = [line for line in out.splitlines() if line.split()[1:2] == ["waiting"]]
    assert len(rows) == 2 * len(NAMES), "each item has one line"
    assert len([line for line in rows if "neighbour" in line]) == len(NAMES)
    for name in ("unclosed override", "terminal"):
        out, _ = commandline.call(kit, "show", str(named[name]), environment=environment)
        assert harmless(out)
    out, _ = commandline.call(kit, "plan", "show", "a", "--limit", "100", "--json", environment=environment)
    titles = {item["id"]: item["title"] for item in json.loads(out)["line"]}
    assert [titles[item] for item in named.values()] == [title[:500] for title in NAMES.values()], "a list cuts at 500 characters"
    out, _ = commandline.call(kit, "show", str(named["long"]), "--json", environment=environment)
    assert json.loads(out)["item"]["title"] == NAMES["long"]
    checks(kit)


def test_given_on_the_command_line(kit: Kit) -> None:
    kit.plan("a", start=False)
    for name in ("arabic", "unclosed override", "terminal"):
        (answer,) = commandline.rows(kit, "add", "a", "shell", "--title", NAMES[name])
        assert kit.item(answer["id"]).title == NAMES[name]
    file = kit.folder / "items.jsonl"
    file.write_text("".join(json.dumps({"task": "shell", "title": title}, ensure_ascii=False) + "\n" for title in NAMES.values()))
    added = commandline.rows(kit, "add", "a", "--from", str(file))
    assert [kit.item(each["id"]).title for each in added] == list(NAMES.values())
    for title in INVISIBLE[:2]:
        _, said = commandline.call(kit, "add", "a", "shell", "--title", title, code=2)
        assert said.startswith("relevo: title: ")
        assert harmless(said)
    assert len(shown(kit, "a")) == len(NAMES) + 3
    checks(kit)


def harmless(written: str) -> bool:
    """Nothing that steers a terminal or turns the direction of what follows."""
    steering = {char for char in written if not char.isprintable() and char not in "\n\u200c\u200d"}
    assert not steering, steering
    return True
