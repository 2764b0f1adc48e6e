"""Sinks that keep tables, without a server: statements and changes in, rows out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.records.change import Geometry, JsonText
from rowtide.connector.records.table_events import TableEvent
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.schema_history.server.query_event import QueryEvent
from tests.support.configurations import PROPERTIES
from tests.support.table_sinks import Source, keyed


@pytest.fixture(params=["duckdb", "delta"])
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Source]:
    made = Source(tmp_path, request.param)
    yield made
    made.sink.close()


@pytest.mark.parametrize(
    ("old", "value", "new", "fits"),
    [
        ("INT", -1, "INT UNSIGNED", False),
        ("SMALLINT", 128, "TINYINT", False),
        ("SMALLINT", 127, "TINYINT", True),
        ("BIGINT UNSIGNED", 2**63, "BIGINT", False),
        ("DECIMAL(5,2)", Decimal("100.00"), "DECIMAL(4,2)", False),
        ("DECIMAL(5,2)", Decimal("-99.99"), "DECIMAL(4,2)", True),
        ("DECIMAL(5,2)", Decimal("-0.01"), "DECIMAL(5,2) UNSIGNED", False),
        ("DECIMAL(5,2)", Decimal("1.00"), "DECIMAL(5,1)", False),
        ("VARCHAR(5)", "äöü€𝄞", "VARCHAR(4)", False),
        ("VARCHAR(6)", "äöü€𝄞", "VARCHAR(5)", True),
        ("VARBINARY(5)", b"\xff\xff", "VARBINARY(1)", False),
        ("TEXT CHARACTER SET latin1", "x" * 20001, "VARCHAR(20000) CHARACTER SET latin1", False),
        ("TEXT CHARACTER SET latin1", "x" * 20000, "VARCHAR(20000) CHARACTER SET latin1", True),
        ("BLOB", bytes(256), "TINYBLOB", False),
        ("TEXT", "x" * 63, "TINYTEXT", True),
    ],
)
def test_a_narrower_type_keeps_values_that_fit(source: Source, old: str, value: Any, new: str, fits: bool) -> None:
    source.run(f"CREATE TABLE t (id INT PRIMARY KEY, v {old})")
    source.insert("t", (1, value), (2, None))
    source.commit()
    source.run(f"ALTER TABLE t MODIFY v {new}")
    if fits:
        source.commit()
    else:
        with pytest.raises(DeliveryError, match="which may have changed values in existing rows"):
            source.commit()
    assert source.rows() == [(1, value), (2, None)]


def test_a_column_that_becomes_auto_increment_has_other_values_instead_of_0(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    source.insert("t", (1, 1))
    source.run("ALTER TABLE t MODIFY id INT AUTO_INCREMENT")
    source.commit()
    source.run("ALTER TABLE t MODIFY id INT")
    source.insert("t", (0, 2))
    source.run("ALTER TABLE t MODIFY id INT AUTO_INCREMENT")
    with pytest.raises(DeliveryError, match="column id has become AUTO_INCREMENT, with 0 in existing rows"):
        source.commit()
    assert source.rows() == [(0, 2), (1, 1)]


def test_a_long_decimal_has_the_digits_of_its_type(source: Source) -> None:
    """It is stored as text, by which its row is found again."""
    source.run("CREATE TABLE t (a DECIMAL(38,2), b INT, c DECIMAL(50,5), PRIMARY KEY (a, b))")
    source.insert("t", (Decimal("1.20"), 1, Decimal("-99999.90000")))
    source.commit()
    source.run("ALTER TABLE t MODIFY a DECIMAL(45,3), MODIFY b DECIMAL(41,1), MODIFY c DECIMAL(10,5)")
    row = (Decimal("1.200"), Decimal("1.0"), Decimal("-99999.90000"))
    source.change("u", "t", row, row)
    source.commit()
    assert source.rows() == [("1.200", "1.0", row[2])]
    source.run("ALTER TABLE t MODIFY c DECIMAL(9,5)")
    with pytest.raises(DeliveryError, match="which may have changed values"):
        source.commit()


def test_generated_columns_stay_if_what_they_are_made_of_does(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a CHAR(5), b DECIMAL(5,2), g VARCHAR(9) AS (CONCAT(b)) STORED)")
    source.insert("t", (1, "x", Decimal("1.50"), "1.50"))
    source.run("ALTER TABLE t MODIFY a VARCHAR(5), ADD c INT")
    source.commit()
    assert source.rows() == [(1, "x", Decimal("1.50"), "1.50", None)]
    source.run("ALTER TABLE t MODIFY b DECIMAL(6,3)")
    with pytest.raises(DeliveryError, match="computed the generated column g in existing rows"):
        source.commit()


def test_the_last_change_of_a_key_wins(source: Source) -> None:
    keyed(source)
    source.change("u", "t", (1, "x"), (1, "y"))
    source.change("d", "t", (1, "y"), None)
    source.insert("t", (1, "z"), (3, "n"))
    source.change("d", "t", (3, "n"), None)
    source.commit()
    assert source.rows() == [(1, "z"), (2, None)]
    source.change("u", "t", (1, "z"), (5, "z"))
    source.change("d", "t", (2, None), None)
    source.commit()
    assert source.rows() == [(5, "z")]


def test_keys_change_places_in_one_commit(source: Source) -> None:
    keyed(source)
    source.commit()
    for before, after in (((1, "x"), (9, "x")), ((2, None), (1, None)), ((9, "x"), (2, "x"))):
        source.change("d", "t", before, None)
        source.change("c", "t", None, after)
    source.commit()
    assert source.rows() == [(1, None), (2, "x")]


def test_a_table_without_a_key_keeps_equal_rows_apart(source: Source) -> None:
    source.run("CREATE TABLE t (a INT, b FLOAT)")
    source.insert("t", (1, None), (1, None), (1, None), (2, 0.1))
    source.commit()
    source.change("d", "t", (1, None), None)
    source.change("u", "t", (2, 0.1), (1, None))
    source.change("d", "t", (1, None), None)
    source.commit()
    assert source.rows() == [(1, None), (1, None)]
    source.change("d", "t", (7, None), None)
    with pytest.raises(DeliveryError, match=r"shop\.t has no primary key, and a row .* is not in"):
        source.commit()
    assert source.rows() == [(1, None), (1, None)]
    source.change("r", "t", None, (1, None))
    with pytest.raises(DeliveryError, match="a snapshot on demand would duplicate its rows"):
        source.commit()


@pytest.mark.parametrize(
    ("definition", "statement"),
    [
        ("a INT UNIQUE, b INT", "ALTER TABLE t COMMENT 'unique, and NULL in several rows'"),
        ("a INT NOT NULL, b INT, UNIQUE KEY u (a)", "ALTER TABLE t MODIFY a INT"),
        ("a INT NOT NULL, b INT, UNIQUE KEY u (a)", "ALTER TABLE t DROP INDEX u, MODIFY a INT"),
    ],
)
def test_a_key_that_tells_rows_apart_no_longer_is_none(source: Source, definition: str, statement: str) -> None:
    """Debezium keeps such a key."""
    source.run(f"CREATE TABLE t ({definition})", statement)
    table = source.tables.table("shop", "t")
    assert table is not None
    assert table.debezium.primary_key == ("a",)
    source.insert("t", (None, 1), (None, 2), (None, 2))
    source.commit()
    source.change("u", "t", (None, 1), (None, 3))
    source.commit()
    assert source.rows() == [(None, 2), (None, 2), (None, 3)]


def test_a_table_without_a_key_may_have_a_column_rowid(source: Source) -> None:
    source.run("CREATE TABLE t (rowid INT, a INT)")
    source.insert("t", (5, 1), (5, 2), (5, 2), (5, 2))
    source.commit()
    source.change("d", "t", (5, 2), None)
    source.change("d", "t", (5, 1), None)
    source.commit()
    assert source.rows() == [(5, 2), (5, 2)]


def test_a_date_that_no_calendar_has_is_a_null_of_a_table_without_a_key(source: Source) -> None:
    source.run("CREATE TABLE t (a DATE, b INT)")
    source.insert("t", ("0000-00-00", 1), (None, 1), ("2024-02-00", 1))
    source.commit()
    source.change("d", "t", ("0000-00-00", 1), None)
    source.change("d", "t", (None, 1), None)
    source.commit()
    assert source.rows() == [(None, 1)]


def test_a_masked_key_is_refused(source: Source) -> None:
    source.run("CREATE TABLE t (a VARCHAR(9) PRIMARY KEY, b INT)")
    source.change("c", "t", None, ("***", 1), masked=["a"])
    with pytest.raises(DeliveryError, match=r"shop\.t: column a of its key is masked or truncated"):
        source.commit()


def test_a_new_row_takes_nothing_of_the_deleted_row_with_its_key(source: Source) -> None:
    """An update of a key becomes a deleted and a new row, which may lack what ``NOBLOB`` leaves out."""
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a BLOB)")
    source.insert("t", (1, b"one"), (2, b"two"))
    source.commit()
    source.change("d", "t", (2, UNAVAILABLE), None)
    source.change("d", "t", (1, UNAVAILABLE), None)
    source.change("c", "t", None, (2, UNAVAILABLE))
    with pytest.raises(DeliveryError, match="the binlog omits columns"):
        source.commit()
    assert source.rows() == [(1, b"one"), (2, b"two")]


def test_a_column_that_the_binlog_leaves_out_stays_as_it_is(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10), b INT)")
    source.insert("t", (1, "x", 1), (2, "y", 2))
    source.commit()
    source.change("u", "t", (2, UNAVAILABLE, 2), (2, UNAVAILABLE, 3))
    source.commit()
    source.change("u", "t", (2, UNAVAILABLE, 3), (2, UNAVAILABLE, 2))
    source.change("u", "t", (1, UNAVAILABLE, 1), (1, UNAVAILABLE, 5))
    source.change("u", "t", (1, UNAVAILABLE, 5), (1, UNAVAILABLE, 6))
    source.insert("t", (3, "z", 3))
    source.change("u", "t", (3, UNAVAILABLE, 3), (3, UNAVAILABLE, 4))
    source.commit()
    assert source.rows() == [(1, "x", 6), (2, "y", 2), (3, "z", 4)]
    source.change("u", "t", (9, UNAVAILABLE, 1), (9, UNAVAILABLE, 5))
    with pytest.raises(DeliveryError, match="binlog_row_image=FULL"):
        source.commit()


MICROSECOND = dt.timedelta(microseconds=1)
TYPES: list[tuple[str, Any, Any]] = [
    ("BIGINT UNSIGNED", 2**64 - 1, 2**64 - 1),
    ("BIGINT", -(2**63), -(2**63)),
    ("DECIMAL(38,2)", Decimal("1.50"), Decimal("1.50")),
    ("DECIMAL(65,30)", Decimal("-12345678901234567890.12"), "-12345678901234567890.12"),
    ("FLOAT", 0.5, 0.5),
    ("DOUBLE", 1e300, 1e300),
    ("BIT(1)", True, True),
    ("BIT(64)", 2**64 - 1, 2**64 - 1),
    ("DATE", dt.date(1, 1, 1), dt.date(1, 1, 1)),
    ("DATE", "0000-00-00", None),
    ("DATETIME(6)", dt.datetime(9999, 12, 31, 23, 59, 59, 999999), ...),  # noqa: DTZ001
    ("TIME(6)", -dt.timedelta(hours=838, minutes=59, seconds=59), ...),
    ("YEAR", 2155, 2155),
    ("VARCHAR(9)", "Zoë 😀", "Zoë 😀"),
    ("ENUM('a','b')", "b", "b"),
    ("SET('a','b')", "a,b", "a,b"),
    ("BLOB", b"\0\xff", b"\0\xff"),
    ("JSON", JsonText('{"a": 1.10}'), '{"a": 1.10}'),
    ("POINT", Geometry(b"\1", 4326), {"wkb": b"\1", "srid": 4326}),
]


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_every_type_has_its_value(source: Source, key: str) -> None:
    listed = ", ".join(f"c{place} {kind}" for place, (kind, _, _) in enumerate(TYPES))
    source.run(f"CREATE TABLE t (id INT {key}, {listed})")
    row = (1, *(value for _, value, _ in TYPES))
    source.insert("t", row, (2, *(None for _ in TYPES)))
    source.commit()
    found, _ = source.rows()
    for place, (kind, value, expected) in enumerate(TYPES, 1):
        known = value if expected is ... else expected
        if source.kind == "delta" and isinstance(value, dt.timedelta):
            known = value // MICROSECOND  # Delta Lake has no such type
        assert found[place] == known, kind
    source.change("d", "t", row, None)
    source.commit()
    assert [number for number, *_ in source.rows()] == [2]


TWO = [(1, "x"), (2, None)]
ALTERED: list[tuple[str, Any]] = [
    ("ALTER TABLE t ADD b INT", [(1, "x", None), (2, None, None)]),
    ("ALTER TABLE t ADD b INT NOT NULL", [(1, "x", 0), (2, None, 0)]),
    ("ALTER TABLE t ADD b DECIMAL(5,2) DEFAULT 1.5", [(1, "x", Decimal("1.50")), (2, None, Decimal("1.50"))]),
    ("ALTER TABLE t ADD b ENUM('p','q') NOT NULL", [(1, "x", "p"), (2, None, "p")]),
    ("ALTER TABLE t ADD b BINARY(2) DEFAULT 'a'", [(1, "x", b"a\0"), (2, None, b"a\0")]),
    ("ALTER TABLE t ADD b BIT(3) DEFAULT b'101'", [(1, "x", 5), (2, None, 5)]),
    ("ALTER TABLE t ADD b TIME DEFAULT '-01:02:03'", [(n, a, -dt.timedelta(seconds=3723)) for n, a in TWO]),
    ("ALTER TABLE t ADD b DATETIME DEFAULT '2024-01-02 03:04:05'",
     [(n, a, dt.datetime(2024, 1, 2, 3, 4, 5)) for n, a in TWO]),  # noqa: DTZ001
    ("ALTER TABLE t ADD b DATETIME DEFAULT CURRENT_TIMESTAMP", "the server has set the values of the new column b"),
    ("ALTER TABLE t ADD b INT AS (id + 1) STORED", "the server has set the values of the new column b"),
    ("ALTER TABLE t ADD b VARCHAR(36) DEFAULT (UUID())", "the server has set the values of the new column b"),
    ("ALTER TABLE t DROP a", [(1,), (2,)]),
    ("ALTER TABLE t RENAME COLUMN a TO b", TWO),
    ("ALTER TABLE t CHANGE a b VARCHAR(20)", TWO),
    ("ALTER TABLE t CHANGE a b VARCHAR(20), ADD a INT DEFAULT 7", [(1, "x", 7), (2, None, 7)]),
    ("ALTER TABLE t DROP a, ADD a VARCHAR(10) DEFAULT 'new'", [(1, "new"), (2, "new")]),
    ("ALTER TABLE t MODIFY A VARCHAR(20)", TWO),
    ("ALTER TABLE t CHANGE a A VARCHAR(20)", TWO),
    ("ALTER TABLE t MODIFY id BIGINT", TWO),
    ("ALTER TABLE t MODIFY id DECIMAL(12,1)", [(Decimal("1.0"), "x"), (Decimal("2.0"), None)]),
    ("ALTER TABLE t MODIFY a TEXT", TWO),
    ("ALTER TABLE t MODIFY a VARCHAR(1)", TWO),
    ("ALTER TABLE t MODIFY a VARCHAR(0)", "has changed from varchar.10. to varchar.0."),
    ("ALTER TABLE t MODIFY a INT", "has changed from varchar.10. to int"),
    ("ALTER TABLE t MODIFY id TINYINT UNSIGNED", TWO),
    ("ALTER TABLE t MODIFY a VARCHAR(10) FIRST", [("x", 1), (None, 2)]),
    ("ALTER TABLE t ADD INDEX (a)", TWO),
    ("ALTER TABLE t DROP PRIMARY KEY", TWO),
    ("ALTER TABLE t MODIFY a VARCHAR(10) NOT NULL", "column a has become NOT NULL, with NULL in existing"),
    ("ALTER TABLE t MODIFY a VARCHAR(10) AS (CONCAT(id)) STORED", "computed the generated column a in existing rows"),
    ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE hidden", "EXCHANGE PARTITION has moved or removed rows"),
    ("ALTER TABLE t DROP PARTITION p0", "DROP PARTITION has moved or removed rows"),
    ("ALTER TABLE t TRUNCATE  PARTITION ALL", "TRUNCATE PARTITION has moved or removed rows"),
    ("ALTER TABLE t DISCARD PARTITION p0 TABLESPACE", "DISCARD PARTITION P0 TABLESPACE has moved or removed rows"),
    ("ALTER IGNORE TABLE t ADD UNIQUE (a)", "ALTER IGNORE TABLE has moved or removed rows"),
    ("ALTER IGNORE TABLE t ADD INDEX (a)", TWO),
    ("RENAME TABLE hidden TO t2", "hidden, which is not captured, was renamed to it"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "expected"), ALTERED, ids=[statement for statement, _ in ALTERED])
def test_existing_rows_are_those_of_the_source(source: Source, statement: str, expected: Any) -> None:
    keyed(source)
    source.run("CREATE TABLE hidden (id INT)", statement)
    if isinstance(expected, str):
        with pytest.raises(DeliveryError, match=f"shop[.]t2?:? .*{expected}.*\n?.*delete the .* a new snapshot"):
            source.commit()
        assert source.rows() == TWO  # what came before the statement is stored
        stored = source.offsets.load()
        assert stored is not None
        assert stored.pos == 4
        return
    source.commit()
    if source.kind == "delta":  # which has no type for TIME
        expected = [
            tuple(one // MICROSECOND if isinstance(one, dt.timedelta) else one for one in row) for row in expected
        ]
    assert source.rows() == sorted(expected, key=str)
    columns = source.columns()
    table = source.tables.table("shop", "t")
    assert table is not None
    assert columns == [column.name for column in table.columns]
    source.insert("t", tuple(None if column.name != "id" else 3 for column in table.columns))
    source.commit()
    assert len(source.rows()) == 3


def test_a_table_without_rows_takes_every_structure(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10))", "ALTER TABLE t MODIFY a INT, ADD b INT AS (1)")
    source.insert("t", (1, 5, 1))
    source.commit()
    assert source.rows() == [(1, 5, 1)]


def test_tables_are_dropped_renamed_and_made_again(source: Source) -> None:
    keyed(source)
    source.run("CREATE TABLE u (id INT PRIMARY KEY)", "RENAME TABLE t TO tmp, u TO t, tmp TO u")
    source.commit()
    assert source.rows("u") == TWO
    assert source.rows("t") == []
    source.run("RENAME TABLE u TO other.w")
    source.commit()
    assert source.rows("w", "other") == TWO
    source.run("RENAME TABLE other.w TO w, t TO hidden")
    source.insert("w", (3, "n"))
    source.change("t", "w", None, None)
    source.insert("w", (4, "n"))
    source.run("DROP TABLE w", "CREATE TABLE w (n INT)")
    source.insert("w", (5,))
    source.commit()
    assert source.rows("w") == [(5,)]
    assert source.names() == ["w"]
    source.run("DROP DATABASE shop")
    source.commit()
    assert source.names() == []


def test_an_online_schema_change_keeps_the_rows(source: Source) -> None:
    keyed(source)
    source.run("CREATE TABLE _t_gho (id INT PRIMARY KEY, a VARCHAR(10), b INT DEFAULT 5)")
    source.run("RENAME TABLE t TO _t_del, _t_gho TO t")
    source.insert("t", (3, "n", 6))
    source.commit()
    assert source.rows() == [(1, "x", 5), (2, None, 5), (3, "n", 6)]


def test_an_online_schema_change_may_have_renamed_a_column(source: Source) -> None:
    """gh-ost copies its values, and its statements for the helper table do not say so."""
    keyed(source)
    source.run("CREATE TABLE _t_gho (id INT PRIMARY KEY, b VARCHAR(10))", "RENAME TABLE t TO _t_del, _t_gho TO t")
    with pytest.raises(DeliveryError, match="the server has set the values of the new column b in existing rows"):
        source.commit()


def test_a_new_snapshot_replaces_what_is_there(source: Source) -> None:
    keyed(source)
    source.run("CREATE TABLE gone (id INT)")
    source.commit()
    table = source.tables.table("shop", "t")
    assert table is not None
    source.restart()
    events = [TableEvent("only", table.id, listed=[table.id]), TableEvent("read", table.id, after=table.columns)]
    source.table_event(*events)
    source.change("r", "t", None, (7, "s"))
    source.commit()
    assert source.rows() == [(7, "s")]
    assert source.names() == ["t"]


def test_rows_that_a_new_snapshot_does_not_read_are_out_of_date(source: Source) -> None:
    keyed(source)
    source.run("CREATE TABLE empty (id INT)")
    source.commit()
    table, empty = source.tables.table("shop", "t"), source.tables.table("shop", "empty")
    assert table is not None
    assert empty is not None
    source.table_event(TableEvent("known", table.id, after=table.columns))
    source.table_event(TableEvent("unread", empty.id, after=empty.columns))
    source.commit()
    assert source.rows() == TWO
    source.table_event(TableEvent("unread", table.id, after=table.columns))
    with pytest.raises(DeliveryError, match=r"shop\.t in .* has rows from an earlier position"):
        source.commit()
    assert source.rows() == TWO


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_a_snapshot_takes_several_commits(source: Source, key: str) -> None:
    source.tables.apply(QueryEvent(f"CREATE TABLE t (id INT {key})".encode(), database="shop", position="unseen"))
    table = source.tables.table("shop", "t")
    assert table is not None
    source.table_event(TableEvent("read", table.id, after=table.columns), snapshot="INITIAL")
    for number in range(3):
        source.change("r", "t", None, (number,), snapshot="INITIAL")
        source.commit()
    source.change("r", "t", None, (3,))  # the last row has the position after the snapshot
    source.change("r", "t", None, (0,))  # a snapshot on demand
    if key:
        source.commit()
        assert source.rows() == [(0,), (1,), (2,), (3,)]
    else:
        with pytest.raises(DeliveryError, match="a snapshot on demand would duplicate its rows"):
            source.commit()


def test_missing_statements_are_noticed(source: Source) -> None:
    keyed(source)
    source.commit()
    source.tables.apply(QueryEvent(b"ALTER TABLE t ADD b INT", database="shop", position="unseen"))
    source.insert("t", (3, "n", 4))
    with pytest.raises(DeliveryError, match="different columns from the source at this position: b"):
        source.commit()
    assert source.rows() == TWO


def test_rows_and_position_are_stored_together(source: Source) -> None:
    keyed(source)
    source.commit()
    stored = source.offsets.load()
    assert stored is not None
    assert stored.pos == 3
    source.insert("t", (3, "n"))
    source.insert("t", (4, "\ud800"))  # no text: the commit fails
    with pytest.raises(DeliveryError, match=r"shop\.t\.a has a value"):
        source.commit()
    assert source.rows() == TWO
    assert source.offsets.load() == stored
    source.offsets.save(None)
    assert source.offsets.load() is None


@pytest.mark.parametrize(("kind", "interval"), [("duckdb", 1000), ("delta", 10_000)])
def test_the_configuration_needs_no_kafka(tmp_path: Path, kind: str, interval: int) -> None:
    plain = {name: text for name, text in PROPERTIES.items() if "bootstrap" not in name and "history" not in name}
    sink = f"{kind}:{tmp_path / 'tables'}"
    config = from_properties({**plain, "rowtide.sink": sink})
    assert not config.uses_kafka
    assert config.history.file == f"{tmp_path / 'tables'}.history"
    assert config.delivery.tables_interval_ms == interval
    with pytest.raises(ConfigurationError, match="d cannot be skipped"):
        from_properties({**plain, "rowtide.sink": sink, "skipped.operations": "d"})
    query = "snapshot.select.statement.overrides"
    with pytest.raises(ConfigurationError, match="would lack what the query does not select"):
        from_properties({**plain, "rowtide.sink": sink, query: "a.b", f"{query}.a.b": "SELECT id FROM a.b"})
    unwrapped = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}
    warnings = from_properties({**plain, "rowtide.sink": sink, **unwrapped}).warnings
    assert "transforms has no effect: the sink keeps the tables as they are in the source" in warnings
    with pytest.raises(ConfigurationError, match="must be kafka, stdout"):
        from_properties({**plain, "rowtide.sink": kind})
