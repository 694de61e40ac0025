"""An item's arguments in one value, as people read and edit them."""

from __future__ import annotations

from ordering.model import Item, Json


def arguments(item: Item) -> Json:
    """An object of named ones, a list of positional ones, or an object with both where an item has both."""
    if item.args and item.kwargs:
        return {"args": item.args, "kwargs": item.kwargs}
    return item.kwargs or item.args or {}
