"""BINARY(n) is filled up with zeros, which the binlog leaves out; without a length Debezium does not know to what."""

from __future__ import annotations

from rowtide.connector.records.codecs.builder import _padding
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server


def test_a_binary_is_filled_up_to_the_length_that_the_statement_tells() -> None:
    tables = Tables(Server(Flavor.MYSQL))
    tables.apply(QueryEvent("CREATE DATABASE d", "d"))
    tables.apply(QueryEvent("CREATE TABLE t (a BINARY(4), b BINARY, c VARBINARY(4), d BINARY(1))", "d"))
    table = tables.table("d", "t")
    assert table is not None
    assert [_padding(column) for column in table.columns] == [4, 0, 0, 1]
