"""The two connectors that are compared, each as a process of its own over the same database and broker."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rowtide_stack.ports import free_port

from tests.support.kafka_connect import JSON_CONVERTER, KafkaConnect, spawn, terminate

if TYPE_CHECKING:
    from rowtide_stack import Kafka, MySQL

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


class Connector:
    """A connector that is started and stopped any number of times, and goes on from where it stopped.

    Args:
        name: of the connector; also the prefix of its topics.
        database: where it reads.
        schema: the name of the captured database.
        kafka: where it writes.
        properties: connector properties over the common ones.
    """

    kind = ""

    def __init__(self, name: str, database: MySQL, schema: str, kafka: Kafka, properties: Mapping[str, str]) -> None:
        self.name = name
        self._kafka = kafka
        self._process: subprocess.Popen[bytes] | None = None
        self.properties = {
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "tasks.max": "1",
            "database.hostname": database.host,
            "database.port": str(database.port),
            "database.user": database.user,
            "database.password": database.password,
            "database.server.id": str(184000 + sum(name.encode())),
            "database.include.list": schema,
            "topic.prefix": name,
            "schema.history.internal.kafka.bootstrap.servers": kafka.bootstrap,
            "schema.history.internal.kafka.topic": f"{name}-history",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "1",
            **properties,
        }

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None, "not started"
        return self._process.pid

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, folder: Path) -> None:
        """Run, with files in a folder of its own."""
        raise NotImplementedError

    def stop(self) -> None:
        """End in order, and wait for the end."""
        process, self._process = self._process, None
        if process is not None:
            terminate(process)


class Rowtide(Connector):
    """rowtide, as a user runs it."""

    kind = "rowtide"

    def start(self, folder: Path) -> None:
        config = {
            "name": self.name,
            **self.properties,
            "bootstrap.servers": self._kafka.bootstrap,
            "offset.storage.topic": f"{self.name}-offsets",
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "1",
            "key.converter": JSON_CONVERTER,
            "value.converter": JSON_CONVERTER,
        }
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.name}.json"
        file.write_text(json.dumps(config))
        command = [sys.executable, "-m", "rowtide", "run", "--no-progress", "--web-port", str(free_port()), str(file)]
        self._process = spawn(folder / f"{self.name}.log", command)


class Debezium(Connector):
    """Debezium in Kafka Connect, from a folder that has ``kafka/*.jar`` (with Connect's) and ``debezium-mysql/*.jar``.

    Stopped and started, the worker's process goes on, as it does in use: its code stays compiled.
    """

    kind = "Debezium"
    programs = Path()

    def __init__(self, name: str, database: MySQL, schema: str, kafka: Kafka, properties: Mapping[str, str]) -> None:
        super().__init__(name, database, schema, kafka, properties)
        self._worker = KafkaConnect(name, self.programs, ["debezium-mysql"], kafka.bootstrap)

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._worker.pid

    def alive(self) -> bool:
        """Whether the worker runs."""
        return self._worker.alive()

    def start(self, folder: Path) -> None:
        if self._worker.alive():
            self._worker.ask("PUT", f"/connectors/{self.name}/resume")
        else:
            self._worker.start(folder)
            self._worker.create(self.name, {**self.properties, "driver.allowPublicKeyRetrieval": "true"})

    def stop(self) -> None:
        self._worker.stop()

    def pause(self) -> None:
        """Stop the connector, and keep the worker."""
        time.sleep(_OFFSETS_S)
        self._worker.ask("PUT", f"/connectors/{self.name}/stop")
        self._worker.wait(lambda: self._worker.status(self.name)["tasks"] == [])
