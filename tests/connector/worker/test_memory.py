"""The memory of a worker does not grow with a transaction.

Each test measures the peak of the process's resident memory (``VmHWM``), because a limit of the address space would
count the stacks of threads and what librdkafka reserves. ``TRANSACTION_ROWS`` sets the rows of a transaction, of
2 KB each, and about 12 KB as messages: 500 000 of them are a transaction of 1 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.worker_process import STREAMING, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

LARGE_ROW_LIMIT_MB = 512
"""Above the rest, the row in the packet, as text and as message, and twice where one is made from the other."""
ROWS = int(os.environ.get("TRANSACTION_ROWS", "25000"))
ROW_BYTES = 2000
QUEUE_BYTES = 16 << 20
LIMIT_MB = 256
"""A worker needs 100 to 130 MB; the messages of one transaction have at least 300 MB."""


def worker_config(folder: Path, database: Database) -> WorkerConfig:
    """A configuration without Kafka, whose event store is small."""
    more = {
        "database.include.list": database.name,
        "snapshot.mode": "no_data",
        "schema.history.internal.file.filename": str(folder / "history.jsonl"),
        "offset.storage.file.filename": str(folder / "offsets.dat"),
        "include.schema.changes": "false",
        "max.queue.size.in.bytes": str(QUEUE_BYTES),
        "value.converter.schemas.enable": "true",
    }
    config = WorkerConfig(folder, database.server, "", more)
    for name in [name for name in config.properties if "kafka" in name or name == "bootstrap.servers"]:
        del config.properties[name]
    return config


class MeasuredWorker:
    """A worker that writes records to a pipe, which is read at once."""

    def __init__(self, config: WorkerConfig) -> None:
        self._log = config.folder / "log"
        command = [sys.executable, "-m", "rowtide", "run", str(config.path), "--no-web", "--sink", "stdout"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=config.folder)
        eventually(lambda: STREAMING in self._log.read_text() or self._process.poll() is not None, "the stream")

    def ids(self, count: int) -> list[int]:
        """The ids of the next records."""
        assert self._process.stdout is not None
        found = []
        for line in self._process.stdout:
            found.append(
                json.loads(line[line.index(b'"key":') + 6 : line.index(b"}", line.index(b'"key":')) + 1])["id"]
            )
            if len(found) == count:
                return found
        raise AssertionError(f"the worker has ended after {len(found)} records:\n{self._log.read_text()}")

    def peak_mb(self) -> int:
        """The peak of its resident memory in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) // 1024

    def end(self) -> None:
        """Kill it: what it has written is all that counts."""
        self._process.kill()
        self._process.communicate()


def filled(database: Database) -> None:
    """Create the tables: ``numbers`` from 1 to 1000, and ``t``, whose schema alone is some KB."""
    columns = ", ".join(f"column_{number} INT NOT NULL DEFAULT 0" for number in range(20))
    numbers = ",".join(f"({number})" for number in range(1000))
    database.execute(
        f"CREATE TABLE t (id INT PRIMARY KEY, pad LONGTEXT, {columns})",
        "CREATE TABLE numbers (n INT PRIMARY KEY)",
        f"INSERT INTO numbers VALUES {numbers}",
    )


INSERT = (
    f"INSERT INTO t (id, pad) SELECT a.n * 1000 + b.n, RPAD(b.n, {ROW_BYTES}, SHA2(a.n, 256)) "
    f"FROM numbers a JOIN numbers b WHERE a.n * 1000 + b.n < {ROWS}"
)
XA = ("XA START 'x'", INSERT, "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
TRANSACTIONS = {
    "plain": ("mysql", (INSERT,)),
    "compressed": ("mysql", ("SET SESSION binlog_transaction_compression=ON", INSERT)),
    "xa": ("mysql", XA),
    "xa-compressed": ("mysql", ("SET SESSION binlog_transaction_compression=ON", *XA)),
    "xa-one-phase": ("mysql", (*XA[:3], "XA COMMIT 'x' ONE PHASE")),
    "mariadb-xa": ("mariadb", XA),
}


@pytest.mark.parametrize("kind", TRANSACTIONS)
def test_memory_does_not_grow_with_a_transaction(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    name, statements = TRANSACTIONS[kind]
    database: Database = request.getfixturevalue(f"{name}_db")
    filled(database)
    worker = MeasuredWorker(worker_config(tmp_path, database))
    try:
        with database.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            connection.commit()
        assert sorted(worker.ids(ROWS)) == list(range(ROWS))
        peak = worker.peak_mb()
        print(f"{kind}: {ROWS} rows, peak {peak} MB")  # the figure of a long run
        assert peak < LIMIT_MB
    finally:
        worker.end()


@pytest.fixture
def large_packets(mysql_db: Database) -> Iterator[None]:
    """Let statements have rows of more than 64 MB."""
    server = mysql_db.server
    ((before,),) = server.query("SELECT @@GLOBAL.max_allowed_packet")
    server.execute("SET GLOBAL max_allowed_packet = 268435456")
    yield
    server.execute(f"SET GLOBAL max_allowed_packet = {before}")


@pytest.mark.usefixtures("large_packets")
@pytest.mark.parametrize("compressed", ["OFF", "ON"])
def test_a_row_of_64_mb(compressed: str, mysql_db: Database, tmp_path: Path) -> None:
    filled(mysql_db)
    worker = MeasuredWorker(worker_config(tmp_path, mysql_db))
    try:
        with mysql_db.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET SESSION binlog_transaction_compression = {compressed}")
            cursor.execute(f"INSERT INTO t (id, pad) VALUES (1, REPEAT('x', {64 << 20})), (2, 'small')")
            connection.commit()
        assert worker.ids(2) == [1, 2]
        peak = worker.peak_mb()
        print(f"a row of 64 MB, compression {compressed}: peak {peak} MB")  # the figure of a long run
        assert peak < LARGE_ROW_LIMIT_MB
    finally:
        worker.end()
