"""Somebody's project in a folder of its own, where `relevo` is called; nothing of it is left running afterwards."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import text

from ordering import db
from tests.cases.processes import ROOT


class Project:
    """A folder with a `relevo.toml`; its platform has embedded servers and lives in `.relevo`."""

    def __init__(self, folder: Path, catalogue: str) -> None:
        self.folder, self.home = folder, folder / ".relevo"
        (folder / "relevo.toml").write_text(catalogue)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("RELEVO_") and name != "PYTHONPATH"}
        self.env |= {"PYTHONPATH": str(ROOT), "RELEVO_HOME": str(self.home)}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Call `relevo` and do not wait; standard output and error are pipes."""
        command = [sys.executable, "-P", "-m", "app.cli", *words]
        return subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ends(self, call: "subprocess.Popen[str]", seconds: float = 120) -> tuple[int, str]:
        """Exit code and output of a call; none ever says a traceback."""
        with call:
            out, err = call.communicate(timeout=seconds)
        assert "Traceback" not in err, err
        return call.returncode, out + err

    def relevo(self, *words: str, code: int = 0) -> str:
        """Call `relevo` and return what it said; fails if it does not end with `code`."""
        ended, said = self.ends(self.start(*words))
        assert ended == code, f"relevo {' '.join(words)} ended with {ended}: {said}\n{self.log()}"
        return said

    def items(self) -> dict[str, Any]:
        """The items in their order, each a row of the table, by title."""
        engine = db.engine(self.record()["database_url"], pooled=False)
        with engine.connect() as connection:
            return {row.title: row for row in connection.execute(text("select * from relevo.item order by plan_id, position, id"))}

    def record(self) -> dict[str, Any]:
        """What the platform wrote of itself."""
        told: dict[str, Any] = json.loads((self.home / "platform.json").read_text())
        return told

    def log(self) -> str:
        """The end of the platform's log."""
        file = self.home / "log" / "relevo.log"
        return file.read_text()[-4000:] if file.exists() else ""

    def living(self) -> list[psutil.Process]:
        """Every process of this home, by its environment or its command line."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if process.environ().get("RELEVO_HOME") == str(self.home) or str(self.home) in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def left(self) -> list[psutil.Process]:
        """What still lives when all that was told to end has had its time; one whose memory is gone may still be ending."""
        _, left = psutil.wait_procs(self.living(), timeout=20)
        return list(left)

    def kill_everything(self) -> None:
        """kill -9 of every process, servers included, as of a machine that loses power."""
        while left := self.living():
            for process in left:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            psutil.wait_procs(left, timeout=2)


@contextmanager
def project(folder: Path, catalogue: str) -> Iterator[Project]:
    """A project for one block; a platform that is still up is taken down, and what stays then fails the test."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Project(folder, catalogue)
    try:
        yield made
        made.relevo("down")
        left = made.left()
        assert not left, f"left over: {left}"
    finally:
        made.kill_everything()
