"""Started as a script by `relevo exporter` and `relevo up`: the exporter, and the broker that it asks.

    python -P exporting.py       settings in the environment

A script for the same reason as `serving.py`. It stands here because `monitoring` knows Postgres alone, and how many messages a broker holds
is known to `workers`.
"""

import sys
from pathlib import Path


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

    from celery import Celery

    from app import listen
    from monitoring import exporter, figures
    from workers import service
    from workers.publish import Publisher
    from workers.settings import Settings

    def export(settings: Settings) -> int:
        publisher = Publisher(Celery(broker=settings.require_broker(), set_as_current=False))
        engine = figures.engine(settings.require_database())
        service.check_schema(engine)
        gathered = exporter.registry(engine, publisher.queue_sizes)
        exporter.run(listen.inherited() or listen.listen_for_scrapes(settings), gathered, service.say_ready)
        return 0

    service.main(export)


if __name__ == "__main__":
    main()
