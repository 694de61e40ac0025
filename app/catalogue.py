"""The catalogue: what a project wants run, as `relevo.toml` says it. Loading reads and checks; nothing is written here."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app import fields
from app.fields import BadInput, Fields
from ordering import plans
from ordering.items import KIND_LIMIT, TASK_LIMIT, TITLE_LIMIT
from ordering.model import Json, Missed, NewItem, OnFailure, OnInterrupt
from ordering.row import KEY_LIMIT
from ordering.schedule import NewSchedule

SIZE_LIMIT = 10_000_000  # bytes of a catalogue file: beyond that it is another file


@dataclass(frozen=True)
class Work:
    """A task with its arguments: a list, or an object of named ones."""

    task: str
    args: list[Json] = field(default_factory=list)
    kwargs: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One thing to run. `once`: not again when it has succeeded. `repair` is what mends it when it failed."""

    key: str
    work: Work
    kind: str = ""
    title: str = ""
    order: float = 0
    once: bool = False
    repair: Work | None = None
    max_attempts: int | None = None
    on_interrupt: OnInterrupt | None = None

    def item(self) -> NewItem:
        """The item that this entry adds to its plan."""
        return NewItem(
            task=self.work.task,
            args=self.work.args,
            kwargs=self.work.kwargs,
            title=self.title or self.key,
            kind=self.kind,
            entry=self.key,
            max_attempts=self.max_attempts,
            on_interrupt=self.on_interrupt,
        )


@dataclass(frozen=True)
class CataloguePlan:
    """A plan as the catalogue has it; `settings` are the ones it states, by their names in `ordering.plans.create`."""

    name: str
    settings: Mapping[str, Any]
    entries: Sequence[Entry]  # in the preset order
    schedules: Sequence[NewSchedule] = ()

    @property
    def stream(self) -> bool:
        """Whether it is fed in parallel."""
        return bool(self.settings.get("concurrency", 1) > 1)

    def entry(self, key: str) -> Entry | None:
        """The entry with this key, if there is one."""
        return next((entry for entry in self.entries if entry.key == key), None)


@dataclass(frozen=True)
class Catalogue:
    """A whole catalogue, checked. `imports` are modules with tasks, for the workers."""

    path: Path
    imports: Sequence[str]
    plans: Mapping[str, CataloguePlan]

    def plan(self, name: str) -> CataloguePlan:
        """The plan of this name. Raises BadInput, naming those that there are."""
        if name not in self.plans:
            named = ", ".join(self.plans) or "none"
            raise BadInput(f"{self.path}: there is no plan {name!r} in this catalogue (it has: {named}).")
        return self.plans[name]


def load(path: Path) -> Catalogue:
    """Read and check the catalogue at `path`. Raises BadInput, one sentence that names file, entry and field."""
    # What people wrote is named as they see it from where they are.
    named_path = Path(os.path.relpath(path)) if path.is_relative_to(Path.cwd()) else path
    top = Fields(str(named_path), _read(named_path))
    imports: Sequence[str] = top.take("imports", fields.modules, ())
    named: dict[str, Any] = top.take("plans", fields.table, {})
    top.end("imports, plans")
    folder = str(path.absolute().parent)
    plans_of = {name: _plan(f"{named_path}: plans.{name[:80]}", folder, name, value) for name, value in named.items()}
    seen: dict[str, str] = {}
    for plan in plans_of.values():
        for number, each in enumerate(plan.schedules, 1):
            if each.name in seen:
                where = f"{named_path}: plans.{plan.name}.schedules {number} ({each.name})"
                raise BadInput(f"{where}: name: stands twice, first in plans.{seen[each.name]}; a schedule's name is its own in all plans.")
            seen[each.name] = plan.name
    return Catalogue(named_path, imports, plans_of)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file; write one, or name another with RELEVO_CATALOGUE.") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    if len(content) > SIZE_LIMIT:
        raise BadInput(f"{path}: is larger than {SIZE_LIMIT} bytes; a catalogue lists entries, it does not hold data.")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8.") from None
    except RecursionError:
        raise BadInput(f"{path}: is nested too deeply.") from None
    except ValueError as error:
        raise BadInput(f"{path}: is not TOML: {error}.") from None


