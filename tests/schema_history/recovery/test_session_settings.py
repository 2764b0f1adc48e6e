"""Statements that depend on their session: the history has its settings if, and only if, they matter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rowtide.schema_history.catalog.changes import SchemaChange
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import DamagedHistory
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.recovery.session_settings import recorded_event, required_sessions, session_fields
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import history_record, parse_record

MYSQL = Server(Flavor.MYSQL, "8.4.3", collation="utf8mb4_0900_ai_ci")
MARIADB = Server(Flavor.MARIADB, "11.4.5-MariaDB", collation="latin1_swedish_ci")
REAL_AS_FLOAT, ANSI_QUOTES, NO_BACKSLASH_ESCAPES = 1, 4, 1 << 20
LATIN2 = 9


class Ran:
    """The tables after statements, and those that a restart recovers from their records."""

    def __init__(self, *events: QueryEvent, server: Server = MYSQL, captured: str | None = None) -> None:
        self.tables = Tables(server)
        self.sessions: list[dict[str, Any] | None] = []
        recorded = None if captured is None else lambda table: table.table == captured
        texts = []
        for number, event in enumerate(events):
            applied = self.tables.apply(event)
            sessions = required_sessions(self.tables, event, applied, recorded)
            self.sessions += sessions[:1]
            position = {"file": "b.000001", "pos": number}
            texts += [
                history_record(change, "p", position, 0, session=session)
                for change, session in zip(applied.changes, sessions, strict=True)
                if captured is None or change.table_id is None or change.table_id.table == captured
            ]
        self.recovered = recover(map(parse_record, texts), server, None)

    def same(self, database: str = "d", name: str = "t") -> Table:
        """A table, which must be the same after a restart."""
        table = self.tables.table(database, name)
        assert table is not None
        assert self.recovered.table(database, name) == table
        return table


def test_most_statements_need_no_session() -> None:
    ran = Ran(
        QueryEvent("CREATE DATABASE d CHARACTER SET latin1", "", sql_mode=1168113696, charset=(255, 255, 255)),
        QueryEvent("CREATE TABLE t (a TIMESTAMP NULL, b VARCHAR(3) DEFAULT 'x')", "d", sql_mode=1168113696),
        QueryEvent("ALTER TABLE t ADD c INT", "d", explicit_defaults_for_timestamp=False),
        QueryEvent("RENAME TABLE t TO u, u TO t", "d", sql_mode=ANSI_QUOTES),
        QueryEvent("GRANT SELECT ON d.* TO x", "d", sql_mode=ANSI_QUOTES),
        QueryEvent("DROP TABLE IF EXISTS nothing", "d", sql_mode=ANSI_QUOTES),
    )
    assert ran.sessions == [None] * 6
    ran.same()


@pytest.mark.parametrize(
    ("statement", "session", "wanted"),
    [
        ('CREATE TABLE "t" ("a" VARCHAR(9) DEFAULT \'x\')', {"sql_mode": ANSI_QUOTES}, "varchar(9)"),
        ("CREATE TABLE t (a VARCHAR(9) DEFAULT 'a\\')", {"sql_mode": NO_BACKSLASH_ESCAPES}, "varchar(9)"),
        ("CREATE TABLE t (a REAL)", {"sql_mode": REAL_AS_FLOAT}, "float"),
        ("CREATE TABLE t (a TIMESTAMP)", {"explicit_defaults_for_timestamp": False}, "timestamp"),
        ("CREATE TABLE d.t (a CHAR(2))", {"charset": (255, 255, LATIN2), "database": "elsewhere"}, "char(2)"),
        ("CREATE TABLE t (a ENUM('1'))", {"charset": (255, 255, LATIN2)}, "enum('1')"),
    ],
)
def test_a_statement_that_needs_its_session(statement: str, session: dict[str, Any], wanted: str) -> None:
    ran = Ran(QueryEvent(statement, **{"database": "d", **session}))
    (fields,) = ran.sessions
    assert fields is not None
    assert fields["db"] == session.get("database", "d")
    column = ran.same().columns[0]
    assert column.column_type == wanted
    assert column.nullable == ("TIMESTAMP" not in statement)


@pytest.mark.parametrize(
    "swap",
    [
        ["RENAME TABLE t TO y, x TO t"],
        ["RENAME TABLE t TO y", "RENAME TABLE x TO t"],
        ["ALTER TABLE t RENAME y", "ALTER TABLE x RENAME t"],
    ],
)
def test_a_table_that_is_not_in_the_history_takes_the_name_of_one_that_is(swap: list[str]) -> None:
    made = ["CREATE TABLE t (a ENUM('x','y'))", "CREATE TABLE x (a ENUM('y','x') PRIMARY KEY) ENGINE=InnoDB"]
    ran = Ran(*(QueryEvent(statement, "d") for statement in (*made, *swap)), captured="t")
    assert ran.same().columns[0].labels == ("y", "x")
    assert ran.same().primary_key == ("a",)


def test_a_table_is_recovered_by_its_last_name_if_its_record_has_no_description() -> None:
    statements = ("CREATE TABLE t (a INT)", "RENAME TABLE t TO u, u TO v")
    ran = Ran(*(QueryEvent(statement, "d") for statement in statements))
    ran.same("d", "v")
    history = [history_record(change, "p", {"file": "b.000001", "pos": 1}, 0) for change in made("d", *statements)[:2]]
    (table,) = recover(map(parse_record, history), MYSQL, None)
    assert table.id == TableId("d", "u")


def made(database: str, *statements: str) -> list[SchemaChange]:
    """What statements change."""
    tables = Tables(MYSQL)
    return [change for sql in statements for change in tables.apply(QueryEvent(sql, database)).changes]


def test_a_new_database_has_the_sessions_character_set() -> None:
    ran = Ran(
        QueryEvent("CREATE DATABASE d", charset=(255, 255, LATIN2)),
        QueryEvent("CREATE TABLE d.t (a TEXT)", charset=(255, 255, 255)),
        server=MARIADB,
    )
    assert ran.same().columns[0].charset == "latin2"
    assert list(ran.recovered.databases()) == list(ran.tables.databases())
    assert ran.sessions[1] is None


def test_a_new_database_has_the_servers_character_set_even_if_that_changes() -> None:
    ran = Ran(QueryEvent("CREATE DATABASE d"), QueryEvent("CREATE TABLE d.t (a TEXT)"), server=MARIADB)
    assert ran.same().charset == "latin1"
    assert ran.sessions[0] == {"db": ""}


def test_the_sessions_database_completes_names_in_other_databases() -> None:
    ran = Ran(
        QueryEvent("CREATE TABLE t (a INT)", "d"),
        QueryEvent("CREATE TABLE e.u LIKE t", "d"),
        QueryEvent("ALTER TABLE t RENAME e.v, ADD b INT", "d"),
        QueryEvent("RENAME TABLE e.v TO w", "d"),
    )
    assert [column.name for column in ran.same("d", "w").columns] == ["a", "b"]
    assert ran.same("e", "u").columns
    assert {table.id for table in ran.recovered} == {TableId("d", "w"), TableId("e", "u")}
    assert ran.sessions[0] is None


def test_the_original_statement_is_recorded_if_the_rewording_loses_something() -> None:
    ran = Ran(QueryEvent('CREATE TABLE t (a ENUM("x","y""z"))', "d"))
    assert ran.same().columns[0].labels == ("x", 'y"z')
    assert ran.sessions[0] is not None
    assert ran.sessions[0]["sql"] == 'CREATE TABLE t (a ENUM("x","y""z"))'


@pytest.mark.parametrize("statement", ["CREATE TABLE t LIKE u", "RENAME TABLE u TO t", "ALTER TABLE u RENAME TO t"])
def test_a_table_copied_from_one_that_is_not_in_the_history(statement: str) -> None:
    ran = Ran(
        QueryEvent("CREATE TABLE u (a INT UNSIGNED, UNIQUE (a)) COLLATE latin1_bin", "d"),
        QueryEvent(statement, "d"),
        captured="t",
    )
    recovered, table = ran.recovered.table("d", "t"), ran.tables.table("d", "t")
    assert recovered is not None
    assert table is not None
    assert recovered.complete
    assert (recovered.columns, recovered.indexes) == (table.columns, table.indexes)
    assert recovered.collation == "latin1_bin"


def test_a_statement_that_failed_half_way() -> None:
    ran = Ran(
        QueryEvent("CREATE TABLE t (a INT)", "d"),
        QueryEvent("CREATE OR REPLACE TABLE t (a INT, b INT)", "d", error_code=1005),
        server=MARIADB,
    )
    assert ran.tables.table("d", "t") is None
    assert ran.recovered.table("d", "t") is None


def test_the_settings_survive_json() -> None:
    event = QueryEvent(
        "SELECT 1", "d", 4, (1, 2, 3), 0, explicit_defaults_for_timestamp=False, default_collation_for_utf8mb4=255,
        character_set_collations=((1, 2), (3, 4)), charset_database=8, error_code=5,
    )  # fmt: skip
    fields = json.loads(json.dumps(session_fields(event)))
    assert recorded_event("SELECT 1", "other", fields) == event
    assert recorded_event("SELECT 1", "d", None) == QueryEvent("SELECT 1", "d", sql_mode=0)


def test_names_with_quotes_are_parsed() -> None:
    ran = Ran(QueryEvent('CREATE TABLE `d"`.`a"."b` (a INT)', "d"), QueryEvent('CREATE TABLE `"` (a INT)', "d"))
    assert ran.same('d"', 'a"."b').columns
    assert ran.same("d", '"').columns


def test_invalid_settings_are_an_error() -> None:
    with pytest.raises(DamagedHistory, match="record of 'CREATE TABLE t' has session settings that cannot be read"):
        recorded_event("CREATE TABLE t", "d", {"charset": ["x"]})
    for name, value in (
        ("charset", [1, 2]), ("charset", 5), ("character_set_collations", [[1]]), ("db", 5), ("sql", []),
        ("flags2", float("inf")), ("sql_mode", "x"),
    ):  # fmt: skip
        with pytest.raises(DamagedHistory, match="has session settings that cannot be read"):
            recorded_event("CREATE TABLE t", "d", {name: value})
    with pytest.raises(DamagedHistory, match="'session' is not an object"):
        parse_record('{"position": {}, "session": 5}')


@pytest.mark.parametrize("server", [MYSQL, MARIADB], ids=lambda server: server.flavor.value)
@pytest.mark.parametrize("default", [b"_binary'\x80'", b"'\xff\xfe'"])
def test_bytes_that_are_no_text_are_kept_beside_a_statement_that_can_be_stored(server: Server, default: bytes) -> None:
    utf8mb4 = 255 if server.flavor is Flavor.MYSQL else 45
    sql = b"CREATE TABLE t (a INT, b VARBINARY(3) DEFAULT " + default + b") /* \x80 */"
    ran = Ran(QueryEvent(sql, "d", charset=(utf8mb4, utf8mb4, utf8mb4)), server=server)
    table, recovered = ran.tables.table("d", "t"), ran.recovered.table("d", "t")
    assert table is not None
    assert recovered is not None
    assert table.columns[1].default
    assert recovered.columns == table.columns
    (session,) = ran.sessions
    assert session is not None
    json.dumps(session, ensure_ascii=False).encode()
