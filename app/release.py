"""Which release this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of


def version() -> str:
    """The version of the installed package, `0` for a checkout that is not installed."""
    try:
        return version_of("relevo")
    except PackageNotFoundError:
        return "0"
