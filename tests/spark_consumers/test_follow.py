"""``rowtide tables --follow`` with a real Kafka: new records, new topics, failures, kills, and the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.kafka.shop_topics import ID, TEXT, Shop
from tests.support.processes.worker_process import eventually
from tests.support.recordings.recorded_tables import fold, same_rows

pytestmark = [pytest.mark.servers, pytest.mark.spark]

SOON = 90


@contextmanager
def following(stream: Any) -> Iterator[threading.Event]:
    """Run a stream in a thread, and stop it at the end."""
    stop = threading.Event()
    errors: list[Exception] = []

    def run() -> None:
        try:
            stream.run({"processingTime": "200 milliseconds"}, stop)
        except Exception as error:  # noqa: BLE001 - of another thread
            errors.append(error)

    thread = threading.Thread(target=run, name="stream")
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(SOON)
        assert not thread.is_alive()
        assert errors == []


def test_tables_follow_old_and_new_topics(spark: Any, kafka: Any, rows_of: Callable[..., Any], tmp_path: Path) -> None:
    from rowtide.spark_consumers.follow import MicroBatch, TableStream
    from rowtide.spark_consumers.kafka.source import KafkaSource
    from rowtide.spark_consumers.settings import Settings

    shop = Shop(kafka, "follow", 2)
    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), "follow")
    source = KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap})
    batches: list[MicroBatch] = []

    def is_applied() -> bool:
        return all(
            sum(o.records for b in batches for o in b.outcomes if o.name.topic == topic.name) >= len(topic.records)
            for topic in shop.topics
        )

    def check() -> None:
        eventually(is_applied, "all records are applied", SOON)
        for topic in shop.topics:
            same_rows(rows_of(str(tmp_path / "d" / topic.name.rpartition(".")[2])), fold(topic.records))

    stream = TableStream(spark, source, settings, report=batches.append)
    with following(stream):
        check()
        new = shop.add("new")
        new.columns = [ID, TEXT, {"type": "int32", "optional": False, "default": 4, "field": "more"}]
        new.change("c", None, {"id": 99, "text": "x", "more": 5}, 1000)
        shop.send(new)
        check()
        eventually(lambda: all(stream.lags.of(topic.name).records == 0 for topic in shop.topics), "no lag", SOON)

        # A record that is not a change stops its table only, and nothing else.
        bad = shop.topics[0]
        bad.records.append(replace(bad.records[-1], value='{"no": "envelope"}'))
        shop.send(bad)
        eventually(lambda: bad.name in stream.failures, "the table fails", SOON)
        assert "the record has no op" in stream.failures[bad.name]
        assert stream.lags.of(bad.name).records == 1
        shop.topics.remove(bad)
        shop.change(shop.topics[0], 5)
        check()
        kept = shop.topics[0]
    # Each record was applied by one micro-batch: nothing was read twice.
    for topic in shop.topics:
        assert sum(o.records for b in batches for o in b.outcomes if o.name.topic == topic.name) == len(topic.records)

    # The next start continues after the records that the tables have.
    batches.clear()
    shop.change(kept, 7)
    stream = TableStream(spark, source, settings, report=batches.append, most_offsets=3)
    stream.run({"availableNow": True}, threading.Event())
    assert sum(o.records for b in batches for o in b.outcomes if o.name.topic == kept.name) == 7
    same_rows(rows_of(str(tmp_path / "d" / kept.name.rpartition(".")[2])), fold(kept.records))
    assert list(stream.failures) == [bad.name]

    # Without new records, a run that would build other tables fails.
    stream = TableStream(spark, source, replace(settings, where="id > 1"))
    stream.run({"availableNow": True}, threading.Event())
    assert "was built without --where, and this run is with --where id > 1" in stream.failures[kept.name]


@pytest.mark.nightly
def test_a_table_that_is_built_again_with_a_filter_follows_its_topic(
    spark: Any, kafka: Any, rows_of: Callable[..., Any], tmp_path: Path
) -> None:
    from rowtide.spark_consumers.follow import MicroBatch, TableStream
    from rowtide.spark_consumers.job import restart_tables
    from rowtide.spark_consumers.kafka.source import KafkaSource
    from rowtide.spark_consumers.settings import Settings

    shop, source = Shop(kafka, "filtered", 1), KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap})
    settings, [topic] = Settings(str(tmp_path), str(tmp_path / "_rowtide"), "filtered"), shop.topics
    TableStream(spark, source, settings).run({"availableNow": True}, threading.Event())
    settings, batches = replace(settings, where="id > 9"), list[MicroBatch]()
    restart_tables(spark, source, settings, ["d.t0"])
    with following(TableStream(spark, source, settings, report=batches.append)):
        for changes in (0, 9):
            shop.change(topic, changes)
            eventually(
                lambda: sum(o.records for b in batches for o in b.outcomes) == len(topic.records),
                "all is applied",
                SOON,
            )
    same_rows(rows_of(str(tmp_path / "d/t0")), [row for row in fold(topic.records) if row["id"] > 9])


@pytest.mark.parametrize(
    ("table_format", "kills"),
    [pytest.param(*case, marks=pytest.mark.nightly) for case in [("delta", 1), ("delta", 20), ("iceberg", 20)]],
)
def test_a_killed_run_neither_loses_nor_repeats_a_record(
    kafka: Any, rows_of: Callable[..., Any], tmp_path: Path, table_format: str, kills: int
) -> None:
    from rowtide_demo.steps.tables import SMALL
    from rowtide_stack import spark_jars

    shop = Shop(kafka, f"killed{kills}{table_format}", 1 if kills == 1 else 3)
    # Tables without a key show a change that is applied twice as a row more.
    log = shop.add("log", key=())
    command = [
        sys.executable, "-m", "rowtide", "tables", "--bootstrap-servers", kafka.bootstrap,
        "--topic-prefix", shop.prefix, "--output", str(tmp_path), "--json", "--follow", "--trigger", "200ms",
        "--format", table_format, "--optimize", "--expire", "7d", "--upkeep-every", "2 batches",
        "--master", "local[2]", "--jars", ",".join(map(str, spark_jars())), "--web-port", "0",
        *(part for name, value in SMALL.items() for part in ("--spark-conf", f"{name}={value}")),
    ]  # fmt: skip
    output = tmp_path / "output.jsonl"
    numbers = random.Random(kills)

    def change() -> None:
        for topic in shop.topics:
            if topic is log:
                shop.append(log, 5)
            else:
                shop.change(topic, 5)

    def events() -> list[dict[str, Any]]:
        return [json.loads(line) for line in output.read_text().splitlines() if line.startswith("{")]

    def applied() -> dict[str, int]:
        """The end of each table, as the last run has shown."""
        return {e["topic"]: e["offsets"]["0"][1] for e in events() if e["event"] == "table" and e["offsets"]}

    for number in range(kills + 1):
        before = len(events()) if output.exists() else 0
        with output.open("a") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE, start_new_session=True)
        try:
            change()
            eventually(lambda before=before: len(events()) > before, "the run has applied something", SOON)
            if number < kills:
                deadline = time.monotonic() + numbers.random() * 3
                while time.monotonic() < deadline:
                    change()
                continue
            change()
            ends = {topic.name: len(topic.records) for topic in shop.topics}
            eventually(lambda ends=ends: applied() == ends, "all tables are up to date", SOON)
            address = next(line for line in iter(process.stderr.readline, b"") if line.startswith(b"metrics: "))
            found = urllib.request.urlopen(address.decode().split()[1], timeout=10).read().decode()
            assert 'rowtide_tables_upkeep_total{result="failed"} 0' in found
            assert f'rowtide_tables_lag_records{{table="d.{log.name.rpartition(".")[2]}"}} 0' in found
            process.send_signal(signal.SIGTERM)
            assert process.wait(SOON) == 0, process.stderr.read()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # Python and Java
            process.wait()
            process.stderr.close()
    for topic in shop.topics:
        same_rows(rows_of(str(tmp_path / "d" / topic.name.rpartition(".")[2]), table_format), fold(topic.records))


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_tables_are_equal_after_a_minute_without_kafka_with_upkeep_and_a_run_with_another_layout(
    spark: Any, rows_of: Callable[..., Any], tmp_path: Path
) -> None:
    from rowtide_stack import Kafka

    from rowtide.spark_consumers.follow import MicroBatch, TableStream
    from rowtide.spark_consumers.job import update_tables
    from rowtide.spark_consumers.kafka.source import KafkaSource
    from rowtide.spark_consumers.settings import Layout, Settings
    from rowtide.spark_consumers.upkeep import Upkeep, keep_tables

    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), "outage")
    batches: list[MicroBatch] = []
    with Kafka() as kafka:
        shop = Shop(kafka, "outage", 2)
        source = KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap})
        stream = TableStream(spark, source, settings, report=batches.append)

        def check() -> None:
            def is_applied() -> bool:
                return all(
                    sum(one.records for batch in batches for one in batch.outcomes if one.name.topic == topic.name)
                    >= len(topic.records)
                    for topic in shop.topics
                )

            eventually(is_applied, "all records are applied", 3 * SOON)
            for topic in shop.topics:
                same_rows(rows_of(str(tmp_path / "d" / topic.name.rpartition(".")[2])), fold(topic.records))

        with following(stream):
            check()
            kafka.kill()
            time.sleep(60)
            kafka.start()
            for topic in shop.topics:
                shop.change(topic, 20)
            assert [one.error for one in keep_tables(spark, settings, Upkeep(optimize=True))] == [None, None]
            check()
            for topic in shop.topics:
                shop.change(topic, 5)
            for outcome in update_tables(spark, source, replace(settings, layout=Layout.HISTORY)):
                # Or the stream is just updating the table.
                assert "this run is with --history" in str(outcome.error) or "another run" in str(outcome.error)
            check()
