"""What a message costs as the work grows: its size, columns, tables, and rows in a transaction; without servers.

    python -m tests.bench.growth [--only NAME] [--rounds N]

Made events go through the pipeline, from their bytes to Debezium's messages. The processor time for each message must
not grow with the number of tables or rows; for each byte or column it must fall or stay. The least of the rounds
counts, so what happens at the first row of a table does not; it is in the section of many tables.
"""

from __future__ import annotations

import argparse
import logging
import struct
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide.connector.pipeline.pipeline import Pipeline  # noqa: E402
from rowtide.connector.protocol.header import EventType  # noqa: E402
from rowtide.connector.records.batch import Batch  # noqa: E402
from rowtide.connector.records.offset import SourceOffset  # noqa: E402
from rowtide.schema_history.catalog.tables import Tables  # noqa: E402
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server  # noqa: E402
from tests.bench.stages import processor_times, settings  # noqa: E402
from tests.support.mysql.packets import captured, event  # noqa: E402 - after the path

BEGIN = event(EventType.QUERY, struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0BEGIN")
END = event(EventType.XID, bytes(8))
_INT, _TEXT = 3, 252
_SOURCE = uuid.UUID("5f0c3a52-0000-4000-8000-000000000001")
_EVENT_BYTES = 8192
"""MySQL's ``binlog_row_event_max_size``: rows of one event, if more than one row fits."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Tables of an INT key and further columns, and the rows that are written to them in turn.

    Attributes:
        rows: number of rows.
        tables: number of tables.
        columns: INT columns of each, with the key.
        text: bytes of a MEDIUMTEXT column; 0 for none.
        transaction: rows of a transaction.
        single: an event for each row.
        query: bytes of the statement, with ``include.query``.
        options: further properties of the connector.
    """

    rows: int
    tables: int = 1
    columns: int = 3
    text: int = 0
    transaction: int = 100
    single: bool = False
    query: int = 0
    options: tuple[tuple[str, str], ...] = ()


def growing() -> dict[str, list[tuple[str, Shape]]]:
    """The shapes by what grows in them, each with its size."""
    metadata = (("provide.transaction.metadata", "true"),)
    query = (("include.query", "true"),)
    return {
        "bytes of a message": [
            (str(size), Shape(rows=max(20, min(20_000, 20_000_000 // size)), text=size))
            for size in (10, 100, 1000, 10_000, 100_000, 1_000_000)
        ],
        "columns": [
            (str(count), Shape(rows=max(200, 100_000 // count), columns=count)) for count in (2, 10, 100, 1000)
        ],
        "tables, an event for each row": [
            (str(count), Shape(rows=20_000, tables=count, single=True)) for count in (1, 10, 100, 1000, 10_000)
        ],
        "rows of a transaction": [
            (str(count), Shape(rows=max(count, 20_000), transaction=count))
            for count in (1, 10, 100, 1000, 10_000, 100_000, 1_000_000)
        ],
        "tables of a transaction, with its metadata": [
            (str(count), Shape(rows=20_000, tables=count, transaction=20_000, single=True, options=metadata))
            for count in (1, 10, 100, 1000, 10_000)
        ],
        "bytes of the statement, with include.query": [
            (str(size), Shape(rows=max(20, min(20_000, 20_000_000 // size)), query=size, options=query))
            for size in (10, 100, 1000, 10_000, 100_000, 1_000_000)
        ],
    }


def structures(shape: Shape) -> Tables:
    """The tables of a shape."""
    tables = Tables(Server(Flavor.MYSQL, "9.7.0"))
    text = ", body MEDIUMTEXT NOT NULL" if shape.text else ""
    columns = "".join(f", c{number} INT NOT NULL" for number in range(1, shape.columns))
    statements = [f"CREATE TABLE t{number} (id INT PRIMARY KEY{columns}{text})" for number in range(shape.tables)]
    for statement in ["CREATE DATABASE d CHARACTER SET utf8mb4", *statements]:
        tables.apply(QueryEvent(statement, "d"))
    return tables


def events(shape: Shape) -> Iterator[bytes]:
    """The events of all transactions: in turn, each event is one of the next table."""
    image = b"\0" * ((shape.columns + (shape.text > 0) + 7) // 8)
    body = len(b"x" * shape.text).to_bytes(3, "little") + b"x" * shape.text if shape.text else b""
    size = len(image) + 4 * shape.columns + len(body)
    most = 1 if shape.single else max(1, _EVENT_BYTES // size)
    number = table = transaction = 0
    statement = event(EventType.ROWS_QUERY, b"\0" + b"-" * shape.query) if shape.query else None
    while number < shape.rows:
        end = min(number + shape.transaction, shape.rows)
        transaction += 1
        yield event(EventType.GTID, b"\x01" + _SOURCE.bytes + struct.pack("<qBqq", transaction, 2, number, number + 1))
        yield BEGIN
        if statement:
            yield statement
        while number < end:
            count = min(most, end - number)
            rows = [image + struct.pack("<i", number + row) * shape.columns + body for row in range(count)]
            yield _table_map(shape, table)
            yield _written(shape, table, b"".join(rows))
            number += count
            table = (table + 1) % shape.tables
        yield END


def _table_map(shape: Shape, table: int) -> bytes:
    name = f"t{table}".encode()
    count = shape.columns + (shape.text > 0)
    types = bytes([_INT]) * shape.columns + (bytes([_TEXT]) if shape.text else b"")
    metadata = b"\x01\x03" if shape.text else b"\0"
    head = (table + 1).to_bytes(6, "little") + b"\x01\0" + b"\x01d\0" + bytes([len(name)]) + name + b"\0"
    return event(EventType.TABLE_MAP, head + _packed(count) + types + metadata + b"\0" * ((count + 7) // 8))


def _written(shape: Shape, table: int, images: bytes) -> bytes:
    count = shape.columns + (shape.text > 0)
    head = (table + 1).to_bytes(6, "little") + b"\x01\0" + b"\x02\0" + _packed(count) + b"\xff" * ((count + 7) // 8)
    return event(EventType.WRITE_ROWS, head + images)


def _packed(number: int) -> bytes:
    return bytes([number]) if number < 251 else b"\xfc" + number.to_bytes(2, "little")


def started(shape: Shape) -> Pipeline:
    """A pipeline at the head of a stream, with the tables of a shape."""
    chosen = settings("without schemas", dict(shape.options))
    pipeline = Pipeline(chosen, structures(shape), SourceOffset("binlog.000001", 4, ""), lambda: 1)
    messages(pipeline, captured("mysql")[:2])
    return pipeline


def messages(pipeline: Pipeline, packets: list[bytes]) -> int:
    """Make the messages of the events, and count those of rows."""
    count = at = 0
    while at < len(packets):
        steps, at = pipeline.receive_next(packets, at)
        for step in steps:
            count += sum(
                len(output.messages) for output in step if isinstance(output, Batch) and ".d.t" in output.topic
            )
    return count


def main() -> None:
    """Measure, and print a table."""
    shapes = growing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(shapes), help="what grows")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print("| what grows | size | messages | µs for each | messages/s |\n| --- | --: | --: | --: | --: |")
    for name, sizes in shapes.items():
        for size, shape in sizes if options.only in {None, name} else ():
            made = partial(messages, started(shape), list(events(shape)))
            counts, seconds = processor_times(made, options.rounds)
            each = min(seconds) / counts[0]
            print(f"| {name} | {size} | {counts[0]} | {each * 1e6:.2f} | {1 / each:.0f} |", flush=True)


if __name__ == "__main__":
    main()
