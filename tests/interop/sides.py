"""The two sides, with the same properties, offsets topic and schema history."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.support.kafka.connect import KafkaConnect
from tests.support.processes.rowtide_process import RowtideProcess

if TYPE_CHECKING:
    from rowtide_stack import Kafka

__all__ = ["Debezium", "Rowtide", "Side"]


class Side(Protocol):
    """A connector that can be started and stopped."""

    name: str

    def start(self) -> None:
        """Start, resuming at the stored offset of the connector."""

    def stop(self) -> None:
        """Stop cleanly: everything that was read is delivered, and the offset is stored."""

    def failure(self) -> str | None:
        """The error with which it has ended; ``None`` if it has not ended."""


class Debezium:
    """Debezium in a Kafka Connect worker."""

    name = "Debezium"

    def __init__(self, connector: str, properties: Mapping[str, str], worker: KafkaConnect) -> None:
        self._connector = connector
        self._properties = properties
        self._worker = worker
        self._created = False

    def start(self) -> None:
        if self._created:
            self._worker.resume(self._connector)
        else:
            self._worker.create(self._connector, self._properties)
        self._created = True
        self._worker.wait(lambda: self._worker.states(self._connector) not in ([], ["UNASSIGNED"]))

    def stop(self) -> None:
        self._worker.halt(self._connector)

    def failure(self) -> str | None:
        tasks = self._worker.status(self._connector)["tasks"]
        return next((task.get("trace", "") for task in tasks if task["state"] == "FAILED"), None)


class Rowtide:
    """``rowtide run`` with the properties of the connector and the offsets topic of the Connect worker."""

    name = "rowtide"

    def __init__(self, connector: str, properties: Mapping[str, str], kafka: Kafka, offsets: str, folder: Path) -> None:
        own = {"offset.storage.topic": offsets, "offset.flush.interval.ms": "500"}
        self._process = RowtideProcess(connector, {**properties, **own}, kafka.bootstrap)
        self._folder = folder

    def start(self) -> None:
        self._process.start(self._folder)

    def stop(self) -> None:
        self._process.stop()

    def failure(self) -> str | None:
        return "\n".join(self._process.output().splitlines()[-15:]) if self._process.ended() else None
