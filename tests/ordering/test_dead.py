"""Dead letters: which items are some, page by page, and grouped by what they died of."""

import pytest
from sqlalchemy import Connection, text

from ordering import audit, dead, items, lines, plans
from ordering.dead import BEFORE_ALL, Cursor, Which
from ordering.decide import Failed
from ordering.errors import Invalid, NotStream, UnknownPlan
from ordering.model import OnInterrupt, State
from ordering.refused import refused
from tests.ordering.acts import ACTOR, BROKEN, DONE, TOMORROW, bring, end, ids, lose, plan, put, run
from tests.ordering.letters import die, stream

ALL = Which()
CLOSE = text("update relevo.session set lost_at = now(), closed_at = :closed_at")


def listed(tx: Connection, chosen: Which = ALL) -> list[int]:
    return ids(dead.letters(tx, chosen, limit=100).letters)


def test_what_a_stream_gave_up_is_a_dead_letter(tx: Connection) -> None:
    stream(tx)
    (item_id,) = put(tx, plan="mails", title="To Ops", kwargs={"to": "ops"})
    assert end(tx, BROKEN, "mails") == item_id
    (letter,) = dead.letters(tx, ALL, limit=10).letters
    assert (letter.id, letter.plan, letter.state, letter.title) == (item_id, "mails", State.FAILED, "To Ops")
    assert (letter.arguments, letter.error, letter.attempts, letter.replays) == ('{"to": "ops"}', "it broke", 1, 0)
    assert letter.since == tx.execute(text("select ended_at from relevo.attempt")).scalar_one()
    assert letter.since == lines.unresolved(tx, items.get(tx, item_id).plan_id)[0].since
    assert dead.letter(tx, item_id) == letter


def test_what_runs_again_by_itself_is_none(tx: Connection) -> None:
    plan(tx, "mails", concurrency=4, max_attempts=2)
    put(tx, plan="mails")
    end(tx, BROKEN, "mails")
    assert listed(tx) == []


def test_what_its_task_gave_up_is_one_with_tries_left(tx: Connection) -> None:
    plan(tx, "mails", concurrency=4, max_attempts=5)
    put(tx, plan="mails")
    item_id = end(tx, Failed("Refused", "no", final=True), "mails")
    assert listed(tx) == [item_id]


def test_an_interruption_is_one_once_nothing_can_take_it_up_again(tx: Connection) -> None:
    stream(tx)
    (item_id,) = put(tx, plan="mails", on_interrupt=OnInterrupt.HOLD)
    lose(tx, run(tx, "mails"))
    tx.execute(CLOSE, {"closed_at": None})
    assert listed(tx) == []
    assert dead.count(tx, ALL) == 0
    assert dead.groups(tx, ALL, limit=10) == []
    assert dead.letter(tx, item_id) is None
    tx.execute(CLOSE, {"closed_at": TOMORROW})
    assert listed(tx) == [item_id]
    (cause,) = dead.groups(tx, ALL, limit=10)
    assert cause.pattern == "process lost: session #, host host, process #, worker worker, open since # UTC"


@pytest.mark.parametrize("kind", [each for each in State if each is not State.RUNNING])
def test_no_item_of_a_serial_plan_is_one(tx: Connection, kind: State) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    item_id = bring(tx, kind)
    assert listed(tx) == []
    assert dead.letter(tx, item_id) is None


@pytest.mark.parametrize("kind", [State.WAITING, State.POSTPONED, State.CANCELLED, State.SKIPPED, State.RESOLVED, State.SUCCEEDED])
def test_what_waits_or_is_settled_is_none(tx: Connection, kind: State) -> None:
    stream(tx)
    if kind is State.SUCCEEDED:
        put(tx, plan="mails")
        end(tx, DONE, "mails")
    else:
        bring(tx, kind, "mails")
    assert listed(tx) == []


def test_pages_hold_each_letter_once_in_order_whatever_is_decided_between_them(tx: Connection) -> None:
    stream(tx)
    stream(tx, "thumbs")
    of_mails, of_thumbs = die(tx, ["a"] * 5), die(tx, ["a"] * 5, plan="thumbs")
    found: list[int] = []
    after = None
    while True:
        page = dead.letters(tx, ALL, limit=3, after=after)
        found += ids(page.letters)
        assert page.next is None or str(page.next) == page.letters[-1].cursor
        if page.next is None:
            break
        after = Cursor.parse(str(page.next))
        tx.execute(text("update relevo.item set state = 'skipped', settled_at = now() where id = :id"), {"id": found[-1]})
    assert found == of_mails + of_thumbs


def test_a_cursor_of_another_plan_is_behind_none_or_all_of_this_one(tx: Connection) -> None:
    mails, thumbs = stream(tx), stream(tx, "thumbs")
    of_mails, of_thumbs = die(tx, ["a"]), die(tx, ["a"], plan="thumbs")
    of = {mails: of_mails, thumbs: of_thumbs}
    for plan_id in of:
        for cursor in (Cursor(mails, BEFORE_ALL.position), Cursor(mails, -BEFORE_ALL.position), Cursor(thumbs, BEFORE_ALL.position)):
            behind = cursor.plan_id < plan_id or (cursor.plan_id == plan_id and cursor.position < 0)
            assert ids(dead.letters(tx, Which(plan_id), limit=5, after=cursor).letters) == (of[plan_id] if behind else [])


