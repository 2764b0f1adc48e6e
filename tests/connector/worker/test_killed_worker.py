"""Workers that are killed and stopped at random moments under load deliver every change."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kafka.topic_tools import Seen, Topics
from tests.support.mysql.write_load import Change, WriteLoad
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

Configured = Callable[..., WorkerConfig]
KILLS = int(os.environ.get("ROWTIDE_CAMPAIGN", "6"))


def streamed(seen: Sequence[Seen]) -> list[tuple[Any, Change]]:
    """The streamed row changes of a topic, each with its binlog position."""
    found = []
    for record in seen:
        value = json.loads(record.value) if record.value else {"op": "-"}
        if value["op"] in "cud":
            row = value["after"] or {"id": value["before"]["id"], "n": 0}
            source = value["source"]
            found.append(((source["file"], source["pos"], source["row"]), (value["op"], row["id"], row["n"])))
    return found


def once(found: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Remove duplicates, which are changes of the same binlog position."""
    first: dict[Any, Any] = {}
    for place, what in found:
        assert first.setdefault(place, what) == what, "a repeated record is the same"
    return list(first.values())


def statements(seen: Sequence[Seen]) -> list[tuple[Any, str]]:
    """The schema changes in the schema change topic, without those of the snapshot."""
    values = [json.loads(record.value or b"{}") for record in seen]
    return [
        ((value["source"]["file"], value["source"]["pos"]), value["ddl"])
        for value in values
        if value["source"]["snapshot"] == "false"
    ]


def compare(config: WorkerConfig, topics: Topics, load: WriteLoad, database: str, *, exactly_once: bool) -> int:
    """Compare the topics with what was written, and return the number of duplicates."""
    duplicates = 0
    for table, wanted in load.changes.items():
        seen = topics.read(config.topic(f"{database}.{table}"))
        found = streamed(seen)
        changes = [change for _, change in found]
        duplicates += len(changes) - len(wanted)
        if exactly_once:
            places = [place for place, _ in found]
            if config.properties["database.flavor"] == "mysql":  # MariaDB's events have no places within a transaction
                assert places == sorted(set(places)), "in the order of the binlog, none twice"
            assert sum(record.value is None for record in seen) == sum(operation == "d" for operation, _, _ in wanted)
        else:
            changes = once(found)
        assert len(changes) == len(wanted)
        assert changes == wanted
    ddl_records = statements(topics.read(config.name))
    ddl = [text for _, text in ddl_records] if exactly_once else once(ddl_records)
    assert ddl == load.statements
    if exactly_once:
        marks = [json.loads(record.value or b"{}") for record in topics.read(f"{config.name}.transaction")]
        if config.properties["database.flavor"] == "mariadb":  # there a statement has a BEGIN too, as in Debezium
            ends = [mark["id"] for mark in marks if mark["status"] == "END"]
            assert len(ends) == len(set(ends)) == load.transactions
        else:
            assert [mark["status"] for mark in marks] == ["BEGIN", "END"] * load.transactions
        rows = sum(mark["event_count"] or 0 for mark in marks)
        assert rows == sum(map(len, load.changes.values()))
    return duplicates


def lives(config: WorkerConfig, seed: int, end: Callable[[Worker], object], count: int) -> None:
    """Run workers for short, random times."""
    chance = random.Random(seed)
    for _ in range(count):
        with Worker(config, "--no-web") as worker:
            if chance.random() < 0.25:
                time.sleep(chance.uniform(0.2, 2.5))  # while it starts, too
            else:
                worker.streaming()
                time.sleep(chance.uniform(0, 1.0))
            assert "failed" not in worker.log, worker.log
            end(worker)


def drain(config: WorkerConfig) -> None:
    """Run a worker until everything is delivered."""
    with Worker(config).streaming() as worker:
        eventually(lambda: worker.health()["lag"] == {"seconds": 0.0, "bytes": 0}, "everything is read")
        worker.stop()


def test_kill_at_random_moments(mysql_db: Database, topics: Topics, configured: Configured) -> None:
    more = {"provide.transaction.metadata": "true", "max.queue.size": "4096", "offset.flush.interval.ms": "500"}
    load = WriteLoad(mysql_db, seed=20)
    lanes = {exactly_once: configured(exactly_once=exactly_once) for exactly_once in (True, False)}
    for config in lanes.values():
        config.properties.update(more)
        with Worker(config, "--no-web").streaming() as worker:
            worker.stop()
    with load, ThreadPoolExecutor(len(lanes)) as pool:
        runs = [
            pool.submit(lives, config, seed, Worker.kill, KILLS) for seed, config in enumerate(lanes.values(), start=1)
        ]
        for run in runs:
            run.result()
    duplicates = {}
    for exactly_once, config in lanes.items():
        drain(config)
        duplicates[exactly_once] = compare(config, topics, load, mysql_db.name, exactly_once=exactly_once)
    assert duplicates[True] == 0
    total = sum(map(len, load.changes.values()))
    print(
        f"{total} changes, {load.transactions} transactions, {len(load.statements)} DDL, {duplicates[False]} repeated"
    )


@pytest.mark.parametrize(
    ("flavor", "exactly_once"),
    [
        pytest.param("mysql", True, marks=pytest.mark.nightly),
        ("mysql", False),
        pytest.param("mariadb", True, marks=pytest.mark.nightly),
    ],
)
def test_stop_under_load(
    request: pytest.FixtureRequest, tmp_path: Path, kafka: Kafka, topics: Topics, flavor: str, *, exactly_once: bool
) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    more = {"database.include.list": database.name, "provide.transaction.metadata": "true"}
    more["exactly.once.source.support"] = "enabled" if exactly_once else "disabled"
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, more)
    load = WriteLoad(database, seed=5)
    with Worker(config, "--no-web").streaming() as worker:
        worker.stop()
    with load:
        for life in range(4):
            with Worker(config, "--no-web").streaming() as worker:
                time.sleep(0.3 * life)
                log = worker.stop()
                assert re.search(r"stopped in \d+\.\d s; everything that was read is delivered", log)
    drain(config)
    # an orderly stop leaves no duplicate, whatever the mode
    assert compare(config, topics, load, database.name, exactly_once=True) == 0
