"""Statuses of connectors, for tests of what a worker shows."""

from __future__ import annotations

from typing import Any

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.worker.status import Status

__all__ = ["OFFSET", "UUID", "status"]

UUID = "1e0355b3-e5bc-11f1-acec-02fc00000001"
OFFSET = SourceOffset("binlog.000007", 1234, f"{UUID}:1-3:5-9,{UUID}:red:1-2", event=2, row=1)


def status(**fields: Any) -> Status:
    """A status; all fields that are not given have a default."""
    known: dict[str, Any] = {
        "name": 'a"b\\c',
        "prefix": "shop",
        "flavor": "mysql",
        "tags": {"the-team": "x\ny"},
        "state": "RUNNING",
        "started_at": 1000.0,
        "run_started_at": 1030.0,
        "now": 1060.5,
        "error": None,
        "restarts": 0,
        "reader": None,
        "delivery": None,
        "queue": None,
        "sink": "Kafka",
        "stored": None,
        "snapshot": {},
    }
    return Status(**{**known, **fields})
