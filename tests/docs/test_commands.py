"""Every call of `relevo` and of `make` on any page is one that there is, with options that it has."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from app import cli
from tests.docs.pages import DOCS, ROOT
from workers import flower, worker

PAGES = [ROOT / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if page.name != "decisions.md")]
BLOCK = re.compile(r"^```(?:sh|ini|console|text)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"(?:^|[;&|(]|[\s/=])relevo ((?:[a-z-]+)(?: .*)?)$")
OWN = {"worker": worker.parser, "flower": flower.parser}  # parsed by the service itself


def calls(text: str) -> Iterator[str]:
    """What stands behind `relevo` in blocks of commands and in code within a sentence."""
    lines = [line for block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    lines += [" ".join(each.split()) for each in re.findall(r"`((?:\$ |[A-Z_]+=\S+ )?relevo [^`]+)`", BLOCK.sub("", text))]
    for line in lines:
        found = CALL.search(re.split(r"\s#\s|\s#$| \| | > | && ", line.removeprefix("$ "))[0].strip())
        if found and not line.lstrip().startswith(("#", "FROM", "export")):
            yield found[1]


@cache
def relevo() -> Any:
    return get_command(cli._app())


def wrong(call: str) -> str | None:
    """What there is not of this call."""
    words = shlex.split(call.replace("…", "").replace("...", ""))
    command = relevo()
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"no command {words[0]!r}"
        command = command.commands[words.pop(0)]
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
    if command.name in OWN:
        options |= set(OWN[command.name]()._option_string_actions)
    unknown = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} - options
    return f"no option {', '.join(sorted(unknown))}" if unknown else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_call_on_a_page_is_one_that_there_is(page: Path) -> None:
    found = list(calls(page.read_text(encoding="utf-8")))
    assert {call: problem for call in found if (problem := wrong(call))} == {}


def test_calls_are_found_and_judged() -> None:
    assert sum(len(list(calls(page.read_text(encoding="utf-8")))) for page in PAGES) > 150
    text = "See `relevo fly`.\n```sh\n$ relevo add x --wrong # no\nRELEVO_PORT=1 relevo serve\n.venv/bin/relevo down\n```\n"
    assert [wrong(call) for call in calls(text)] == ["no option --wrong", None, None, "no command 'fly'"]


def test_every_target_of_make_on_a_page_is_one_that_there_is() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8")))
        assert named <= targets, (page.name, named - targets)
