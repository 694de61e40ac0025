"""A host of its own for a worker: a network namespace behind a pair of virtual interfaces, whose address can be taken away."""

import ipaddress
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests import servers

# For tests between networks (RFC 2544): nobody's own, and all the same looked for on this host before a piece is taken.
TESTING = ipaddress.IPv4Network("198.18.0.0/15")
PREFIX = 30


class FarHost:
    """The namespace: it has the address `far` and reaches us at `near`. `gone` takes its address, `back` gives it again."""

    def __init__(self, name: str, device: str, near: str, far: str) -> None:
        self.near, self.far = near, far
        self._name, self._device = name, device
        self._is_gone = True

    def command(self, *words: str) -> list[str]:
        """`words` as a command that runs there, with the same pid."""
        nsenter = shutil.which("nsenter")
        assert nsenter is not None
        return [nsenter, f"--net=/run/netns/{self._name}", *words]

    def gone(self) -> None:
        _ip("-n", self._name, "address", "flush", "dev", self._device)
        self._is_gone = True

    def back(self) -> None:
        _ip("-n", self._name, "address", "add", f"{self.far}/{PREFIX}", "dev", self._device)
        self._is_gone = False

    def back_if_gone(self) -> None:
        if self._is_gone:
            self.back()


@contextmanager
def far_host() -> Iterator[FarHost]:
    """A far host for one block; skips the test where that cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("making a network namespace needs root")
    for program in ("ip", "nsenter"):
        if shutil.which(program) is None:
            pytest.skip(f"the program {program} is missing: no network namespace can be made")
    near_address, far_address = _free_pair()
    mark = servers.fresh_name("r")[-6:]
    name, near, far = f"relevo-{mark}", f"rn{mark}", f"rf{mark}"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        _ip("address", "add", f"{near_address}/{PREFIX}", "dev", near)
        _ip("link", "set", near, "up")
        _ip("-n", name, "link", "set", "lo", "up")
        made = FarHost(name, far, near_address, far_address)
        made.back()
        _ip("-n", name, "link", "set", far, "up")
        yield made
    finally:
        subprocess.run(["ip", "link", "delete", near], capture_output=True, timeout=60)
        _ip("netns", "delete", name)


def _free_pair() -> tuple[str, str]:
    """Two neighbouring addresses that no route of this host but the default one leads to."""
    known = [ipaddress.IPv4Network(line.split()[0]) for line in _ip("-4", "route").splitlines() if line[:1].isdigit()]
    pieces = list(TESTING.subnets(new_prefix=PREFIX))
    while any((piece := random.choice(pieces)).overlaps(network) for network in known):
        continue
    near, far = piece.hosts()
    return str(near), str(far)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
    return done.stdout
