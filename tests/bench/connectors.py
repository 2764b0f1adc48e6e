"""The two connectors that are compared, each in its own process, with the same database and broker.

Both can be paused and started any number of times, and resume at their stored offset.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from pathlib import Path

from tests.support.kafka.connect import KafkaConnect
from tests.support.processes.rowtide_process import RowtideProcess

__all__ = ["DEFAULT", "TUNED", "Connector", "Debezium", "Rowtide"]

TUNED = {
    "producer.override.compression.type": "lz4",
    "producer.override.batch.size": "524288",
    "max.batch.size": "8192",
    "max.queue.size": "32768",
}
"""Settings that make Debezium fast. Its defaults are small batches without compression."""
DEFAULT: dict[str, str] = {}

_EXACTLY_ONCE = "exactly.once.source.support"
_OF_WORKER = {_EXACTLY_ONCE}
"""Properties of the worker, not of the connector."""

_OFFSETS_S = 5.0
"""Kafka Connect stores offsets at an interval, and not when a connector is stopped before."""


class Rowtide(RowtideProcess):
    """rowtide, as a user runs it; with `module`, also with names of its threads in ``/proc``."""

    kind = "rowtide"

    @property
    def exactly_once(self) -> bool:
        """Whether records and offsets are delivered in transactions."""
        return self._config.get(_EXACTLY_ONCE) == "enabled"

    def pause(self) -> None:
        """End the process."""
        self.stop()

    def successor(self, name: str, properties: Mapping[str, str]) -> Rowtide:
        """A new connector."""
        return Rowtide(name, properties, self._config["bootstrap.servers"])


class Debezium(KafkaConnect):
    """Debezium in Kafka Connect, from a folder with ``kafka/*.jar`` (including Connect's) and ``debezium-mysql/*.jar``.

    The process of the worker stays when the connector is paused, as in production, so that its code remains compiled.

    Args:
        name: the name of the connector.
        properties: the properties of the connector.
        bootstrap: the addresses of Kafka.
    """

    kind = "Debezium"
    programs = Path()

    def __init__(self, name: str, properties: Mapping[str, str], bootstrap: str) -> None:
        of_worker = {key: text for key, text in properties.items() if key in _OF_WORKER}
        plugins = ["debezium-mysql", *(["confluent"] if (self.programs / "confluent").is_dir() else [])]
        super().__init__(name, self.programs, plugins, bootstrap, worker=of_worker)
        self.exactly_once = of_worker.get(_EXACTLY_ONCE) == "enabled"
        self._properties = _of_connector(properties)
        self._created = False

    def start(self, folder: Path) -> None:
        if self._created:
            self.resume(self.name)
            return
        if not self.alive():
            super().start(folder)
        self.create(self.name, self._properties)
        self._created = True

    def successor(self, name: str, properties: Mapping[str, str]) -> Debezium:
        """A new connector in the same worker."""
        other = copy(self)
        other.name, other._properties, other._created = name, _of_connector(properties), False
        return other

    def pause(self) -> None:
        """Stop the connector, but not the worker."""
        time.sleep(_OFFSETS_S)
        self.halt(self.name)


def _of_connector(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in properties.items() if key not in _OF_WORKER}


Connector = Rowtide | Debezium
