"""Structures that do not fit the rows are rebuilt from a full TABLE_MAP, and recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.pipeline.structures.comparison import contradictions
from rowtide.connector.pipeline.structures.repair import repair_from_table_map
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.connector.records.batch import Batch, HistoryEntry
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import history_record, parse_record
from rowtide.schema_history.structure.show_create import show_create
from tests.support.ddl.recorder import DdlRecorder

if TYPE_CHECKING:
    from rowtide_stack import Database

MYSQL, MARIADB = Server(Flavor.MYSQL, "8.4.3"), Server(Flavor.MARIADB, "11.4.5-MariaDB")
UTF8MB4, LATIN1, BINARY = 255, 8, 63


def column(name: str, kind: BinlogType, metadata: int = 0, **more: object) -> MappedColumn:
    return MappedColumn(kind, metadata, nullable=True, **{"name": name, **more})  # type: ignore[arg-type]


FULL = TableStructure(
    "d",
    "t",
    (
        replace(column("id", BinlogType.LONGLONG, unsigned=True), nullable=False),
        replace(column("Name", BinlogType.VARCHAR, 80, collation=UTF8MB4), nullable=False),
        column("l", BinlogType.STRING, 5, collation=LATIN1),
        column("b", BinlogType.VARCHAR, 9, collation=BINARY),
        column("x", BinlogType.BLOB, 3, collation=BINARY),
        column("n", BinlogType.NEWDECIMAL, 10 << 8 | 2, unsigned=False),
        column("at", BinlogType.DATETIME2, 3),
        column("e", BinlogType.ENUM, 1, collation=UTF8MB4, values=(b"a", "ü".encode(), b"it's")),
        column("g", BinlogType.GEOMETRY, 4, geometry_type=1),
        column("j", BinlogType.JSON, 4, visible=False),
        column("v", BinlogType.VECTOR, 4, dimensions=3),
        column("bits", BinlogType.BIT, 9),
        column("s", BinlogType.SET, 1, collation=BINARY, values=(b"x ", b"y")),
    ),
    primary_key=((0, 0), (1, 5)),
)
WANTED = (
    "`id` bigint unsigned NOT NULL,`Name` varchar(20) NOT NULL,`l` char(5) CHARACTER SET latin1 COLLATE "
    "latin1_swedish_ci DEFAULT NULL,`b` varbinary(9) DEFAULT NULL,`x` mediumblob,`n` decimal(10,2) DEFAULT NULL,"
    "`at` datetime(3) DEFAULT NULL,`e` enum('a','ü','it''s') DEFAULT NULL,`g` point DEFAULT NULL,"
    "`j` json /*!80023 INVISIBLE */,"
    "`v` vector(3) DEFAULT NULL,`bits` bit(9) DEFAULT NULL,"
    "`s` set('x ','y') CHARACTER SET binary COLLATE binary DEFAULT NULL,PRIMARY KEY (`id`,`Name`(5))"
)


def made(sql: str, server: Server = MYSQL) -> Table:
    tables = Tables(server)
    tables.apply(QueryEvent(sql, "d"))
    (table,) = tables
    return table


def test_an_unknown_table_is_rebuilt_from_its_table_map() -> None:
    repair = repair_from_table_map(FULL, None, MYSQL)
    table, (change,) = repair.table, repair.changes
    lines = show_create(table, MYSQL).split("\n")[1:-1]
    assert "".join(line.strip() for line in lines) == WANTED
    assert table.debezium.primary_key == ("id", "Name")
    assert contradictions(FULL, table) == []
    text = history_record(change, "p", {"file": "b.000001", "pos": 4}, 0)
    assert json.loads(text)["tableChanges"][0]["type"] == "CREATE"
    (recovered,) = recover([parse_record(text)], MYSQL, None)
    assert recovered == table


def test_columns_that_fit_are_kept() -> None:
    known = made("CREATE TABLE t (a INT DEFAULT 5 COMMENT 'kept', gone INT) COMMENT 'also' CHARSET latin1")
    columns = (column("new", BinlogType.DATE), column("a", BinlogType.LONG, unsigned=False))
    repair = repair_from_table_map(TableStructure("d", "t", columns), known, MYSQL)
    table = repair.table
    (recovered,) = recover((parse_record(history_record(c, "p", {}, 0)) for c in repair.changes), MYSQL, None)
    assert [c.default for c in recovered.columns] == [None, "5"]
    assert [c.comment for c in recovered.columns] == ["", "kept"]
    assert [c.name for c in table.columns] == ["new", "a"]
    assert table.columns[1] is known.columns[0]
    assert (table.comment, table.charset) == ("also", "latin1")


def test_a_known_column_is_kept_if_and_only_if_its_rows_fit_it() -> None:
    known = made("CREATE TABLE t (f FLOAT(9,3), d DOUBLE(20,5), v VARCHAR(10), b BIT(1), x BINARY(4), c CHAR(3))")
    columns = (
        column("new", BinlogType.DATE),
        column("f", BinlogType.FLOAT, 4, unsigned=False),
        column("d", BinlogType.DOUBLE, 8, unsigned=False),
        column("v", BinlogType.VARCHAR, 80, collation=UTF8MB4),
        column("b", BinlogType.BIT, 8),
        column("x", BinlogType.STRING, 8, collation=BINARY),
        column("c", BinlogType.STRING, 12, collation=UTF8MB4),
    )
    structure = TableStructure("d", "t", columns, primary_key=())
    table = repair_from_table_map(structure, known, MYSQL).table
    assert [c.column_type for c in table.columns] == [
        "date", "float(9,3)", "double(20,5)", "varchar(20)", "bit(8)", "binary(8)", "char(3)",
    ]  # fmt: skip
    assert contradictions(structure, table) == []


def test_types_that_a_table_map_shows_as_binary_are_kept() -> None:
    known = made("CREATE TABLE t (u UUID, a INET4, b INET6, v VECTOR(3), x BINARY(16), gone INT)", MARIADB)
    columns = (
        column("u", BinlogType.STRING, 16, collation=BINARY),
        column("a", BinlogType.STRING, 4, collation=BINARY),
        column("b", BinlogType.STRING, 8, collation=BINARY),
        column("v", BinlogType.VARCHAR, 12, collation=BINARY),
        column("x", BinlogType.STRING, 16, collation=BINARY),
    )
    structure = TableStructure("d", "t", columns, primary_key=())
    table = repair_from_table_map(structure, known, MARIADB).table
    assert [c.data_type for c in table.columns] == ["uuid", "inet4", "binary", "vector", "binary"]
    assert contradictions(structure, table) == []


def test_the_hidden_hash_of_mariadb_is_not_a_column() -> None:
    columns = (
        column("a", BinlogType.BLOB, 2, collation=45),
        column("DB_ROW_HASH_1", BinlogType.LONGLONG, unsigned=True),
    )
    table = repair_from_table_map(TableStructure("d", "t", columns), None, MARIADB).table
    assert [c.name for c in table.columns] == ["a"]
    assert [c.name for c in table.row_columns] == ["a", "DB_ROW_HASH_1"]
    assert contradictions(TableStructure("d", "t", columns), table) == []


VERSIONED = TableStructure(
    "d",
    "t",
    (
        replace(column("a", BinlogType.LONGLONG, unsigned=False), nullable=False),
        column("b", BinlogType.DATE),
        replace(column("row_start", BinlogType.TIMESTAMP2, 6), nullable=False),
        replace(column("row_end", BinlogType.TIMESTAMP2, 6), nullable=False),
    ),
    primary_key=((0, 0), (3, 0)),
)


def test_a_system_versioned_table_keeps_its_hidden_columns() -> None:
    known = made("CREATE TABLE t (a INT PRIMARY KEY) WITH SYSTEM VERSIONING", MARIADB)
    repair = repair_from_table_map(VERSIONED, known, MARIADB)
    table = repair.table
    (recovered,) = recover((parse_record(history_record(c, "p", {}, 0)) for c in repair.changes), MARIADB, None)
    assert recovered == table
    assert [c.column_type for c in table.columns] == ["bigint(20)", "date"]
    assert (table.hidden, table.kind, table.primary_key) == (known.hidden, known.kind, ("a",))
    assert contradictions(VERSIONED, table) == []
    without = TableStructure("d", "t", VERSIONED.columns[:2], ((0, 0),))
    assert repair_from_table_map(without, known, MARIADB).table.kind == "BASE TABLE"


@pytest.mark.parametrize("known", [None, made("CREATE TABLE t (a INT)", MARIADB)])
def test_a_table_is_not_guessed_to_be_system_versioned(known: Table | None) -> None:
    with pytest.raises(ValueError, match="may be hidden ones of a system-versioned table"):
        repair_from_table_map(VERSIONED, known, MARIADB)
    assert len(repair_from_table_map(VERSIONED, known, MYSQL).table.columns) == 4


@pytest.mark.servers
@pytest.mark.parametrize("flavor", Flavor, ids=lambda flavor: flavor.value)
def test_rows_of_a_table_that_was_changed_outside_of_the_binlog(flavor: Flavor, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{flavor.value}_db")
    server, name = database.server, database.name
    before = server.query("SELECT @@GLOBAL.binlog_row_metadata")[0][0]
    server.execute("SET GLOBAL binlog_row_metadata = FULL")
    recorder = DdlRecorder(server, flavor)
    try:
        for statement in (
            f"USE {name}",
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10) DEFAULT 'x')",
            "INSERT INTO t VALUES (1, 'one')",
            "SET sql_log_bin = 0",
            "ALTER TABLE t ADD n DECIMAL(5,2) UNSIGNED FIRST, CHANGE a b VARCHAR(20) CHARACTER SET latin1",
            "CREATE TABLE u (k INT)",
            "SET sql_log_bin = 1",
            "INSERT INTO t VALUES (1.5, 2, 'ü')",
            "INSERT INTO u VALUES (7)",
        ):
            assert recorder.run(statement) is None
        outputs = list(recorder.outputs())
    finally:
        recorder.close()
        server.execute(f"SET GLOBAL binlog_row_metadata = {before}")
    batches = [output for output in outputs if isinstance(output, Batch)]
    values = [json.loads(value)["payload"]["after"] for batch in batches for _, value, _ in batch.messages]
    assert values == [{"id": 1, "a": "one"}, {"n": "AJY=", "id": 2, "b": "ü"}, {"k": 7}]
    told = [json.loads(output.text) for output in outputs if isinstance(output, HistoryEntry)][-3:]
    assert [(t["tableChanges"][0]["type"], t["tableChanges"][0]["id"]) for t in told] == [
        ("DROP", f'"{name}"."t"'),
        ("CREATE", f'"{name}"."t"'),
        ("CREATE", f'"{name}"."u"'),
    ]


def test_an_unknown_geometry_type_is_named() -> None:
    structure = TableStructure("d", "t", (column("g", BinlogType.GEOMETRY, 4, geometry_type=8),))
    with pytest.raises(ValueError, match="column g has the unknown geometry type 8"):
        repair_from_table_map(structure, None, MYSQL)
