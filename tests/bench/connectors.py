"""The two connectors that are compared, each as a process of its own over the same database and broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowtide_stack.ports import free_port

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

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_PATIENCE = 90.0
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
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _spawn(self, folder: Path, command: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


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
            "key.converter": _JSON,
            "value.converter": _JSON,
        }
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.name}.json"
        file.write_text(json.dumps(config))
        command = [sys.executable, "-m", "rowtide", "run", "--no-progress", "--web-port", str(free_port()), str(file)]
        self._spawn(folder, command)


class Debezium(Connector):
    """Debezium in Kafka Connect, from a folder that has ``kafka/*.jar`` (with Connect's) and ``debezium-mysql/*.jar``.

    Stopped and started, the worker's process goes on, as it does in use: its code stays compiled.
    """

    kind = "Debezium"
    programs = Path()
    port = 0

    def start(self, folder: Path) -> None:
        if self._process is None:
            self._start_worker(folder)
            self._ask("POST", "/connectors", {"name": self.name, "config": self._config()})
        else:
            self._ask("PUT", f"/connectors/{self.name}/resume")

    def pause(self) -> None:
        """Stop the connector, and keep the worker."""
        time.sleep(_OFFSETS_S)
        self._ask("PUT", f"/connectors/{self.name}/stop")
        self._wait(lambda: self._state() == [])

    def _config(self) -> dict[str, str]:
        return {**self.properties, "driver.allowPublicKeyRetrieval": "true"}

    def _start_worker(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        plugins = folder / "plugins"
        plugins.mkdir(exist_ok=True)
        (plugins / "debezium-mysql").symlink_to(self.programs / "debezium-mysql")
        internal = {"config": 1, "offset": 1, "status": 1}
        lines = {
            "bootstrap.servers": self._kafka.bootstrap,
            "group.id": f"{self.name}-connect",
            "key.converter": _JSON,
            "value.converter": _JSON,
            **{f"{part}.storage.topic": f"{self.name}-{part}" for part in internal},
            **{f"{part}.storage.replication.factor": "1" for part in internal},
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "offset.flush.interval.ms": "1000",
            "connector.client.config.override.policy": "All",
            "plugin.path": str(plugins),
            "listeners": f"http://127.0.0.1:{self.port}",
        }
        file = folder / "connect.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        jars = f"{self.programs}/kafka/*"
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        self._spawn(folder, ["java", "-Xmx2g", "-cp", jars, main, str(file)])
        self._wait(lambda: self._ask("GET", "/connectors") is not None)

    def _state(self) -> list[str]:
        return [task["state"] for task in self._ask("GET", f"/connectors/{self.name}/status")["tasks"]]

    def _wait(self, test: Any) -> None:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            try:
                if test():
                    return
            except (OSError, urllib.error.URLError):
                pass
            time.sleep(0.3)
        raise RuntimeError("Kafka Connect gives no answer")

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, method=method, data=data, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as response:
            text = response.read()
        return json.loads(text) if text else None
