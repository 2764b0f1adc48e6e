"""Rows as Python values: ``rowtide.Engine`` and both ``BinLogStreamReader``, rowtide's and mysql-replication's.

    python -m tests.bench.python_values [--rows THOUSANDS] [--rounds N]

Each reads the same changes from the same place in a process of its own, one after the other; every value is decoded. A
round is timed from the first row to the last, by the reading process itself.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from tests.bench.load import Load  # noqa: E402 - after the path

READERS = ("rowtide", "rowtide.mysql_replication", "mysql-replication")


def images(load: Load) -> int:
    """Row images of a load's changes: two for each update."""
    return 2 * load.rows + 2 * (load.rows // 2) + load.rows // 4


def rowtide_rows(request: dict[str, Any]) -> Iterator[int]:
    """Read with rowtide; yields the number of row images of each batch."""
    import rowtide

    with tempfile.TemporaryDirectory() as folder:
        properties = {
            **request["properties"],
            "schema.history.internal.file.filename": f"{folder}/history",
            "offset.storage.file.filename": f"{folder}/offsets",
        }
        _place(f"{folder}/offsets", request, properties)
        with rowtide.Engine(properties) as engine:
            for batch in engine:
                count = 0
                for change in batch:
                    if change.before is not None:
                        count += 1
                    if change.after is not None:
                        count += 1
                batch.ack()
                yield count


def _place(offsets: str, request: dict[str, Any], properties: dict[str, str]) -> None:
    """Let the engine begin where the changes begin: a first start takes the structure, and stores its position."""
    import rowtide
    from rowtide.connector.delivery.file_offset_store import FileOffsetStore
    from rowtide.connector.records.offset import SourceOffset

    with rowtide.Engine({**properties, "snapshot.mode": "no_data", "heartbeat.interval.ms": "100"}) as engine:
        while not Path(offsets).exists():
            engine.get(timeout=0.1)
    store = FileOffsetStore(Path(offsets), properties["topic.prefix"], properties["topic.prefix"])
    store.save(SourceOffset(request["file"], request["pos"]))


def mysql_replication_rows(request: dict[str, Any]) -> Iterator[int]:
    """Read with one of the two ``BinLogStreamReader``; yields the number of row images of each event."""
    if request["reader"] == "mysql-replication":
        from pymysqlreplication import BinLogStreamReader
    else:
        from rowtide.mysql_replication import BinLogStreamReader
    from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

    stream = BinLogStreamReader(
        connection_settings=request["connection"],
        server_id=int(request["properties"]["database.server.id"]) + 1,
        log_file=request["file"],
        log_pos=request["pos"],
        resume_stream=True,
        blocking=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
        use_column_name_cache=True,
    )
    for event in stream:
        yield sum(2 if "before_values" in row else 1 for row in event.rows)


def read(request: dict[str, Any]) -> None:
    """Read until all images have come; prints seconds and processor time as JSON."""
    rows = rowtide_rows(request) if request["reader"] == "rowtide" else mysql_replication_rows(request)
    done, begin, cpu = 0, 0.0, 0.0
    for count in rows:
        if not begin:
            begin, cpu = time.monotonic(), _cpu()
        done += count
        if done >= request["images"]:
            break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": time.monotonic() - begin, "cpu": _cpu() - cpu, "rows": done, "peak_mb": peak}))
    sys.stdout.flush()
    os._exit(0)


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(server: Any, database: Any, load: Load, rounds: int) -> list[dict[str, Any]]:
    """Make the load, and let each reader read it in turn."""
    from tests.support.connector_properties import connector_properties

    database.execute(*load.setup())
    file, pos = server.query("SHOW BINARY LOG STATUS")[0][:2]
    database.execute(*load.changes())
    settings = {"host": server.host, "port": server.port, "user": server.user, "passwd": server.password}
    found = []
    for number in range(rounds):
        for reader in READERS:
            properties = connector_properties(f"values{number}", server, database.name, {})
            properties["table.include.list"] = ",".join(f"{database.name}.{table}" for table in load.tables)
            request = {"reader": reader, "properties": properties, "connection": settings, "file": file, "pos": pos}
            text = json.dumps({**request, "images": images(load)})
            command = [sys.executable, "-m", "tests.bench.python_values", "--read"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=ROOT)
            if done.returncode:
                raise SystemExit(f"{reader} failed:\n{done.stderr}")
            found.append({"reader": reader, **json.loads(done.stdout.splitlines()[-1])})
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100, help="rows of each of the two tables, in thousands")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read(json.load(sys.stdin))
    from rowtide_stack import MySQL

    with MySQL() as server, server.database("values") as database:
        figures = measure(server, database, Load(few=options.rows), options.rounds)
    print("| reader | rows | seconds | rows/s | CPU s | peak MB |\n| --- | --: | --: | --: | --: | --: |")
    for one in figures:
        rate = one["rows"] / one["seconds"]
        cells = (
            one["reader"],
            one["rows"],
            f"{one['seconds']:.1f}",
            f"{rate:.0f}",
            f"{one['cpu']:.1f}",
            f"{one['peak_mb']:.0f}",
        )
        print("| " + " | ".join(map(str, cells)) + " |")
    best = {
        reader: max(one["rows"] / one["seconds"] for one in figures if one["reader"] == reader) for reader in READERS
    }
    for reader in READERS[:-1]:
        print(f"\n{reader} reads {best[reader] / best['mysql-replication']:.1f} times as many rows a second")


if __name__ == "__main__":
    main()
