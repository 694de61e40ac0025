"""What the embedded servers have in common: the interface, starting, stopping, and ending what an earlier life left over."""

import importlib.util
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

START_TIMEOUT = 60.0
STOP_TIMEOUT = 15.0


class EmbeddedError(Exception):
    """An embedded server cannot be prepared or does not start; the message is one sentence for the person at the terminal."""


class Server(ABC):
    """One server process that the caller starts, owns and ends.

    Only one process at a time may prepare and run the server of a folder: the caller holds a lock of its own on it.
    Start it in a session of its own (`start_new_session=True`), or Ctrl-C reaches it before its clients are done.
    """

    name: str
    stop_signal: signal.Signals

    @abstractmethod
    def prepare(self) -> None:
        """Make the folder ready to run and end what a killed life left over. Safe to repeat, also after each death.

        Raises EmbeddedError: the folder cannot be written, the wheel is missing, or the data belong to another version.
        """

    @abstractmethod
    def command(self) -> list[str]:
        """The command line that runs the server in the foreground; it logs to its stdout and stderr."""

    @abstractmethod
    def env(self) -> dict[str, str]:
        """The whole environment for that command."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients connect, password included. Raises EmbeddedError before the first `prepare()` in this folder."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether the server answers a client now (at most 2 s). Raises EmbeddedError when it never will."""

    def tidy(self) -> None:  # noqa: B027 - most leave nothing
        """Remove what the server, which has stopped, left outside its folder; `prepare()` makes it anew, at the same place."""


def start_and_wait(server: Server, log: Path, timeout: float = START_TIMEOUT) -> subprocess.Popen[bytes]:
    """Prepare and start `server`, its output appended to the file `log`, and return once it answers (at most `timeout` s).

    Raises EmbeddedError when it ends or does not answer in time; it is not left running then.
    """
    server.prepare()
    with log.open("ab") as output:
        process = subprocess.Popen(
            server.command(),
            env=server.env(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + timeout
    try:
        while not server.ready():
            if process.poll() is not None:
                raise EmbeddedError(f"{server.name} ended with exit code {process.returncode}; it said: {last_line(log)}")
            if time.monotonic() > deadline:
                raise EmbeddedError(f"{server.name} did not answer within {timeout:g} s; its last words: {last_line(log)}")
            time.sleep(0.02)
    except BaseException:
        stop(server, process)
        raise
    return process


def stop(server: Server, process: subprocess.Popen[bytes], timeout: float = STOP_TIMEOUT) -> None:
    """End `process` with the server's own stop signal, by force after `timeout` seconds, and tidy up. A dead process is fine."""
    if process.poll() is None:
        process.send_signal(server.stop_signal)
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout)
    server.tidy()


@contextmanager
def running(server: Server, log: Path, timeout: float = START_TIMEOUT) -> Iterator[str]:
    """Run `server` for the length of a with-block; the value is its URL. Raises EmbeddedError as `start_and_wait` does."""
    process = start_and_wait(server, log, timeout)
    try:
        yield server.url
    finally:
        stop(server, process)


def wheel_folder(package: str, setting: str) -> Path:
    """The folder of an installed wheel, found without importing it.

    Raises EmbeddedError naming `setting`, the variable that makes the wheel unnecessary.
    """
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places:
        wheel = package.replace("_", "-")
        raise EmbeddedError(f"The package {wheel} is not installed here: install it, or set {setting} to a server of yours.")
    return Path(places[0])


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn the operating system's refusals below `folder` into an EmbeddedError that says what to set."""
    try:
        yield
    except OSError as error:
        raise EmbeddedError(
            f"Cannot write in {folder} ({error.strerror or error}): set RELEVO_HOME to a folder that can be written."
        ) from error


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def clean_env(prefixes: Sequence[str] = ()) -> dict[str, str]:
    """This process's environment without the variables that start with one of `prefixes`, in the C locale."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(tuple(prefixes))}
    return kept | {"LC_ALL": "C"}


def end_leftovers(leads: Callable[[Sequence[str]], bool], follows: Callable[[Sequence[str]], bool], uid: int, how: signal.Signals) -> None:
    """End what a killed supervisor left running: the leader with the signal `how`, then by force whatever is still there.

    leads, follows: whether a command line is the leader's or a helper's; only processes of the user `uid` are asked about.
    Raises EmbeddedError when one cannot be ended.
    """
    leaders, helpers = [], []
    for process in psutil.process_iter(["cmdline", "uids"]):
        line, uids = process.info["cmdline"], process.info["uids"]
        if not line or uids is None or uids.real != uid:
            continue
        if leads(line):
            leaders.append(process)
        elif follows(line):
            helpers.append(process)
    for process in leaders:
        _signal(process, how)
    # Helpers go by themselves once they see that their leader is gone; one in the middle of a long query sees it late.
    _, alive = psutil.wait_procs(leaders + helpers, timeout=STOP_TIMEOUT if leaders else 2.0)
    for process in alive:
        _signal(process, signal.SIGKILL)
    _, alive = psutil.wait_procs(alive, timeout=5.0)
    if alive:
        pids = ", ".join(str(process.pid) for process in alive)
        raise EmbeddedError(f"A server of an earlier run does not end (process {pids}): end it, then start again.")


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def last_line(log: Path) -> str:
    """The last line of a log that says something, for the sentence about a server that does not start."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing"


def as_options(settings: Mapping[str, str]) -> list[str]:
    """`-c name=value` for each setting."""
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
