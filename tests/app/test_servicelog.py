"""The log of all services: bounded in size, and readable by programs where that is asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app import servicelog
from app.servicelog import ServiceLog


@contextmanager
def logged(file: Path, *, as_json: bool = False) -> Iterator[ServiceLog]:
    """A log whose file is whole after the block; a supervisor waits for a terminal that may be held no longer than 2 s."""
    with ServiceLog(file, as_json) as log:
        yield log
        log._lines.put(None, timeout=60)
        log._writer.join(60)
    assert not log._writer.is_alive()


def test_the_file_is_bounded_and_keeps_what_came_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servicelog, "FILE_LIMIT", 20_000)
    file = tmp_path / "relevo.log"
    with logged(file) as log:
        for number in range(5_000):
            log.said("worker", f"line {number}")
    sizes = [each.stat().st_size for each in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= 20_000
    assert file.read_text().splitlines()[-1].endswith(" worker   | line 4999")


def test_json_lines_stay_json_and_say_which_service(tmp_path: Path) -> None:
    file = tmp_path / "relevo.log"
    with logged(file, as_json=True) as log:
        log.said("worker", '{"event": "claimed", "item": 7}')
        log.said("postgres", "LOG:  ready")
        log.said("worker", "[1, 2]")
        log.note("up")
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert told[0] == {"service": "worker", "event": "claimed", "item": 7}
    assert [(line["service"], line["message"]) for line in told[1:]] == [
        ("postgres", "LOG:  ready"),
        ("worker", "[1, 2]"),
        ("relevo", "up"),
    ]


def test_the_supervisor_never_waits_for_a_log_that_is_full() -> None:
    # Not entered, so nobody writes: as a terminal that is held.
    log = ServiceLog()
    for number in range(servicelog.WAITING_LIMIT + 10):
        log.note(f"line {number}")


@pytest.mark.parametrize("line", ["[" * 60_000, '{"a":' * 30_000, '{"half": "\\ud800"}'])
def test_what_a_service_says_takes_nothing_down(tmp_path: Path, line: str) -> None:
    file = tmp_path / "relevo.log"
    with logged(file, as_json=True) as log:
        log.said("worker", line)
    (told,) = map(json.loads, file.read_text().splitlines())
    assert told["service"] == "worker"
    assert told.get("message") == line or told["half"] == "\ud800"


def test_a_json_line_keeps_its_letters(tmp_path: Path) -> None:
    file = tmp_path / "relevo.log"
    with logged(file, as_json=True) as log:
        log.said("worker", '{"event": "añadido 😀"}')
    assert file.read_text(encoding="utf-8") == '{"service": "worker", "event": "añadido 😀"}\n'
