"""Changes that foreign keys make and that the binlog does not have (``rowtide.cascaded.changes=derive``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from rowtide.connector.check.topic_checks import CheckedTable
from rowtide.connector.config import from_properties
from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.engine.cascade_check import cascade_findings, require_derivable
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import SchemaError
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.cascades import Cascades
from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.events.table_structure import MappedColumn, TableStructure
from rowtide.connector.protocol.header import EventHeader
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source import server_queries
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.topics.filters import CapturedNames
from tests.support.configurations import PROPERTIES
from tests.support.mysql.live_database import configured, streamed
from tests.support.recordings.golden import Written, written

if TYPE_CHECKING:
    from rowtide_stack import Database, MariaDB, MySQL

DERIVE = {"rowtide.cascaded.changes": "derive", "binlog.row.image.minimal.allowed": "true", "rowtide.values": "exact"}
PARENT = "CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(9) NOT NULL UNIQUE, UNIQUE (name, id))"
VERSIONED = "CREATE TABLE v (id INT PRIMARY KEY) WITH SYSTEM VERSIONING"
NAMES = (
    "SELECT TABLE_NAME, CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS "
    "WHERE CONSTRAINT_TYPE = 'FOREIGN KEY' AND TABLE_SCHEMA = DATABASE()"
)
TO_P = "FOREIGN KEY (id) REFERENCES p (id)"


def problems(*statements: str, captured: str = r"d\..*") -> str:
    """Why the changes of some tables cannot be derived."""
    tables = Tables(Server(Flavor.MARIADB))
    for statement in (PARENT, VERSIONED, *statements):
        tables.apply(QueryEvent(statement, "d"))
    config = from_properties(PROPERTIES | DERIVE | {"table.include.list": captured})
    return " / ".join(Cascades(tables, CapturedNames(config.capture.tables, tables.exists)).problems())


def test_a_skipped_event_of_a_parent_may_have_changed_its_children() -> None:
    tables, told = Tables(Server(Flavor.MARIADB)), list[TableId | None]()
    for statement in (PARENT, f"CREATE TABLE c (id INT PRIMARY KEY, {TO_P} ON DELETE CASCADE)"):
        tables.apply(QueryEvent(statement, "d"))
    settings = pipeline_settings(from_properties(PROPERTIES | DERIVE), "run")
    captured = CapturedTables(settings, tables, lambda: 0)
    captured.observer = Mock(omitted=told.append)
    for name in "pc":
        captured.omitted(TableStructure("d", name, (), ()))
    assert told == [None, TableId("d", "c")]


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ("id INT PRIMARY KEY, {to_p} ON DELETE CASCADE", ""),
        ("id INT PRIMARY KEY REFERENCES p (id) ON UPDATE RESTRICT ON DELETE CASCADE", ""),
        ("id INT PRIMARY KEY REFERENCES p ON DELETE CASCADE", ""),
        ("k INT, id INT, CONSTRAINT x PRIMARY KEY (id), FOREIGN KEY (k) REFERENCES p (id)", ""),
        ("k INT PRIMARY KEY, id INT, {to_p} ON DELETE NO ACTION ON UPDATE CASCADE", ""),
        ("k INT PRIMARY KEY, id INT, {to_p} ON DELETE SET NULL", "ON DELETE SET NULL of d.p"),
        ("k INT PRIMARY KEY, id INT, {to_p} ON DELETE CASCADE", r"key \(k\) is not"),
        ("id INT UNIQUE, {to_p} ON DELETE CASCADE", r"its primary key \(none\) is not"),
        ("id INT, k INT, PRIMARY KEY (id, k), {to_p} ON DELETE CASCADE", r"\(id, k\) is not"),
        ("id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES p (u) ON DELETE CASCADE", "d.p.u may be NULL"),
        ("n VARCHAR(9) PRIMARY KEY, FOREIGN KEY (n) REFERENCES p (name) ON DELETE CASCADE", "equal may have"),
        ("n VARCHAR(9), i INT, PRIMARY KEY (n, i), FOREIGN KEY (n, i) REFERENCES p (name, id) ON DELETE CASCADE", "n"),
        ("id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES q (id) ON DELETE CASCADE", "d.q is not captured"),
        ("id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES e.p (id) ON UPDATE SET NULL", "e.p is not captured"),
        ("id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES c (id) ON DELETE CASCADE", "references itself"),
        ("id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES v (id) ON DELETE CASCADE", "d.v is SYSTEM VERSIONED"),
    ],
)  # fmt: skip
def test_what_can_be_derived(definition: str, problem: str) -> None:
    found = problems(f"CREATE TABLE c ({definition})".replace("{to_p}", TO_P))
    assert re.search(problem, found) if problem else found == ""
    assert problem == "" or "ON " in found


def test_only_captured_tables_count_and_a_dropped_key_does_not() -> None:
    child = f"CREATE TABLE c (k INT PRIMARY KEY, id INT, CONSTRAINT f {TO_P} ON DELETE CASCADE)"
    assert problems(child)
    assert problems(child, captured="d.p") == ""
    assert "d.p is not captured" in problems(child, captured="d.c")
    assert problems(child, "ALTER TABLE c DROP FOREIGN KEY f") == ""
    assert problems(child, "DROP TABLE c") == ""
    assert problems(child, "ALTER TABLE p ENGINE=MyISAM") == ""
    added = f"ALTER TABLE c ADD {TO_P} ON DELETE CASCADE"
    assert problems("CREATE TABLE c (k INT PRIMARY KEY, id INT)", added)
    # A grandchild whose parent is derived: only the parent's primary key is known.
    middle = "CREATE TABLE m (id INT PRIMARY KEY REFERENCES p (id) ON DELETE CASCADE, o INT NOT NULL UNIQUE)"
    assert problems(middle, "CREATE TABLE c (id INT PRIMARY KEY REFERENCES m (id) ON DELETE CASCADE)") == ""
    found = problems(middle, "CREATE TABLE c (id INT PRIMARY KEY REFERENCES m (o) ON DELETE CASCADE)")
    assert "the referenced columns of d.m are not known" in found


def test_a_renamed_table_between_two_others_is_refused() -> None:
    tables = Tables(Server(Flavor.MARIADB))
    config = from_properties(PROPERTIES | DERIVE | {"table.include.list": r"d\..*"})
    cascades = Cascades(tables, CapturedNames(config.capture.tables, tables.exists))
    key = "(id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES"
    # g references the former m by now, whose rows the deletes of p leave.
    for statement in (
        "CREATE TABLE p (id INT PRIMARY KEY)",
        f"CREATE TABLE m {key} p (id) ON DELETE CASCADE)",
        f"CREATE TABLE g {key} m (id) ON DELETE CASCADE)",
        "RENAME TABLE m TO former",
        "ALTER TABLE former DROP FOREIGN KEY former_ibfk_1",
        f"CREATE TABLE m {key} p (id) ON DELETE CASCADE)",
    ):
        for former, now in tables.apply(QueryEvent(statement, "d")).renamed():
            cascades.renamed(former, now)
    structure = TableStructure("d", "p", (MappedColumn(3, 0, nullable=False),))
    header = EventHeader(0, 25, 1, 0, 0, 0)
    deleted = Rows(header, RowsKind.DELETE, 1, 0, 1, b"\x01", b"\x01", False, b"", b"\0\1\0\0\0", 0, 5)
    parent = tables.table("d", "p")
    assert parent is not None
    with pytest.raises(SchemaError, match=r"after those of d.p cannot be derived: d.m, or a column of it, was renamed"):
        cascades.derived(deleted, structure, parent)


def check_names(database: Database) -> None:
    """Check that the schema history has the foreign keys of the server, so that none stays after it was dropped."""
    reference = "REFERENCES p (id) ON DELETE CASCADE"
    with Session(configured(database).database, mariadb=database.server.name == "mariadb") as session:
        tables = Tables(server_queries.server(session))
    for statement in (
        "CREATE TABLE p (id INT PRIMARY KEY)",
        f"CREATE TABLE c (id INT PRIMARY KEY, x INT, FOREIGN KEY i (x) {reference}, FOREIGN KEY (id) {reference})",
        f"ALTER TABLE c ADD FOREIGN KEY (x) {reference}, ADD FOREIGN KEY (id) {reference}",
        f"ALTER TABLE c DROP FOREIGN KEY c_ibfk_1, ADD FOREIGN KEY (x) {reference}",
        "RENAME TABLE c TO r",
        f"CREATE TABLE c (id INT PRIMARY KEY {reference})",
        f"ALTER TABLE c DROP FOREIGN KEY c_ibfk_1, ADD FOREIGN KEY (id) {reference}",
        "ALTER TABLE c RENAME TO s",
        f"CREATE TABLE m (id INT PRIMARY KEY, FOREIGN KEY (id) {reference}) ENGINE=MyISAM",
        f"ALTER TABLE m ADD FOREIGN KEY (id) {reference}",
        "ALTER TABLE m ENGINE=InnoDB",
    ):
        database.execute(statement)
        tables.apply(QueryEvent(statement, database.name))
        found = (tables.table(name.database, name.table) for name in tables.names())
        names = {(one.id.table, key.name) for one in found if one for key in one.constraints if key.kind == "foreign"}
        assert names == set(database.query(NAMES)), statement


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"binlog.row.image.minimal.allowed": "false"}, "needs binlog.row.image.minimal.allowed=true"),
        ({"rowtide.sink": "duckdb:x"}, "not possible with the sink duckdb:x"),
        ({"rowtide.cascaded.changes": "guess"}, "rowtide.cascaded.changes"),
    ],
)
def test_settings_that_do_not_go_together(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        from_properties(PROPERTIES | DERIVE | properties)


def steps(database: Database, tables: Tables | None = None) -> Iterator[list[Written]]:
    """The messages of each event since the last FLUSH BINARY LOGS."""
    config = configured(database, DERIVE | {"bigint.unsigned.handling.mode": "string"})
    files = database.server.query("SHOW BINARY LOGS")
    flavor = Flavor.MARIADB if database.server.name == "mariadb" else Flavor.MYSQL
    start, end = SourceOffset(str(files[-1][0]), 4), (str(files[-1][0]), int(files[-1][1]))
    for step in streamed(config, tables or Tables(Server(flavor)), start, end):
        batches = [output for output in step.outputs if isinstance(output, Batch)]
        messages = list(written(batches))
        if any("rowtide.derived" in dict(message.headers) for message in messages):
            assert len(batches) == 1, "a commit must have a delete and what follows from it, or nothing"
        yield [message for message in messages if message.topic != "live"]


def changes(database: Database) -> list[tuple[str, str, Any, str | None]]:
    """Table, operation, row and the header of derived records, of all changes since the last FLUSH BINARY LOGS."""
    found: list[tuple[str, str, Any, str | None]] = []
    for messages in steps(database):
        for message in messages:
            if message.key is None:
                continue  # a TRUNCATE, which says that a table is new
            header = dict(message.headers).get("rowtide.derived")
            table = message.topic.rpartition(".")[2]
            if message.value is None:
                assert found.pop() == (table, "d", json.loads(message.key), header)
                found.append((table, "d", json.loads(message.key), header))
                continue
            value = json.loads(message.value)
            if value["op"] == "d":
                assert value["source"]["table"] == table
                assert json.loads(message.key).items() <= value["before"].items()
            found.append((table, value["op"], json.loads(message.key), header))
    return found


def of_family(database: Database) -> None:
    """Write, and delete, parents with children and grandchildren."""
    database.execute(
        "CREATE TABLE p (x JSON, a BIGINT UNSIGNED, b BINARY(3), note TEXT, PRIMARY KEY (b, a))",
        "CREATE TABLE c (b BINARY(3), note VARCHAR(9) NOT NULL, a BIGINT UNSIGNED, PRIMARY KEY (a, b), "
        "FOREIGN KEY (b, a) REFERENCES p (b, a) ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE g (a BIGINT UNSIGNED, b BINARY(3), PRIMARY KEY (b, a), "
        "FOREIGN KEY (a, b) REFERENCES c (a, b) ON DELETE CASCADE)",
        f"INSERT INTO p VALUES (NULL, 1, 'a', ''), ('[1]', 2, 'b', NULL), (NULL, {2**64 - 1}, x'00ff00', '')",
        "INSERT INTO c SELECT b, 'n', a FROM p",
        "INSERT INTO g SELECT a, b FROM p WHERE a > 1",
        "UPDATE p SET note = 'new' WHERE a = 1",
        "DELETE FROM p WHERE a > 1",
        "SET foreign_key_checks = 0",
        "DELETE FROM p",
        "SET foreign_key_checks = 1",
        "INSERT INTO p VALUES (NULL, 1, 'a', 'again')",
        "DELETE FROM p",
    )


@pytest.mark.servers
def test_deletes_of_children_follow_from_those_of_their_parents(mariadb: MariaDB) -> None:
    mariadb.execute("FLUSH BINARY LOGS")
    with mariadb.database() as database:
        check_family(database)
        check_refusals(database)
    with mariadb.database() as database:
        check_names(database)


@pytest.mark.servers
@pytest.mark.nightly
def test_the_same_with_the_foreign_keys_of_innodb() -> None:
    from rowtide_stack import MySQL

    with MySQL({"innodb_native_foreign_keys": "ON"}) as server, server.database() as database:
        server.execute("FLUSH BINARY LOGS")
        check_family(database)


@pytest.mark.servers
def test_nothing_is_derived_where_the_server_logs_it(mysql: MySQL) -> None:
    mysql.execute("FLUSH BINARY LOGS")
    with mysql.database() as database:
        of_family(database)
        found = changes(database)
        assert {header for *_, header in found} == {None}
        assert sorted(table for table, op, _, _ in found if op == "d") == [*"cccggpppp"]
        line = (
            "CREATE TABLE l (k INT PRIMARY KEY, a BIGINT UNSIGNED, b BINARY(3), FOREIGN KEY (b, a) REFERENCES p (b, a) "
        )
        database.execute(f"{line} ON DELETE CASCADE ON UPDATE CASCADE)", "INSERT INTO p VALUES (NULL, 7, '', '')")
        database.execute("INSERT INTO l VALUES (1, 7, '')", "UPDATE p SET a = 8", "DELETE FROM p")
        assert changes(database)[-2:] == [("l", "d", {"k": 1}, None), ("p", "d", {"a": "8", "b": "AAAA"}, None)]
        require_derivable(configured(database, DERIVE), tables_of(database))
    with mysql.database() as database:
        check_names(database)


def check_family(database: Database) -> None:
    """Check what is derived, and that records and their order are those of a server that logs everything."""
    of_family(database)
    one, two, largest = {"a": "1", "b": "YQAA"}, {"a": "2", "b": "YgAA"}, {"a": str(2**64 - 1), "b": "AP8A"}
    of = f"ON DELETE CASCADE of {database.name}"
    found = changes(database)
    assert [change for change in found if change[1] == "d"] == [
        *(("g", "d", row, f"{of}.c") for row in (largest, two)),
        *(("c", "d", row, f"{of}.p") for row in (largest, two)),
        *(("p", "d", row, None) for row in (largest, two)),
        ("p", "d", one, None),  # without foreign_key_checks: the children stay
        ("g", "d", one, f"{of}.c"),
        ("c", "d", one, f"{of}.p"),
        ("p", "d", one, None),
    ]
    assert {header for _, op, _, header in found if op != "d"} == {None}
    assert database.query("SELECT COUNT(*) FROM c, g") == [(0,)]


def check_refusals(database: Database) -> None:
    """Check what is refused when it happens, at the start, and by ``rowtide check``."""
    config = configured(database, DERIVE)
    require_derivable(config, tables_of(database))
    database.execute("INSERT INTO p VALUES (NULL, 7, '', '')")
    for change, problem in (
        ("UPDATE p SET a = 8", "ON UPDATE CASCADE of .*: a referenced key was changed"),
        ("DELETE FROM p", r"l by ON DELETE SET NULL of .*\.p .* the other columns of the rows"),
    ):
        database.server.execute("FLUSH BINARY LOGS")
        if change.startswith("DELETE"):
            database.execute(
                "CREATE TABLE l (k INT PRIMARY KEY, a BIGINT UNSIGNED, b BINARY(3), "
                "FOREIGN KEY (b, a) REFERENCES p (b, a) ON DELETE SET NULL)"
            )
        database.execute(change)
        with pytest.raises(SchemaError, match=problem):
            list(steps(database, tables=tables_of(database)))
    with pytest.raises(SchemaError, match="l by ON DELETE SET NULL"):
        require_derivable(config, tables_of(database))
    names = [CheckedTable(database.name, name, None, None, name) for name in ("p", "c", "g", "l")]
    assert [one.message for one in cascade_findings(config, names) if "l by ON DELETE SET NULL" in one.message]
    database.execute("DROP TABLE l")
    assert cascade_findings(config, names[:3]) == []
    database.execute("INSERT INTO p VALUES (NULL, 9, '', '')")
    before = tables_of(database)
    database.server.execute("FLUSH BINARY LOGS")
    database.execute("RENAME TABLE p TO q", "CREATE TABLE p LIKE q", "DELETE FROM q")
    with pytest.raises(SchemaError, match=rf"after those of {database.name}.q cannot be derived: .* was renamed"):
        list(steps(database, tables=before.copy()))
    with pytest.raises(SchemaError, match=rf"\.p in the schema history, and {database.name}\.q .* on the"):
        require_derivable(config, before)


def tables_of(database: Database) -> Tables:
    """The structures of all tables, as the server has them."""
    config = configured(database)
    names = [TableId(database.name, str(name)) for (name,) in database.query("SHOW TABLES")]
    with Session(config.database, mariadb=config.flavor.value == "mariadb") as session:
        return server_queries.structures(session, names)
