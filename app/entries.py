"""The catalogue as the server has it: read again for each call, since people edit it while the server runs."""

from __future__ import annotations

from pathlib import Path

from app import catalogue
from app.catalogue import Catalogue, CataloguePlan
from app.fields import BadInput

NONE = "The server has no catalogue: there is no file where RELEVO_CATALOGUE says (relevo.toml)."


def load(path: Path | None) -> Catalogue | None:
    """The catalogue at `path`, or None if there is no file. Raises BadInput if it cannot be used."""
    return catalogue.load(path) if path is not None and path.exists() else None


def plan_of(path: Path | None, name: str) -> CataloguePlan | None:
    """The plan of this name in the catalogue at `path`, if both are there. Raises BadInput."""
    loaded = load(path)
    return None if loaded is None else loaded.plans.get(name)


def require(path: Path | None, name: str) -> CataloguePlan:
    """As `plan_of`. Raises BadInput if there is none."""
    loaded = load(path)
    if loaded is None:
        raise BadInput(NONE)
    if name not in loaded.plans:
        raise BadInput(f"{loaded.path}: there is no plan {name!r} in this catalogue.")
    return loaded.plans[name]
