"""Workers that write Avro, with a real schema registry, read by the deserializer of confluent-kafka."""

from __future__ import annotations

import datetime as dt
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Registry

pytestmark = pytest.mark.servers

AVRO = "io.confluent.connect.avro.AvroConverter"
Configured = Callable[..., WorkerConfig]


@pytest.fixture
def own_registry() -> Iterator[Registry]:
    """A registry that a test may stop."""
    from rowtide_stack import Registry

    with Registry() as server:
        yield server


def in_avro(url: str, **more: str) -> dict[str, str]:
    return {
        "schema_name_adjustment_mode": "avro",  # Apicurio does not take the names of databases with a hyphen
        "key_converter": AVRO,
        "key_converter_schema_registry_url": url,
        "value_converter": AVRO,
        "value_converter_schema_registry_url": url,
        **more,
    }


def received(topics: Topics, topic: str, url: str) -> list[tuple[Any, Any]]:
    """The keys and values of a topic, as confluent-kafka reads them."""
    with SchemaRegistryClient({"url": url}) as client:
        read = AvroDeserializer(client)
        return [
            (
                read(seen.key, SerializationContext(topic, MessageField.KEY)),
                read(seen.value, SerializationContext(topic, MessageField.VALUE)),
            )
            for seen in topics.read(topic)
        ]


@pytest.mark.parametrize("exactly_once", [False, True])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_another_client_reads_snapshot_and_stream(
    mysql_db: Database, topics: Topics, registry: Registry, configured: Configured, exactly_once: bool, processes: str
) -> None:
    mysql_db.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) DEFAULT 'x', price DECIMAL(8,2), made DATETIME(6), "
        "big BIGINT UNSIGNED, raw VARBINARY(4), kind ENUM('a','b'), ratio FLOAT, flag BOOL, doc JSON)",
        "INSERT INTO t VALUES (1, NULL, -1.50, '2024-01-02 03:04:05.678901', 7, 0x00ff, 'b', 1.1, TRUE, '{\"k\":1}')",
    )
    config = configured(exactly_once=exactly_once, rowtide_decoder_processes=processes, **in_avro(registry.url))
    topic = config.topic(f"{mysql_db.name}.t")
    with Worker(config) as worker:
        worker.streaming()
        mysql_db.execute(
            "UPDATE t SET name = 'ü', price = NULL WHERE id = 1",
            "ALTER TABLE t ADD COLUMN more INT",
            "INSERT INTO t (id, more) VALUES (2, 5)",
            "DELETE FROM t WHERE id = 1",
        )
        eventually(lambda: len(topics.read(topic)) >= 5, "all records are in Kafka")
        worker.stop()
    first, second, third, deleted, tombstone = received(topics, topic, registry.url)
    assert [key for key, _ in (first, second, third, deleted, tombstone)] == [{"id": n} for n in (1, 1, 2, 1, 1)]
    row = first[1]["after"]
    assert row == {
        "id": 1, "name": None, "price": Decimal("-1.50"), "made": 1704164645678901, "big": 7, "raw": b"\0\xff",
        "kind": "b", "ratio": pytest.approx(1.1), "flag": 1, "doc": '{"k": 1}',
    }  # fmt: skip
    assert first[1]["op"] == "r"
    assert second[1]["before"] == row
    assert second[1]["after"] == {**row, "name": "ü", "price": None}
    assert third[1]["after"]["more"] == 5
    assert (deleted[1]["op"], deleted[1]["after"], tombstone[1]) == ("d", None, None)
    made = dt.datetime.fromtimestamp(third[1]["source"]["ts_ms"] / 1000, dt.UTC)
    assert abs(dt.datetime.now(dt.UTC) - made) < dt.timedelta(minutes=10)
    with SchemaRegistryClient({"url": registry.url}) as client:
        assert client.get_versions(f"{topic}-value") == [1, 2]
        assert client.get_versions(f"{topic}-key") == [1]


