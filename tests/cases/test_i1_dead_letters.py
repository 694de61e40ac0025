"""I1 with dead letters: whatever stands in their errors, arguments and titles is kept, shown as text, and harms no neighbour."""

import json

import pytest

from ordering.model import NewItem, State
from tests.cases import commandline
from tests.cases.checks import checks
from tests.cases.kit import Kit

# What a body may raise, and what is shown of it on a terminal.
ODD = {
    "unstorable": ("a\0b\ud83dc", "a\ufffdb\ufffdc"),
    "steering": ("a\u202etxt\u2066\x1b[2J\x07b", "a\\u202etxt\\u2066\\x1b[2J\\x07b"),
    "markup": ("[red]a[/red] <b> {x} %s", "[red]a[/red] <b> {x} %s"),
    "long": ("y" * 10_000, "y" * 100),
}
STORABLE = ("steering", "markup", "long")
HIDDEN = {"\x1b", "\x07", "\u202e", "\u2066", "\0"}


@pytest.fixture
def mails(kit: Kit) -> Kit:
    """A stream `mails` whose items have one try, and a worker with the tasks that raise what they are told."""
    catalogue = str(kit.catalogue(("tests.cases.probe_tasks", "tests.cases.text_tasks"), name="text.toml"))
    kit.up(workers=1, slots=2, RELEVO_CATALOGUE=catalogue)
    kit.plan("mails", concurrency=4, max_attempts=1)
    return kit


def test_what_a_letter_holds_is_shown_literally_and_its_neighbours_live(mails: Kit) -> None:
    new = [NewItem("text.fail", [json.dumps(odd)], title=odd if name in STORABLE else "") for name, (odd, _) in ODD.items()]
    items = mails.add_many("mails", [*new, NewItem("probe.nap")])
    for item in items[:-1]:
        mails.wait_state(item, State.FAILED, seconds=30)
    mails.wait_state(items[-1], State.SUCCEEDED, seconds=30)
    listed, _ = commandline.call(mails, "dead", "list")
    grouped, _ = commandline.call(mails, "dead", "list", "--groups")
    assert not HIDDEN & set(listed + grouped)
    assert len(listed.splitlines()) == 1 + len(ODD), "one line for each letter"
    rows = {row["id"]: row for row in commandline.rows(mails, "dead", "list")}
    for item, (name, (odd, shown)) in zip(items, ODD.items(), strict=False):
        if name in ("unstorable", "steering"):
            whole, _ = commandline.call(mails, "dead", "show", str(item))
            assert f"    ValueError: {shown}" in whole
            assert not HIDDEN & set(whole)
        kept = odd.replace("\0", "\ufffd").replace("\ud83d", "\ufffd")
        assert rows[item]["error"].startswith(f"ValueError: {kept}"[:500])
        assert rows[item]["title"] == (odd[:500] if name in STORABLE else "")
    mails.retry(items[0])
    mails.wait_state(items[0], State.FAILED, seconds=30)
    group = rows[items[1]]["group"]
    said, _ = commandline.call(mails, "dead", "skip", "--group", group, "--note", ODD["steering"][0])
    assert said == "Skipped: 1 dead letter.\n"
    assert [mails.state(item) for item in items[:3]] == [State.FAILED, State.SKIPPED, State.FAILED]
    checks(mails, in_order=False)


def test_other_arguments_that_cannot_be_stored_are_refused_by_name(mails: Kit) -> None:
    item = mails.add("mails", "text.fail", json.dumps("x"))
    mails.wait_state(item, State.FAILED, seconds=30)
    for option, given in (("--args", '["a\\u0000b"]'), ("--args", '["\\ud83d"]'), ("--kwargs", '{"a\\u0000": 1}')):
        _, said = commandline.call(mails, "dead", "retry", str(item), option, given, code=2)
        assert said == "relevo: args: holds a NUL character or half a surrogate pair, which cannot be stored; remove it.\n"
    assert (mails.state(item), mails.item(item).replays) == (State.FAILED, 0)
    checks(mails, in_order=False)
