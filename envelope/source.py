"""The ``source`` block of a record and its schema (Debezium's ``Source``, version 1)."""

from typing import Any, Literal

from rowtide.envelope.json.text import JsonFormat, string_text
from rowtide.envelope.schema import INT32, INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, Schema, struct

Snapshot = Literal[
    "true", "first", "first_in_data_collection", "last_in_data_collection", "last", "false", "incremental"
]

VERSIONS = {"mysql": "3.6.1.Final", "mariadb": "3.5.0.Final"}
"""The Debezium version in ``source``, by connector. Consumers derive the format of the record from it."""

SNAPSHOT_SCHEMA = Schema(
    "string",
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters=(("allowed", "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"),),
    default="false",
)


def source_schema(connector: str) -> Schema:
    """Return the schema of ``source`` for the ``mysql`` or ``mariadb`` connector."""
    return struct(
        f"io.debezium.connector.{connector}.Source",
        {
            "version": STRING,
            "connector": STRING,
            "name": STRING,
            "ts_ms": INT64,
            "snapshot": SNAPSHOT_SCHEMA,
            "db": STRING,
            "sequence": OPTIONAL_STRING,
            "ts_us": OPTIONAL_INT64,
            "ts_ns": OPTIONAL_INT64,
            "table": OPTIONAL_STRING,
            "server_id": INT64,
            "gtid": OPTIONAL_STRING,
            "file": STRING,
            "pos": INT64,
            "row": INT32,
            "thread": OPTIONAL_INT64,
            "query": OPTIONAL_STRING,
        },
        version=1,
    )


def optional_text(value: str | None) -> str:
    """Return the JSON of an optional string."""
    return "null" if value is None else string_text(value)


def stream_snapshot_marker(json_format: JsonFormat, *, exact: bool) -> Snapshot | None:
    """Return ``snapshot`` of a streamed record.

    Debezium leaves it null, which its readers see as the default, "false", unless the converter keeps nulls. With exact
    values, which keep the nulls of columns, it is always "false".
    """
    return "false" if exact or json_format.replace_null_with_default else None


class SourceTemplate:
    """The JSON of ``source`` for one table, with the parts that are constant prepared."""

    __slots__ = ("_before_time", "_between", "_table")

    def __init__(self, connector: str, name: str, database: str, table: str | None) -> None:
        self._before_time = (
            f'{{"version":{string_text(VERSIONS[connector])},"connector":{string_text(connector)},'
            f'"name":{string_text(name)},"ts_ms":'
        )
        self._between = f',"db":{string_text(database)},"sequence":null,"ts_us":'
        self._table = f',"table":{optional_text(table)},"server_id":'

    def prefix(
        self, micros: int, snapshot: Snapshot | None, server_id: int, gtid: str | None, file: str, pos: int
    ) -> str:
        """Return the text before the row number.

        Args:
            micros: time of the change, in µs since the epoch.
            snapshot: the snapshot marker of the record, or `stream_snapshot_marker`.
            server_id: id of the server that made the change, 0 in a snapshot.
            gtid: GTID of the transaction.
            file: binlog file of the event.
            pos: position of the event.
        """
        marker = "null" if snapshot is None else f'"{snapshot}"'
        transaction = "null" if gtid is None else string_text(gtid)
        return (
            f'{self._before_time}{micros // 1000},"snapshot":{marker}{self._between}{micros},"ts_ns":'
            f"{micros * 1000}{self._table}{server_id},"
            f'"gtid":{transaction},"file":{string_text(file)},"pos":{pos},"row":'
        )

    @staticmethod
    def suffix(thread: int | None, query: str | None) -> str:
        """Return the text after the row number."""
        statement = "null" if query is None else string_text(query)
        return f',"thread":{"null" if thread is None else thread},"query":{statement}}}'


def source_value(
    connector: str,
    name: str,
    database: str,
    table: str | None,
    *,
    micros: int,
    snapshot: Snapshot | None,
    server_id: int,
    gtid: str | None,
    file: str,
    pos: int,
    row: int,
    thread: int | None,
    query: str | None,
) -> dict[str, Any]:
    """Return ``source`` as a Connect value."""
    return {
        "version": VERSIONS[connector],
        "connector": connector,
        "name": name,
        "ts_ms": micros // 1000,
        "snapshot": snapshot,
        "db": database,
        "sequence": None,
        "ts_us": micros,
        "ts_ns": micros * 1000,
        "table": table,
        "server_id": server_id,
        "gtid": gtid,
        "file": file,
        "pos": pos,
        "row": row,
        "thread": thread,
        "query": query,
    }
