"""How a run looks while it is followed: a bar on a terminal, one line for each start and end elsewhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

from app import out, show
from app.terminal_text import one_line
from ordering.model import SETTLED, State

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from app.follow import Look
    from ordering.lines import ItemLine

SHOW_CURSOR = b"\x1b[?25h"
TOLD_WHY = (State.FAILED, State.INTERRUPTED, State.SKIPPED, State.CANCELLED)


class Watch(Protocol):
    """Is told each look."""

    def __call__(self, look: Look) -> None: ...


@contextmanager
def shown(name: str) -> Iterator[Watch]:
    """A watch that shows the run of the plan `name` for the length of the block."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    console = show.console()
    if not console.is_terminal:
        yield _plain
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with _cursor_comes_back(console), Progress(*columns, console=console) as progress:
        bar = progress.add_task(name, total=None)

        def watch(look: Look) -> None:
            for item, line in _lines(look):
                if item.state is not State.RUNNING:
                    progress.console.print(Text(line), overflow="ellipsis", no_wrap=True)
            running = next((item for item in look.changed if item.state is State.RUNNING), None) or look.plan.head
            now = f": {_title(running)[:50]}" if running is not None and running.state not in SETTLED else ""
            progress.update(bar, total=look.total, completed=look.done, description=f"{name}{now}")

        yield watch


@contextmanager
def counted() -> Iterator[Progress]:
    """A bar on stderr for work that is counted, shown on a terminal only and gone at the end of the block."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = show.console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    shown_on = _cursor_comes_back(console) if console.is_terminal else nullcontext()
    with shown_on, Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress


@contextmanager
def _cursor_comes_back(console: Console) -> Iterator[None]:
    """The block in which a bar is drawn without a cursor: one that TERM ends gives it back, and ends of the signal all the same."""

    def end(number: int, _: object) -> None:
        os.write(console.file.fileno(), SHOW_CURSOR)  # past the buffer, which may be in the middle of a write
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _plain(look: Look) -> None:
    out.write("".join(f"{line}\n" for _, line in _lines(look)), now=True)


def _lines(look: Look) -> Iterator[tuple[ItemLine, str]]:
    """A line for each change, with how many had ended when it came about."""
    done = look.done - sum(item.state is not State.RUNNING for item in look.changed)
    for item in look.changed:
        done += item.state is not State.RUNNING
        state = "started" if item.state is State.RUNNING else str(item.state)
        # What is retried or was resolved still has the error of its last attempt.
        error = f": {item.error}" if item.error and item.state in TOLD_WHY else ""
        yield item, one_line(f"{look.plan.name} {done}/{look.total} {state:<11} {item.id} {_title(item)}{error}", 300)


def _title(item: ItemLine) -> str:
    return one_line(item.title or f"{item.task} {item.arguments}", 100)
