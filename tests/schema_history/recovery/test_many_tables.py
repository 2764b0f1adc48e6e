"""The memory of a recovered history, by table; ``tests/bench/many_tables.py`` measures 100 000 tables."""

import gc
import itertools
import json
import tracemalloc
from collections.abc import Iterator

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import HistoryRecord, history_record, parse_record

SERVER = Server(Flavor.MYSQL, "8.4.3")
TABLES = 2000
COLUMNS = "id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(100) NOT NULL, price DECIMAL(10,2), a INT, b INT, note TEXT"


def records() -> Iterator[HistoryRecord]:
    """Records of many tables, made from that of one."""
    tables = Tables(SERVER)
    tables.apply(QueryEvent("CREATE DATABASE shop", ""))
    (change,) = tables.apply(QueryEvent(f"CREATE TABLE t_0_ ({COLUMNS})", "shop")).changes
    template = json.dumps(json.loads(history_record(change, "p", {"file": "binlog.000001", "pos": 987654321}, 1)))
    for number in range(TABLES):
        yield parse_record(template.replace("t_0_", f"t{number}").replace("987654321", str(number)))


def test_a_table_that_is_not_used_needs_less_memory_than_its_record() -> None:
    recover(itertools.islice(records(), 10), SERVER, None)  # fills the caches that all tables share
    gc.collect()
    tracemalloc.start()
    try:
        tables = recover(records(), SERVER, None)
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(tables) == TABLES
    assert size < 4000 * TABLES, f"{size // TABLES} bytes for each table"
    table = tables.table("shop", "t7")
    assert table is not None
    assert [column.name for column in table.columns] == ["id", "name", "price", "a", "b", "note"]


def test_a_dropped_database_takes_only_its_own_tables() -> None:
    tables = Tables(SERVER)
    for name in ("a", "b"):
        tables.apply(QueryEvent(f"CREATE DATABASE {name}", ""))
        for number in range(3):
            tables.apply(QueryEvent(f"CREATE TABLE t{number} (id INT)", name))
    tables.apply(QueryEvent("DROP TABLE t1", "a"))
    tables.apply(QueryEvent("RENAME TABLE a.t2 TO b.t9", "a"))
    other = tables.copy()
    tables.apply(QueryEvent("DROP DATABASE b", ""))
    assert [str(name) for name in tables.names()] == ["a.t0"]
    assert [str(name) for name in other.names_of("b")] == ["b.t0", "b.t1", "b.t2", "b.t9"]
    assert len(other) == 5
