"""Measures how long a start needs to read a large schema history, and how much memory it uses.

python -m tests.bench.recovery [--tables 10000] [--alters 4] [--all] [--compact]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.compacting_history import save_summary
from rowtide.schema_history.compaction.history_reader import StoredHistory, read_history
from rowtide.schema_history.compaction.summary_store import FileSummaries
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_record import history_record
from tests.bench.measure import peak_bytes

SERVER = Server(Flavor.MYSQL, "8.4.3")
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
COLUMNS = (
    "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(100) NOT NULL DEFAULT '', "
    "price DECIMAL(10,2), created DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), status ENUM('new','paid') NOT NULL, "
    "note TEXT, UNIQUE KEY u (name)"
)


def statements(tables: int, alters: int) -> Iterator[str]:
    """Statements that create tables and then alter each of them a few times."""
    yield "CREATE DATABASE shop"
    for number in range(tables):
        yield f"CREATE TABLE t{number} ({COLUMNS}) COMMENT 'number {number}'"
    for alter in range(alters):
        for number in range(tables):
            yield f"ALTER TABLE t{number} ADD COLUMN extra{alter} INT NULL DEFAULT 5 COMMENT 'added'"


def write(path: Path, tables: int, alters: int) -> int:
    """Write the history; returns the number of its records."""
    history, model, written = FileSchemaHistory(path), Tables(SERVER), 0
    with history.buffered():
        for number, statement in enumerate(statements(tables, alters), 1):
            position = {"file": "binlog.000003", "pos": 1000 + number * 100, "gtids": f"{UUID}:1-{number}"}
            for change in model.apply(QueryEvent(statement, "shop")).changes:
                history.append(history_record(change, "p", position, number))
                written += 1
    history.close()
    return written


def summarise(path: Path) -> int:
    """Write the summary of the history; returns its size in bytes."""
    kept = StoredHistory(FileSchemaHistory(path), "p", FileSummaries(path))
    wall, cpu = time.perf_counter(), time.process_time()
    save_summary(kept, read_history(kept, SERVER, None), 0)
    report("writing the summary", wall, cpu)
    return len(next(FileSummaries(path).load()))


def _elsewhere(work: Callable[..., int], *arguments: Any) -> int:
    """Call a function in another process, so that its memory does not count."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def main() -> None:
    """Write a history in another process, read it in this one, and print time and memory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--alters", type=int, default=4, help="number of ALTER statements for each table")
    parser.add_argument("--compact", action="store_true", help="write the summary, and read that instead")
    parser.add_argument("--all", action="store_true", help="then build the structures of all tables")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.jsonl")
        records = _elsewhere(write, path, options.tables, options.alters)
        if options.compact:
            packed = _elsewhere(summarise, path)
            print(f"the summary has {packed / 1e6:.1f} MB")
        size = path.stat().st_size / 1e6
        base = peak_bytes(os.getpid()) / 2**20
        wall, cpu = time.perf_counter(), time.process_time()
        kept = StoredHistory(FileSchemaHistory(path), "p", FileSummaries(path) if options.compact else None)
        end = BinlogPosition("binlog.000009", 4, f"{UUID}:1-{records + 1}")
        tables = read_history(kept, SERVER, end).tables()
        report("recovery", wall, cpu)
        print(f"{len(tables)} tables of {records} records, {size:.0f} MB; writing them took up to {base:.0f} MB")
        if options.all:
            wall, cpu = time.perf_counter(), time.process_time()
            built = len(list(tables))
            report(f"building {built} tables", wall, cpu)


def report(what: str, wall: float, cpu: float) -> None:
    """Print a line with the time, the CPU time and the peak memory since a start."""
    peak = peak_bytes(os.getpid()) / 2**20
    print(f"{what}: {time.perf_counter() - wall:.1f} s, CPU {time.process_time() - cpu:.1f} s, peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
