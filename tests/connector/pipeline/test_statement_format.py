"""Changes that are logged as statements: those of captured tables stop the stream, all others are skipped."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.errors import ProtocolError
from rowtide.connector.source.current_structure import CurrentStructure
from tests.support.mysql.live_database import Rows, apply, configured, snapshot, streamed
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database, SqlServer

pytestmark = pytest.mark.servers


@pytest.fixture(params=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Database:
    """A database of either server, which is captured."""
    found: Database = request.getfixturevalue(f"{request.param}_db")
    found.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE other (id INT PRIMARY KEY, v INT)",
        "CREATE VIEW seen AS SELECT * FROM orders",
        "INSERT INTO orders VALUES (1, 1), (2, 2)",
    )
    return found


@pytest.fixture
def percona(shop: Database) -> Iterator[str]:
    """The name of a database that is not captured."""
    with shop.server.database("percona") as other:
        other.execute(
            "CREATE TABLE checksums (id INT PRIMARY KEY, v INT, counted INT)",
            f"CREATE VIEW seen AS SELECT * FROM {shop.name}.orders",
        )
        yield other.name


def ids(shop: Database, statements: tuple[str, ...], default: str, **properties: str) -> list[Any]:
    """The ids of the rows that the stream has after statements of a session with ``binlog_format=STATEMENT``."""
    config = configured(shop, {"table.include.list": rf"{shop.name}\.orders", **properties})
    taken = snapshot(config)
    list(taken.outputs())
    with shop.server.connect(default) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        for statement in statements:
            cursor.execute(statement)
    shop.execute("INSERT INTO orders VALUES (100, 0)")
    current = CurrentStructure(config.database, mariadb=shop.server.name == "mariadb")
    steps = streamed(config, taken.tables, taken.offset, binlog_end(shop.server), current)
    return [
        message[0]
        for step in steps
        for output in step.outputs
        for message in getattr(output, "messages", ())
        if message[0] and b'"id"' in message[0]
    ]


def test_pt_table_checksum_does_not_stop_the_stream(
    shop: Database, percona: str, caplog: pytest.LogCaptureFixture
) -> None:
    reads = f"SELECT id, v, 0 FROM `{shop.name}`.`orders`"
    statements = (
        f"REPLACE INTO `{percona}`.`checksums` {reads} FORCE INDEX (`PRIMARY`)",
        f"/* chunk */ INSERT IGNORE INTO {percona}.checksums {reads}",
        f"UPDATE {percona}.checksums c JOIN orders o ON o.id = c.id SET c.v = o.v + 1",
        f"UPDATE {percona}.checksums JOIN orders USING (id) SET counted = orders.v",
        f"CREATE TABLE {percona}.copy SELECT * FROM orders",
        f"INSERT INTO {percona}.copy SELECT * FROM orders",
        f"DELETE c FROM {percona}.checksums AS c JOIN orders ON orders.id = c.id WHERE c.id = 1",
        "INSERT INTO other SELECT * FROM orders",
        "CREATE TEMPORARY TABLE orders_copy (id INT, v INT)",
        "INSERT INTO orders_copy VALUES (3, 3)",
    )
    if shop.server.name == "mysql":  # which has no statements on temporary tables in the binlog with GTIDs
        statements = statements[:-2]
    with caplog.at_level(logging.WARNING):
        found = ids(shop, statements, shop.name)
    assert len(found) == 1
    assert b"100" in found[0]
    assert len([text for text in caplog.messages if f"changes {percona}.checksums " in text]) == 1


def test_a_temporary_table_that_is_older_than_the_snapshot_is_altered(mariadb_db: Database) -> None:
    mariadb_db.execute("CREATE TABLE orders (id INT PRIMARY KEY, a INT, b INT)")
    with mariadb_db.server.connect(mariadb_db.name) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        cursor.execute("CREATE TEMPORARY TABLE orders (id INT PRIMARY KEY, a INT, b INT)")
        config = configured(mariadb_db, {"value.converter.schemas.enable": "false"})
        taken = snapshot(config)
        list(taken.outputs())
        cursor.execute("ALTER TABLE orders MODIFY b INT AFTER id")
        mariadb_db.execute("INSERT INTO orders VALUES (1, 2, 3)")
        current = CurrentStructure(config.database, mariadb=True)
        steps = streamed(config, taken.tables, taken.offset, binlog_end(mariadb_db.server), current)
        rows: Rows = {}
        for step in steps:
            apply(rows, step.outputs)
    assert list(rows.values()) == [{"id": 1, "a": 2, "b": 3}]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO `{shop}`.`orders` SELECT id, v FROM checksums",
        "UPDATE checksums c JOIN {shop}.orders o SET o.v = 3",
        "DELETE {shop}.orders FROM {shop}.orders LEFT JOIN checksums c ON c.id = orders.id",
        "REPLACE {shop}.orders VALUES (1, 5)",
        "UPDATE {shop}.seen SET v = 9",
        "UPDATE seen SET v = 9",
    ],
)
def test_a_captured_table_stops_the_stream_wherever_the_session_is(
    shop: Database, percona: str, statement: str
) -> None:
    with pytest.raises(ProtocolError, match="a session with binlog_format STATEMENT or MIXED changed rows by"):
        ids(shop, (statement.format(shop=shop.name),), percona)


def test_load_data_of_a_captured_table_stops_the_stream(shop: Database, tmp_path: Any) -> None:
    rows = tmp_path / "rows"
    rows.write_text("7\t7\n")
    with shop.connect(local_infile=True) as connection, connection.cursor() as cursor, local_infile(shop.server):
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        config = configured(shop)
        taken = snapshot(config)
        list(taken.outputs())
        cursor.execute(f"LOAD DATA LOCAL INFILE '{rows}' INTO TABLE orders")
    with pytest.raises(ProtocolError, match="changed rows by 'LOAD DATA LOCAL INFILE"):
        list(streamed(config, taken.tables, taken.offset, binlog_end(shop.server)))


@contextlib.contextmanager
def local_infile(server: SqlServer) -> Iterator[None]:
    before = server.query("SELECT @@GLOBAL.local_infile")[0][0]
    server.execute("SET GLOBAL local_infile = 1")
    yield
    server.execute(f"SET GLOBAL local_infile = {before}")


def test_a_function_that_changes_rows_stops_the_stream(shop: Database) -> None:
    shop.server.execute("SET GLOBAL log_bin_trust_function_creators = 1")
    shop.execute(
        "CREATE FUNCTION f() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO orders VALUES (9, 9); RETURN 1; END"
    )
    with pytest.raises(ProtocolError, match="changed rows by 'SELECT `"):
        ids(shop, (f"DO {shop.name}.f()",), "mysql")
