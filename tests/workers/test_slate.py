"""What a pool process shows its parent."""

import os

import pytest

from workers import slate


@pytest.fixture
def child() -> int:
    """The pid of a pool process in slot 7 that has shown a body and is gone."""
    pid = os.fork()
    if pid == 0:
        try:
            slate.begin(7)
            with slate.body():
                if os.fork() == 0:
                    with slate.body():  # not what the pool process itself does
                        slate.end_myself()
                    os._exit(0)
                os.wait()
                os.kill(os.getpid(), 9)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == 9
    return pid


def test_a_body_is_seen_from_outside_and_what_it_forks_is_not(child: int) -> None:
    since = slate.body_since(child)
    assert since is not None
    assert not slate.ends_itself(child)
    assert slate.body_since(os.getpid()) is None


def test_the_next_one_in_its_slot_begins_anew(child: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slate, "_row", None)
    slate.begin(7)
    assert slate.body_since(child) is None
    assert slate.body_since(os.getpid()) is None
    with slate.body():
        assert slate.body_since(os.getpid()) is not None
    assert slate.body_since(os.getpid()) is None
    slate.end_myself()
    assert slate.ends_itself(os.getpid())
