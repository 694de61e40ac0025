"""Pool processes are put together by their service and host, whatever the workers call themselves."""

from datetime import UTC, datetime, timedelta

from app.crews import crews
from ordering.model import State
from ordering.workforce import Work, Worker

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def worker(session: int, name: str, host: str = "h1", *, runs: int = 0, minutes: int = 0) -> Worker:
    since = NOW - timedelta(minutes=minutes)
    work = [Work(session, "nightly", f"item {session}", "shell", State.RUNNING, since)] if runs else []
    return Worker(session, name, host, 1000 + session, NOW, runs, work)


def test_a_service_on_a_host_is_one_crew() -> None:
    found = crews([worker(1, "relevo@h1/10"), worker(2, "mail@h1/11"), worker(3, "relevo@h2/10", "h2"), worker(4, "relevo@h1/12")])
    assert [(each.service, each.host, each.workers) for each in found] == [("relevo", "h1", 2), ("mail", "h1", 1), ("relevo", "h2", 1)]
    assert [(each.worker.session, each.parent) for each in found[0].processes] == [(1, "10"), (4, "12")]


def test_another_name_is_taken_as_it_is() -> None:
    names = ["plain", "a@b@h1/10", "relevo@elsewhere/10", "relevo@h1/", "@h1/3"]
    found = crews([worker(n, name) for n, name in enumerate(names)])
    assert [each.service for each in found] == ["plain", "a@b", "relevo@elsewhere/10", "relevo@h1/", "@h1/3"]


def test_what_runs_for_longest_comes_first() -> None:
    members = [worker(1, "w@h1/1"), worker(2, "w@h1/1", runs=1, minutes=3), worker(3, "w@h1/1", runs=5, minutes=9)]
    (crew,) = crews(members)
    assert [(work.id, beside) for work, beside in crew.first(9)] == [(3, 4), (2, 0)]
    assert [work.id for work, _ in crew.first(1)] == [3]
