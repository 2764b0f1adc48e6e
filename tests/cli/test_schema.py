"""``rowtide schema show``, ``diff`` and ``log``, with a schema history and with binlog files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.queries.point_in_time import InvalidPointInTime, parse_point_in_time
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_record import history_record

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
GOLDEN = Path(__file__).parents[1] / "golden"
STATEMENTS = (
    "CREATE DATABASE shop CHARACTER SET utf8mb4",
    "CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL)",
    "ALTER TABLE shop.item ADD price DECIMAL(10,2) DEFAULT 1.5 AFTER id",
    "CREATE TABLE shop.other (id INT)",
    "RENAME TABLE shop.item TO shop.thing",
    "ALTER TABLE shop.thing RENAME TO shop.article, DROP name",
    "DROP TABLE shop.other",
)
"""The first is at 1 700 000 001 s and byte 100; each further one a second and 100 bytes later."""


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path, tables = tmp_path / "history.jsonl", Tables(Server(Flavor.MYSQL))
    store = FileSchemaHistory(path)
    for number, statement in enumerate(STATEMENTS, 1):
        place = {"ts_sec": 1_700_000_000 + number, "file": "binlog.000001", "pos": number * 100}
        for change in tables.apply(QueryEvent(statement, "shop")).changes:
            store.append(history_record(change, "p", {**place, "gtids": f"{UUID}:1-{number}"}, 5))
    store.close()
    return path


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, ["schema", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, ["schema", *map(str, arguments)])
    assert result.exit_code != 0
    return result.output


@pytest.mark.parametrize(
    "at", ["binlog.000001:300", f"{UUID}:1-3", "2023-11-14T22:13:23Z", "1700000003", "1700000003500"]
)
def test_show_takes_a_position_a_gtid_set_or_a_time(history: Path, at: str) -> None:
    text = run("show", "shop.item", "--history", history, "--at", at)
    assert text == (
        "CREATE TABLE `item` (\n  `id` int NOT NULL,\n  `price` decimal(10,2) DEFAULT '1.50',\n"
        "  `name` varchar(20) NOT NULL,\n  PRIMARY KEY (`id`)\n"
        ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;\n"
    )


def test_other_formats(history: Path) -> None:
    shown = json.loads(run("show", "shop.article", "--history", history, "--format", "json"))
    assert [column["column_type"] for column in shown["shop.article"]["columns"]] == ["int", "decimal(10,2)"]
    debezium = json.loads(run("show", "shop.article", "--history", history, "--format", "debezium"))
    assert debezium["id"] == '"shop"."article"'
    assert [column["typeName"] for column in debezium["table"]["columns"]] == ["INT", "DECIMAL"]


def test_several_tables(history: Path) -> None:
    assert run("show", "*", "--history", history, "--at", "binlog.000001:400").count("CREATE TABLE") == 2


def test_the_differences_between_two_positions(history: Path) -> None:
    lines = run("diff", "binlog.000001:200", "binlog.000001:400", "--history", history).splitlines()
    assert [line for line in lines if line[0] in "+-"][:3] == [
        "--- shop.item at binlog.000001:200",
        "+++ shop.item at binlog.000001:400",
        "+  `price` decimal(10,2) DEFAULT '1.50',",
    ]
    assert "+++ shop.other at binlog.000001:400" in lines
    assert run("diff", "end", "end", "--history", history) == ""


def test_the_log_of_a_table_includes_its_former_names(history: Path) -> None:
    lines = run("log", "shop.article", "--history", history).splitlines()
    assert [line.strip() for line in lines if line.startswith(" ")] == [
        STATEMENTS[1],
        STATEMENTS[2],
        "RENAME TABLE shop.item TO shop.thing",
        STATEMENTS[5],
    ]
    assert lines[0] == f"binlog.000001:200  2023-11-14 22:13:22 UTC  {UUID}:1-2"


def test_binlog_files() -> None:
    folder = GOLDEN / "bigint-unsigned-precise" / "golden" / "binlog"
    names = [line for line in run("show", "*", "--binlogs", folder).splitlines() if line.startswith("CREATE TABLE")]
    assert names
    assert "CREATE TABLE" in run("diff", "2001-01-01", "end", "--binlogs", folder)


def test_wrong_input_is_reported(history: Path, tmp_path: Path) -> None:
    assert "there is no table shop.itm at end; there are shop.article" in refused(
        "show", "shop.itm", "--history", history
    )
    assert "one of --config, --history and --binlogs" in refused("show", "shop.item")
    assert "invalid point in time 'soon': expected a file and position" in refused(
        "show", "x.y", "--history", history, "--at", "soon"
    )
    assert "no statement about a table shop.itm was found" in refused("log", "shop.itm", "--history", history)
    damaged = tmp_path / "damaged"
    damaged.write_text("nonsense\n")
    assert "damaged record in the schema history" in refused("show", "x.y", "--history", damaged)
    assert "no binlog files" in refused("show", "x.y", "--binlogs", tmp_path)


def test_parsing_a_point_in_time() -> None:
    assert parse_point_in_time("0-1-5").position is not None
    assert parse_point_in_time("2026-01-31 12:00:00").time == 1769860800
    with pytest.raises(InvalidPointInTime, match="file and position"):
        parse_point_in_time("binlog.1x:5")
