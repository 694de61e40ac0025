"""The mark of cases that run on Valkey and, in a second test, on RabbitMQ."""

import pytest

both_brokers = pytest.mark.parametrize("broker", ["valkey", "rabbit"], indirect=True)
