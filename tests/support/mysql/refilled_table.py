"""A table that a worker reads again by signals, while its rows change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.changing_rows import ChangingRows
from tests.support.processes.worker_process import Worker

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

__all__ = ["ROWS", "Refilled"]

ROWS = 2000


class Refilled(ChangingRows):
    """The table ``t``, which a connector reads again.

    Args:
        database: its database.
        kafka: the broker.
        folder: for the configuration.
        more: further properties.
    """

    def __init__(self, database: Database, kafka: Kafka, folder: Path, more: dict[str, str]) -> None:
        rows = ", ".join(f"({key}, {key})" for key in range(ROWS))
        database.execute(
            "CREATE TABLE sig (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))",
            "CREATE TABLE t (id INT PRIMARY KEY, ver INT)",
            f"INSERT INTO t VALUES {rows}",
        )
        signal_table = {"signal.data.collection": f"{database.name}.sig"} if "signal.data.collection" in more else {}
        properties = {
            "database.include.list": database.name,
            "table.include.list": f"{database.name}.t",
            "snapshot.mode": "no_data",
            **more,
            **signal_table,
        }
        super().__init__(database, kafka, folder, ROWS, 0.005, properties)

    def signal(self, worker: Worker, kind: str, signal_id: str = "s", **more: object) -> None:
        """Send a signal for the table, with further data."""
        data = {"data-collections": [rf"{self.database.name}\.t"], **more}
        body = json.dumps({"id": signal_id, "type": kind, "data": data})
        status, text = worker.send("POST", f"/connectors/{self.config.name}/signals", body)
        assert status < 300, text
