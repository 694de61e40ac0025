"""Which user of this machine is at the other end of a loopback connection, as the kernel lists it."""

from __future__ import annotations

import os
import pwd
import socket
import struct
from pathlib import Path

from starlette.requests import Request

from app.caller import Caller, Role
from app.problem import Refused

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ESTABLISHED = "01"


def known(request: Request) -> Caller:
    """The caller without a token: whoever runs the server, and root, may do anything, and no other user of this machine.

    Where the kernel does not say who it is, all but running commands. Raises Refused (401).
    """
    uid = uid_of(request.scope.get("client"), request.scope.get("server"))
    if uid is None:
        return Caller("http", Role.OPERATE)
    if uid not in (os.getuid(), 0):
        raise Refused(401, "The server belongs to another user of this machine; with a tokens file it serves others too.")
    return Caller(name_of(uid), Role.ADMIN)


def name_of(uid: int) -> str:
    """The user's name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # a container's user often has no name
        return f"uid {uid}"


def uid_of(client: tuple[str, int] | None, server: tuple[str, int] | None) -> int | None:
    """The user who owns the client's socket of this connection, or None if it is not listed here."""
    if client is None or server is None:
        return None
    ends = [(_written(client), _written(server)), (_written(client, mapped=True), _written(server, mapped=True))]
    for table in TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if (fields[1], fields[2]) in ends and fields[3] == ESTABLISHED:
                return int(fields[7])
    return None


def _written(address: tuple[str, int], *, mapped: bool = False) -> str:
    """An address as the kernel's table has it: words of four bytes in the order of this machine, and the port."""
    host, port = address
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    if mapped and len(packed) == 4:
        packed = b"\0" * 10 + b"\xff\xff" + packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
