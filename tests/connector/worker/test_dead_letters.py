"""A worker with rejected and too large rows, in a snapshot and the stream, killed in between: each row is kept once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from rowtide.cli import main
from rowtide.envelope.claim_check import OPENING, ClaimCheck
from tests.connector.worker.conftest import EXACTLY_ONCE
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from rowtide_stack import Database, Kafka, Registry

    from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers

LARGE = "9" * 30_000
UNWRAP = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}
CAST = {
    "transforms": "unwrap,cast",
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "n:int32",
}


@pytest.mark.parametrize("producer", ["native", pytest.param("librdkafka", marks=pytest.mark.nightly)])
def test_rows_that_cannot_be_sent_are_kept_once_and_replayed(
    mysql_db: Database, topics: Topics, configured: Callable[..., WorkerConfig], producer: str
) -> None:
    config, letters = configured(exactly_once=True), topics.name()
    config.properties |= {
        **UNWRAP,
        **CAST,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "rowtide.large.records": "dead-letter",
        "rowtide.producer": producer,
        "producer.override.max.request.size": "20000",
        "producer.override.batch.size": "10000",
    }
    topic = config.topic(f"{mysql_db.name}.t")

    def rows(first: int) -> list[str]:
        values = [("1", "a"), ("x", "b"), ("3", LARGE), ("4", "d"), ("5", LARGE)]
        return [f"INSERT INTO t VALUES ({first + at}, '{n}', '{v}')" for at, (n, v) in enumerate(values)]

    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(9), v MEDIUMTEXT)", *rows(1))
    for begin in (11, 21):
        with Worker(config).streaming() as worker:
            mysql_db.execute(*rows(begin))
            if begin == 11:
                worker.kill()
            else:
                eventually(lambda: worker.health()["lag"] == {"seconds": 0.0, "bytes": 0}, "everything is read")
                worker.stop()
    sent = [json.loads(one.value or b"{}")["id"] for one in topics.read(topic)]
    assert sent == [1, 4, 11, 14, 21, 24]

    def run(*arguments: str) -> list[str]:
        result = CliRunner().invoke(main, ["deadletters", "--config", str(config.path), *arguments])
        assert result.exit_code == 0, result.output
        return result.output.splitlines()

    found = [json.loads(line) for line in run("--json")]
    stages = ["TRANSFORMATION", "KAFKA_PRODUCE", "KAFKA_PRODUCE"] * 3
    assert [one["stage"] for one in found] == stages
    assert all(one["parts"] == one["present"] for one in found)
    assert [one["parts"] > 1 for one in found] == [stage == "KAFKA_PRODUCE" for stage in stages]
    config.properties |= {**UNWRAP, "producer.override.max.request.size": "1000000"}
    assert len(run("--replay", "all")) == 9
    assert run("--replay", "all") == []
    seen = [json.loads(one.value or b"") for one in topics.read(topic)]
    rows_sent = {row["id"]: (row["n"], row["v"]) for row in seen}
    assert len(seen) == len(rows_sent) == 15
    assert rows_sent[12] == ("x", "b")
    assert rows_sent[25] == (5, LARGE)


@pytest.mark.nightly
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
@pytest.mark.parametrize("exactly_once", [True, False])
def test_events_of_a_table_that_was_changed_unseen_are_replayed_with_its_structure(
    flavor: str, topics: Topics, kafka: Kafka, tmp_path: Path, request: pytest.FixtureRequest, *, exactly_once: bool
) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    letters, given = topics.name(), EXACTLY_ONCE if exactly_once else {}
    more = {
        "database.include.list": database.name,
        "inconsistent.schema.handling.mode": "warn",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "topic.creation.default.partitions": "3",
        "topic.creation.default.replication.factor": "1",
    }
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, {**more, **given})
    database.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE k (v INT)", "INSERT INTO t VALUES (1,1)"
    )
    unseen, seen = "SET SESSION sql_log_bin = 0", "SET SESSION sql_log_bin = 1"
    with Worker(config).streaming() as worker:
        worker.stop()
    database.execute(
        *(unseen, "ALTER TABLE t ADD w INT", "ALTER TABLE k ADD w INT", seen, "BEGIN"),
        *("INSERT INTO t VALUES (2,2,2),(3,3,3)", "UPDATE t SET v = 20", "INSERT INTO k VALUES (7,8),(7,8)", "COMMIT"),
        *("DELETE FROM t WHERE id = 3", "INSERT INTO t VALUES (4,4,4)"),
        *(unseen, "ALTER TABLE t DROP w", "ALTER TABLE k DROP w", seen),
    )
    with Worker(config).streaming() as worker:
        eventually(lambda: len(topics.read(letters)) == 5, "dead letters")
        database.execute(
            *("UPDATE t SET v = 40 WHERE id = 4", "RENAME TABLE k TO renamed", "INSERT INTO renamed VALUES (9)")
        )
        eventually(lambda: len(topics.read(config.topic(f"{database.name}.renamed"))) == 1, "the last row")
        worker.stop()
    structures = tmp_path / "tables.sql"
    structures.write_text(
        f"USE {database.name}; CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT); CREATE TABLE k (v INT, w INT);"
    )

    def run(*arguments: str) -> str:
        return CliRunner().invoke(main, ["deadletters", "--config", str(config.path), *arguments]).output

    found = [json.loads(line) for line in run("--json").splitlines()]
    assert [one["table"].rpartition(".")[2] for one in found] == ["t", "t", "k", "t", "t"]
    assert run("--replay", "all").count("not replayed") == 5
    assert "not replayed" not in run("--replay", "all", "--structures", str(structures), "--omit-newer")

    def rows(table: str) -> list[tuple[bytes | None, dict[str, int] | None]]:
        values = [(one.key, one.value) for one in topics.read(config.topic(f"{database.name}.{table}"))]
        return [(key, value and json.loads(value)["after"]) for key, value in values]

    last = {json.loads(key or b"")["id"]: row for key, row in rows("t")}
    assert last == {1: {"id": 1, "v": 20, "w": None}, 2: {"id": 2, "v": 20, "w": 2}, 3: None, 4: {"id": 4, "v": 40}}
    assert [row for _, row in rows("k") if row is not None] == [{"v": 7, "w": 8}] * 2
    assert [row for _, row in rows("renamed")] == [{"v": 9}]


@pytest.mark.nightly
@pytest.mark.parametrize("producer", ["native", "librdkafka"])
def test_a_replay_that_is_killed_again_and_again_sends_each_record_once(
    mysql_db: Database,
    topics: Topics,
    registry: Registry,
    configured: Callable[..., WorkerConfig],
    tmp_path: Path,
    producer: str,
) -> None:
    """Avro in a compacted topic; what was too large for it becomes a claim check."""
    config, letters = configured(exactly_once=True), topics.name()
    avro = "io.confluent.connect.avro.AvroConverter"
    config.properties |= {
        **UNWRAP,
        **CAST,
        "schema.name.adjustment.mode": "avro",
        **{f"{side}.converter": avro for side in ("key", "value")},
        **{f"{side}.converter.schema.registry.url": registry.url for side in ("key", "value")},
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "rowtide.large.records": "dead-letter",
        "rowtide.producer": producer,
        "producer.override.max.request.size": "20000",
        "producer.override.batch.size": "10000",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.cleanup.policy": "compact",
    }
    topic = config.topic(f"{mysql_db.name}.t")
    count = 400
    values = ", ".join(f"({n}, '{'x' if n % 2 else n}', '{LARGE if n % 40 == 0 else n}')" for n in range(count))
    mysql_db.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(9), v MEDIUMTEXT)", "INSERT INTO t VALUES (-1, '1', '')"
    )
    with Worker(config).streaming() as worker:
        mysql_db.execute(f"INSERT INTO t VALUES {values}", "UPDATE t SET v = 'new' WHERE id = 1")
        eventually(lambda: worker.health()["lag"] == {"seconds": 0.0, "bytes": 0}, "everything is read")
        mysql_db.execute("UPDATE t SET n = '7', v = 'newer' WHERE id = 3", "DELETE FROM t WHERE id = 5")
        eventually(lambda: len(topics.read(topic)) == 193, "rows that can be sent")
        worker.stop()
    config.properties |= {**UNWRAP, "rowtide.large.records": "claim-check"}
    config.properties["rowtide.large.records.claim.check.url"] = f"file://{tmp_path}/claims"
    (tmp_path / "claims").mkdir()
    command = [sys.executable, "-m", "rowtide", "deadletters", "--config", str(config.path), "--replay", "all"]
    printed: list[str] = []
    for lines in (1, 10, 30, 30, count):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as replay:
            assert replay.stdout is not None
            for sent, line in enumerate((one for one in replay.stdout if "replayed to" in one), 1):
                printed.append(line)
                if sent == lines:
                    replay.kill()
            assert replay.wait() == (-signal.SIGKILL if lines < count else 1), "rows 3 and 5 have newer records"
    assert len(printed) <= len(set(printed)) == 209

    with SchemaRegistryClient({"url": registry.url}) as client:
        read = AvroDeserializer(client)
        found: dict[int, list[Any]] = {}
        for one in topics.read(topic):
            key = read(one.key, SerializationContext(topic, MessageField.KEY))["id"]
            value = one.value
            if value is not None and value.startswith(OPENING):
                value = (tmp_path / "claims" / ClaimCheck.parse(value).name).read_bytes()
            found.setdefault(key, []).append(read(value, SerializationContext(topic, MessageField.VALUE)))
    rows = {key: [value and (value["n"], value["v"]) for value in values] for key, values in found.items()}
    expected = {n: [("x", str(n))] if n % 2 else [(n, str(n))] for n in range(count)}
    expected |= {n: [(n, LARGE)] for n in range(0, count, 40)}
    expected |= {-1: [(1, "")], 1: [("x", "1"), ("x", "new")], 3: [(7, "newer")], 5: [None]}
    assert rows == expected
