"""A process of ``rowtide run``, to compare with Debezium in Kafka Connect."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from rowtide_stack.ports import free_port

from tests.support.connector_properties import JSON_CONVERTER
from tests.support.processes.child_process import ChildProcess

__all__ = ["RowtideProcess"]


class RowtideProcess(ChildProcess):
    """A connector in its own worker process.

    Args:
        name: the name of the connector.
        properties: properties of the connector, and of the worker, which override the defaults here.
        bootstrap: the addresses of Kafka.
    """

    module = "rowtide"
    """What the interpreter runs."""

    def __init__(self, name: str, properties: Mapping[str, str], bootstrap: str) -> None:
        super().__init__()
        self.name = name
        self._config = {
            "name": name,
            "bootstrap.servers": bootstrap,
            "offset.storage.topic": f"{name}-offsets",
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "1",
            "key.converter": JSON_CONVERTER,
            "value.converter": JSON_CONVERTER,
            **properties,
        }

    def start(self, folder: Path) -> None:
        """Start, resuming at the stored offset, with its files in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.name}.json"
        file.write_text(json.dumps(self._config, indent=1))
        command = [sys.executable, "-m", self.module, "run", "--no-progress", "--web-port", str(free_port()), str(file)]
        self._run(command, folder / f"{self.name}.log")
