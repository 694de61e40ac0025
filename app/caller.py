"""Who calls over HTTP, and what they may do: view, operate, or anything."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from starlette.requests import Request

from app.problem import Refused


class Role(IntEnum):
    """What a caller may do; each may also do what those before it may."""

    VIEW = 1
    OPERATE = 2
    ADMIN = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Caller:
    """The name that the trail keeps, and the role."""

    name: str
    role: Role

    def require(self, role: Role, what: str) -> None:
        """Raise Refused (403) if the caller's role is less than `role`; `what` names what was asked."""
        if self.role < role:
            raise Refused(403, f"{what} needs the role {role}, and {self.name} has the role {self.role}.")


class Known(Protocol):
    """Tells who calls. Raises Refused (401) where nobody may."""

    def __call__(self, request: Request) -> Caller: ...