def test_a_refused_schema_stops_before_a_record_is_lost_and_names_the_field(
    mysql_db: Database, topics: Topics, registry: Registry, configured: Configured
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    config = configured(**in_avro(registry.url))
    topic = config.topic(f"{mysql_db.name}.t")
    subject = f"{topic}-value"
    with Worker(config) as worker, SchemaRegistryClient({"url": registry.url}) as client:
        worker.streaming()
        client.set_compatibility(subject, "BACKWARD")
        mysql_db.execute(
            "INSERT INTO t VALUES (2)",
            "ALTER TABLE t ADD COLUMN more INT NOT NULL",
            "INSERT INTO t VALUES (3, 5)",
        )
        worker.wait_for_log("the field before.more is new and has no default")
        assert worker.wait() != 0
        assert f"refuses the new schema of subject {subject}" in worker.log
        assert [key["id"] for key, _ in received(topics, topic, registry.url)] == [1, 2]
        client.set_compatibility(subject, "NONE")
    with Worker(config) as worker:
        eventually(lambda: len(topics.read(topic)) >= 3, "the connector continues")
        worker.stop()
    assert [value["after"] for _, value in received(topics, topic, registry.url)] == [
        {"id": 1},
        {"id": 2},
        {"id": 3, "more": 5},
    ]


def test_a_registry_that_is_away_is_waited_for(
    mysql_db: Database, topics: Topics, own_registry: Registry, configured: Configured
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    config = configured(exactly_once=True, **in_avro(own_registry.url, value_converter_http_read_timeout_ms="500"))
    topic = config.topic(f"{mysql_db.name}.t")
    with Worker(config) as worker:
        worker.streaming()
        eventually(lambda: len(topics.read(topic)) == 1, "the snapshot is in Kafka")
        own_registry.pause()  # a new one would have lost its schemas
        mysql_db.execute("INSERT INTO t VALUES (2)", "ALTER TABLE t ADD COLUMN a INT", "INSERT INTO t VALUES (3, 4)")
        worker.wait_for_log("cannot be reached")
        own_registry.resume()
        eventually(lambda: len(topics.read(topic)) >= 3, "all records are in Kafka")
        worker.stop()
    assert len(topics.read(topic)) == 3
    (_, last) = received(topics, topic, own_registry.url)[-1]
    assert last["after"] == {"id": 3, "a": 4}


def test_a_dry_run_says_which_subjects_would_refuse_a_statement(
    mysql_db: Database, topics: Topics, registry: Registry, configured: Configured
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    config = configured(**in_avro(registry.url))
    subject = f"{config.topic(f'{mysql_db.name}.t')}-value"
    with Worker(config) as worker:
        worker.streaming()
        eventually(lambda: len(topics.read(config.topic(f"{mysql_db.name}.t"))) == 1, "the snapshot is in Kafka")
        worker.stop()
    with SchemaRegistryClient({"url": registry.url}) as client:
        client.set_compatibility(subject, "BACKWARD")

        def checked(statement: str) -> tuple[int, str]:
            done = subprocess.run(
                [sys.executable, "-m", "rowtide", "check", str(config.path), "--ddl", statement],
                capture_output=True,
                text=True,
                check=False,
            )
            return done.returncode, " ".join(done.stdout.split())

        code, printed = checked("ALTER TABLE t ADD COLUMN more INT")
        assert code == 0, printed
        assert f"the schema registry accepts the schemas of {mysql_db.name}.t after the statement" in printed
        code, printed = checked("ALTER TABLE t ADD COLUMN more INT NOT NULL")
        assert code == 1
        assert f"would refuse the value of {mysql_db.name}.t: subject {subject}, incompatible with version 1" in printed
        assert "the field before.more is new and has no default" in printed
        assert client.get_versions(subject) == [1]
        assert "no captured table" in checked("CREATE TABLE unknown.u (a INT)")[1]
        assert "--ddl" in checked("ALTER NONSENSE")[1]
    mysql_db.execute("ALTER TABLE t ADD COLUMN more INT NOT NULL")
    code, printed = checked("ALTER TABLE t ADD COLUMN again INT")
    assert code == 1
    assert f"the schema of {mysql_db.name}.t would be refused" in printed


@pytest.fixture
def stack_url() -> Iterator[str]:
    """The URL that ``docker/stack up registry`` prints."""
    command = [str(Path(__file__).parents[3] / "docker" / "stack"), "up", "registry"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stack:
        try:
            assert stack.stdout is not None
            yield next(line for line in stack.stdout if "/apis/ccompat/v7" in line).split()[-1]
        finally:
            stack.send_signal(signal.SIGINT)


@pytest.mark.nightly
def test_apicurios_converter_with_the_registry_of_the_stack(
    mysql_db: Database, topics: Topics, configured: Configured, stack_url: str
) -> None:
    """Apicurio's own settings: each id in a record is a content id of Apicurio's, and an id for Confluent's clients."""
    own = stack_url.replace("ccompat/v7", "registry/v2")
    wanted = {"url": own, "auto-register": "true", "as-confluent": "true", "use-id": "contentId"}
    properties = {"schema_name_adjustment_mode": "avro"}
    for side in ("key", "value"):
        properties[f"{side}_converter"] = "io.apicurio.registry.utils.converter.AvroConverter"
        for name, text in {**wanted, "headers.enabled": "false"}.items():
            properties[f"{side}_converter_apicurio_registry_{name.replace('.', '_')}"] = text
    mysql_db.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT DEFAULT 5, price DECIMAL(8,2))", "INSERT INTO t VALUES (1, NULL, 1)"
    )
    config = configured(**properties)
    topic = config.topic(f"{mysql_db.name}.t")
    with Worker(config).streaming() as worker:
        mysql_db.execute("ALTER TABLE t ADD COLUMN more INT", "INSERT INTO t VALUES (2, 3, 4.5, 6)")
        mysql_db.execute("DELETE FROM t WHERE id = 1")
        eventually(lambda: len(topics.read(topic)) == 4, "all records are in Kafka")
        worker.stop()
    rows = [value and value["after"] for _, value in received(topics, topic, stack_url)]
    first = {"id": 1, "n": None, "price": Decimal("1.00")}
    assert rows == [first, {"id": 2, "n": 3, "price": Decimal("4.50"), "more": 6}, None, None]

    def asked(path: str) -> Any:
        with urllib.request.urlopen(f"{own}/{path}") as answer:
            return json.load(answer)

    for record in topics.read(topic):
        assert not any(name.startswith("apicurio") for name, _ in record.headers)
        for data, name in ((record.key, "Key"), (record.value, "Envelope")):
            if data is not None:
                assert data[0] == 0
                assert asked(f"ids/contentIds/{int.from_bytes(data[1:5], 'big')}")["name"] == name
    found = {one["id"] for one in asked(f"search/artifacts?name={topic}&limit=500")["artifacts"]}
    assert {f"{topic}-key", f"{topic}-value"} <= found
