"""The values of the configuration tree."""

import dataclasses
from pathlib import Path

import pytest

from rowtide.connector.config import ConfigurationError, Flavor, from_properties, load
from rowtide.connector.config.choices import (
    BinaryHandling,
    DecimalFormat,
    FailureHandling,
    SnapshotMode,
    SslMode,
    TransactionBoundary,
)
from rowtide.connector.config.kafka.producer_settings import transactional_id
from rowtide.connector.config.sections.source import split_statements
from rowtide.topics.column_rules import Mask
from rowtide.topics.naming import NameParts
from rowtide.topics.settings import TopicSettings


def test_defaults_are_debeziums(valid: dict[str, str]) -> None:
    config = from_properties(valid | {"connector.class": "io.debezium.connector.mysql.MySqlConnector"})
    assert config.flavor is Flavor.MYSQL
    assert config.database.port == 3306
    assert config.database.tls.mode is SslMode.PREFERRED
    assert config.streaming.max_queue_size == 8192
    assert config.capture.skipped_operations == {"t"}
    assert config.values.tombstones
    assert config.snapshot.mode is SnapshotMode.INITIAL
    assert not config.delivery.exactly_once
    assert config.topics.naming.data_change("d", "t") == "shop.d.t"
    assert config.history.topic == "history"
    assert config.history.producer["bootstrap.servers"] == "127.0.0.1:9092"
    assert config.warnings == ()


def test_the_tree_is_immutable(valid: dict[str, str]) -> None:
    config = from_properties(valid)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.name = "other"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.database.port = 1  # type: ignore[misc]


def test_values_are_parsed_into_the_tree(valid: dict[str, str]) -> None:
    config = from_properties(
        valid
        | {
            "database.include.list": "a,b",
            "table.exclude.list": "a\\.x.*",
            "column.exclude.list": ".*\\.secret",
            "column.mask.with.3.chars": "a\\.t\\.c",
            "message.key.columns": "a.t:id",
            "skipped.operations": "none",
            "binary.handling.mode": "BASE64",
            "event.processing.failure.handling.mode": "ignore",
            "snapshot.select.statement.overrides": "a.t, `b.c`.d",
            "snapshot.select.statement.overrides.a.t": "SELECT * FROM a.t WHERE x",
            "snapshot.select.statement.overrides.`b.c`.d": "SELECT 1",
            "snapshot.include.collection.list": "a\\.t",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "value.converter.decimal.format": "numeric",
            "connect.keep.alive": "false",
            "database.connectionTimeZone": "Asia/Tokyo",
            "exactly.once.support": "required",
            "transaction.boundary": "interval",
            "offset.flush.interval.ms": "1000",
        }
    )
    assert config.capture.tables.captures("a", "t")
    assert not config.capture.tables.captures("a", "xy")
    assert not config.capture.columns.captures("a", "t", "secret")
    assert config.values.column_rules.rule_for("a", "t", "c") == Mask(3)
    assert config.capture.keys.key_columns("a", "t", ["x", "id"]) == ("id",)
    assert config.capture.skipped_operations == frozenset()
    assert config.values.binary is BinaryHandling.BASE64
    assert config.failure.event_processing is FailureHandling.SKIP
    assert config.snapshot.select_overrides == {("a", "t"): "SELECT * FROM a.t WHERE x", ("b.c", "d"): "SELECT 1"}
    assert config.snapshot.reads_rows_of("a", "t")
    assert not config.snapshot.reads_rows_of("a", "u")
    assert not config.converters.value.schemas_enable
    assert config.converters.key.schemas_enable
    assert config.converters.value.decimal_format is DecimalFormat.NUMERIC
    assert config.database.keep_alive_interval_ms == 0
    assert config.database.time_zone == "Asia/Tokyo"
    assert config.delivery.exactly_once
    assert config.delivery.boundary is TransactionBoundary.INTERVAL
    assert config.delivery.boundary_interval_ms == 1000
    assert transactional_id(config.delivery.group_id, config.name) == "connect-cluster-inventory-0"


def test_former_names_apply_unless_the_new_ones_are_set(valid: dict[str, str]) -> None:
    old = {"event.deserialization.failure.handling.mode": "warn", "heartbeat.topics.prefix": "hb"}
    config = from_properties(valid | old)
    assert config.failure.event_processing is FailureHandling.WARN
    assert config.topics.naming.heartbeat == "hb.shop"
    new = {"event.processing.failure.handling.mode": "skip", "topic.heartbeat.prefix": "beat"}
    config = from_properties(valid | old | new)
    assert config.failure.event_processing is FailureHandling.SKIP
    assert config.topics.naming.heartbeat == "beat.shop"


def test_the_connector_class_selects_the_kind_of_server(valid: dict[str, str]) -> None:
    mariadb = {"connector.class": "io.debezium.connector.mariadb.MariaDbConnector"}
    config = from_properties(valid | mariadb | {"database.timezone": "+02:00"})
    assert config.flavor is Flavor.MARIADB
    assert config.database.tls.mode is SslMode.DISABLED
    assert config.database.time_zone == "+02:00"
    trusting = from_properties(valid | {"database.flavor": "MariaDB", "database.ssl.mode": "trust"})
    assert trusting.database.tls.mode is SslMode.REQUIRED


