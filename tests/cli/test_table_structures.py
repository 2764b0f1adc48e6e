"""The structures of a topic's table in a connector's schema history."""

from pathlib import Path

import pytest

from rowtide.cli.table_structures import HistoryStructures
from rowtide.spark_consumers.errors import HistoryError, SettingsError
from tests.support.connector_history import connector_with_history

STATEMENTS = (
    "CREATE TABLE t (id INT PRIMARY KEY, secret TEXT, `a-b` INT)",
    "ALTER TABLE t RENAME COLUMN `a-b` TO c",
    "CREATE TABLE u (id INT)",
)


def structures(folder: Path, **properties: str) -> HistoryStructures:
    """Return the structures of a connector whose history consists of statements."""
    return HistoryStructures([connector_with_history(folder, *STATEMENTS, **properties)])


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
