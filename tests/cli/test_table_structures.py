"""The structures of a topic's table in a connector's schema history."""

from pathlib import Path

import pytest

from rowtide.cli.table_structures import HistoryStructures
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_record import history_record
from rowtide.spark_consumers.errors import HistoryError, SettingsError

STATEMENTS = (
    "CREATE TABLE t (id INT PRIMARY KEY, secret TEXT, `a-b` INT)",
    "ALTER TABLE t RENAME COLUMN `a-b` TO c",
    "CREATE TABLE u (id INT)",
)


def structures(folder: Path, **properties: str) -> HistoryStructures:
    """Return the structures of a connector whose history consists of statements."""
    file = folder / "history.jsonl"
    tables, store = Tables(Server(Flavor.MYSQL)), FileSchemaHistory(file)
    for number, statement in enumerate(("CREATE DATABASE shop", *STATEMENTS)):
        for change in tables.apply(QueryEvent(statement, "shop")).changes:
            store.append(history_record(change, "p", {"file": "binlog.000001", "pos": number}, 5))
    store.close()
    config = {
        "name": "p",
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "topic.prefix": "p",
        "database.hostname": "nowhere.invalid",
        "database.user": "u",
        "database.server.id": "4711",
        "bootstrap.servers": "nowhere.invalid:9092",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(file),
        **{name.replace("_", "."): value for name, value in properties.items()},
    }
    path = folder / "p.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
    return HistoryStructures([str(path)])


def test_the_fields_of_records_have_the_numbers_of_their_columns(tmp_path: Path) -> None:
    settings = {"column_exclude_list": r"shop\\.t\\.secret", "field_name_adjustment_mode": "avro"}
    first, second = structures(tmp_path, **settings)("p.shop.t")
    assert (list(first), list(second)) == (["id", "a_b"], ["id", "c"])
    assert (first["id"], first["a_b"]) == (second["id"], second["c"])


def test_a_topic_without_a_table_of_its_own_has_none(tmp_path: Path) -> None:
    assert structures(tmp_path)("p.shop.none") == ()
    excluded = {"table_include_list": r"shop\\.u"}
    assert structures(tmp_path, **excluded)("p.shop.t") == ()


def test_a_history_that_cannot_be_used_is_told_from_one_that_cannot_be_read(tmp_path: Path) -> None:
    found = structures(tmp_path, schema_history_internal="io.debezium.relational.history.MemorySchemaHistory")
    with pytest.raises(SettingsError, match="in memory only"):
        found("p.shop.t")
    with pytest.raises(SettingsError, match=r"none\.properties"):
        HistoryStructures([str(tmp_path / "none.properties")])("p.shop.t")
    found = structures(tmp_path)
    (tmp_path / "history.jsonl").write_text("{\n")
    with pytest.raises(HistoryError, match=r"topic p\.shop\.t: .* cannot be read: .* run the command again"):
        found("p.shop.t")
