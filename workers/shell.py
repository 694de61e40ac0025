"""The body of the built-in task `shell`: one command, its output kept and shown live, its whole process tree ended with it."""

import errno
import os
import signal
import sys
import time
from collections.abc import Mapping

from ordering.text import clean
from workers.guarded import Ending, Guarded, NotStarted
from workers.output import Output
from workers.plain import PlainError
from workers.reader import OnChange, Reader

GRACE_SECONDS = 2.0
LAST_LINES = 10
LAST_CHARACTERS = 2000


class BadCommand(PlainError, ValueError):
    """The command as given cannot be run; one sentence that names the field and the fix."""


class AlreadyDone(Exception):
    """The `unless` command says that the work is already done: the item settles as skipped, with this reason."""


class CommandFailed(PlainError):
    """The command ended with an exit code that is not 0, or by a signal.

    `code` or `signal` (a number) says how, the other is None; `last` holds its last lines.
    """

    def __init__(self, program: str, code: int | None, signal: int | None, last: str) -> None:
        super().__init__(program, code, signal, last)
        self.program = program
        self.code = code
        self.signal = signal
        self.last = last

    def __str__(self) -> str:
        how = f"ended with exit code {self.code}" if self.signal is None else f"was ended by {_signal_name(self.signal)}"
        return f"{self.program!r} {how}; " + (f"its last lines:\n{self.last}" if self.last else "it printed nothing")


def run(
    command: object,
    *,
    unless: object = None,
    cwd: object = None,
    env: object = None,
    on_change: OnChange | None = None,
    grace: float = GRACE_SECONDS,
) -> float:
    """Run the command and wait for it; how long it took, in seconds. Call from the main thread of a pool process.

    `command` and `unless` are lists of strings, `cwd` a folder or None, `env` variables on top of the worker's own. What the command
    leaves running when it ends is ended too: TERM, and KILL after `grace` seconds; what ignores that is named in the output.
    `on_change(head, tail, dropped)` is called from another thread while it runs, see Reader. Raises BadCommand, AlreadyDone when
    `unless` exits with 0, CommandFailed, GuardLost. An exception from a signal handler (a time limit, a shutdown, a cancel) ends the
    whole tree in the same way before it is let through.
    """
    words = _words("command", command)
    test = None if unless is None else _words("unless", unless)
    folder = None if cwd is None else _text("cwd", cwd)
    variables = _variables(env)
    if not sys.platform.startswith("linux"):
        raise BadCommand("command: the task shell needs Linux, whose kernel lets a guard find every process that a command starts")
    if test is not None:
        ending, _ = _run("unless", test, folder, variables, None, grace)
        if ending.code == 0:
            raise AlreadyDone(f"already done: the unless command {clean(test[0])!r} exited with 0")
    started = time.monotonic()
    ending, output = _run("command", words, folder, variables, on_change, grace)
    if ending.code != 0:
        snapshot = output.snapshot()
        raise CommandFailed(clean(words[0]), ending.code, ending.signal, _last_lines(snapshot.tail or snapshot.head))
    return time.monotonic() - started


def _run(
    field: str, words: list[str], cwd: str | None, env: Mapping[str, str], on_change: OnChange | None, grace: float
) -> tuple[Ending, Output]:
    output = Output()
    reading, writing = os.pipe()
    reader = Reader(reading, output, on_change)
    note = ""
    try:
        reader.start()
        with Guarded(grace) as guarded:
            try:
                guarded.start(words, cwd=cwd, env=env, stdout=writing)
            except NotStarted as error:
                raise BadCommand(_why(field, words[0], cwd, error)) from None
            finally:
                os.close(writing)
            ending = guarded.wait()
            if ending.left:
                note = f"\n[still there, though killed: process {', '.join(map(str, ending.left))}]\n"
            return ending, output
    finally:
        reader.finish(note)


def _words(field: str, value: object) -> list[str]:
    if isinstance(value, str):
        raise BadCommand(f'{field} must be a list of strings such as ["make", "test"]; for a shell line write ["sh", "-c", "..."]')
    if not isinstance(value, list | tuple):
        raise BadCommand(f'{field} must be a list of strings such as ["make", "test"], not {type(value).__name__}')
    if not value:
        raise BadCommand(f"{field} is an empty list; its first string names the program to run")
    words = [_text(f"{field}[{place}]", word) for place, word in enumerate(value)]
    if not words[0]:
        raise BadCommand(f"{field}[0] is empty; it names the program to run")
    return words


def _variables(env: object) -> dict[str, str]:
    variables = dict(os.environ)
    if env is None:
        return variables
    if not isinstance(env, Mapping):
        raise BadCommand(f"env must be a table of names and strings, not {type(env).__name__}")
    for name, value in env.items():
        named = _text("a name in env", name)
        if not named or "=" in named:
            raise BadCommand(f"env has the name {clean(named)!r}; a name must not be empty nor contain '='")
        variables[named] = _text(f"env[{clean(named)!r}]", value)
    return variables


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadCommand(f"{field} must be a string, not {type(value).__name__}; put it in quotes")
    if "\0" in value:
        raise BadCommand(f"{field} contains a NUL character, which no program can be given; remove it")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        raise BadCommand(f"{field} contains half a character (a lone surrogate), which has no bytes; remove it") from None
    return value


def _why(field: str, program: str, cwd: str | None, error: NotStarted) -> str:
    name = repr(clean(program))
    if error.phase == "chdir":
        folder = repr(clean(cwd or ""))
        match error.errno:
            case errno.ENOENT:
                return f"cwd: there is no folder {folder} on the worker; make it or name another"
            case errno.ENOTDIR:
                return f"cwd: {folder} is not a folder; name one"
        return f"cwd: the worker cannot enter {folder} ({os.strerror(error.errno)})"
    match error.errno:
        case errno.ENOENT if "/" not in program:
            return f"{field}: no program {name} is on the worker's PATH; install it or write its full path"
        case errno.ENOENT if os.path.exists(os.path.join(cwd or "", program)):
            return f"{field}: the interpreter that the first line of {name} names does not exist on the worker; correct that line"
        case errno.ENOENT | errno.ENOTDIR:
            return f"{field}: there is no file {name} on the worker; correct the path"
        case errno.EACCES:
            return f"{field}: {name} is not executable for the worker; chmod +x it or name a program"
        case errno.ENOEXEC:
            return f"{field}: {name} is not a program; name its interpreter first or begin the file with #!"
        case errno.E2BIG:
            return f"{field}: the strings and env are longer than the system allows; hand the data over in a file"
    return f"{field}: {name} cannot be run ({os.strerror(error.errno)})"


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


def _last_lines(text: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-LAST_LINES:])[-LAST_CHARACTERS:]
