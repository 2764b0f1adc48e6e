"""Exactly once, idle for so long that Kafka has forgotten the transactional id."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.topic_tools import Topics
from tests.support.processes.running_connector import connected, running
from tests.support.processes.worker_process import WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

EXPIRATION_S = 2
MOST = 20
AGAIN = "1 batches will be sent again in 0.1 s"


@pytest.fixture(scope="module")
def forgetful() -> Iterator[Kafka]:
    """A broker that forgets a transactional id that is not used for some seconds."""
    from rowtide_stack import Kafka

    settings = {
        "transactional.id.expiration.ms": f"{EXPIRATION_S * 1000}",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
    }
    with Kafka(settings) as server:
        yield server


@pytest.mark.parametrize("producer", ["native", "librdkafka"])
def test_the_connector_continues(
    mysql_db: Database,
    configured: Callable[..., WorkerConfig],
    forgetful: Kafka,
    caplog: pytest.LogCaptureFixture,
    producer: str,
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    config = configured(rowtide_producer=producer, exactly_once_support="required", offset_flush_interval_ms="300")
    config.properties["bootstrap.servers"] = forgetful.bootstrap
    topics, topic = Topics(forgetful.bootstrap), config.topic(f"{mysql_db.name}.t")

    def ids() -> list[int]:
        found = topics.read(topic) if topics.partitions(topic) else []
        return [json.loads(record.key or b"{}")["id"] for record in found]

    def arrived(count: int) -> bool:
        return len(ids()) >= count

    number = 1
    with running(config) as task:
        eventually(lambda: connected(task), "streaming")
        eventually(lambda: ids() == [1], "the snapshot")
        while number < MOST and AGAIN not in caplog.text:
            time.sleep(EXPIRATION_S + 1)
            number += 1
            mysql_db.execute(f"INSERT INTO t VALUES ({number})")
            eventually(partial(arrived, number), "all rows")
    assert AGAIN in caplog.text, "it was forgotten"
    assert (ids(), task.restarts, task.failure) == ([*range(1, number + 1)], 0, None)
