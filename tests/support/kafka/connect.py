"""A worker of Kafka Connect, which runs Debezium: a Java process that is controlled through its REST API."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rowtide_stack.ports import free_port

from tests.support.connector_properties import JSON_CONVERTER
from tests.support.processes.child_process import ChildProcess

__all__ = ["KafkaConnect"]

_PATIENCE_S = 240.0


class KafkaConnect(ChildProcess):
    """A Kafka Connect worker with any number of connectors.

    Args:
        name: the name of its group and of its topics.
        programs: a folder with ``kafka/*.jar``, including those of Connect, and a folder for each plugin.
        plugins: the names of the plugin folders.
        bootstrap: the addresses of Kafka.
        java: options of the Java VM.
        worker: further properties of the worker.
    """

    def __init__(
        self,
        name: str,
        programs: Path,
        plugins: Sequence[str],
        bootstrap: str,
        java: Sequence[str] = (),
        worker: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self._programs = programs
        self._plugins = plugins
        self._bootstrap = bootstrap
        self._java = java
        self._worker = dict(worker or {})
        self._port = free_port()

    def start(self, folder: Path) -> None:
        """Start the worker with its files in a folder."""
        plugins = folder / "plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        for plugin in self._plugins:
            (plugins / plugin).symlink_to(self._programs / plugin)
        internal = ("config", "offset", "status")
        lines = {
            "bootstrap.servers": self._bootstrap,
            "group.id": f"{self.name}-connect",
            "key.converter": JSON_CONVERTER,
            "value.converter": JSON_CONVERTER,
            **{f"{part}.storage.topic": f"{self.name}-{part}" for part in internal},
            **{f"{part}.storage.replication.factor": "1" for part in internal},
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "offset.flush.interval.ms": "1000",
            "connector.client.config.override.policy": "All",
            "plugin.path": str(plugins),
            "listeners": f"http://127.0.0.1:{self._port}",
            **self._worker,
        }
        file = folder / "connect.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        command = ["java", "-Xmx2g", *self._java, "-cp", f"{self._programs}/kafka/*", main, str(file)]
        self._run(command, folder / f"{self.name}.log")
        self.wait(lambda: self.ask("GET", "/connectors") is not None)

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Create and start a connector."""
        self.ask("POST", "/connectors", {"name": name, "config": dict(config)})

    def halt(self, name: str) -> None:
        """Stop a connector, but not the worker, and wait until its tasks have ended."""
        self.ask("PUT", f"/connectors/{name}/stop")
        self.wait(lambda: self.states(name) == [])

    def resume(self, name: str) -> None:
        """Start a connector that was halted."""
        self.ask("PUT", f"/connectors/{name}/resume")

    def states(self, name: str) -> list[str]:
        """The states of a connector's tasks."""
        return [task["state"] for task in self.status(name)["tasks"]]

    def status(self, name: str) -> dict[str, Any]:
        """The states of a connector and its tasks."""
        return self.ask("GET", f"/connectors/{name}/status")  # type: ignore[no-any-return]

    def wait(self, test: Callable[[], object]) -> None:
        """Wait until a condition holds.

        Raises:
            RuntimeError: it did not hold in time.
        """
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            try:
                if test():
                    return
            except (OSError, urllib.error.URLError):
                pass
            time.sleep(0.3)
        raise RuntimeError("Kafka Connect does not answer")

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request to the REST API; returns the JSON of the response."""
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self._port}{path}"
        request = urllib.request.Request(url, method=method, data=data, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as response:
            text = response.read()
        return json.loads(text) if text else None