def test_a_page_that_ends_exactly_at_the_end_has_no_next(tx: Connection) -> None:
    stream(tx)
    die(tx, ["a"] * 3)
    assert dead.letters(tx, ALL, limit=3).next is None
    assert dead.letters(tx, ALL, limit=0).letters == []


def test_letters_are_chosen_by_plan_and_group(tx: Connection) -> None:
    mails, thumbs = stream(tx), stream(tx, "thumbs")
    a1, b1 = die(tx, ["no 1", "gone"])
    a2, b2 = die(tx, ["no 2", "gone"], plan="thumbs")
    group = dead.letters(tx, ALL, limit=1).letters[0].group
    assert listed(tx, dead.which(tx, plan="mails")) == [a1, b1]
    assert listed(tx, dead.which(tx, group=group)) == [a1, a2]
    assert listed(tx, dead.which(tx, plan="thumbs", group=group)) == [a2]
    assert [dead.count(tx, Which(each)) for each in (mails, thumbs, None)] == [2, 2, 4]
    assert b2 not in listed(tx, Which(thumbs, group))


def test_letters_of_one_cause_are_one_group_with_its_times_and_an_example(tx: Connection) -> None:
    stream(tx)
    stream(tx, "thumbs")
    refusals = die(tx, [f"Refused: card {number} of 'user {number}'\n\ntrace {number}" for number in range(50)])
    die(tx, ["KeyError: 'x'"] * 3)
    die(tx, ["Refused: card 8 of 'me'"], plan="thumbs")
    tx.execute(text("update relevo.item set unresolved_at = now() - interval '1 day' where id = :id"), {"id": refusals[7]})
    cards, keys, other = dead.groups(tx, ALL, limit=10)
    assert (cards.plan, cards.count, cards.pattern) == ("mails", 50, 'Refused: card # of "…"')
    assert (cards.example, cards.error) == (refusals[-1], "Refused: card 49 of 'user 49'\n\ntrace 49")
    assert (cards.last - cards.first).days == 1
    assert (keys.count, keys.pattern, keys.task) == (3, 'KeyError: "…"', "noop")
    assert (other.plan, other.count, other.group) == ("thumbs", 1, cards.group)
    assert dead.groups(tx, ALL, limit=1) == [cards]
    assert dead.groups(tx, dead.which(tx, plan="thumbs"), limit=10) == [other]


def test_letters_without_a_message_are_a_group_too(tx: Connection) -> None:
    stream(tx)
    die(tx, ["", " "])
    (cause,) = dead.groups(tx, ALL, limit=10)
    assert (cause.count, cause.pattern) == (2, "")
    assert listed(tx, Which(None, cause.group)) != []


def test_what_cannot_be_chosen_is_refused_by_name(tx: Connection) -> None:
    plan(tx)
    with pytest.raises(UnknownPlan):
        dead.which(tx, plan="nobody")
    with pytest.raises(NotStream, match=r"Plan 'line' is a serial plan, so it has no dead letters: .* retried, skipped or resolved there"):
        dead.which(tx, plan="line")
    for group in ("", "x", "0" * 11, "0" * 13, "ABCDEF012345", "\u0660" * 12):
        with pytest.raises(Invalid, match=r"^group: "):
            dead.which(tx, group=group)
    for limit in (-1, 10_001):
        with pytest.raises(Invalid, match=r"^limit: "):
            dead.letters(tx, ALL, limit=limit)
        with pytest.raises(Invalid, match=r"^limit: "):
            dead.groups(tx, ALL, limit=limit)


@pytest.mark.parametrize(
    "written", ["", "x", "1", "1:nan", "1:2:3", "-1:2", "1:1e9", f"1:{'9' * 16}", "9" * 19 + ":1", "\u0661:2", "1:2\n"]
)
def test_a_cursor_that_nobody_wrote_is_refused(written: str) -> None:
    with pytest.raises(Invalid, match=r"^cursor: "):
        Cursor.parse(written)


def test_refused_messages_are_listed_the_latest_first(tx: Connection) -> None:
    for number in range(3):
        after = {"size": number, "preview": "<b>\x00\u202e", "dispatch": None, "task": "nothing"}
        audit.record(tx, actor="worker w", action="refuse", reason=f"no {number}", after=after)
    audit.record(tx, actor="worker w", action="refuse", reason="bare")
    found = refused(tx, limit=3)
    assert [each.reason for each in found] == ["bare", "no 2", "no 1"]
    assert (found[0].size, found[0].preview, found[0].task) == (None, "", None)
    assert (found[1].size, found[1].preview, found[1].task, found[1].actor) == (2, "<b>\ufffd\u202e", "nothing", "worker w")