def test_naming_strategies(valid: dict[str, str]) -> None:
    regex = {
        "topic.naming.strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy",
        "topic.regex": "(.*)shard_\\d+$",
        "topic.replacement": "$1all",
    }
    assert from_properties(valid | regex).topics.naming.data_change("d", "shard_1") == "shop.d.all"
    assert from_properties(valid | regex).topics.naming.data_change("d", "SHARD_1") == "shop.d.SHARD_1"
    naming = {"topic.naming.strategy": "io.debezium.schema.SchemaUnicodeTopicNamingStrategy", "topic.delimiter": "-"}
    config = from_properties(valid | naming)
    assert config.topics.naming.parts is NameParts.TABLE
    assert config.topics.naming.data_change("d", "a_b") == "shop-a_u005fb"


def test_settings_of_new_topics(valid: dict[str, str]) -> None:
    config = from_properties(
        valid
        | {
            "topic.creation.default.replication.factor": "3",
            "topic.creation.default.partitions": "1",
            "topic.creation.default.compression.type": "lz4",
            "topic.creation.groups": "big",
            "topic.creation.big.include": "shop\\.big\\..*",
            "topic.creation.big.partitions": "12",
            "topic.creation.big.cleanup.policy": "compact",
            "offset.storage.partitions": "1",
            "offset.storage.replication.factor": "1",
        }
    )
    assert config.topics.creation.settings_for("shop.d.t") == TopicSettings(1, 3, {"compression.type": "lz4"})
    assert config.topics.creation.settings_for("shop.big.t") == TopicSettings(12, 3, {"cleanup.policy": "compact"})
    assert config.delivery.offset_topic_settings == TopicSettings(1, 1, {"cleanup.policy": "compact"})


def test_the_history_may_be_in_a_file_or_in_memory(valid: dict[str, str]) -> None:
    del valid["schema.history.internal.kafka.topic"]
    file = {
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": "/var/lib/history.jsonl",
    }
    assert from_properties(valid | file).history.file == "/var/lib/history.jsonl"
    memory = {"schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory"}
    assert (from_properties(valid | memory).history.topic, from_properties(valid | memory).history.file) == (None, None)


def test_properties_without_effect_are_warnings(valid: dict[str, str]) -> None:
    config = from_properties(valid | {"tasks.max": "4", "driver.foo": "x", "config.storage.topic": "y"})
    assert [warning.split(" has no effect")[0] for warning in config.warnings] == [
        "tasks.max",
        "driver.foo",
        "config.storage.topic",
    ]
    assert from_properties(valid | {"tasks.max": "1"}).warnings == ()


def test_a_hash_rule_without_salt_is_a_warning(valid: dict[str, str]) -> None:
    config = from_properties(valid | {"column.mask.hash.v2.MD5.with.salt.": "a\\.b\\.c"})
    assert "are published unmasked" in config.warnings[0]


def test_a_converters_settings_apply_only_with_its_class(valid: dict[str, str]) -> None:
    config = from_properties(valid | {"value.converter.schemas.enable": "false"})
    assert config.converters.value.schemas_enable
    assert "value.converter.schemas.enable has no effect without value.converter=" in config.warnings[0]


def test_transforms_are_checked(valid: dict[str, str]) -> None:
    transforms = {
        "transforms": "a,b",
        "transforms.a.type": "io.debezium.transforms.ExtractNewRecordStates",
        "transforms.b.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.b.regex": "(",
        "transforms.b.replacment": "x",
        "transforms.b.predicate": "p",
    }
    with pytest.raises(ConfigurationError) as error:
        from_properties(valid | transforms)
    assert sorted(problem.property for problem in error.value.problems) == [
        "transforms.a.type",
        "transforms.b.predicate",
        "transforms.b.regex",
        "transforms.b.replacement",
        "transforms.b.replacment",
    ]


def test_statements_are_split_at_semicolons() -> None:
    assert split_statements("SET a = 1; SET b = 'x;;y' ;") == ("SET a = 1", "SET b = 'x;y'")
    assert split_statements("") == ()


def test_a_file_the_environment_and_references_together(tmp_path: Path, valid: dict[str, str]) -> None:
    (tmp_path / "secrets").write_text("pw=from-file\n")
    valid["database.password"] = f"${{file:{tmp_path}/secrets:pw}}"
    path = tmp_path / "c.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in valid.items()))
    config = load(path, {"ROWTIDE_DATABASE_PORT": "13306", "ROWTIDE_TOPIC_PREFIX": "${env:WHO}", "WHO": "me"})
    assert config.database.password.reveal() == "from-file"
    assert config.database.port == 13306
    assert config.topics.prefix == "me"
    masked = config.masked_properties()
    assert masked["topic.prefix"] == "${env:WHO}"
    assert masked["database.password"] == "********"
