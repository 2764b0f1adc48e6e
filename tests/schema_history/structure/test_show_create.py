"""Parsing the SHOW CREATE TABLE of a table results in the same table, for every table of every recording."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table
from rowtide.schema_history.queries.apply import event_of, tables_of_header
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.structure.show_create import show_create
from tests.support.ddl.corpus import lines, name_of, recordings
from tests.support.ddl.shown_tables import comparable, shown_again


def changed(path: Path) -> Iterator[tuple[Tables, Table]]:
    """Every table after every statement that changed it."""
    recorded = lines(path)
    header = next(recorded)
    tables = tables_of_header(header, Flavor(header["server"]))
    for record in recorded:
        for entry in record["binlog"]:
            try:
                applied = tables.apply(event_of(entry))
            except SchemaHistoryError:
                continue  # what the binlog does not tell; the corpus test names it
            yield from ((tables, table) for _, table in applied.altered if table is not None)


@pytest.mark.parametrize("path", recordings(), ids=name_of)
def test_parsing_show_create_table_results_in_the_same_table(path: Path) -> None:
    seen: set[tuple[str, str]] = set()
    for tables, table in changed(path):
        if table.kind == "SEQUENCE":
            continue
        text = show_create(table, tables.server)
        *parts, options = text.split("\n")[1:]
        lines_of_it = {(options, part.rstrip(",")) for part in parts} | {(options, "")}
        if lines_of_it <= seen:
            continue  # every column and index was read before, in a table with the same options
        seen |= lines_of_it
        assert shown_again(table, tables.server) == comparable(table), text


def test_large_and_compressed_columns_of_mariadb() -> None:
    tables = Tables(Server(Flavor.MARIADB))
    tables.apply(QueryEvent("CREATE TABLE t (a BLOB, b VARCHAR(9) COMPRESSED NOT NULL)", "d"))
    (table,) = tables
    first, second = show_create(table, tables.server).split("\n")[1:3]
    assert first == "  `a` blob DEFAULT NULL,"
    assert second == "  `b` varchar(9) /*M!100301 COMPRESSED*/ NOT NULL DEFAULT ''"
