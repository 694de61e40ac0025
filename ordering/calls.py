"""Calls that may come twice: each is recorded with its answer in the transaction that does its work."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from ordering.errors import CallConflict, Invalid
from ordering.text import checked

KEY_LIMIT = 255  # characters
KEPT = "1 day"


@dataclass(frozen=True)
class Answer:
    """What was answered: an HTTP status and the body as text."""

    status: int
    body: str


# Two at once: the second insert waits for the transaction of the first and then finds its row.
BEGIN = text("""
    insert into relevo.call (caller, key, digest) values (:caller, :key, :digest)
    on conflict (caller, key) do update set digest = excluded.digest, status = null, answer = null, at = now()
        where call.at < now() - cast(:kept as interval)
    returning true
""")
KNOWN = text("select digest, status, answer from relevo.call where caller = :caller and key = :key")
# A few at each call, so that nobody has to come by: more leave than come.
PRUNE = text("""
    delete from relevo.call where (caller, key) in (
        select caller, key from relevo.call where at < now() - cast(:kept as interval) order by at limit 5 for update skip locked)
""")


def begin(tx: Connection, caller: str, key: str, digest: str) -> Answer | None:
    """Record that `caller` makes a call under `key` whose content has `digest`; the answer if it was made before.

    Waits for the same call if that is being made now. A key is remembered for a day. Raises CallConflict if the key was
    used for another content, Invalid if it cannot be a key.
    """
    if not key.strip():
        raise Invalid("Idempotency-Key", "is empty; leave it out or write something.")
    row = {"caller": caller, "key": checked("Idempotency-Key", key, KEY_LIMIT), "digest": digest, "kept": KEPT}
    tx.execute(PRUNE, row)
    if tx.execute(BEGIN, row).first() is not None:
        return None
    known = tx.execute(KNOWN, row).one()
    if known.digest != digest:
        raise CallConflict(key)
    return Answer(known.status, known.answer)


END = text("update relevo.call set status = :status, answer = :answer where caller = :caller and key = :key")


def end(tx: Connection, caller: str, key: str, answer: Answer) -> None:
    """Keep the answer of the call that `begin` recorded in this transaction."""
    tx.execute(END, {"caller": caller, "key": key, "status": answer.status, "answer": answer.body})
