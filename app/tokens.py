"""The tokens file: who may call over HTTP, one a line, each token as its hash. Read again when it changes.

NAME ROLE SHA256 MADE       # what follows a # is a remark
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path

from starlette.requests import Request

from app.caller import Caller, Role
from app.problem import Refused
from ordering.errors import Invalid
from workers.settings import SettingsError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")
LINE = re.compile(rf"({NAME.pattern})\s+(view|operate|admin)\s+([0-9a-f]{{64}})(\s+\S+)?")
BYTES = 32  # of chance in a token: nothing to guess, so a plain hash of it is enough
PREFIX = "relevo_"
COOKIE = "relevo"
SIZE_LIMIT = 1_000_000  # bytes


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def read(path: Path) -> dict[str, Caller]:
    """Callers by the hash of their token. Raises SettingsError naming the line."""
    try:
        with path.open("rb") as file:
            lines = file.read(SIZE_LIMIT).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise SettingsError(
            f"RELEVO_TOKENS_FILE is {path}, which cannot be read ({error.strerror}); `relevo token create` makes it."
        ) from None
    found: dict[str, Caller] = {}
    for number, line in enumerate(lines, 1):
        written = line.partition("#")[0].strip()
        if not written:
            continue
        parsed = LINE.fullmatch(written)
        if parsed is None:
            raise SettingsError(f"{path}: line {number}: is not a token; a line is a name, a role (view, operate or admin) and a SHA-256.")
        found[parsed[3]] = Caller(parsed[1], Role[parsed[2].upper()])
    return found


class Tokens:
    """Tells who calls by the token that they show: `Authorization: Bearer ...`, else the cookie of the login.

    Raises SettingsError if the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = read(path)
        self._stamp = self._stamp_now()

    def __call__(self, request: Request) -> Caller:
        """The caller. Raises Refused: 401 without a token that is known, 503 while the file cannot be read."""
        header = request.headers.get("authorization")
        if header is None:
            token = request.cookies.get(COOKIE, "")
        else:
            scheme, _, shown = header.partition(" ")
            token = shown.strip() if scheme.lower() == "bearer" else ""
        caller = self.caller_of(token)
        if caller is None:
            wrong = "The token is not known" if token else "A token is needed"
            raise Refused(401, f"{wrong}: send one as `Authorization: Bearer TOKEN`, or sign in.", {"WWW-Authenticate": "Bearer"})
        return caller

    def caller_of(self, token: str) -> Caller | None:
        """Whose token this is, if anybody's. Raises Refused: 503 while the file cannot be read."""
        stamp = self._stamp_now()
        if stamp != self._stamp or stamp is None:
            # Nobody gets in by a file that cannot be read, and whoever was taken out of it is out.
            try:
                self._known, self._stamp = read(self._path), stamp
            except SettingsError:
                self._known, self._stamp = {}, None
                raise Refused(503, "The tokens file cannot be read now.") from None
        return self._known.get(_hash(token))

    def _stamp_now(self) -> tuple[int, int, int] | None:
        try:
            now = self._path.stat()
        except OSError:
            return None
        return now.st_mtime_ns, now.st_size, now.st_ino


def create(path: Path, name: str, role: Role) -> str:
    """Add a token for `name` to the file at `path`, which is made if it is missing; the token, which is nowhere else.

    Raises Invalid if the name has a token already or cannot be one, SettingsError if the file cannot be used.
    """
    if not NAME.fullmatch(name):
        raise Invalid("NAME", f"{name[:80]!r} cannot be one; use up to 63 letters, digits, dots, dashes, underscores and @.")
    token = PREFIX + secrets.token_urlsafe(BYTES)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise SettingsError(f"RELEVO_TOKENS_FILE is {path}, which cannot be written ({error.strerror}).") from None
    with os.fdopen(descriptor, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if any(known.name == name for known in read(path).values()):
            raise Invalid("NAME", f"{name!r} has a token already; take its line out of {path} first, or use another name.")
        old = path.read_bytes()
        begin = b"" if not old or old.endswith(b"\n") else b"\n"
        made = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        file.write(begin + f"{name} {role} {_hash(token)} {made}\n".encode())
    return token
