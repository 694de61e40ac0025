"""A shop's platform with believable work on it: for the screenshots, and to look around in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Connection, text

from ordering import add, facts, items, move, plans, schedule
from ordering.model import Before, Json, NewItem, OnFailure
from ordering.schedule import NewSchedule
from tests.cases.kit import Kit, wait_until

RELEASE = [
    ("fix", "Recalculate VAT for 2026-Q1 (Σ invoices - Σ ledger > 0.01 €)"),
    ("feature", "Ship the new statement layout behind a flag"),
    ("", "🧹🪣 Sweep orphaned thumbnails"),
    ("fix", "إصلاح ترتيب الفواتير في التقرير الشهري (بعد الترقية إلى الإصدار 3.2)"),
    (
        "feature",
        "Read-only mode for the storefront during the freeze window, with a banner in 11 languages and a countdown that survives a reload",
    ),
    ("fix", "Retry webhooks that got 409 from the tax service"),
    ("", "Backfill delivery_country for orders before 2021"),
    ("audit", "Überprüfe die Größe der Straßenliste (≥ 10⁶ Einträge)"),
    ("", "reindex_products_v3_blue_green_switchover_with_shadow_reads_and_rollback_guard"),
    ("fix", "请求重试:支付回调签名校验失败的 37 条记录"),
    ("audit", "Rotate the signing key of the export service"),
    ("feature", "Publish release notes 📣"),
]
AUDITS = [
    "Ledger against bank statements, all entities",
    "Access reviews: accounts unused for 90 days",
    "Tax tables against the published rates",
]
CHECKSUMS = """
import sys
for n in range(1, 25):
    print(f"shelf {n:02d}: 4096 objects read", "ok" if n < 24 else "CHECKSUM DIFFERS at 7f3a/0113", flush=True)
sys.exit("1 object of 98304 differs from its checksum")
"""
IMPORT = """
import time
for n in range(1, 100000):
    print(f"{n:6d} rows imported, {n * 7 % 13} skipped", flush=True)
    time.sleep(0.15)
"""
WAITING = text("""
    select i.id from relevo.item i join relevo.plan p on p.id = i.plan_id
    where p.name = 'release' and state = 'waiting' order by position
""")
ACTOR, ON_CALL, FINANCE = "release-duty", "on-call", "finance-ops"


def ship(title: str, kind: str = "fix", **args: Json) -> NewItem:
    return NewItem("ship", kwargs=args, title=title, kind=kind, max_attempts=1)


def python(title: str, code: str, kind: str = "audit") -> NewItem:
    return NewItem("shell", kwargs={"command": ["python3", "-c", code], "timeout": 3600}, title=title, kind=kind, max_attempts=1)


#: What must have happened before the pages are worth looking at: so many items of a plan in a state.
SOON = (
    ("release", "running", 1),
    ("nightly", "failed", 1),
    ("quarter", "interrupted", 1),
    ("mail", "failed", 18),
    ("reports", "failed", 6),
    ("onboarding", "postponed", 1),
    ("imports", "running", 1),
)
OF_PLAN = f"""
    select i.id from {items.TABLES}
    where i.plan_id = (select id from relevo.plan where name = :plan) and {items.STATE} = :state order by i.id
