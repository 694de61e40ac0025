"""Many dead letters decided at once: all or none by number, batch by batch by plan and group, each letter once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import clock, dead, dead_decision, decision, items
from ordering.dead import Cursor, Which
from ordering.dead_decision import BATCH, MOST, Batch, Decided, Verb
from ordering.errors import Invalid, NotDead, RelevoError, UnknownGroup, UnknownItem
from ordering.history import history
from ordering.items import Edit
from ordering.model import OnInterrupt, Outcome, State
from tests.ordering.acts import ACTOR, TOMORROW, assert_sound, bring, end, events, lose, outcomes, plan, put, run, state
from tests.ordering.letters import DIE, die, stream
from tests.ordering.rivals import race

ALL = Which()
REPLAYS = text("select coalesce(sum(replays), 0), coalesce(max(replays), 0) from relevo.item")
NOTE = "by hand"


def decide(tx: Connection, verb: Verb, ids: list[int]) -> list[int]:
    return dead_decision.decide(tx, verb, ids, actor=ACTOR, note=NOTE)


def batch(tx: Connection, verb: Verb, chosen: Which = ALL, *, limit: int = BATCH) -> Batch:
    return dead_decision.decide_batch(tx, verb, chosen, until=clock.now(tx), after=None, actor=ACTOR, note=NOTE, limit=limit)


def test_a_retry_runs_again_with_fresh_tries_and_is_counted(tx: Connection) -> None:
    stream(tx)
    (letter,) = die(tx, ["a"])
    old = items.get(tx, letter)
    assert decide(tx, Verb.RETRY, [letter]) == [letter]
    again = items.get(tx, letter)
    assert (again.state, again.position, again.attempts, again.tries, again.replays) == (State.WAITING, old.position, 1, 0, 1)
    assert dead.count(tx, ALL) == 0
    assert end(tx, plan="mails") == letter
    assert outcomes(tx, letter) == [Outcome.FAILED, Outcome.SUCCEEDED]
    assert_sound(tx)


def test_many_leave_the_trail_that_one_leaves(tx: Connection) -> None:
    stream(tx)
    one, other = die(tx, ["it broke" * 1000] * 2)
    for verb, alone in ((Verb.RETRY, decision.retry), (Verb.SKIP, decision.skip), (Verb.RESOLVE, decision.resolve)):
        alone(tx, one, actor=ACTOR, note=NOTE)
        decide(tx, verb, [other])
        trails = [
            [(each.action, each.actor, each.before, each.after, each.reason) for each in history(tx, id).events] for id in (one, other)
        ]
        assert trails[0] == trails[1]
        left = [items.get(tx, each) for each in (one, other)]
        assert left[0].state == left[1].state
        assert (left[0].replays, left[0].tries, left[0].settled_at) == (left[1].replays, left[1].tries, left[1].settled_at)
        tx.execute(text("update relevo.item set settled_at = null, state = 'failed'"))


@pytest.mark.parametrize(("verb", "to"), [(Verb.SKIP, State.SKIPPED), (Verb.RESOLVE, State.RESOLVED)])
def test_skipped_and_resolved_letters_are_settled(tx: Connection, verb: Verb, to: State) -> None:
    stream(tx)
    ids = die(tx, ["a"] * 3)
    assert decide(tx, verb, ids) == ids
    assert [state(tx, each) for each in ids] == [to] * 3
    assert tuple(tx.execute(REPLAYS).one()) == (0, 0)
    assert_sound(tx)


def other_states(tx: Connection) -> dict[int, str]:
    """Items that are no dead letters, each with what the refusal says."""
    stream(tx)
    plan(tx)
    found = {bring(tx, each, "mails"): f"it is {each}" for each in (State.CANCELLED, State.SKIPPED, State.POSTPONED)}
    (waiting,) = put(tx, plan="mails", not_before=TOMORROW)
    found[waiting] = "it is waiting, so it is queued already"
    (serial,) = put(tx)
    tx.execute(DIE, {"ids": [serial], "errors": ["a"]})
    found[serial] = "it belongs to the serial plan 'line'; retry it as an item of that plan"
    (pending,) = put(tx, plan="mails", on_interrupt=OnInterrupt.HOLD)
    lose(tx, run(tx, "mails"))
    tx.execute(text("update relevo.session set closed_at = null"))
    found[pending] = "it is interrupted and its process may still be running it"
    return found


def test_one_that_is_none_among_them_leaves_all_as_they_were(tx: Connection) -> None:
    others = other_states(tx)
    letters = die(tx, ["a", "b"])
    before = [items.get(tx, each) for each in (*others, *letters)]
    trail = len(events(tx))
    for other, why in others.items():
        with pytest.raises(NotDead, match=f"^Item {other} is no dead letter: {why}") as refusal, tx.begin_nested():
            decide(tx, Verb.RETRY, [letters[0], other, letters[1]])
        assert str(refusal.value).count("\n") == 0
    with pytest.raises(UnknownItem), tx.begin_nested():
        decide(tx, Verb.RETRY, [letters[0], 10**15])
    assert [items.get(tx, each) for each in (*others, *letters)] == before
    assert len(events(tx)) == trail


def test_what_is_said_must_be_whole(tx: Connection) -> None:
    stream(tx)
    (letter,) = die(tx, ["a"])
    for field, verb, actor, note in (("note", Verb.RESOLVE, ACTOR, " "), ("actor", Verb.SKIP, "", "n"), ("actor", Verb.SKIP, "\0", "n")):
        with pytest.raises(Invalid, match=f"^{field}: "):
            dead_decision.decide(tx, verb, [letter], actor=actor, note=note)
    with pytest.raises(Invalid, match=f"^items: are {MOST + 1}; at most {MOST}"):
        decide(tx, Verb.SKIP, list(range(1, MOST + 2)))
    assert state(tx, letter) is State.FAILED
    decide(tx, Verb.SKIP, [])
    dead_decision.decide(tx, Verb.SKIP, [letter, letter], actor=ACTOR, note="be\0cause \ud83d")
    assert history(tx, letter).events[-1].reason == "be\ufffdcause \ufffd"


def test_one_letter_is_retried_with_other_arguments(tx: Connection) -> None:
    stream(tx)
    (letter,) = die(tx, ["a"], args=[1], kwargs={"to": "ana"})
    dead_decision.retry_edited(tx, letter, Edit(kwargs={"to": "ops"}), actor=ACTOR, note="a typo")
    again = run(tx, "mails")
    assert (again.args, again.kwargs, again.attempt) == ([1], {"to": "ops"}, 2)
    assert items.get(tx, letter).replays == 1
    assert events(tx, letter)[-2:] == ["edit", "retry"]
    with pytest.raises(NotDead, match="it is running"):
        dead_decision.retry_edited(tx, letter, Edit(kwargs={}), actor=ACTOR)


def test_a_letter_with_arguments_that_cannot_be_stored_stays_one(tx: Connection) -> None:
    stream(tx)
    (letter,) = die(tx, ["a"])
    for change in (Edit(args=["\0"]), Edit(kwargs={"a": "\ud83d"}), Edit(args=["x" * 1_000_001])):
        with pytest.raises(Invalid, match=r"^args: "):
            dead_decision.retry_edited(tx, letter, change, actor=ACTOR)
    assert dead.count(tx, ALL) == 1


def test_an_interrupted_letter_is_fenced_off_from_its_process_and_its_neighbours_are_not(tx: Connection) -> None:
    stream(tx)
    put(tx, plan="mails", on_interrupt=OnInterrupt.HOLD)
    claimed = run(tx, "mails")
    lose(tx, claimed)
    tx.execute(text("update relevo.session set closed_at = now(), lost_at = now()"))
    # A second item in the same dispatch, as a batch has it.
    (beside,) = die(tx, ["a"])
    tx.execute(
        text("update relevo.item set state = 'interrupted', dispatch_id = :dispatch where id = :id"),
        {"id": beside, "dispatch": claimed.dispatch_id},
    )
    ended = text("select ended_at is not null from relevo.dispatch where id = :id")
    decide(tx, Verb.RETRY, [claimed.item_id])
    assert not tx.execute(ended, {"id": claimed.dispatch_id}).scalar_one()
    decide(tx, Verb.SKIP, [beside])
    assert tx.execute(ended, {"id": claimed.dispatch_id}).scalar_one()


def test_a_batch_takes_the_chosen_in_order_and_says_where_the_next_begins(tx: Connection) -> None:
    mails = stream(tx)
    stream(tx, "thumbs")
    ids, others = die(tx, ["a 1", "b", "a 2", "a 3"]), die(tx, ["a 4"], plan="thumbs")
    group = dead.letters(tx, ALL, limit=1).letters[0].group
    first = batch(tx, Verb.RETRY, Which(mails, group), limit=2)
    assert first.done == [ids[0], ids[2]]
    second = dead_decision.decide_batch(tx, Verb.RETRY, Which(mails, group), until=clock.now(tx), after=first.next, actor=ACTOR, limit=2)
    assert (second.done, second.next) == ([ids[3]], None)
    assert [state(tx, each) for each in (ids[1], *others)] == [State.FAILED] * 2


def test_what_dies_again_meanwhile_is_not_met_twice(engine: Engine) -> None:
    die_again = text("update relevo.item set state = 'failed', unresolved_at = clock_timestamp() where state = 'waiting'")
    with engine.begin() as tx:
        stream(tx)
        ids = die(tx, ["a"] * 5)
    with engine.begin() as tx:
        until = clock.now(tx)
    found: list[int] = []
    after: Cursor | None = dead.BEFORE_ALL
    while after is not None:
        with engine.begin() as tx:
            done = dead_decision.decide_batch(tx, Verb.RETRY, ALL, until=until, after=after, actor=ACTOR, limit=2)
        found, after = [*found, *done.done], done.next
        with engine.begin() as tx:
            tx.execute(die_again)
            die(tx, ["new"])
    assert found == ids


def test_a_group_that_has_no_letters_is_refused_and_a_plan_without_any_is_not(engine: Engine) -> None:
    with engine.begin() as tx:
        made = stream(tx)
    with pytest.raises(UnknownGroup, match=r"^group: there are no dead letters of group '0{12}' there; list the groups"):
        dead_decision.decide_all(engine, Verb.SKIP, Which(None, "0" * 12), actor=ACTOR)
    assert dead_decision.decide_all(engine, Verb.SKIP, Which(made), actor=ACTOR) == Decided(0, 0)


def test_what_another_decides_at_this_moment_is_left_to_them(engine: Engine) -> None:
    with engine.begin() as tx:
        stream(tx)
        ids = die(tx, ["a"] * 3)
    answer = race(engine, lambda tx: decide(tx, Verb.SKIP, ids[1:2]), lambda tx: batch(tx, Verb.RETRY))
    assert answer.done == [ids[0], ids[2]]
    with engine.begin() as tx:
        assert state(tx, ids[1]) is State.SKIPPED
        assert_sound(tx)


@pytest.mark.parametrize("alone", [decision.retry, decision.skip])
def test_one_decision_and_many_wait_for_each_other(engine: Engine, alone: Callable[..., object]) -> None:
    with engine.begin() as tx:
        stream(tx)
        ids = die(tx, ["a"] * 3)
    done = race(engine, lambda tx: alone(tx, ids[0], actor=ACTOR), lambda tx: batch(tx, Verb.RESOLVE))
    assert done.done == ids[1:]


def test_two_press_retry_all_at_once_and_each_letter_is_retried_once(engine: Engine) -> None:
    count = 3 * BATCH
    with engine.begin() as tx:
        stream(tx)
        die(tx, [f"Refused: card {number}" for number in range(count)])
        group = dead.letters(tx, ALL, limit=1).letters[0].group
    ready = Barrier(2)

    def press(chosen: Which) -> Decided:
        ready.wait(60)
        try:
            return dead_decision.decide_all(engine, Verb.RETRY, chosen, actor=ACTOR)
        except UnknownGroup:  # the other was done before this one began
            return Decided(0, 0)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(press, [ALL, Which(None, group)]))
    assert sum(each.decided for each in answers) == count
    for each, other in (answers, reversed(answers)):  # what one counted and did not decide, the other did
        assert each.meanwhile <= other.decided
        assert (each.decided + each.meanwhile) % BATCH == 0
    with engine.begin() as tx:
        assert tuple(tx.execute(REPLAYS).one()) == (count, 1)
        assert events(tx).count("retry") == count
        assert dead.count(tx, ALL) == 0
        assert_sound(tx)


def test_retry_of_one_pressed_five_times_at_once_makes_one_replay(engine: Engine) -> None:
    with engine.begin() as tx:
        stream(tx)
        (letter,) = die(tx, ["a"])
    ready = Barrier(5)

    def press(number: int) -> str:
        with engine.connect() as tx:
            ready.wait(60)
            try:
                with tx.begin():
                    if number % 2:
                        decide(tx, Verb.RETRY, [letter])
                    else:
                        decision.retry(tx, letter, actor=ACTOR)
            except RelevoError as refusal:
                return "queued" if "queued already" in str(refusal) else str(refusal)
        return "made"

    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(press, range(5))) == ["made"] + ["queued"] * 4
    with engine.begin() as tx:
        assert items.get(tx, letter).replays == 1
        assert end(tx, plan="mails") == letter
        assert outcomes(tx, letter) == [Outcome.FAILED, Outcome.SUCCEEDED]
