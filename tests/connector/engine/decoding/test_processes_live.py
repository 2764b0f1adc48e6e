"""Decoder processes with MySQL and Kafka: the records are those of one process, even if a process is killed."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bench.connectors import Rowtide
from tests.bench.load import Load
from tests.bench.measure import TopicWatch
from tests.bench.runs import prepare, topics_of
from tests.support.connector_properties import JSON_CONVERTER, connector_properties, history_topic
from tests.support.mysql.binlog_readers import binlog_readers

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, MySQL

    from tests.support.kafka.topic_tools import Seen, Topics

pytestmark = pytest.mark.servers

_MOST_ROUNDS = 60
_PATIENCE_S = 120.0
_SENT = 2000
"""Bytes that a process has written when it has returned records: the message that it is ready is shorter."""
_OWN = re.compile(rb'"name":"[^"]*"|,"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+}$')
"""What differs between two connectors: the name in ``source``, and the time of the processing."""
_CONTEXT = "__debezium.context."
"""How the names of headers begin that name the connector and its run."""


def test_records_are_those_of_one_process(mysql: MySQL, kafka: Kafka, topics: Topics, tmp_path: Path) -> None:
    load = Load(few=8)
    watch = TopicWatch(kafka.bootstrap)
    with mysql.database("decoders") as database:
        database.execute(*load.setup())
        alone, beside = (_connector(f"{number}-{database.name}", database, kafka, number) for number in (0, 2))
        try:
            for connector in (alone, beside):
                prepare(connector, mysql, tmp_path)
            beside.start(tmp_path)
            _await(lambda: bool(binlog_readers(mysql)))
            rounds = 0
            while not (busy := [pid for pid in _children(beside.pid) if _written(pid) > _SENT]):
                assert rounds < _MOST_ROUNDS, "no decoder process has returned records"
                _change(load, database)
                rounds += 1
            _change(load, database)
            os.kill(busy[0], signal.SIGKILL)
            _change(load, database)
            counts = {table: number * (rounds + 2) for table, number in load.messages.items()}
            watch.wait(topics_of(beside, database.name, counts), beside.alive)
            children = _children(beside.pid)
            beside.stop()
            assert f"decoder process {busy[0]} ended unexpectedly with code -9" in beside.output()
            assert children
            _await(lambda: not any(map(_runs, children)))
            alone.start(tmp_path)
            watch.wait(topics_of(alone, database.name, counts), alone.alive)
        finally:
            alone.stop()
            beside.stop()
            watch.close()
        for table in load.tables:
            one, other = (
                [_common(seen) for seen in topics.read(f"{connector.name}.{database.name}.{table}")]
                for connector in (alone, beside)
            )
            assert one == other


def _await(done: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not done():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)


def _connector(name: str, database: Database, kafka: Kafka, processes: int) -> Rowtide:
    properties = connector_properties(
        name, database.server, database.name, history_topic(kafka.bootstrap, f"{name}-history")
    )
    own = {
        "snapshot.mode": "no_data",
        "rowtide.decoder.processes": str(processes),
        "max.queue.size": "1024",  # the reader waits for room all the time
        "max.batch.size": "512",
        **{f"{side}.converter": JSON_CONVERTER for side in ("key", "value")},
        **{f"{side}.converter.schemas.enable": "false" for side in ("key", "value")},
    }
    return Rowtide(name, properties | own, kafka.bootstrap)


def _change(load: Load, database: Database) -> None:
    database.execute(*load.again(), *load.changes())
    time.sleep(0.5)


def _common(seen: Seen) -> tuple[object, ...]:
    headers = [(name, _CONTEXT in name or text) for name, text in seen.headers]
    return seen.partition, seen.key, seen.value and _OWN.sub(b"", seen.value), headers


def _children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def _written(pid: int) -> int:
    return int(re.findall(r"wchar: (\d+)", Path(f"/proc/{pid}/io").read_text())[0])


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
