"""The trail speaks the glossary's language: each action is one of its verbs, in its plain form."""

import re
from pathlib import Path

from ordering import decision, finish

ROOT = Path(__file__).parents[1]
CODE = [path for part in ("ordering", "workers", "app") for path in (ROOT / part).rglob("*.py")]
#: Actions that are not written where the event is: a person's decisions, and what a task made of its item.
OTHERS = {*decision.VERBS, *finish.BEFORE_THE_BODY.values()}


def test_every_action_is_a_verb_of_the_glossary() -> None:
    verbs = set(re.findall(r"\*\*([a-z]+)\*\*", (ROOT / "docs/glossary.md").read_text().partition("## Verbs")[2]))
    written = {word for path in CODE for word in re.findall(r'action="([^"]+)"', path.read_text())}
    assert {"add", "interrupt", "fence"} <= written
    assert (written | OTHERS) - verbs == set()
