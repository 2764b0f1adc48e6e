"""BINARY(n) is padded with the zeros that the binlog leaves out; Debezium does not pad a BINARY without a length."""

from __future__ import annotations

from rowtide.connector.records.codecs.builder import _padding
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server


def test_a_binary_is_padded_to_the_declared_length() -> None:
    tables = Tables(Server(Flavor.MYSQL))
    tables.apply(QueryEvent("CREATE DATABASE d", "d"))
    tables.apply(QueryEvent("CREATE TABLE t (a BINARY(4), b BINARY, c VARBINARY(4), d BINARY(1))", "d"))
    table = tables.table("d", "t")
    assert table is not None
    assert [_padding(column, exact=False) for column in table.columns] == [4, 0, 0, 1]
    assert [_padding(column, exact=True) for column in table.columns] == [4, 1, 0, 1]
