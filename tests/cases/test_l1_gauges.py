"""L1: depth counts all of them, falls to zero, and is there where nobody works. What is out is shown in one place: by its state."""

from ordering import items, plans, tasks
from ordering.model import NewItem
from ordering.tasks import TaskInfo
from tests import servers
from tests.cases.brokers import both_brokers
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.monitoring.scraping import Scraped, exporting

QUEUES = [f"case-l1-{number}" for number in range(3)]
EACH = 50  # items in each queue, of which two are out


@both_brokers
def test_it_counts_all_falls_to_zero_and_stays(kit: Kit) -> None:
    with kit.tx() as tx:
        tasks.register(tx, [TaskInfo(queue, queue) for queue in QUEUES])
    kit.feeder()
    for queue in QUEUES:
        kit.plan(queue, concurrency=2)
        kit.add_many(queue, [NewItem(queue) for _ in range(EACH)])
    try:
        with exporting(kit.database_url, kit._publisher.queue_sizes) as scraped:
            # Six are handed out, and there is nobody to start them.
            wait_until(lambda: messages(scraped) == [2, 2, 2], 30, "two messages in each queue")
            assert [scraped("relevo_depth", plan=queue) for queue in QUEUES] == [EACH - 2] * 3
            assert [scraped("relevo_items", plan=queue, state="dispatched") for queue in QUEUES] == [2] * 3
            assert sum(value for (name, _), value in scraped.figures().items() if name == "relevo_items") == 3 * EACH
            assert scraped("relevo_workers") == 0
            for queue in QUEUES:  # else whatever is cancelled makes room for the next
                with kit.tx() as tx:
                    plans.pause(tx, queue, actor=ACTOR)
            for item in kit.added:
                with kit.tx() as tx:
                    items.cancel(tx, item, actor=ACTOR)
            all_zero(scraped)
        empty(kit.broker_url)
        with exporting(kit.database_url, kit._publisher.queue_sizes) as scraped:
            all_zero(scraped)
            assert messages(scraped) == [0, 0, 0]
            assert scraped("relevo_workers") == 0
    finally:
        empty(kit.broker_url)


def empty(broker_url: str) -> None:
    """Nobody is there who would take the messages of cancelled items and drop them."""
    if broker_url.startswith("redis"):
        servers.flush(broker_url)
    else:
        servers.delete_queues(broker_url, *QUEUES)


def messages(scraped: Scraped) -> list[float | None]:
    return [scraped("relevo_broker_messages", queue=queue) for queue in QUEUES]


def all_zero(scraped: Scraped) -> None:
    found = scraped.figures()
    for queue in QUEUES:
        for name in ("relevo_depth", "relevo_oldest_age_seconds", "relevo_dead_letters", "relevo_blocked_seconds"):
            assert found[name, (("plan", queue),)] == 0, name
        for state in ("waiting", "dispatched", "running"):
            assert found["relevo_items", (("plan", queue), ("state", state))] == 0, state
