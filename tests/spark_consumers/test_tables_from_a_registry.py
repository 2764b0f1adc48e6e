"""``rowtide tables`` with a real Kafka and a real schema registry."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.converters.avro import AvroConverter
from rowtide.envelope.converters.registry import SchemaIds
from tests.spark_consumers.messages.test_registered import of_converter, row_of
from tests.support.recordings.recorded_tables import same_rows

pytestmark = [pytest.mark.servers, pytest.mark.spark]

CONFIG = """\
connector.class=io.debezium.connector.mysql.MySqlConnector
name=reg
topic.prefix=reg
bootstrap.servers={kafka}
offset.storage.topic=reg-offsets
schema.history.internal.kafka.topic=reg-history
schema.history.internal.kafka.bootstrap.servers={kafka}
key.converter=io.confluent.connect.avro.AvroConverter
key.converter.schema.registry.url={registry}
value.converter=io.confluent.connect.avro.AvroConverter
value.converter.schema.registry.url={registry}
"""


def test_tables_of_a_connector_in_avro(spark, kafka, registry, rows_of, tmp_path: Path, monkeypatch) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    from rowtide.cli import registries
    from rowtide.connector.config import load
    from rowtide.connector.schema_registry import SchemaRegistry

    file = tmp_path / "shop.properties"
    file.write_text(CONFIG.format(kafka=kafka.bootstrap, registry=registry.url))
    config = load([str(file)], not_required={"database.hostname", "database.user", "database.server.id"})
    known = SchemaRegistry(registries.registry_of(config))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic("reg.d.t", 1, 1)])["reg.d.t"].result()
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(4):
        ids = SchemaIds.PREFIX if number % 2 else SchemaIds.HEADER
        converter = AvroConverter(known, AvroFormat(), ids=SchemaIds.PREFIX if registry_lacks_guids(known) else ids)
        row = of_converter(row_of(number, "ü" * number, "reg.d.t"), converter)
        headers = [(header["key"], header["value"]) for header in row["headers"]]
        producer.produce("reg.d.t", row["value"], row["key"], headers=headers)
    assert producer.flush(20) == 0

    def run(*arguments: str) -> tuple[int, str]:
        options = ["--config", str(file), "--output", str(tmp_path / "tables"), *arguments]
        found = CliRunner().invoke(main, ["tables", *options])
        return found.exit_code, " ".join(found.output.split())

    monkeypatch.setattr(registries, "_WAITS_S", (0,))
    status, output = run("--registry", "http://127.0.0.1:9")
    assert status == 1
    assert "http://127.0.0.1:9: the schema registry did not return schema" in output
    assert not (tmp_path / "tables/d/t").exists()
    assert run()[0] == 0
    same_rows(rows_of(str(tmp_path / "tables/d/t")), [{"id": number, "text": "ü" * number} for number in range(4)])


def registry_lacks_guids(registry) -> bool:
    """Apicurio's registry has no global ids."""
    return registry.registered("probe-value", "AVRO", '"string"').guid is None
