"""The settings, from variables named RELEVO_...; policy (attempts, backoff, grace) is data of plans and tasks, not settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from ordering.errors import RelevoError

PREFIX = "RELEVO_"
DATABASES = ("postgresql", "postgres", "postgresql+psycopg")
BROKERS = ("redis", "rediss", "redis+socket", "valkey", "valkeys", "amqp", "amqps", "pyamqp")


class SettingsError(RelevoError):
    """A variable has a value that cannot be used, or is missing; the message is one sentence that names it."""


def _url(value: str, schemes: tuple[str, ...], example: str) -> str:
    try:
        parts = urlsplit(value)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError:
        port_is_number = False
    # The value is never repeated: it holds a password.
    if not port_is_number or parts.scheme not in schemes or not value.isprintable() or len(value) <= len(parts.scheme) + 3:
        raise ValueError(f"is not a URL that can be used; write {example}")
    return value


def _database(value: str) -> str:
    return _url(value, DATABASES, "postgresql://user:password@host:5432/database")


def _broker(value: str) -> str:
    checked = _url(value, BROKERS, "redis://:password@host:6379/0 or amqp://user:password@host:5672//")
    # Celery knows Valkey by the name of the protocol only.
    return checked.replace("valkey", "redis", 1) if checked.startswith("valkey") else checked


def _is_text(value: str) -> bool:
    """Whether it has no bytes outside UTF-8, which Python keeps as halves of surrogate pairs."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _path(value: Any) -> Path:
    if "\0" in str(value):
        raise ValueError("is not a path")
    path = os.path.abspath(Path(value).expanduser())
    if not _is_text(path):
        raise ValueError("lies in a folder whose name is no text in UTF-8; use another one")
    return Path(path)


def _catalogue(value: Any) -> Path:
    path = _path(value)
    if not path.parent.is_dir():
        raise ValueError(f"names a file in {path.parent}, which is not a folder")
    if path.is_dir():
        raise ValueError(f"is the folder {path}; name the file in it, as in {path / 'relevo.toml'}")
    return path


def _port(value: Any) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise ValueError(f"is {text!r}; give a port from 1 to 65535")
    return int(text)


def _switch(value: str) -> str:
    if value not in ("on", "off"):
        raise ValueError(f"is {value!r}; it can be on or off")
    return value


def _log(value: str) -> str:
    if value not in ("text", "json"):
        raise ValueError(f"is {value!r}; it can be text or json")
    return value


def _login(value: str) -> str:
    user, colon, password = value.partition(":")
    # The value is never repeated: it holds a password.
    if not (user and colon and password and value.isprintable()):
        raise ValueError("is not user:password")
    return value


def _page(value: str) -> str:
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or not value.isprintable():
        raise ValueError("is not an address for a browser; write https://host/path")
    return value


class Settings(BaseSettings):
    """What `load` found. Paths are absolute; a URL that is None means the embedded server of `relevo up`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore", validate_default=True)

    database_url: Annotated[str, BeforeValidator(_database)] | None = Field(default=None, repr=False)
    broker_url: Annotated[str, BeforeValidator(_broker)] | None = Field(default=None, repr=False)
    home: Annotated[Path, BeforeValidator(_path)] = Path(".relevo")
    host: str = "127.0.0.1"
    port: Annotated[int, BeforeValidator(_port)] | None = None
    exporter_host: str = "127.0.0.1"
    exporter_port: Annotated[int, BeforeValidator(_port)] | None = None
    tokens_file: Annotated[Path, BeforeValidator(_path)] | None = None
    shell_over_http: Annotated[Literal["on", "off"], BeforeValidator(_switch)] = "on"
    flower_auth: Annotated[str, BeforeValidator(_login)] | None = Field(default=None, repr=False)
    flower_url: Annotated[str, BeforeValidator(_page)] | None = None
    grafana_url: Annotated[str, BeforeValidator(_page)] | None = None
    catalogue: Annotated[Path, BeforeValidator(_catalogue)] = Path("relevo.toml")
    log: Annotated[Literal["text", "json"], BeforeValidator(_log)] = "text"

    def require_database(self) -> str:
        """The URL of the database. Raises SettingsError where none is set."""
        if self.database_url is None:
            raise SettingsError("RELEVO_DATABASE_URL is not set: set it, or let `relevo up` start everything.")
        return self.database_url

    def require_broker(self) -> str:
        """The URL of the broker. Raises SettingsError where none is set."""
        if self.broker_url is None:
            raise SettingsError("RELEVO_BROKER_URL is not set: set it, or let `relevo up` start everything.")
        return self.broker_url


def load() -> Settings:
    """The settings of this process's environment; an empty variable counts as unset. Raises SettingsError."""
    for name, value in os.environ.items():
        if name.startswith(PREFIX) and not _is_text(value):
            raise SettingsError(f"{name} holds bytes that are no text; write it in UTF-8.")
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = PREFIX + str(first["loc"][0]).upper()
        problem = first["msg"].removeprefix("Value error, ")
        raise SettingsError(f"{name} {problem}.") from None
