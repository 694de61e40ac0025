"""The modules with tasks that the catalogue names, imported with the catalogue's folder first on the path."""

from __future__ import annotations

import importlib
import sys
import tomllib
from pathlib import Path

from ordering.errors import RelevoError


class ImportFailed(RelevoError):
    """A module of the catalogue's `imports` cannot be imported, or the catalogue cannot be read."""


def load(catalogue: Path) -> list[str]:
    """Import the built-in tasks and every module under `imports` in the catalogue, if that file is there; their names.

    Raises ImportFailed, one sentence that names file and module.
    """
    importlib.import_module("workers.builtin")
    sys.path.insert(0, str(catalogue.parent.resolve()))
    if not catalogue.exists():
        return []
    try:
        names = tomllib.loads(catalogue.read_text(encoding="utf-8")).get("imports", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ImportFailed(f"{catalogue}: cannot be read: {error}") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ImportFailed(f"{catalogue}: imports: must be a list of module names.")
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise ImportFailed(f"{catalogue}: imports: {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    return names
