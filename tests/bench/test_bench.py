"""The load and the counting of the benchmark, with few rows."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bench.connectors import TUNED, Rowtide
from tests.bench.latency import Latency
from tests.bench.load import Load
from tests.bench.measure import Figures, TopicWatch, medians, servers_below, thread_seconds
from tests.bench.named_threads import name_threads
from tests.bench.python_values import READERS, images, measure
from tests.bench.runs import prepare, snapshot_run, stream_run
from tests.bench.table_sinks import runs as sink_runs
from tests.bench.unique import Large, Unique, Wide
from tests.support.connector_properties import connector_properties, history_topic

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, MySQL


def test_messages_and_rows_of_a_load() -> None:
    load = Load()
    assert load.messages == {"sbtest": 300_000, "orders": 300_000}
    assert load.snapshot_rows == {"sbtest": 150_000, "orders": 200_000}


def test_a_rate_is_messages_per_second() -> None:
    assert Figures("rowtide stream", 600, 2.0, 1.0, 1.0, 1).rate == 300
    assert Figures("rowtide stream", 600, 0.0, 1.0, 1.0, 1).rate == 0


def test_of_several_runs_the_median_counts() -> None:
    runs = [Figures(name, 600, seconds, 1.0, 1.0, 1) for seconds in (3.0, 1.0, 2.0) for name in ("a", "b")]
    assert [(one.name, one.seconds) for one in medians(runs)] == [("a", 2.0), ("b", 2.0)]
    assert medians([]) == []


@pytest.mark.servers
@pytest.mark.parametrize(("kind", "table"), [(Unique, "unique_values"), (Wide, "wide"), (Large, "large")])
def test_loads_of_unique_values(kind: type[Unique | Wide | Large], table: str, mysql: MySQL) -> None:
    load = kind(few=2, many=5)
    with mysql.database("bench") as database:
        database.execute(*load.setup())
        database.execute(*load.changes())
        assert mysql.query(f"SELECT COUNT(*) FROM {database.name}.{table}")[0][0] == load.rows == 10


@pytest.mark.servers
@pytest.mark.parametrize("exactly_once", ["disabled", pytest.param("enabled", marks=pytest.mark.nightly)])
def test_both_runs_with_few_rows(mysql: MySQL, kafka: Kafka, tmp_path: Path, exactly_once: str) -> None:
    delivery = {"exactly.once.source.support": exactly_once}
    load = Load(few=4, many=10)
    watch = TopicWatch(kafka.bootstrap)
    with mysql.database("bench") as database:
        database.execute(*load.setup())
        streaming = _rowtide(f"stream-{database.name}", database, kafka, {"snapshot.mode": "no_data", **delivery})
        copying = _rowtide(f"copy-{database.name}", database, kafka, delivery)
        try:
            prepare(streaming, mysql, tmp_path)
            database.execute(*load.changes())
            servers = servers_below(os.getpid())
            streamed = stream_run(streaming, database.name, load, watch, servers, tmp_path)
            database.execute(*load.again())
            database.execute(*load.changes())
            again = stream_run(streaming, database.name, load, watch, servers, tmp_path)
            copied = snapshot_run(copying, database.name, load, watch, servers, tmp_path)
        finally:
            streaming.stop()
            copying.stop()
            watch.close()
    assert (streamed.name, streamed.messages) == ("rowtide stream", 120)
    assert (again.name, again.messages) == (streamed.name, streamed.messages)
    assert (copied.name, copied.messages) == ("rowtide snapshot", 70)
    assert streamed.cpu_s > 0
    assert streamed.peak_bytes > 0
    assert 0 < streamed.threads["main"] <= streamed.cpu_s


def _rowtide(name: str, database: Database, kafka: Kafka, own: dict[str, str]) -> Rowtide:
    history = history_topic(kafka.bootstrap, f"{name}-history")
    given = connector_properties(name, database.server, database.name, history)
    return Rowtide(name, {**given, **TUNED, **own}, kafka.bootstrap)


@pytest.mark.servers
def test_both_readers_of_python_values_read_every_row(mysql: MySQL) -> None:
    load = Load(few=4, many=10)
    with mysql.database("values") as database:
        figures = measure(mysql, database, load, rounds=1)
    assert [(one["reader"], one["rows"]) for one in figures] == [(reader, images(load)) for reader in READERS]


@pytest.mark.nightly
def test_sinks_that_keep_tables_catch_up(tmp_path: Path) -> None:
    figures = list(sink_runs(("duckdb", "delta"), Load(few=4, many=10), 1, tmp_path))
    assert [one.name for one in figures] == ["duckdb snapshot", "delta snapshot", "duckdb stream", "delta stream"]
    assert all(one.seconds > 0 and one.cpu_s > 0 and one.peak_bytes > 0 for one in figures)


def test_the_time_of_a_thread_is_found_by_its_name() -> None:
    running = threading.Barrier(2)
    name_threads()
    try:
        thread = threading.Thread(target=lambda: [running.wait() for _ in range(2)], name="shop/a-reader")
        thread.start()
    finally:
        threading.setprofile(None)
    running.wait()
    found = thread_seconds(os.getpid())
    running.wait()
    thread.join()
    assert found["a-reader"] > 0
    assert found["main"] > 0


def test_percentiles_of_latencies_are_in_milliseconds() -> None:
    figures = Latency("rowtide", [number / 1000 for number in range(1, 1000)], 0.5, 0.004, 80_000_000, (0.9, 0.8))
    assert figures.percentile(50) == pytest.approx(500)
    assert figures.percentile(99) == pytest.approx(990)
    assert figures.line() == "| rowtide | 500.0 | 990.0 | 999.0 | 0.50 | 0.40 | 80 | 0.90 (0.80) |"
