"""Cron expressions in words, where there are plain ones."""

import pytest

from app import language
from app.cron_words import in_words


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/1 * * * *", "every minute"),
        ("*/25 * * * *", "every hour at :00, :25, and :50"),
        ("7 * * * *", "every hour at :07"),
        ("0 */2 * * *", "every 2 hours at :00"),
        ("30 2 * * *", "every day at 02:30"),
        ("@daily", "every day at 00:00"),
        ("0 8,20 * * *", "every day at 08:00 and 20:00"),
        ("0 9 * * 1-5", "on weekdays at 09:00"),
        ("0 9 * * MON", "each Monday at 09:00"),
        ("0 9 * * 0,6", "each Sunday and Saturday at 09:00"),
        ("15 10 1 * *", "on day 1 of each month at 10:15"),
        ("0 0 L * *", "on the last day of each month at 00:00"),
        # What has no plain words stands for itself.
        ("0 */5 * * *", ""),
        ("0 0 1 1 *", ""),
        ("0 0 1 * 1", ""),
        ("0 9 * * 1#2", ""),
        ("*/5 * * * 1", ""),
        ("1-5 3 * * *", ""),
        ("nonsense", ""),
    ],
)
def test_in_words(cron: str, words: str) -> None:
    language.speak("en")
    assert in_words(cron) == words
