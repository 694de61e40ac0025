"""What somebody has typed into a form that was refused, so that the page shows it again."""

from __future__ import annotations

from app.page import Refusal


class Typed(dict[str, str]):
    """Fields by their names; one that was not sent is empty. `what` is where the form was sent: the last part of its address."""

    what = ""

    def __missing__(self, name: str) -> str:
        return ""


def typed(refusal: Refusal | None) -> Typed:
    """The first value of each field of the refused form, if there is one."""
    if refusal is None:
        return Typed()
    found = Typed({name: values[0] for name, values in refusal.form.fields.items() if values})
    found.what = refusal.action.rpartition("/")[2]
    return found
