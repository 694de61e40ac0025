"""What pages load: style sheets and scripts from the installed package, at addresses that change with their content."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response

from app.problem import Refused

FOLDER = Path(__file__).parent / "static"
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png"}
FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


@cache
def files() -> dict[str, bytes]:
    """Every file by its name, read once."""
    return {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in TYPES}


@cache
def stamp() -> str:
    """Stands for the content of all files. It is a folder of their address, so that modules import each other by plain names."""
    digest = hashlib.sha256()
    for name, content in files().items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def address(name: str) -> str:
    """Where a page finds the file `name`. Raises KeyError if there is none."""
    if name not in files():
        raise KeyError(name)
    return f"/static/{stamp()}/{name}"


@router.get("/static/{version}/{name}")
async def static(version: str, name: str) -> Response:
    """The file; kept by browsers for as long as they like, unless the address is of another version."""
    content = files().get(name)
    if content is None:
        raise Refused(404, "There is no such file.")
    return Response(content, 200, {"Cache-Control": FOR_EVER if version == stamp() else "no-cache"}, TYPES[Path(name).suffix])


@router.get("/favicon.ico")
async def favicon() -> Response:
    """The board's own mark: browsers ask for it by this name."""
    return Response(files()["mark.svg"], 200, {"Cache-Control": "public, max-age=86400"}, TYPES[".svg"])
