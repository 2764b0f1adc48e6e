"""Rows from snapshot and stream: a value has the same text in both, except where Debezium writes it in two ways."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from tests.support.mysql.live_database import streamed
from tests.support.recordings.golden import Case, written
from tests.support.recordings.live_snapshot import configuration, prepared, run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowtide_stack import MariaDB, MySQL

    from rowtide.connector.records.batch import Output

pytestmark = pytest.mark.servers

_CASES = (
    "bigint-unsigned-precise", "binary-as-base64", "binary-as-hex", "decimal-as-double", "decimal-as-string",
    "enum-set-json", "geometry-and-vector", "keys", "mariadb-system-versioned",
    "mariadb-time-zone-and-transactions", "mariadb-types", "masking", "numeric-types",
    "source-types-and-comments", "strings-and-charsets",
    "temporal-connect", "temporal-isostring", "temporal-microseconds-in-another-zone", "temporal-nanoseconds",
    "temporal-types", "weird-names",
)  # fmt: skip
_OTHER_SCHEMA = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "double", "tinyint"}
"""Types for which SHOW CREATE TABLE leads to another schema than the DDL: CHARACTER SET binary, REAL and BOOL."""
_EPOCH = "1970-01-01T00:00:00Z"


def rows(outputs: Iterable[Output]) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows that the records result in, by topic and key; numbers with a decimal point stay texts."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for message in written(outputs):
        if message.key is None or message.value is None or '"op":"' not in message.value:
            continue
        value = json.loads(message.value, parse_float=str)
        if value["after"] is None:
            found.pop((message.topic, message.key), None)
        else:
            found[message.topic, message.key] = value["after"]
    return found


def columns(tables: Tables) -> dict[tuple[str, str], tuple[str, int]]:
    """MySQL's type and JDBC type of each column, by table and name."""
    return {
        (f"{table.id.database}.{table.id.table}", column.name): (
            column.data_type,
            column.debezium.jdbc_type if column.debezium else 0,
        )
        for table in tables
        for column in table.columns
    }


def normalized(data_type: str, value: Any) -> Any:
    """A value without the differences between snapshot and stream."""
    if isinstance(value, bool):
        return int(value)
    if data_type == "float" and value is not None:
        return format(float(value), ".6g")
    if data_type == "json" and value is not None:
        return None  # the server's text and rowtide's differ; the recorded cases compare them
    if data_type == "enum" and value is not None:
        return value.replace("\\,", ",").replace("\\\\", "\\")
    if data_type == "timestamp" and isinstance(value, str):
        whole, point, fraction = value.removesuffix("Z").partition(".")
        return whole + (point + fraction).rstrip(".0") + "Z"
    return value


@pytest.mark.parametrize("name", _CASES)
def test_a_row_is_the_same_in_snapshot_and_stream(name: str, request: pytest.FixtureRequest) -> None:
    case = Case(name)
    server: MySQL | MariaDB = request.getfixturevalue(case.description.get("server", "mysql"))
    plain = {f"{side}.converter.schemas.enable": "false" for side in ("key", "value")}
    plain |= {f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")}
    config = configuration({**case.properties(), **plain}, server)
    with prepared(case, server) as begin:
        taken, outputs = run(config)
        structure = Tables(taken.tables.server)
        steps = streamed(config, structure, SourceOffset(*begin), (taken.offset.file, taken.offset.pos))
        stream = rows(output for step in steps for output in step.outputs)
        snapshot = rows(outputs)
    types, written_types = columns(taken.tables), columns(structure)
    assert snapshot.keys() == stream.keys()
    for (topic, key), row in snapshot.items():
        table = topic.removeprefix(f"{config.topics.prefix}.")
        for column, value in row.items():
            data_type, jdbc_type = types.get((table, column), ("", 0))
            if data_type in _OTHER_SCHEMA and written_types[table, column][1] != jdbc_type:
                continue
            ours, other = normalized(data_type, value), normalized(data_type, stream[topic, key][column])
            if data_type == "timestamp" and ours is None and other == _EPOCH:
                continue  # MariaDB's zero timestamp
            assert ours == other, f"{topic} {key} {column} ({data_type})"
