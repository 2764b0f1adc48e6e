"""The two connectors, each with the same properties, offsets topic and schema history."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kafka_connect import JSON_CONVERTER, KafkaConnect, spawn, terminate
from rowtide_stack.ports import free_port

if TYPE_CHECKING:
    from rowtide_stack import Kafka

__all__ = ["Debezium", "Rowtide", "Side"]


class Side(Protocol):
    """A connector that runs, or does not."""

    name: str

    def start(self) -> None:
        """Run, from where the connector of that name stopped."""

    def stop(self) -> None:
        """End in order: what was read is delivered, and the offset stored."""

    def failure(self) -> str | None:
        """Why it has ended by itself; ``None`` if it has not."""


class Debezium:
    """Debezium in a Kafka Connect worker."""

    name = "Debezium"

    def __init__(self, connector: str, properties: Mapping[str, str], worker: KafkaConnect) -> None:
        self._connector = connector
        self._properties = dict(properties)
        self._worker = worker
        self._made = False

    def start(self) -> None:
        if self._made:
            self._worker.ask("PUT", f"/connectors/{self._connector}/resume")
        else:
            self._worker.create(self._connector, {**self._properties, "driver.allowPublicKeyRetrieval": "true"})
        self._made = True
        self._worker.wait(lambda: self._tasks() not in ([], ["UNASSIGNED"]))

    def stop(self) -> None:
        self._worker.ask("PUT", f"/connectors/{self._connector}/stop")
        self._worker.wait(lambda: self._tasks() == [])

    def failure(self) -> str | None:
        tasks = self._worker.status(self._connector)["tasks"]
        return next((task.get("trace", "") for task in tasks if task["state"] == "FAILED"), None)

    def _tasks(self) -> list[str]:
        return [task["state"] for task in self._worker.status(self._connector)["tasks"]]


class Rowtide:
    """``rowtide run`` with the connector's properties and those of the worker."""

    name = "rowtide"

    def __init__(self, connector: str, properties: Mapping[str, str], kafka: Kafka, offsets: str, folder: Path) -> None:
        self._folder = folder
        self._connector = connector
        self._process: subprocess.Popen[bytes] | None = None
        self._config = {
            "name": connector,
            **properties,
            "bootstrap.servers": kafka.bootstrap,
            "offset.storage.topic": offsets,
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "1",
            "offset.flush.interval.ms": "500",
            "key.converter": JSON_CONVERTER,
            "value.converter": JSON_CONVERTER,
        }

    def start(self) -> None:
        file = self._folder / f"{self._connector}.json"
        file.write_text(json.dumps(self._config, indent=1))
        command = [sys.executable, "-m", "rowtide", "run", "--no-progress", "--web-port", str(free_port()), str(file)]
        self._process = spawn(self._folder / f"{self._connector}.log", command)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            terminate(process)

    def failure(self) -> str | None:
        if self._process is None or self._process.poll() is None:
            return None
        return "\n".join((self._folder / f"{self._connector}.log").read_text().splitlines()[-15:])
