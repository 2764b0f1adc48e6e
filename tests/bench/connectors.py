"""The two connectors that are compared, each as a process of its own over the same database and broker.

Each can be started and stopped any number of times, and goes on from where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from kafka_connect import KafkaConnect
from rowtide_process import RowtideProcess

__all__ = ["DEFAULT", "TUNED", "Connector", "Debezium", "Rowtide"]

TUNED = {
    "producer.override.compression.type": "lz4",
    "producer.override.batch.size": "524288",
    "max.batch.size": "8192",
    "max.queue.size": "32768",
}
"""What makes Debezium fast: small batches and no compression are its defaults."""
DEFAULT: dict[str, str] = {}

_OFFSETS_S = 5.0
"""Connect stores offsets every second, and not when it is told to stop before."""


class Rowtide(RowtideProcess):
    """rowtide, as a user runs it."""

    kind = "rowtide"


class Debezium(KafkaConnect):
    """Debezium in Kafka Connect, from a folder that has ``kafka/*.jar`` (with Connect's) and ``debezium-mysql/*.jar``.

    Stopped and started, the worker's process goes on, as it does in use: its code stays compiled.

    Args:
        name: of the connector.
        properties: of the connector.
        bootstrap: Kafka.
    """

    kind = "Debezium"
    programs = Path()

    def __init__(self, name: str, properties: Mapping[str, str], bootstrap: str) -> None:
        super().__init__(name, self.programs, ["debezium-mysql"], bootstrap)
        self._properties = properties

    def start(self, folder: Path) -> None:
        if self.alive():
            self.resume(self.name)
        else:
            super().start(folder)
            self.create(self.name, self._properties)

    def pause(self) -> None:
        """Stop the connector, and keep the worker."""
        time.sleep(_OFFSETS_S)
        self.halt(self.name)


Connector = Rowtide | Debezium
