"""Make .venv from requirements.lock and install this project into it, with uv where it is there and pip where not.

Usage: python3 scripts/make_venv.py [--fresh]

Needs nothing but a Python of 3.11 or later. Does nothing when .venv already matches the lock; may be called any number of
times at once. Keep the syntax old: an old Python must get as far as the sentence about its version.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
LOCK = os.path.join(ROOT, "requirements.lock")
STAMP = os.path.join(VENV, "made-from")
WANTED = (3, 11)


def main():
    # type: () -> int
    if sys.version_info < WANTED:
        return fail("Python {}.{} or later is needed, this is {}.{}: make PYTHON=python3.12".format(*WANTED, *sys.version_info[:2]))
    with open(os.path.join(ROOT, ".venv.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = wanted_stamp()
        if "--fresh" not in sys.argv and read(STAMP) == stamp:
            return 0
        print("Making .venv from requirements.lock ...", flush=True)
        try:
            build()
        except subprocess.CalledProcessError as error:
            return fail("Making .venv failed at: {}".format(" ".join(error.cmd)))
        except KeyboardInterrupt:
            return fail("Making .venv was interrupted: the next make begins again.")
        with open(STAMP, "w") as file:
            file.write(stamp)
    return 0


def build():
    # type: () -> None
    # No stamp until the end: what an interrupted run leaves behind is thrown away by the next one.
    shutil.rmtree(VENV, ignore_errors=True)
    python = os.path.join(VENV, "bin", "python")
    project = ["--no-deps", "--no-build-isolation", "--editable", ROOT]
    uv = shutil.which("uv")
    if uv:
        # Seeded with pip, so that `python -m pip` works whichever tool made the environment.
        run([uv, "venv", "--quiet", "--seed", "--python", sys.executable, VENV])
        install = [uv, "pip", "install", "--quiet", "--python", python]
    elif has_module("ensurepip"):
        run([sys.executable, "-m", "venv", VENV])
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    elif has_module("pip"):
        # Debian keeps ensurepip in a package of its own; the machine's pip can fill another environment.
        run([sys.executable, "-m", "venv", "--without-pip", VENV])
        install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    else:
        raise SystemExit(fail("This Python has neither ensurepip nor pip: install python3-venv, or uv."))
    run([*install, "--require-hashes", "-r", LOCK])
    run([*install, *project])


def run(command):
    # type: (list[str]) -> None
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=environment)


def has_module(name):
    # type: (str) -> bool
    return subprocess.run([sys.executable, "-c", "import " + name], stderr=subprocess.DEVNULL, check=False).returncode == 0


def wanted_stamp():
    # type: () -> str
    parts = [sys.version, ROOT, read(LOCK), read(os.path.join(ROOT, "pyproject.toml"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(path):
    # type: (str) -> str
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def fail(sentence):
    # type: (str) -> int
    print(sentence, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
