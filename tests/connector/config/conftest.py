"""A minimal valid configuration, for tests to modify."""

import pytest


@pytest.fixture
def valid() -> dict[str, str]:
    return {
        "name": "inventory",
        "topic.prefix": "shop",
        "database.hostname": "127.0.0.1",
        "database.user": "dbz",
        "database.password": "dbz",
        "database.server.id": "5400",
        "bootstrap.servers": "127.0.0.1:9092",
        "schema.history.internal.kafka.topic": "shop-history",
    }
