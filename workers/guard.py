"""The guard: a small process between a pool process and the command that it runs.

Started as ``python -I -S guard.py FD`` by `workers.guarded`, never imported. FD is one end of a socket whose other end only the
pool process holds. The guard is the subreaper of everything that the command starts, so a process that forked twice or called setsid is
still found below it. When the socket closes, which the kernel does for a pool process dead by kill -9, the whole tree is killed.

In:   8 bytes of length, then marshal of (argv, env, cwd or None, grace in seconds), all text as bytes;
      ``stop`` asks for TERM, and KILL after the grace; the end of the stream for KILL at once.
Out:  ``started PID`` or ``failed chdir|exec ERRNO``; once no descendant is left, ``ended STATUS`` (as waitpid gives it). Where some
      could not be killed, ``left PID ...`` before it, and no status when the command itself is among them.

Only modules that are built in or cheap: `signal` alone costs 7 ms (it loads enum), a quarter of the start, so libc is asked directly.
"""

import _thread
import ctypes
import errno
import marshal
import os
import sys
import time

TERM, KILL = 15, 9
DEFAULT, IGNORE = 0, 1
SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36
PAUSE = 0.005  # between two passes over /proc while killing: a pass costs about 1 ms per 100 processes
PATIENCE = 10.0  # after that many seconds of KILL only what ignores it is left: another user's, or stuck in the kernel

ended: list[int] = []  # the command's status, once it has one
libc = ctypes.CDLL(None, use_errno=True)
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.signal.restype = ctypes.c_void_p


def main(control: int) -> None:
    os.set_inheritable(control, False)
    # A service manager sends TERM to every process of the unit; whether the command has to end is for the pool process to say.
    for number in (1, 2, 3, TERM):
        libc.signal(number, IGNORE)
    libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    spec = receive(control)
    if spec is None:
        return
    argv, env, cwd, grace = spec
    command, failure = start(argv, env, cwd)
    if failure:
        os.waitpid(command, 0)
        say(control, b"failed " + failure)
        return
    say(control, b"started %d" % command)
    # The output's pipe must end with the command, not with the guard.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    _thread.start_new_thread(watch, (control, grace))
    reap(control, command, grace)


def receive(control: int) -> tuple[list[bytes], dict[bytes, bytes], bytes | None, float] | None:
    """The command to run; None when the pool process is gone before it said so."""
    data, size = b"", 8
    while len(data) < size:
        piece = hear(control, size - len(data))  # not into a "stop" behind it
        if not piece:
            return None
        data += piece
        if len(data) >= 8:
            size = 8 + int.from_bytes(data[:8], "big")
    spec: tuple[list[bytes], dict[bytes, bytes], bytes | None, float] = marshal.loads(data[8:])
    return spec


def start(argv: list[bytes], env: dict[bytes, bytes], cwd: bytes | None) -> tuple[int, bytes]:
    """Fork and execute. Returns the pid, and what failed (empty when nothing did)."""
    guard = os.getpid()
    heard, told = os.pipe()  # both close at exec: the end of the stream says that it worked
    pid = os.fork()
    if pid == 0:
        phase = b"exec"
        try:
            os.setsid()
            libc.prctl(SET_PDEATHSIG, KILL, 0, 0, 0)
            if os.getppid() != guard:  # it died before the line above
                os._exit(127)
            for number in range(1, 32):  # Celery's pool processes ignore SIGINT, Python ignores SIGPIPE: not the command's business
                libc.signal(number, DEFAULT)
            if cwd is not None:
                phase = b"chdir"
                os.chdir(cwd)
                phase = b"exec"
            execute(argv, env)
        except Exception as error:
            os.write(told, b"%s %d" % (phase, getattr(error, "errno", None) or errno.EINVAL))
        finally:
            os._exit(127)
    os.close(told)
    failure = os.read(heard, 100)
    os.close(heard)
    return pid, failure


def execute(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Replace this process; looks argv[0] up on the PATH of the given environment. Raises OSError."""
    program = argv[0]
    if b"/" in program:
        os.execve(program, argv, env)
    found: OSError | None = None
    for folder in env.get(b"PATH", os.defpath.encode()).split(b":"):
        try:
            os.execve(os.path.join(folder, program), argv, env)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) and found is None:
                found = error
    raise found or FileNotFoundError(errno.ENOENT, "")


def hear(control: int, size: int) -> bytes:
    """What the pool process says next; nothing when it is gone, which reads as a reset when it left something unread."""
    try:
        return os.read(control, size)
    except ConnectionResetError:
        return b""


def watch(control: int, grace: float) -> None:
    """Wait for the pool process's word, or for its end."""
    while hear(control, 100):
        _thread.start_new_thread(end, (control, grace))
    end(control, 0)


def reap(control: int, command: int, grace: float) -> None:
    """Collect every process that ends; what outlives the command is ended too; none left: report and leave."""
    flags = 0
    while True:
        try:
            pid, status = os.waitpid(-1, flags)
        except ChildProcessError:
            break
        if pid == command:
            ended.append(status)
            flags = os.WNOHANG
        elif pid == 0:
            flags = 0
            _thread.start_new_thread(end, (control, grace))
    leave(control)


def end(control: int, grace: float) -> None:
    """End all descendants: TERM once (a clean-up that a trap starts is not hit again) and a grace, then KILL until `reap` finds none."""
    if grace:
        signal_all(TERM)
        time.sleep(grace)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        signal_all(KILL)
        time.sleep(PAUSE)
    say(control, b" ".join([b"left", *(b"%d" % pid for pid, _ in descendants())]))
    leave(control)


def leave(control: int) -> None:
    for status in ended:
        say(control, b"ended %d" % status)
    os._exit(0)


def signal_all(number: int) -> None:
    """Signal each process group below. A group at a time, because a process that forks cannot slip out of a signal to its group, and a
    group below is never mixed: the command leads a session, and nobody joins a group of another session."""
    own = os.getpgrp()
    below = descendants()
    for group in {group for _, group in below} - {own}:
        send(-group, number)
    for pid, group in below:
        if group == own:  # forked by the guard a moment ago, not yet in its session
            send(pid, number)


def send(target: int, number: int) -> None:
    """Signal a process, or a group given as its negative."""
    try:  # noqa: SIM105  # contextlib costs 5 ms at the start
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        pass  # ended meanwhile; or it became another user's (sudo), which `end` reports as left


def descendants() -> list[tuple[int, int]]:
    """Pid and process group of everything below the guard. From the parents in /proc/*/stat: the shorter
    /proc/*/task/*/children is missing in kernels built without it."""
    parents: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = os.open(f"/proc/{name}/stat", os.O_RDONLY)
        except OSError:
            continue
        try:
            fields = os.read(stat, 1000).rpartition(b")")[2].split()  # the name before it may hold blanks and brackets
        except ProcessLookupError:
            continue
        finally:
            os.close(stat)
        # Zombies too: one may be a process whose first thread has ended before the others.
        parents.setdefault(int(fields[1]), []).append((int(name), int(fields[2])))
    found = []
    line = [os.getpid()]
    while line:
        for child in parents.pop(line.pop(), []):
            found.append(child)
            line.append(child[0])
    return found


def say(control: int, message: bytes) -> None:
    try:  # noqa: SIM105
        os.write(control, message + b"\n")
    except OSError:
        pass  # the pool process is gone: nobody is left to tell


if __name__ == "__main__":
    main(int(sys.argv[1]))
