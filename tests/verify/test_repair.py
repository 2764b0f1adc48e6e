"""The signals of a repair."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.verify.repair import RepairSignals, exact_key


def source_table(key: str) -> Any:
    tables = Tables(Server(Flavor.MARIADB))
    tables.apply(QueryEvent(f"CREATE TABLE d.t (k {key} PRIMARY KEY)", "d", position=""))
    table = tables.table("d", "t")
    assert isinstance(table, Table)
    return SimpleNamespace(id=TableId("d", "t"), key=table.columns, key_columns=table.columns, hidden_key=False)


@pytest.mark.parametrize(
    ("kind", "text", "exact"),
    [
        ("INT", "i-5", "i-5"),
        ("VARCHAR(9)", "sé", "sé"),
        ("DATE", "i19723", "t2024-01-01"),
        ("DATE", "t2024-01-01", "t2024-01-01"),
        ("DATETIME(3)", "i1704067200123", "t2024-01-01T00:00:00.123000"),
        ("DATETIME(6)", "i1704067200123456", "t2024-01-01T00:00:00.123456"),
        ("TIMESTAMP(3)", "s2024-01-01T00:00:00.5Z", "t2024-01-01T00:00:00.500000+00:00"),
        ("TIME(6)", "i-1", "h-1"),
        ("DECIMAL(9,2)", "s1.50", "d1.5"),
        ("VARBINARY(9)", "sAP8=", "x00ff"),
        ("INT", "sx", None),
        ("FLOAT", "f1.5", None),
        ("DOUBLE", "f-1e-300", "f-1e-300"),
        ("DOUBLE", "finf", None),
        ("DOUBLE(9,2)", "f1.5", None),
        ("UUID", "s0e984725-c51c-4bf4-9960-e1c80e27aba0", "s0e984725-c51c-4bf4-9960-e1c80e27aba0"),
        ("INET4", "s10.0.0.1", "s10.0.0.1"),
        ("INET6", "s::ffff:10.0.0.1", "s::ffff:10.0.0.1"),
        ("INET6", "s'", None),
        ("DATE", "i99999999", None),
        ("VARCHAR(9) CHARACTER SET cp932", "s中", "s中"),
        ("VARCHAR(9) CHARACTER SET cp932", "s髙", None),  # FBFC or EEE0: the server looks for one of them
        ("VARCHAR(9) CHARACTER SET sjis", "sa\\b", None),
        ("CHAR(9) CHARACTER SET ascii", "s?", None),  # MariaDB keeps bytes without a character
    ],
)
def test_a_key_is_looked_up_by_its_exact_texts(kind: str, text: str, exact: str | None) -> None:
    assert exact_key(source_table(kind), (text,)) == (None if exact is None else (exact,))


def test_signals_have_as_many_keys_as_the_channel_allows() -> None:
    keys = [(f"skey {number}",) for number in range(100)]
    signals = list(RepairSignals(lambda _signal: None, 300).signals(source_table("VARCHAR(9)"), keys))
    assert [key for one in signals for key in one["data"]["keys"]] == [[text[1:]] for (text,) in keys]
    sizes = [len(json.dumps(one["data"])) for one in signals]
    assert max(sizes) <= 300
    assert all(size > 250 for size in sizes[:-1])
