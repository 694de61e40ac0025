"""Catalogues for tests, written as people write them."""

from pathlib import Path
from textwrap import dedent

from app import catalogue
from app.catalogue import Catalogue, CataloguePlan

THREE = """
    [plans.line]

    [[plans.line.items]]
    key = "b"
    task = "shell"
    args = { command = ["true"] }
    order = 20
    repair = { task = "shell", args = { command = ["mend"] } }

    [[plans.line.items]]
    key = "a"
    task = "shell"
    order = 10
    once = true

    [[plans.line.items]]
    key = "c"
    task = "shell"
    order = 20
"""


def written(folder: Path, text: str) -> Path:
    """A file with this catalogue in `folder`."""
    path = folder / "relevo.toml"
    path.write_text(dedent(text), encoding="utf-8")
    return path


def loaded(folder: Path, text: str = THREE) -> Catalogue:
    return catalogue.load(written(folder, text))


def line(folder: Path, text: str = THREE) -> CataloguePlan:
    """Its plan `line`."""
    return loaded(folder, text).plan("line")