def _plan(where: str, folder: str, name: str, value: Any) -> CataloguePlan:
    if not plans.NAME.fullmatch(name):
        raise BadInput(f"{where}: is not a plan name; use up to 63 of a-z, 0-9, dot, dash and underscore, a letter or digit first.")
    table = Fields(where, fields.whole(where, value))
    checks: dict[str, Callable[[Any], Any]] = {
        "title": fields.text_of(500),
        "concurrency": fields.concurrency,
        "on_failure": fields.one_of(OnFailure),
        "autostart": fields.flag,
        "max_attempts": fields.tries,
        "on_interrupt": fields.one_of(OnInterrupt),
        "stop_grace": fields.seconds,
        "keep": fields.length,
        "rate": fields.rate,
    }
    settings = {name: table.take(name, check, None) for name, check in checks.items() if name in table.fields}
    listed: list[Any] = table.take("items", fields.listed, [])
    scheduled: list[Any] = table.take("schedules", fields.listed, [])
    table.end(f"{', '.join(checks)}, items, schedules")
    entries: dict[str, Entry] = {}
    for number, each in enumerate(listed, 1):
        entry = _entry(f"{where}.items", folder, number, each)
        if entry.key in entries:
            raise BadInput(f"{where}.items {number} ({entry.key[:80]}): key: stands twice in this plan; give each entry a key of its own.")
        entries[entry.key] = entry
    # A stable sort: entries of the same order stay as the file has them.
    schedules = [_schedule(f"{where}.schedules", folder, name, number, each) for number, each in enumerate(scheduled, 1)]
    return CataloguePlan(name, settings, sorted(entries.values(), key=lambda entry: entry.order), schedules)


def _entry(where: str, folder: str, number: int, value: Any) -> Entry:
    key = value.get("key") if isinstance(value, dict) else None
    where = f"{where} {number} ({key[:80]})" if isinstance(key, str) and key else f"{where} {number}"
    table = Fields(where, fields.whole(where, value))
    entry = Entry(
        key=table.need("key", fields.word_of(KEY_LIMIT), 'key = "audit"'),
        work=_work(table, folder),
        kind=table.take("kind", fields.text_of(KIND_LIMIT), ""),
        title=table.take("title", fields.text_of(TITLE_LIMIT), ""),
        order=table.take("order", fields.number, 0),
        once=table.take("once", fields.flag, False),
        repair=table.take("repair", lambda given: _repair(f"{where}: repair", folder, given), None),
        max_attempts=table.take("max_attempts", fields.tries, None),
        on_interrupt=table.take("on_interrupt", fields.one_of(OnInterrupt), None),
    )
    table.end("key, kind, title, task, args, order, once, repair, max_attempts, on_interrupt")
    return entry


def _schedule(where: str, folder: str, plan: str, number: int, value: Any) -> NewSchedule:
    name = value.get("name") if isinstance(value, dict) else None
    where = f"{where} {number} ({name[:80]})" if isinstance(name, str) and name else f"{where} {number}"
    table = Fields(where, fields.whole(where, value))
    named = table.need("name", fields.name, 'name = "backup"')
    work = _work(table, folder)
    schedule = NewSchedule(
        name=named,
        plan=plan,
        cron=table.need("cron", fields.cron_line, 'cron = "30 2 * * *"'),
        timezone=table.take("timezone", fields.timezone, "UTC"),
        missed=table.take("missed", fields.one_of(Missed), Missed.ONE),
        task=work.task,
        args=work.args,
        kwargs=work.kwargs,
        title=table.take("title", fields.text_of(TITLE_LIMIT), ""),
        kind=table.take("kind", fields.text_of(KIND_LIMIT), ""),
        declared=True,
    )
    table.end("name, cron, timezone, missed, task, args, title, kind")
    return schedule


def _work(table: Fields, folder: str) -> Work:
    task = table.need("task", fields.word_of(TASK_LIMIT), 'task = "shell"')
    args: list[Json] | dict[str, Json] = table.take("args", fields.arguments, [])
    if isinstance(args, list):
        return Work(task, args=args)
    if task == "shell" and isinstance(args.get("cwd", ""), str):
        # Paths in a file are relative to that file, whichever folder the worker that runs the command was started in.
        args = {**args, "cwd": os.path.normpath(os.path.join(folder, args.get("cwd", "")))}
    return Work(task, kwargs=args)


def _repair(where: str, folder: str, value: Any) -> Work:
    table = Fields(where, fields.whole(where, value))
    work = _work(table, folder)
    table.end("task, args")
    return work
