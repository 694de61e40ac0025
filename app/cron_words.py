"""A cron expression in words, for the shapes that most have; others stand for themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable

from babel.dates import get_day_names
from babel.lists import format_list

from app import language
from app.language import gettext as _
from ordering.cron import written_out

DAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}


def in_words(cron: str) -> str:
    """What the expression says, or nothing where there are no plain words for it."""
    fields = written_out(cron).lower().split()
    if len(fields) != 5 or fields[3] != "*":
        return ""
    minute, hour, day, _month, week = fields
    when = _time(minute, hour)
    if when is None:
        return ""
    if day == "*" and week == "*":
        return when if "*" in (minute, hour) or "/" in minute + hour else _("every day %(time)s") % {"time": when}
    if "*" in (minute, hour) or "/" in minute + hour:
        return ""
    if week != "*" and day == "*":
        days = _days(week)
        return _("%(days)s %(time)s") % {"days": days, "time": when} if days else ""
    if week == "*" and day.isdigit():
        return _("on day %(day)s of each month %(time)s") % {"day": int(day), "time": when}
    if week == "*" and day == "l":
        return _("on the last day of each month %(time)s") % {"time": when}
    return ""


def _time(minute: str, hour: str) -> str | None:
    every = re.fullmatch(r"\*/(\d{1,2})", minute)
    if hour == "*":
        if minute == "*":
            return _("every minute")
        if every and 60 % int(every[1] or 1) == 0 and int(every[1]):
            return _("every %(num)d minutes") % {"num": int(every[1])} if int(every[1]) > 1 else _("every minute")
        if every and int(every[1]):  # it begins anew with each hour
            return _("every hour at %(times)s") % {"times": _listed(f":{each:02}" for each in range(0, 60, int(every[1])))}
        return _("every hour at :%(minute)s") % {"minute": f"{int(minute):02}"} if minute.isdigit() else None
    hours = re.fullmatch(r"\*/(\d{1,2})", hour)
    if hours and minute.isdigit() and int(hours[1]) and 24 % int(hours[1]) == 0:
        words = _("every %(num)d hours at :%(minute)s") if int(hours[1]) > 1 else _("every hour at :%(minute)s")
        return words % {"num": int(hours[1]), "minute": f"{int(minute):02}"}
    if minute.isdigit() and re.fullmatch(r"\d{1,2}(,\d{1,2})*", hour):
        return _("at %(times)s") % {"times": _listed(f"{int(each):02}:{int(minute):02}" for each in hour.split(","))}
    return None


def _listed(words: Iterable[str]) -> str:
    return format_list(list(words), locale=language.spoken())


def _days(week: str) -> str:
    if week in ("1-5", "mon-fri"):
        return _("on weekdays")
    numbers = []
    for each in week.split(","):
        number = DAYS.get(each, int(each) % 7 if each.isdigit() and int(each) <= 7 else None)
        if number is None:
            return ""
        numbers.append(number)
    names = get_day_names("wide", locale=language.spoken())
    return _("each %(days)s") % {"days": _listed(names[(number - 1) % 7] for number in numbers)}
