"""A user's project whose own packages have the names of ours: `app` with the tasks; it runs them from its relevo.toml."""

import json
from pathlib import Path

import pytest

from tests.cases.kit import wait_until
from tests.cases.project import project

pytestmark = pytest.mark.timeout(240)

TASKS = """
import app
from app.money import cents
from workers import celery

@celery.task(name="invoices.total")
def total(amounts):
    assert app.WHOSE == "theirs"
    return cents(sum(amounts))

@celery.task(bind=True, name="invoices.remind", max_retries=2)
def remind(self, number):
    if self.request.retries == 0:
        raise self.retry(countdown=0)
    total.delay([number])
    return f"reminded of {number}"
"""


def test_tasks_in_a_package_named_app(tmp_path: Path) -> None:
    with project(tmp_path / "theirs", 'imports = ["app.tasks"]\n') as theirs:
        package = theirs.folder / "app"
        package.mkdir()
        (package / "__init__.py").write_text('WHOSE = "theirs"\n')
        (package / "money.py").write_text("def cents(amount):\n    return amount * 100\n")
        (package / "tasks.py").write_text(TASKS)
        theirs.relevo("up", "--detach")
        theirs.relevo("plan", "create", "billing")
        theirs.relevo("add", "billing", "invoices.total", json.dumps({"amounts": [1, 2]}), "--title", "total")
        theirs.relevo("add", "billing", "invoices.remind", "[7]", "--title", "remind")
        unknown = theirs.relevo("add", "billing", "invoices.nothing", code=2)
        assert "invoices.nothing" in unknown
        theirs.relevo("start", "billing")

        def done() -> bool:
            items = theirs.items()
            return len(items) == 3 and all(item.state == "succeeded" for item in items.values())

        # The third has no title: it was added by a body, to the stream that tasks without a plan go to.
        wait_until(done, 30, f"all three succeeded: {theirs.log()}")
        items = theirs.items()
        assert items["total"].result == 300
        assert (items["remind"].result, items["remind"].attempts) == ("reminded of 7", 2)
        assert items[""].result == 700
        theirs.relevo("down")
        assert not theirs.left()
