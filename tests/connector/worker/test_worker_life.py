"""The worker from its start to its end, with real servers: records, pages, log, topics and files."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.topic_tools import Seen, Topics
from tests.support.network.http_receiver import Receiver, receiver
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

Configured = Callable[..., WorkerConfig]


@pytest.fixture
def collector() -> Iterator[Receiver]:
    """Receives telemetry in OTLP."""
    with receiver() as server:
        yield server


def changes(seen: Sequence[Seen]) -> list[tuple[str, int | None]]:
    """Operation and key of each record; ``-`` for a tombstone."""
    found = []
    for record in seen:
        key = None if record.key is None else json.loads(record.key)["id"]
        found.append(("-" if record.value is None else json.loads(record.value)["op"], key))
    return found


def has(topics: Topics, topic: str, count: int) -> Callable[[], bool]:
    """Whether a topic has so many committed records."""
    return lambda: len(topics.read(topic)) >= count


def faust_environment(config: WorkerConfig) -> dict[str, str]:
    return {**os.environ, "ROWTIDE_CONFIG": str(config.path)}


@pytest.mark.parametrize("exactly_once", [True, False])
def test_snapshot_stream_stop_and_resume(
    mysql_db: Database, topics: Topics, configured: Configured, collector: Receiver, *, exactly_once: bool
) -> None:
    config = configured(exactly_once=exactly_once, rowtide_opentelemetry_enabled="true")
    config.properties["openlineage.integration.enabled"] = "true"
    (config.folder / "openlineage.yml").write_text(f"transport: {{type: http, url: '{collector.url}'}}\n")
    otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_METRIC_EXPORT_INTERVAL": "500"}
    environment = {**os.environ, **otel}
    topic = config.topic(f"{mysql_db.name}.t")
    before = set(topics.admin._admin.list_topics(timeout=10).topics)
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1,'a'),(2,'b')")
    with Worker(config, environment=environment).streaming() as worker:
        mysql_db.execute("INSERT INTO t VALUES (3,'c')", "UPDATE t SET v='x' WHERE id=1", "DELETE FROM t WHERE id=2")
        eventually(has(topics, topic, 6), "all changes")
        health = worker.health()
        assert (health["status"], health["state"], health["error"]) == ("UP", "RUNNING", None)
        assert health["snapshot"] == {"tables": 1, "tables_finished": 1, "rows": 2}
        assert health["position"]["read"]["file"].startswith("binlog.")
        eventually(lambda: worker.health()["lag"] == {"seconds": 0.0, "bytes": 0}, "no lag")
        code, metrics = worker.get("/metrics")
        assert code == 200
        assert f'rowtide_records_total{{connector="{config.name}",topic="{topic}"}} 6' in metrics
        assert worker.get("/tables/")[0] == 404, "Faust's own pages are off"
        code, filtered = worker.send("PUT", "/debezium/mysql/validate/filters", json.dumps(config.properties))
        [found] = json.loads(filtered)["matchingCollections"]
        assert (code, found["identifier"]) == (200, f"{mysql_db.name}.t")
        eventually(lambda: "rowtide.records" in collector.metrics(), "metrics in OTLP")
        mysql_db.execute("ALTER TABLE t MODIFY v TEXT")
        eventually(lambda: b'"TEXT"' in collector.lineage()[-1][1], "the lineage of the changed structure")
        log = worker.stop()
    lineage = [json.loads(body) for _, body in collector.lineage()]
    assert [lineage[0]["eventType"], lineage[-1]["eventType"]] == ["START", "COMPLETE"]
    assert {one["name"] for event in lineage for one in event["inputs"]} == {f"{mysql_db.name}.t"}
    assert {one["name"] for event in lineage for one in event["outputs"]} == {topic}
    whole = [span for span in collector.spans() if span.name == "rowtide change"]
    traced = sum(one.value.int_value for span in whole for one in span.attributes if one.key.endswith("message_count"))
    assert traced == len(topics.read(topic)) + len(topics.read(config.name)), "each record is in one trace"
    assert "stopped in" in log
    assert f"at http://127.0.0.1:{worker.port}/health" in log
    said = [line.split(" ", 1)[1] for line in log.splitlines() if line.startswith("20")]
    assert len(said) == len(set(said)), "no line comes twice"
    assert mysql_db.server.password not in log.replace("process", "").replace("rowtide", "")
    assert list(config.folder.glob("*-data")) == [], "Faust makes no folder"
    made = set(topics.admin._admin.list_topics(timeout=10).topics) - before
    internal = {"__transaction_state", "__consumer_offsets"}
    wanted = {topic, config.name, f"{config.name}-offsets", f"{config.name}-history"}
    assert made - internal == wanted, "Faust makes no topics"

    mysql_db.execute("INSERT INTO t VALUES (4,'d')")
    with Worker(config).streaming() as worker:
        assert "the snapshot" not in worker.log
        assert "the server lists" not in worker.log, "nothing is odd about a quick restart"
        assert worker.health()["position"]["stored"]["file"].startswith("binlog."), "that of the last run"
        assert (worker.get("/health/live")[0], worker.get("/health/ready")[0]) == (200, 200)
        eventually(has(topics, topic, 7), "the change made while no worker ran")
        mysql_db.execute("INSERT INTO t VALUES (5,'e')")
        eventually(has(topics, topic, 8), "the last change")
        worker.stop()
    wanted_changes = [("r", 1), ("r", 2), ("c", 3), ("u", 1), ("d", 2), ("-", 2), ("c", 4), ("c", 5)]
    assert changes(topics.read(topic)) == wanted_changes
    stored = json.loads(topics.read(f"{config.name}-offsets")[-1].value or b"{}")
    executed = mysql_db.server.query("SELECT @@GLOBAL.gtid_executed")[0][0].replace("\n", "")
    assert stored["gtids"] == executed, "the position behind the last transaction is stored"
    assert "event" not in stored


@pytest.mark.parametrize("exactly_once", [True, False])
def test_pause_resume_and_restart(
    mysql_db: Database, topics: Topics, configured: Configured, *, exactly_once: bool
) -> None:
    config = configured(exactly_once=exactly_once)
    topic, path = config.topic(f"{mysql_db.name}.t"), f"/connectors/{config.name}"
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with Worker(config).streaming() as worker:
        mysql_db.execute("INSERT INTO t VALUES (2)")
        assert worker.send("PUT", f"{path}/pause")[0] == 202
        assert json.loads(worker.get(f"{path}/status")[1])["connector"]["state"] == "PAUSED"
        assert (worker.get("/health")[0], worker.get("/health/live")[0]) == (503, 200)
        mysql_db.execute("INSERT INTO t VALUES (3)")
        assert worker.send("POST", f"{path}/restart")[0] == 204
        assert worker.health()["state"] == "PAUSED", "a restart does not end a pause"
        paused = len(topics.read(topic))
        assert paused in {1, 2}, "what was read is delivered, and nothing after that"
        assert worker.send("PUT", f"{path}/resume")[0] == 202
        eventually(has(topics, topic, 3), "what was changed meanwhile")
        worker.wait_for_log("reading the binlog from", 2)
        assert worker.send("POST", f"{path}/restart")[0] == 204
        mysql_db.execute("INSERT INTO t VALUES (4)")
        eventually(has(topics, topic, 4), "what was changed after a restart")
        assert worker.send("PUT", f"{path}/stop")[0] == 204
        mysql_db.execute("INSERT INTO t VALUES (5)")
        worker.stop()
    with Worker(config).streaming() as worker:
        eventually(has(topics, topic, 5), "a new process streams")
        worker.stop()
    assert changes(topics.read(topic)) == [("r", 1), ("c", 2), ("c", 3), ("c", 4), ("c", 5)]


def test_faust_runs_the_same_app(mysql_db: Database, topics: Topics, configured: Configured) -> None:
    config = configured()
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    program = str(Path(sys.executable).with_name("faust"))
    command = [program, "-A", "rowtide.connector.worker", "worker", "--loglevel", "info", "--web-port", "{port}"]
    with Worker(config, command=command, environment=faust_environment(config)).streaming() as worker:
        mysql_db.execute("INSERT INTO t VALUES (2)")
        eventually(has(topics, config.topic(f"{mysql_db.name}.t"), 2), "both rows")
        assert worker.health()["status"] == "UP"
        worker.signal(signal.SIGINT)
        assert worker.wait() == 0, worker.log
    assert changes(topics.read(config.topic(f"{mysql_db.name}.t"))) == [("r", 1), ("c", 2)]


def test_faust_without_a_configuration(tmp_path: Path, configured: Configured) -> None:
    config = configured()
    program = str(Path(sys.executable).with_name("faust"))
    command = [program, "-A", "rowtide.connector.worker", "worker"]
    environment = {name: value for name, value in os.environ.items() if name != "ROWTIDE_CONFIG"}
    with Worker(config, command=command, environment=environment) as worker:
        assert worker.wait() == 1
        assert "the environment must name the configuration file: ROWTIDE_CONFIG=FILE" in worker.log
        assert "Traceback" not in worker.log
    config.properties["snapshot.mode"] = "inital"
    with Worker(config, command=command, environment=faust_environment(config)) as worker:
        assert worker.wait() == 1
        assert "snapshot.mode" in worker.log
        assert "Traceback" not in worker.log


def test_a_port_that_is_taken(mysql_db: Database, configured: Configured) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with Worker(configured()).streaming() as first:
        with Worker(configured(), "--web-port", str(first.port)) as second:
            assert second.wait() == 1
            assert f"--web-port: port {first.port} of 127.0.0.1 cannot be used: Address already in use" in second.log
            assert "Traceback" not in second.log
        with Worker(configured(), "--web-port", str(first.port), "--no-web").streaming() as third:
            third.stop()


@pytest.mark.parametrize(
    ("end", "exactly_once"),
    [
        ("stop", False),
        ("kill", True),
        *(pytest.param(*one, marks=pytest.mark.nightly) for one in (("stop", True), ("kill", False))),
    ],
)
def test_a_restart_in_the_middle_of_a_large_transaction(
    mysql_db: Database, topics: Topics, configured: Configured, end: str, *, exactly_once: bool
) -> None:
    config = configured(exactly_once=exactly_once, max_queue_size="500", max_batch_size="100")
    config.properties["offset.flush.interval.ms"] = "200"
    config.properties["provide.transaction.metadata"] = "true"
    topic, count = config.topic(f"{mysql_db.name}.t"), 15_000
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(300))", "CREATE TABLE n (id INT PRIMARY KEY)")
    with Worker(config).streaming() as worker:
        worker.stop()
    with mysql_db.connect() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for first in range(0, count, 1000):
            numbers = ",".join(f"({number},REPEAT('x',200))" for number in range(first, first + 1000))
            cursor.execute(f"INSERT INTO t VALUES {numbers}")
        cursor.execute("COMMIT")
        cursor.execute("INSERT INTO n VALUES (1)")
        connection.commit()
    with Worker(config).streaming() as worker:
        eventually(has(topics, topic, 1), "some of the rows")
        if end == "stop":
            worker.stop()
        else:
            worker.kill()
    part = len(topics.read(topic))
    with Worker(config).streaming() as worker:
        eventually(has(topics, config.topic(f"{mysql_db.name}.n"), 1), "what follows the transaction")
        worker.stop()
    ids = [json.loads(record.key or b"{}")["id"] for record in topics.read(topic)]
    if exactly_once or end == "stop":
        assert ids == list(range(count)), f"{part} rows came before the restart"
    else:
        assert sorted(set(ids)) == list(range(count))
    orders = [json.loads(record.value or b"{}")["transaction"]["total_order"] for record in topics.read(topic)]
    assert orders == [number + 1 for number in ids], "the order within the transaction goes on"
    marks = [json.loads(record.value or b"{}")["status"] for record in topics.read(f"{config.name}.transaction")]
    if exactly_once or end == "stop":
        assert marks == ["BEGIN", "END"] * 2


def test_an_interrupted_snapshot_is_taken_again(mysql_db: Database, topics: Topics, configured: Configured) -> None:
    config = configured(exactly_once=True, notification_enabled_channels="sink")
    notes = config.properties["notification.sink.topic.name"] = f"{config.name}-notes"
    table, count = f"{mysql_db.name}.t", 10_000
    topic = config.topic(table)
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(300))")
    for _ in range(count // 1000):
        mysql_db.execute(f"INSERT INTO t (v) VALUES {','.join(['(REPEAT(10,100))'] * 1000)}")
    half = f"SELECT * FROM {table} WHERE id <= {count // 2} OR SLEEP(0.1) = 0"  # the others would take minutes
    overrides = "snapshot.select.statement.overrides"
    slowly = {overrides: table, f"{overrides}.{table}": half}
    config.properties |= slowly
    with Worker(config).wait_for_log("reading table") as worker:
        eventually(lambda: worker.health()["snapshot"]["rows"], "the first rows are read")
        log = worker.stop()
    assert "the snapshot was interrupted" in log
    for name in slowly:
        del config.properties[name]
    # The server ends the first worker's query when it next writes to the closed connection, which may take 10 s.
    config.properties["snapshot.lock.timeout.ms"] = "60000"
    with Worker(config).streaming() as worker:
        assert "an earlier snapshot was interrupted" in worker.log
        mysql_db.execute("DELETE FROM t WHERE id=1")
        eventually(lambda: worker.health()["lag"] == {"seconds": 0.0, "bytes": 0}, "everything is read")
        worker.stop()
    found = changes(topics.read(topic))
    assert found[-count - 2 :] == [*(("r", key) for key in range(1, count + 1)), ("d", 1), ("-", 1)]
    assert {operation for operation, _ in found[: -count - 2]} <= {"r"}
    told = [json.loads(record.value or b"{}")["type"] for record in topics.read(notes)]
    assert told == ["STARTED", "IN_PROGRESS", "ABORTED", "STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED"]
