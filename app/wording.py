"""How pages write numbers, lengths of time, moments and states, in the language of the call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from babel.dates import format_date, format_datetime
from babel.numbers import format_decimal

from app import language
from app.language import gettext as _
from ordering.cron import zone

TITLE_SHOWN = 240  # characters of a title in a list; the item's page has it whole


def number(value: float | Decimal) -> str:
    """With the separators of the language."""
    return str(format_decimal(value, locale=language.spoken()))


def length(seconds: float) -> str:
    """A length of time, as people say it: 4 s, 12 min, 3 h, 5 d. Nothing is shorter than 0 s."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if whole >= 2 * size or (size == 60 and whole >= 60):
            return f"{number(whole // size)} {unit}"
    return f"{whole} s"


def exact(seconds: float) -> str:
    """A length of time in two units: 4 min 12 s, 2 h 14 min."""
    whole = max(0, int(seconds))
    for size, unit, small, smaller in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{number(whole // size)} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def ago(now: datetime, when: datetime) -> str:
    """How long `when` lies before `now`."""
    return length((now - when).total_seconds())


def iso(when: datetime) -> str:
    """For attributes: a moment in UTC."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(when: datetime, now: datetime | None = None) -> str:
    """A moment in UTC; without its date where that is today's."""
    there = when.astimezone(UTC)
    if now is not None and there.date() == now.astimezone(UTC).date():
        return f"{there:%H:%M} UTC"
    if now is not None and abs(there - now) < timedelta(days=300):
        return f"{format_datetime(there, 'd MMM HH:mm', locale=language.spoken())} UTC"
    return f"{there:%Y-%m-%d %H:%M} UTC"


def clock(when: datetime) -> str:
    """The time of the day, in UTC."""
    return f"{when.astimezone(UTC):%H:%M}"


def place(position: Decimal) -> tuple[str, str]:
    """A position in two parts that meet at the decimal point."""
    whole, _point, part = f"{position:f}".partition(".")
    part = part.rstrip("0")
    return whole, f".{part}" if part else ""


def plain_position(position: Decimal) -> str:
    """A position as people write it."""
    return "".join(place(position))


def cut(text: str, most: int = TITLE_SHOWN) -> str:
    """`text`, with an ellipsis where it is longer."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def state(word: str) -> str:
    """The word for the state of an item, a plan or a session."""
    words = {
        "waiting": _("Waiting"),
        "postponed": _("Postponed"),
        "dispatched": _("Dispatched"),
        "running": _("Running"),
        "failed": _("Failed"),
        "interrupted": _("Interrupted"),
        "succeeded": _("Succeeded"),
        "skipped": _("Skipped"),
        "resolved": _("Resolved"),
        "cancelled": _("Cancelled"),
        "new": _("Never started"),
        "halted": _("Halted"),
        "paused": _("Paused"),
        "drained": _("Drained"),
        "sleeping": _("Sleeping"),
    }
    return words.get(word, word)


ICONS = {
    "waiting": "wait",
    "postponed": "clock",
    "dispatched": "sent",
    "running": "run",
    "failed": "fail",
    "interrupted": "broke",
    "succeeded": "check",
    "skipped": "skip",
    "resolved": "tick",
    "cancelled": "ban",
    "new": "idle",
    "halted": "held",
    "paused": "pause",
    "drained": "idle",
    "sleeping": "moon",
}


def icon(word: str) -> str:
    """The name of the icon for a state."""
    return ICONS.get(word, "idle")


def policy(word: str) -> str:
    """The word for what a run does at a failure."""
    return {"halt": _("halt"), "continue": _("continue")}.get(word, word)


def kind_icon(kind: str) -> str:
    """The name of the icon for a kind; other words than the usual ones share one."""
    return kind if kind in ("fix", "feature", "audit") else "task"


def took(length: timedelta) -> str:
    """How long something took, as finely as it matters: 240 ms, 1.8 s, 8 min 37 s."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 60:
        return f"{number(round(seconds, 1))} s"
    return exact(seconds)


def day(when: datetime) -> str:
    """The day of a moment, in UTC."""
    return str(format_date(when.astimezone(UTC), "long", locale=language.spoken()))


def in_zone(when: datetime, timezone: str, now: datetime) -> str:
    """A moment as clocks in that time zone say it, with the day of the week, and the year where it is not this one."""
    there = zone(timezone)
    local = when.astimezone(there)
    pattern = "EEE d MMM HH:mm" if local.year == now.astimezone(there).year else "EEE d MMM y HH:mm"
    return str(format_datetime(local, pattern, locale=language.spoken()))
