"""``rowtide verify`` and ``rowtide peek`` with topics in Avro and Protobuf, and a real schema registry."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.mysql.random_values import LOOSE, RandomRows
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from rowtide_stack import Database, Kafka, Registry

    from tests.support.kafka.topic_tools import Topics

pytestmark = [pytest.mark.servers, pytest.mark.nightly]

CONVERTERS = {
    "avro": "io.confluent.connect.avro.AvroConverter",
    "protobuf": "io.confluent.connect.protobuf.ProtobufConverter",
}


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
@pytest.mark.parametrize(("form", "values"), [("avro", "exact"), ("avro", "debezium"), ("protobuf", "exact")])
def test_rows_of_a_topic_are_verified_and_shown(
    form: str,
    flavor: str,
    values: str,
    topics: Topics,
    kafka: Kafka,
    registry: Registry,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    given = {
        "database.include.list": database.name,
        "rowtide.values": values,
        "bigint.unsigned.handling.mode": "precise",
        "schema.name.adjustment.mode": "avro",
        "field.name.adjustment.mode": "avro",
        **{f"{side}.converter": CONVERTERS[form] for side in ("key", "value")},
        **{f"{side}.converter.schema.registry.url": registry.url for side in ("key", "value")},
    }
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, given)
    mixed = RandomRows(database.server.name, "mixed", seed=1)
    database.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT DEFAULT 7, note VARCHAR(20), made DATE, price DECIMAL(8,2))",
        "INSERT INTO t VALUES (1, NULL, NULL, '2024-02-29', -1.50), (2, 0, '', NULL, NULL)",
    )
    database.execute(LOOSE, mixed.table, *mixed.inserts(50))

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "rowtide", *arguments, "--config", str(config.path)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result.returncode, result.stdout

    def verified(*options: str) -> tuple[int, dict[str, tuple[str, list[list[str]]]]]:
        status, text = run("verify", "--topics", "--timeout", "60", "--json", *options)
        found = json.loads(text)["tables"]
        columns = {one["table"]: [difference["columns"] for difference in one["differences"]] for one in found}
        return status, {one["table"].partition(".")[2]: (one["outcome"], columns[one["table"]]) for one in found}

    with Worker(config).streaming() as worker:
        database.execute(LOOSE, *mixed.inserts(50), *mixed.changes(10))
        database.execute("INSERT INTO t VALUES (3, 4, 'ü', NULL, 2)", "UPDATE t SET note = NULL WHERE id = 3")
        topic = config.topic(f"{database.name}.t")
        eventually(lambda: len(topics.read(topic)) == 4, "all records are in Kafka")
        assert verified() == (0, {"mixed": ("equal", []), "t": ("equal", [])})
        database.execute("SET SESSION sql_log_bin = 0", "UPDATE t SET n = n + 1, price = 3 WHERE id = 3")
        assert verified("--table", f"{database.name}.t") == (1, {"t": ("different", [["n", "price"]])})
        worker.stop()
    status, text = run("peek", f"{database.name}.t", "--from-start")
    assert status == 0, text
    assert "id=3" in text
    assert 'note="ü"' in text
    status, text = run("peek", f"{database.name}.t", "--from-start", "--json")
    last = [json.loads(json.loads(line)["value"]) for line in text.splitlines()][-1]
    assert last["payload"]["op"] == "u"
    after = last["payload"]["after"]
    assert (after["id"], after["n"], after["note"]) == (3, 4, None)
