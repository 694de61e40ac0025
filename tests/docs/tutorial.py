"""A tutorial as a program: its files are written, its commands typed into one shell, and what they print is compared with the page.

A fence with `title="name"` is a file. A fence `console` holds commands behind `$ ` and what they print; a line `...` stands for any
lines, and `…` in a line for what follows. Times, lengths of time, numbers of processes and sessions, the name of the host and the
board's port may differ, and so may the number of spaces.
"""

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT

FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)
#: What a reader looks at again until it is so.
LOOKS = re.compile(r"(relevo (plan (list|show)|show|dead (list|show)|facts?|status|subscriptions)|cat|curl .*\|\|)\b")
PATIENCE = 60.0  # seconds
DIFFERS = [
    (r"\d{4}\\-\d\d\\-\d\dT\d\d:\d\d:\d\d(\\\.\d+)?Z", r"\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z"),
    (r"(?<![\w.-])(in\\ )?\d+(\\\.\d+)?(ms|s|m|h)(?![\w-])", r"(in )?\\d+(\\.\\d+)?(ms|s|m|h)"),
    (r"on\\ \S+?\\ by\\ \S+?\\ \\\(process\\ \d+\\\)", r"on \\S+ by \\S+ \\(process \\d+\\)"),
    (r"relevo@\S+?/\d+", r"relevo@\\S+/\\d+"),
    (r'"seconds":\\ \d+(\\\.\d+)?', r'"seconds": \\d+(\\.\\d+)?'),
    (r"board\\ at\\ http://127\\\.0\\\.0\\\.1:\d+", r"board at http://127\\.0\\.0\\.1:\\d+"),
    (r"session\\ \d+", r"session \\d+"),
    (r"after\\ \d+\\\.\d+\\ s", r"after \\d+\\.\\d+ s"),
    ("…", ".*"),
    (r"(\\ )+", r"\\s+"),
]


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    content: str


@dataclass(frozen=True)
class Command:
    """What the reader types, and what is printed then."""

    line: str
    printed: str

    def agrees(self, printed: str) -> bool:
        """Whether this is what the page shows, but for what may differ."""
        return re.fullmatch(_pattern(self.printed), printed.strip()) is not None


def _pattern(shown: str) -> str:
    lines = []
    for line in shown.strip().splitlines():
        if line.strip() == "...":
            lines.append(r"(.*\n)*?.*")
            continue
        # re.escape writes a space as `\ `; what differs is found in what it wrote.
        pattern = re.escape(line.rstrip())
        for found, instead in DIFFERS:
            pattern = re.sub(found, instead, pattern)
        lines.append(pattern + r"\s*")
    return "\n".join(lines)


def steps(text: str) -> Iterator[File | Command]:
    """What the reader of the page does, in order."""
    for kind, info, content in FENCE.findall(text):
        title = re.search(r'title="([^"]+)"', info)
        if title:
            yield File(title[1], content)
        elif kind == "console":
            for block in re.split(r"^\$ ", content, flags=re.M)[1:]:
                lines = block.splitlines()
                end = next(number for number, line in enumerate(lines) if not line.endswith("\\")) + 1
                yield Command("\n".join(lines[:end]), "\n".join(lines[end:]))


class Shell:
    """One shell of the reader's, in an empty folder, with `relevo` and this Python's programs on its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir()
        for name, code in (
            ("relevo", "import sys; sys.argv[0] = 'relevo'; from relevo import main; main()"),
            ("uvicorn", "import sys; sys.argv[0] = 'uvicorn'; from uvicorn import main; main()"),
        ):
            file = programs / name
            file.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
            file.chmod(0o755)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("RELEVO_", "LC_", "LANG"))}
        env |= {
            "PATH": f"{programs}:{Path(sys.executable).parent}:{env['PATH']}",
            "PYTHONPATH": str(ROOT),
            "LOGNAME": "you",
            "LC_ALL": "C.UTF-8",
        }
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], cwd=folder, env=env, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def types(self, line: str) -> str:
        """Type one command, and wait for the prompt; what was printed."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        end = f"prompt-{secrets.token_hex(8)}"
        self._shell.stdin.write(f"{line}\necho; echo {end}\n")
        self._shell.stdin.flush()
        printed = ""
        while (read := self._shell.stdout.readline()) != f"{end}\n":
            assert read, f"the shell has ended: {printed}"
            printed += read
        return printed.replace(str(self.folder), "/home/you")

    def does(self, step: File | Command) -> str | None:
        """Do one step as the reader would; what went wrong, or None."""
        if isinstance(step, File):
            where = Path(self.types("pwd").strip().replace("/home/you", str(self.folder)))
            (where / step.name).write_text(step.content)
            return None
        deadline = time.monotonic() + (PATIENCE if LOOKS.match(step.line) else 0)
        while not step.agrees(printed := self.types(step.line)):
            if time.monotonic() > deadline:
                return f"$ {step.line}\n{printed.strip()}\n--- and the page shows:\n{step.printed}"
            time.sleep(0.2)
        return None

    def close(self) -> None:
        """End the shell; what it has started was the page's to end."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.close()
        self._shell.wait(60)
        self._shell.stdout.close()
