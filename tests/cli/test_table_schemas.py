"""Schemas of topics whose messages have none, from the connector's schema history."""

from pathlib import Path

import pytest

from rowtide.cli.table_schemas import HistorySchemas
from rowtide.spark_consumers.columns.conversion import ConverterSettings
from rowtide.spark_consumers.errors import SchemaMissingError, SettingsError
from rowtide.spark_consumers.messages.versions import key_version, value_version
from tests.support.connector_history import connector_with_history

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, price DECIMAL(10,2), day DATE, gone TEXT, kind ENUM('a','b'))"
SETTINGS = ConverterSettings()


def schemas(folder: Path, *statements: str, **properties: str) -> HistorySchemas:
    """Return the schemas of a connector whose history consists of statements."""
    return HistorySchemas([connector_with_history(folder, *statements, **properties)])


def columns(found: HistorySchemas, topic: str = "p.shop.t") -> dict[str, tuple[str, str]]:
    """Return type and default of the columns of a table."""
    version = value_version(None, found[topic]["value"], SETTINGS, topic)
    return {column.name: (column.type, column.default) for column in version.columns}


def test_columns_have_the_types_of_the_table(tmp_path: Path) -> None:
    found = schemas(tmp_path, TABLE)
    assert list(found) == ["p.shop.t"]
    assert len(found) == 1
    assert {name: kind for name, (kind, _) in columns(found).items()} == {
        "id": "int", "price": "decimal(10,2)", "day": "date", "gone": "string", "kind": "string",
    }  # fmt: skip
    assert key_version(None, found["p.shop.t"]["key"], SETTINGS, "p.shop.t").names == ("id",)
    assert found.get("p.shop.other", {}) == {}


def test_all_versions_of_a_table_count(tmp_path: Path) -> None:
    alters = (
        "ALTER TABLE t DROP gone, ADD more INT NOT NULL DEFAULT 7",
        "ALTER TABLE t MODIFY id BIGINT NOT NULL, MODIFY price DECIMAL(20,2), MODIFY kind ENUM('a','b','c')",
        "ALTER TABLE t ALTER more SET DEFAULT 8",
    )
    found = columns(schemas(tmp_path, TABLE, *alters))
    assert (found["id"][0], found["price"][0], found["gone"][0]) == ("bigint", "decimal(20,2)", "string")
    assert "7" in found["more"][1]  # rows that are older than the column got the default of that time
    assert "8" not in found["more"][1]


@pytest.mark.parametrize(
    "change", ["price DECIMAL(10,4)", "price DOUBLE", "day VARCHAR(20)", "day DATETIME", "id BIGINT UNSIGNED NOT NULL"]
)
def test_types_that_cannot_be_distinguished_are_an_error(tmp_path: Path, change: str) -> None:
    found = schemas(tmp_path, TABLE, f"ALTER TABLE t MODIFY {change}", column_propagate_source_type=".*")
    column = change.partition(" ")[0]
    with pytest.raises(SchemaMissingError, match=rf"topic p\.shop\.t: column {column} was .* --schemas"):
        found["p.shop.t"]


def test_only_captured_tables_have_schemas(tmp_path: Path) -> None:
    found = schemas(tmp_path, TABLE, "CREATE TABLE u (id INT)", table_include_list=r"shop\\.u")
    assert list(found) == ["p.shop.u"]
    assert "key" not in found["p.shop.u"]


def test_records_that_transforms_change_have_no_schemas(tmp_path: Path) -> None:
    transforms = {"transforms": "u", "transforms_u_type": "io.debezium.transforms.ExtractNewRecordState"}
    with pytest.raises(SettingsError, match=r"p\.properties: the connector has transforms.* --schemas"):
        list(schemas(tmp_path, TABLE, **transforms))


def test_a_history_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    found = schemas(tmp_path, TABLE)
    (tmp_path / "history.jsonl").write_text("{\n")
    with pytest.raises(SettingsError, match=r"p\.properties: the schema history cannot be read: .* --schemas"):
        list(found)
    with pytest.raises(SettingsError, match=r"(?s)none\.properties.*--schemas"):
        list(HistorySchemas([str(tmp_path / "none.properties")]))
