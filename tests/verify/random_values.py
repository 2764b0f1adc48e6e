"""Compares random values of every type: from a snapshot and the binlog in the topic, with the source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.mysql.random_values import LOOSE, RandomRows
from tests.support.processes.worker_process import Worker, WorkerConfig
from tests.verify.damages import MORE, report

if TYPE_CHECKING:
    from rowtide_stack import Database

_SIDES = ("source", "topic")


def compared(
    database: Database, bootstrap: str, folder: Path, number: int, seed: int, form: str
) -> tuple[int, list[Any]]:
    """Insert and change rows, and verify the table.

    Args:
        database: an empty database.
        bootstrap: the addresses of Kafka.
        folder: the folder of the worker's files.
        number: the number of values.
        seed: determines the values.
        form: the value of ``rowtide.values``.

    Returns:
        The number of values that were compared, and what was reported as different or undecided.
    """
    given = MORE | {f"{side}.converter.schemas.enable": "true" for side in ("key", "value")}
    given |= {"database.include.list": database.name, "rowtide.values": form}
    given |= {"bigint.unsigned.handling.mode": "precise"}
    config = WorkerConfig(folder, database.server, bootstrap, given)
    table = RandomRows(database.server.name, "mixed", seed=seed)
    rows = number // table.width // 2 + 1
    database.execute(LOOSE, table.table, *table.inserts(rows))
    with Worker(config).streaming() as worker:
        database.execute(LOOSE, *table.inserts(rows), *table.changes(rows // 50))
        status, document = report(config, "--timeout", "600")
        worker.stop()
    (found,) = document["tables"]
    problems = [found["reason"]] * (status == 2)
    for one in found["differences"]:
        shown = ((name, (one[side] or {}).get(name)) for name in one["columns"] for side in _SIDES)
        problems.append((one["kind"], one["key"], *shown))
    return found["source_rows"] * table.width, problems
