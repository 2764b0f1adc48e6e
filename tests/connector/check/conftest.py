"""Facts of a server that meets all requirements; tests change them."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from rowtide.connector.check.facts import ColumnFact, ServerFacts, TableFact
from rowtide.connector.config import Configuration, from_properties
from tests.support.configurations import PROPERTIES

GOOD = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_value_options": "",
    "binlog_expire_logs_seconds": "2592000",
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "server_id": "1",
    "log_replica_updates": "ON",
    "binlog_rows_query_log_events": "OFF",
}
GRANTS = ("GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `dbz`@`%`",)
TABLES = (
    TableFact(
        "shop",
        "orders",
        (ColumnFact("id", "bigint unsigned", nullable=False), ColumnFact("note", "text", nullable=True)),
    ),
    TableFact("shop", "lines", (ColumnFact("id", "int", nullable=False),)),
)


@pytest.fixture
def facts() -> Callable[..., ServerFacts]:
    """Create the facts of such a server; keywords replace fields, ``variables`` single ones (``None`` removes one)."""

    def make(variables: dict[str, str | None] | None = None, **fields: Any) -> ServerFacts:
        merged = {**GOOD, **(variables or {})}
        good = ServerFacts(
            "8.4.6",
            {name: value for name, value in merged.items() if value is not None},
            GRANTS,
            replicas=(),
            is_replica=False,
            tables=TABLES,
        )
        return dataclasses.replace(good, **fields)

    return make


@pytest.fixture
def configured() -> Callable[..., Configuration]:
    """Create a configuration from the basic properties and further ones."""

    def make(properties: dict[str, str] | None = None) -> Configuration:
        return from_properties({**PROPERTIES, "bigint.unsigned.handling.mode": "precise", **(properties or {})})

    return make
