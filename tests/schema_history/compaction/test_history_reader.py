"""The records of a history that count: those of the connector, and those from a complete snapshot on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.history_reader import NotInHistory, StoredHistory, read_history
from rowtide.schema_history.errors import DamagedHistory, SchemaHistoryError
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import history_record
from rowtide.schema_history.store.history_store import InMemorySchemaHistory, StoredText, TrimmedHistory

SERVER = Server(Flavor.MYSQL, "8.4.3", collation="utf8mb4_0900_ai_ci")
DAMAGED = ["", "{", '{"ddl":"CREATE TA', "17", "[]", "null", '{"source":{"server":"p"}}', "\udcff",
           '{"source":{"server":"p"},"position":{"pos":"x"}}', '{"source":{"server":"p"},"position":[]}',
           '{"source":{"server":"p"},"position":{"file":"b.1"},"tableChanges":[{"type":"CREATE"}]}',
           '{"source":{"server":"p"},"position":{"gtids":"nonsense"},"ddl":"SELECT 1"}']  # fmt: skip


def texts(*statements: str, source: str = "p", begin: int = 1, **more: Any) -> list[str]:
    tables, found = Tables(SERVER), []
    for number, statement in enumerate(statements, begin):
        position = {"file": "b.000001", "pos": number * 100, "gtids": "", "server_id": 1, **more}
        changes = tables.apply(QueryEvent(statement, "d", sql_mode=0)).changes
        found += [history_record(change, source, position, number) for change in changes]
    return found


def changed(**fields: Any) -> str:
    """The record of CREATE TABLE with other fields."""
    return json.dumps({**json.loads(texts("CREATE DATABASE d", "CREATE TABLE d.t (a INT)")[1]), **fields})


def names(*records: str, position: BinlogPosition | None = None, source: str = "p") -> str:
    tables = read_history(StoredHistory(InMemorySchemaHistory(*records), source), SERVER, position).tables()
    return " ".join(sorted(f"{table.id.table}({','.join(c.name for c in table.columns)})" for table in tables))


TABLE = json.loads(changed())["tableChanges"][0]
COLUMN = TABLE["table"]["columns"][0]
WRONG: tuple[Any, ...] = (
    {"ddl": 5}, {"ddl": "\ud800"}, {"databaseName": []}, {"source": 5}, {"source": {"server": ["p"]}}, {"ts_ms": "x"},
    {"position": {"pos": float("inf")}}, {"position": {"gtids": 5}}, {"tableChanges": 5}, {"tableChanges": ["x"]},
    *({"tableChanges": [{**TABLE, name: value}]} for name, value in (
        ("type", "NONE"), ("type", 5), ("id", 5), ("id", "t"), ("previousId", 5), ("table", None), ("table", 5),
        ("table", {"columns": 5}), ("comment", 5),
    )),
    *({"tableChanges": [{**TABLE, "table": {**TABLE["table"], name: value}}]} for name, value in (
        ("defaultCharsetName", 5), ("primaryKeyColumnNames", 5), ("primaryKeyColumnNames", [5]), ("attributes", 5),
        ("attributes", [{}]), ("columns", [5]), ("columns", [{}]),
    )),
    *({"tableChanges": [{**TABLE, "table": {**TABLE["table"], "columns": [{**COLUMN, name: value}]}}]}
      for name in COLUMN if name != "position" for value in ({}, [5], "\ud800", float("inf"))),
)  # fmt: skip
"""Fields of the wrong type."""

T = texts("CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "ALTER TABLE d.t ADD b INT")
ANEW = texts(
    "SET character_set_server=utf8mb4, collation_server=utf8mb4_0900_ai_ci",
    "CREATE DATABASE d",
    "CREATE TABLE d.t (z INT)",
    "CREATE TABLE d.u (z INT)",
    "DROP TABLE IF EXISTS d.t",
    "DROP TABLE IF EXISTS d.u",
    "CREATE TABLE d.t (a INT, b INT, c INT)",
    "CREATE TABLE d.u (a INT)",
    begin=4,
    snapshot="INITIAL",
)
del ANEW[2:4]  # what they drop was made before


def test_records_of_other_connectors_do_not_count() -> None:
    other = texts("CREATE DATABASE d", "CREATE TABLE d.t (z INT)", "CREATE TABLE d.u (z INT)", source="q")
    mixed = [text for pair in zip(T, other, strict=True) for text in pair]
    assert names(*mixed) == "t(a,b)"
    assert names(*mixed, source="q") == "t(z) u(z)"


def test_a_history_with_records_of_other_connectors_only_is_an_error() -> None:
    with pytest.raises(NotInHistory, match=r"no record of topic\.prefix=r, only of 'p'.*prefix was changed"):
        names(*T, source="r")
    assert names() == "", "an empty one is none"


@pytest.mark.parametrize("damaged", DAMAGED)
@pytest.mark.parametrize("at", [0, 2, 3])
def test_a_damaged_record_is_an_error(damaged: str, at: int) -> None:
    with pytest.raises(DamagedHistory, match=rf"record {at}.*snapshot\.mode=recovery"):
        names(*T[:at], damaged, *T[at:], position=BinlogPosition("b.000001", 10_000, ""))


@pytest.mark.parametrize("damaged", DAMAGED)
def test_damage_before_a_complete_snapshot_is_ignored(damaged: str) -> None:
    at = BinlogPosition("b.000001", 10_000, "")
    assert names(*T[:2], damaged, T[2], *ANEW, position=at) == "t(a,b,c) u(a)"
    later = texts("CREATE DATABASE e", "CREATE TABLE e.v (a INT)", begin=20)
    assert names(damaged, *ANEW, *later, position=at) == "t(a,b,c) u(a) v(a)"
    with pytest.raises(DamagedHistory):
        names(damaged, *ANEW, damaged, position=at)


def test_damage_before_an_incomplete_snapshot_is_an_error() -> None:
    for number in range(len(ANEW)):
        with pytest.raises(DamagedHistory):
            names("{", *T, *ANEW[:number], *texts("CREATE DATABASE e", begin=20))
        assert names("{", *T, *ANEW[:number], *ANEW) == "t(a,b,c) u(a)"


def test_a_snapshot_after_the_position_does_not_count() -> None:
    ahead = [text.replace('"gtids" : ""', '"gtids" : "1e0355b3-e5bc-11f1-acec-02fc00000001:1-9"') for text in ANEW]
    with pytest.raises(DamagedHistory):
        names("{", *T, *ahead, position=BinlogPosition("b.000001", 100, ""))


def test_a_snapshot_of_another_connector_or_of_some_tables_does_not_count() -> None:
    with pytest.raises(DamagedHistory):
        names("{", *[text.replace('"p"', '"q"') for text in ANEW], *T)
    with pytest.raises(DamagedHistory):
        names("{", *[text.replace("INITIAL", "BLOCKING") for text in ANEW])


class Trimmed(InMemorySchemaHistory):
    """A history whose first records were deleted."""

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        yield StoredText(0, 1, "", TrimmedHistory("the first record stands at 1"))
        yield from super().texts(max(start, 1))


def test_a_trimmed_history_is_an_error_without_a_later_snapshot() -> None:
    with pytest.raises(TrimmedHistory):
        read_history(StoredHistory(Trimmed(*T), "p"), SERVER, None)
    tables = read_history(StoredHistory(Trimmed(*T, *ANEW), "p"), SERVER, None).tables()
    assert [str(name) for name in tables.names()] == ["d.t", "d.u"]


def test_repeated_records_in_another_order_and_with_unknown_fields() -> None:
    future = json.loads(T[1])
    future["shape"] = {"of": ["things", "to", "come"]}
    future["tableChanges"][0]["table"]["columns"][0]["colour"] = "red"
    future["position"]["era"] = 2
    changed = [T[0], json.dumps(future), T[2]]
    assert names(*changed, *changed, position=BinlogPosition("b.000001", 300, "")) == "t(a,b)"
    # as Debezium does it: each in its turn, if it is not after the position
    assert names(T[0], T[2], T[1], position=BinlogPosition("b.000001", 300, "")) == "t(a)"
    assert names(T[0], T[2], T[1], position=BinlogPosition("b.000001", 200, "")) == "t(a)"


@pytest.mark.parametrize("fields", WRONG, ids=lambda fields: json.dumps(fields)[-60:])
def test_fields_of_the_wrong_type_are_damage(fields: Any) -> None:
    with pytest.raises(SchemaHistoryError, match=r"damaged record|is damaged|only of"):
        names(T[0], changed(**fields))


def test_a_record_that_is_nested_too_deeply_is_damage() -> None:
    with pytest.raises(DamagedHistory, match="damaged record in the schema history, record 1"):
        names(T[0], '{"position":' * 100_000)