"""


def prepare(kit: Kit) -> None:
    """The streams, before the services start, which would make those that their tasks name."""
    with kit.tx() as tx:
        for name, title, most in (("mail", "Mail", 8), ("reports", "Reports, EU", 4), ("webhooks", "Webhooks", 16)):
            plans.create(tx, name, actor=ACTOR, title=title, concurrency=most)


def set_up(kit: Kit) -> dict[str, str]:
    """Fill the platform of the kit, whose services import `tests.board.shop_tasks`; the paths of the pages by name."""
    with kit.tx() as tx:
        reports = [{"customer": 4000 + number, "broken": number % 4 == 0} for number in range(24)]
        add.add_many(tx, "reports", [NewItem("render_report", kwargs=each, max_attempts=1) for each in reports], actor="scheduler")
        _release(tx)
        _halted(tx)
        _others(tx)
    with kit.tx() as tx:
        for number in range(60):
            facts.emit(tx, "invoice.issued", {"number": number, "bounces": number % 5 == 0, "template": "" if number % 7 else "dunning"})
        facts.emit(tx, "customer.moved", {"customer": 4711, "to": "Lisbon"}, key="4711-2")
    found = {}
    for plan, state, least in SOON:
        ids = wait_until(partial(_reached, kit, plan, state, least), 90, f"{plan} {state}", pause=0.2)
        found[plan] = f"/items/{ids[0]}"
    with kit.tx() as tx:
        _people(tx)
        _history(tx)
    same = ("dead-letters", "steps", "facts", "schedules", "workers", "trail", "api")
    return {
        "overview": "/",
        "plan": "/plans/release",
        "plan-halted": "/plans/nightly",
        "plan-interrupted": "/plans/quarter",
        "stream": "/plans/mail",
        "item-steps": found["onboarding"],
        "item-output": found["imports"],
        "item-failed": found["nightly"],
        **{name: f"/{name}" for name in same},
    }


def _reached(kit: Kit, plan: str, state: str, least: int) -> list[int]:
    ids = [row.id for row in kit.sql(OF_PLAN, plan=plan, state=state)]
    return ids if len(ids) >= least else []


def _release(tx: Connection) -> None:
    plans.create(tx, "release", actor=ACTOR, title="Release train 2026.3", on_failure=OnFailure.CONTINUE)
    early = [
        ship("Cut the release branch 🌿", "feature", seconds=0.2),
        ship("Drop the legacy invoice_v1 columns", fails="LockTimeout: ALTER TABLE invoice waited 30 s for AccessExclusiveLock"),
        ship("Vérifier les arrondis de la TVA (0,5 ct), caisse n° 12", "audit", fails="AssertionError: attendu 0,01 €, obtenu 0,00 €"),
        ship("Fix rounding in the invoice total when a discount and a refund land in the same second", seconds=3000),
    ]  # fmt: skip
    add.add_many(tx, "release", early, actor=ACTOR)
    add.add_many(tx, "release", [ship(title, kind) for kind, title in RELEASE], actor=FINANCE)
    plans.start(tx, "release", actor=ACTOR)


def _halted(tx: Connection) -> None:
    plans.create(tx, "nightly", actor=ACTOR, title="Nightly audits")
    add.add_many(
        tx,
        "nightly",
        [python("Verify checksum drift on cold storage", CHECKSUMS), *(ship(each, "audit") for each in AUDITS)],
        actor="scheduler",
    )
    plans.start(tx, "nightly", actor="scheduler")
    plans.create(tx, "quarter", actor=ACTOR, title="Quarter close")
    close = [
        NewItem("post_accrual", title="Post the Q1 accrual", kind="feature"),
        ship("Freeze the ledger"),
        ship("Send the tax return", "feature"),
    ]
    add.add_many(tx, "quarter", close, actor=FINANCE)
    plans.start(tx, "quarter", actor=FINANCE)


def _others(tx: Connection) -> None:
    plans.create(tx, "onboarding", actor=ACTOR, title="Onboarding")
    add.add(
        tx, "onboarding", NewItem("onboard", kwargs={"account": 1107}, title="Set up account 1107", kind="feature"), actor="api: storefront"
    )
    plans.start(tx, "onboarding", actor=ACTOR)
    plans.create(tx, "imports", actor=ACTOR, title="Price lists")
    add.add(tx, "imports", python("Import the supplier's price list", IMPORT, "feature"), actor=ACTOR)
    plans.start(tx, "imports", actor=ACTOR)
    plans.create(tx, "search", actor=ACTOR, title="Search reindex")
    schedule.create(
        tx,
        NewSchedule("nightly-audits", "nightly", "0 2 * * *", "ship", title="Tax tables against the published rates", kind="audit"),
        actor=ACTOR,
    )
    schedule.create(
        tx,
        NewSchedule("reports-eu", "reports", "*/15 6-20 * * mon-fri", "render_report", kwargs={"customer": 4711}, timezone="Europe/Madrid"),
        actor=FINANCE,
    )


def _people(tx: Connection) -> None:
    """What people did to the line of the release."""
    waiting = list(tx.execute(WAITING).scalars())
    now = datetime.now(UTC)
    move.move(tx, waiting[5], Before(waiting[1]), actor=FINANCE)
    move.move(tx, waiting[10], Before(waiting[3]), actor=ON_CALL)
    items.postpone(tx, waiting[6], now + timedelta(hours=2, minutes=43), actor=ON_CALL, reason="waiting for the ledger freeze")
    items.postpone(tx, waiting[8], now + timedelta(days=2, hours=11), actor=FINANCE)
    items.cancel(tx, waiting[11], actor=ON_CALL, reason="replaced by the notes of 2026.4")


def _history(tx: Connection) -> None:
    """An hour of samples, as an hour of work would have left them."""
    tx.execute(text("""
        insert into relevo.sample (minute, plan_id, depth, oldest_seconds, attempts, retries, dead_letters)
        select date_trunc('minute', now()) - make_interval(mins => m), p.id,
            greatest(0, round(20 + 14 * sin(m / 7.0 + p.id) - m / 4.0)), greatest(0, 90 + 70 * sin(m / 9.0 + p.id)),
            (60 - m) * 40, round((60 - m) * 40 * (0.02 + 0.02 * sin(m / 11.0 + p.id))), greatest(0, 12 - m / 5)
        from relevo.plan p, generate_series(2, 60) m where p.concurrency > 1
        on conflict do nothing
    """))  # fmt: skip
