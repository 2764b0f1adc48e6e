"""Classes for the rows of real servers' tables, and changes as objects of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import rowtide
from rowtide.cli import main
from tests.support.connector_properties import connector_properties

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

TABLE = (
    "CREATE TABLE items (id BIGINT UNSIGNED PRIMARY KEY, price DECIMAL(10,2) NOT NULL, day DATE NOT NULL,"
    " at DATETIME(6), seen TIMESTAMP NULL, took TIME, y YEAR, flag BIT, bits BIT(9), kind ENUM('a','b') NOT NULL,"
    " tags SET('x','y'), doc JSON, place POINT, pic BLOB, name VARCHAR(20), f FLOAT, ok BOOL,"
    " secret TEXT) COMMENT 'What is sold'"
)
ROW = (
    "INSERT INTO items VALUES (1, 1.50, '2026-01-02', '2026-01-02 03:04:05.6', '2026-01-02 03:04:05', '-01:02:03',"
    " 2026, 1, 5, 'b', 'x,y', '{\"a\": 1}', POINT(1, 2), 'pic', 'Anna', 1.1, 1, 'secret')"
)


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_every_change_is_an_object_of_its_class(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database: Database = request.getfixturevalue(f"{kind}_db")
    database.execute(TABLE, "CREATE TABLE other (id INT)", ROW)
    history = {"schema.history.internal.file.filename": str(tmp_path / "history.jsonl")}
    properties = connector_properties("e", database.server, database.name, history) | {
        "offset.storage.file.filename": str(tmp_path / "offsets.dat"),
        "table.include.list": f"{database.name}.items",
        "column.exclude.list": f"{database.name}.items.secret",
        "column.mask.with.3.chars": f"{database.name}.items.name",
    }
    config = tmp_path / "engine.properties"
    config.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    made = tmp_path / "made.py"
    text = rowtide.models(config, made)
    assert made.read_text() == text
    said = CliRunner().invoke(main, ["schema", "models", str(config), "--pydantic"])
    assert said.exit_code == 0, said.output
    (tmp_path / "made_models.py").write_text(said.output)
    tables, models = imported(made), imported(tmp_path / "made_models.py")
    assert list(tables.TABLES) == [f"{database.name}.items"]
    assert tables.Items.__doc__.startswith(f"A row of {database.name}.items: What is sold.")
    assert "secret" not in text

    changes: list[rowtide.Change] = []
    with rowtide.Engine.from_config(config) as engine:
        while not changes or changes[-1].op != "u":
            batch = engine.get(timeout=60)
            assert batch is not None
            if not changes:
                database.execute("ALTER TABLE items ADD later INT DEFAULT 5", "UPDATE items SET later = 6")
            changes += batch
    for change in changes:
        row, model = change.after_as(tables.Items), change.after_as(models.Items)
        assert row is not None
        for name, value in (change.after or {}).items():
            if name != "later":
                assert getattr(row, name) == value == getattr(model, name)
        assert row.name == "***"
    before = changes[-1].before_as(tables.Items)
    assert before is not None
    assert before.id == 1
    assert changes[0].before_as(tables.Items) is None


def test_a_configuration_without_tables_is_an_error(mysql_db: Database, tmp_path: Path) -> None:
    history = {"schema.history.internal.file.filename": str(tmp_path / "history.jsonl")}
    properties = connector_properties("e", mysql_db.server, mysql_db.name, history)
    config = tmp_path / "engine.properties"
    config.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    said = CliRunner().invoke(main, ["schema", "models", str(config)])
    assert said.exit_code == 1
    assert "offset.storage" in said.output, "a file without Kafka and without positions is neither's"
    config.write_text(config.read_text() + f"offset.storage.file.filename={tmp_path / 'o'}\n")
    with pytest.raises(rowtide.SnapshotError, match="no table is captured"):
        rowtide.models(config)
    mysql_db.execute("CREATE TABLE t (id INT)")
    said = CliRunner().invoke(main, ["schema", "models", str(config), "--output", str(tmp_path / "no" / "f.py")])
    assert "cannot be written: No such file" in said.output
