"""An event of the trail in words of the reader's language: who stands before the verb, what it was done to behind it, then the details."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app import wording
from app.language import gettext as _
from app.language import ngettext, pgettext
from ordering.model import Json

DETAIL = 200  # characters of a value that is told

#: Fields of items, plans and schedules as people call them; others are told by their own names.
FIELDS = {
    "title": lambda: _("title"),
    "concurrency": lambda: _("items at a time"),
    "kind": lambda: _("kind"),
    "task": lambda: _("task"),
    "args": lambda: _("arguments"),
    "kwargs": lambda: _("arguments"),
    "on_interrupt": lambda: _("at an interruption"),
    "on_failure": lambda: _("at a failure"),
    "max_attempts": lambda: _("attempts at most"),
    "autostart": lambda: _("starts by itself"),
    "stop_grace": lambda: _("grace at a stop"),
    "keep": lambda: _("kept for"),
    "rate": lambda: _("rate"),
    "cron": lambda: _("cron line"),
    "timezone": lambda: _("time zone"),
    "missed": lambda: _("missed ticks"),
    "plan": lambda: _("plan"),
}


def verb(action: str) -> str:
    """The verb in the past, as it stands behind the name of who did it."""
    return {
        "create": _("created"),
        "remove": _("removed"),
        "add": _("added"),
        "move": _("moved"),
        "edit": _("edited"),
        "postpone": _("postponed"),
        "cancel": _("cancelled"),
        "start": _("started"),
        "pause": _("paused"),
        "resume": _("resumed"),
        "retry": _("retried"),
        "skip": _("skipped"),
        "resolve": _("resolved"),
        "undo": _("undid the last change of"),
        "drain": _("drained"),
        "interrupt": _("marked as interrupted"),
        "fence": _("kept out a late result of"),
        "refuse": _("refused a message"),
        "requeue": _("requeued"),
        "subscribe": _("subscribed"),
        "unsubscribe": _("unsubscribed"),
        "miss": _("left out ticks of"),
        "declare": _("declared"),
        "prune": _("pruned"),
        "retake": _("took up again"),
        "emit": _("emitted"),
    }.get(action, action)


def yours(action: str) -> str:
    """The verb as it begins a sentence about what the reader has just done."""
    return {
        "create": pgettext("you", "Created"),
        "remove": pgettext("you", "Removed"),
        "add": pgettext("you", "Added"),
        "move": pgettext("you", "Moved"),
        "edit": pgettext("you", "Edited"),
        "postpone": pgettext("you", "Postponed"),
        "cancel": pgettext("you", "Cancelled"),
        "start": pgettext("you", "Started"),
        "pause": pgettext("you", "Paused"),
        "resume": pgettext("you", "Resumed"),
        "retry": pgettext("you", "Retried"),
        "skip": pgettext("you", "Skipped"),
        "resolve": pgettext("you", "Resolved"),
        "undo": pgettext("you", "Undid the last change of"),
        "unsubscribe": pgettext("you", "Unsubscribed"),
    }.get(action) or verb(action).capitalize()


def thing(action: str, before: Json, after: Json) -> str:
    """What it was done to, where that is neither an item nor a plan: a schedule or a subscription."""
    told = {**(before if isinstance(before, dict) else {}), **(after if isinstance(after, dict) else {})}
    if "schedule" in told:
        return _("schedule %(name)s") % {"name": told["schedule"]}
    if action in ("subscribe", "unsubscribe"):
        return _("%(task)s to %(type)s") % {"task": told.get("task", ""), "type": told.get("type", "")}
    return ""


def details(action: str, before: Json, after: Json) -> str:
    """What else the event says, from what was before to what is after; empty where the verb says it all."""
    old: dict[str, Any] = before if isinstance(before, dict) else {}
    new: dict[str, Any] = after if isinstance(after, dict) else {}
    match action:
        case "move" if "position" in old and "position" in new:
            return _("from %(old)s to %(new)s") % {"old": _position(old["position"]), "new": _position(new["position"])}
        case "postpone" if "until" in new:
            return _("until %(time)s") % {"time": _moment(new["until"])}
        case "retry" | "skip" | "resolve" if old.get("attempts"):
            return ngettext("after %(count)d attempt", "after %(count)d attempts", old["attempts"]) % {"count": old["attempts"]}
        case "add" if "items" in new:
            return ngettext("%(count)d item", "%(count)d items", new["items"]) % {"count": new["items"]}
        case "start" if "on_failure" in new:
            return _("at a failure: %(policy)s") % {"policy": wording.policy(str(new["on_failure"]))}
        case "interrupt":
            return _("process %(pid)s on %(host)s") % {"pid": new.get("pid", "?"), "host": new.get("host", "?")}
        case "requeue":
            return _("try %(tries)s of %(most)s is used up") % {"tries": new.get("tries", "?"), "most": new.get("max_attempts", "?")}
        case "fence" if "outcome" in new:
            return _("it reported: %(outcome)s") % {"outcome": wording.state(str(new["outcome"])).lower()}
        case "miss":
            return _("from %(begin)s on") % {"begin": _moment(new.get("from"))}
        case "edit":
            return "; ".join(_changed(name, old.get(name), value) for name, value in new.items() if name != "schedule")
        case _:
            return ""


def _changed(name: str, old: Json, new: Json) -> str:
    field = FIELDS[name]() if name in FIELDS else name
    if isinstance(new, (dict, list)) or isinstance(old, (dict, list)):
        return _("%(field)s changed") % {"field": field}
    if old in (None, ""):
        return _("%(field)s: %(new)s") % {"field": field, "new": _value(new)}
    return _("%(field)s: %(old)s → %(new)s") % {"field": field, "old": _value(old), "new": _value(new)}


def _value(value: Json) -> str:
    match value:
        case True:
            return _("yes")
        case False:
            return _("no")
        case None | "":
            return _("nothing")
        case _:
            return wording.cut(str(value), DETAIL)


def _position(value: Json) -> str:
    text = str(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _moment(value: Json) -> str:
    try:
        return wording.moment(datetime.fromisoformat(str(value)))
    except ValueError:
        return str(value)
