"""Measures what very many tables cost: recovery of the schema history, first rows, a reconnect, and DDL.

python -m tests.bench.many_tables [--tables 100000] [--used 10000]
"""

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.connector.protocol.header import EventHeader
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.recovery.session_settings import required_sessions
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import HistoryRecord, history_record, parse_record
from tests.support.configurations import PROPERTIES

SERVER = Server(Flavor.MYSQL, "8.4.3")
START = SourceOffset("binlog.000001", 4)
COLUMNS = (
    "id BIGINT PRIMARY KEY, name VARCHAR(100), price DECIMAL(10,2), created DATETIME(3), a INT NOT NULL, note TEXT"
)
MAPPED = tuple(
    MappedColumn(code, metadata, nullable)
    for code, metadata, nullable in (
        (BinlogType.LONGLONG, 0, False), (BinlogType.VARCHAR, 400, True), (BinlogType.NEWDECIMAL, 10 << 8 | 2, True),
        (BinlogType.DATETIME2, 3, True), (BinlogType.LONG, 0, False), (BinlogType.BLOB, 2, True),
    )
)  # fmt: skip
ROW = b"\x2e" + bytes(12)
"""NULL but for ``id`` and ``a``."""


def records(number: int) -> Iterator[HistoryRecord]:
    """Records of tables, made from that of one, because creating all would take minutes."""
    tables = Tables(SERVER)
    tables.apply(QueryEvent("CREATE DATABASE shop", ""))
    (change,) = tables.apply(QueryEvent(f"CREATE TABLE t_0_ ({COLUMNS})", "shop")).changes
    template = json.dumps(json.loads(history_record(change, "p", {"file": "binlog.000001", "pos": 987654321}, 1)))
    for place in range(number):
        yield parse_record(template.replace("t_0_", f"t{place}").replace("987654321", str(place)))


def decode(captured: CapturedTables, name: str) -> None:
    """Find a table for a new TABLE_MAP, and decode a row."""
    found = captured.find(TableStructure("shop", name, MAPPED), Progress(START), lambda: START).table
    assert found is not None
    header = EventHeader(0, 30, 1, len(ROW), len(ROW), 0)
    event = Rows(header, RowsKind.WRITE, 1, 0, len(MAPPED), b"\x3f", b"\x3f", False, b"", ROW, 0, len(ROW))
    assert len(found.codec.rows(event)) == 1


def resident() -> float:
    """Resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Report:
    """Prints the CPU time of one step after the other, and the memory after it."""

    def __init__(self) -> None:
        self._begin = time.process_time()
        print("| step | tables | CPU s | ms for each | MB |\n| --- | --: | --: | --: | --: |")

    def step(self, what: str, tables: int) -> None:
        """End a step."""
        seconds = time.process_time() - self._begin
        print(f"| {what} | {tables} | {seconds:.1f} | {seconds / tables * 1e3:.3f} | {resident():.0f} |", flush=True)
        self._begin = time.process_time()


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--used", type=int, default=10_000, help="number of tables that get rows or statements")
    options = parser.parse_args()
    settings, used = pipeline_settings(from_properties(PROPERTIES), "run"), min(options.used, options.tables)
    report = Report()
    tables = recover(records(options.tables), SERVER, None)
    report.step("recovery", options.tables)
    captured = CapturedTables(settings, tables, time.time_ns)
    report.step("topics", options.tables)
    for place in range(used):
        decode(captured, f"t{place}")
    report.step("first row of a table", used)
    kept = len(captured)
    for place in range(used - kept, used):
        decode(captured, f"t{place}")
    report.step("first row after a reconnect", kept)
    for place in range(used):
        event = QueryEvent(f"RENAME TABLE t{place} TO r{place}", "shop")
        required_sessions(tables, event, result := tables.apply(event))
        for table, after in result.altered:
            captured.changed(table, exists=after is not None)
    report.step("RENAME TABLE", used)
    for place in range(used):
        event = QueryEvent(f"DROP TABLE r{place}", "shop")
        required_sessions(tables, event, result := tables.apply(event))
        for table, after in result.altered:
            captured.changed(table, exists=after is not None)
    report.step("DROP TABLE", used)
    assert len(tables) == options.tables - used


if __name__ == "__main__":
    main()
