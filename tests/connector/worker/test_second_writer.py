"""Two programs under the same name, at least once: they are found, and the newest rowtide continues alone."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from rowtide.cli import main
from rowtide.connector.delivery.offset_store import offset_key
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers


def test_two_writers_of_the_same_offsets(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)")
    more = {"database.include.list": mysql_db.name, "offset.flush.interval.ms": "500"}
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, more)
    offsets = config.properties["offset.storage.topic"]

    with Worker(config) as first:
        first.streaming()
        config.properties["database.server.id"] = "9999"  # the server would end one of two with the same
        with Worker(config) as second:
            second.streaming()

            def stopped() -> bool:
                mysql_db.execute("INSERT INTO t VALUES ()")
                return not first.running

            eventually(stopped, "the older one stops")
            assert first.wait() == 1
            assert "was started later and has taken over connector" in first.log
            assert "starts again" not in first.log
            assert second.running

            # Debezium has no such rule, so only a warning is possible.
            key = offset_key(config.name, config.name)
            producer = Producer({"bootstrap.servers": kafka.bootstrap})
            stop = threading.Event()
            file, pos = binlog_end(mysql_db.server)  # other tests may have purged earlier files
            position = json.dumps({"file": file, "pos": pos}).encode()

            def write() -> None:
                while not stop.wait(0.1):
                    producer.produce(offsets, position, key)
                    producer.flush(10)

            writing = threading.Thread(target=write)
            writing.start()
            try:
                eventually(
                    lambda: "Kafka Connect" in (second.health()["second_writer"] or {"name": ""})["name"],
                    "the second writer in /health",
                )
                assert "a second writer runs: another program" in second.log
                assert 'rowtide_second_writer_records{connector="' in second.get("/metrics")[1]
                second.kill()
                result = CliRunner().invoke(main, ["check", str(config.path)])
                assert result.exit_code == 1
                assert "error: name: another program, such as Kafka Connect" in result.output
                with Worker(config) as third:
                    assert third.wait() == 1
                    assert "Stop the connector there first" in third.log
            finally:
                stop.set()
                writing.join()
