"""Every command explains itself to a stranger."""

import pytest

from app import cli
from tests.app.commands import Relevo, ok


@pytest.fixture
def relevo(capsys: pytest.CaptureFixture[str]) -> Relevo:
    return Relevo(capsys)


@pytest.mark.parametrize("name", [name for panel in cli.PANELS.values() for name in panel if name not in ("worker", "feeder", "flower")])
def test_every_command_has_a_help_with_an_example(relevo: Relevo, name: str) -> None:
    said = ok(relevo(name, "--help"))
    assert f"relevo {name}" in said.split("Example")[1]


def test_the_help_lists_every_command_and_the_exit_codes(relevo: Relevo) -> None:
    said = ok(relevo("--help"))
    for name in [name for panel in cli.PANELS.values() for name in panel] + ["plan"]:
        assert f" {name} " in said
    assert "Exit codes: 0 done, 1 the work failed" in said
    for name in ("create", "edit", "list", "show"):
        assert "Example: relevo plan " in ok(relevo("plan", name, "--help"))


@pytest.mark.parametrize("name", cli.DEAD)
def test_every_command_on_dead_letters_has_a_help_with_an_example(relevo: Relevo, name: str) -> None:
    assert f"relevo dead {name}" in ok(relevo("dead", name, "--help")).split("Example")[1]
