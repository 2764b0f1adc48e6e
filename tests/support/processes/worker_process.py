"""A worker as operators run it: a process of ``rowtide run`` with a configuration file, a log, and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rowtide_stack.ports import free_port

from tests.support.connector_properties import JSON_CONVERTER, address

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

__all__ = ["SOON", "Worker", "WorkerConfig", "eventually"]

SOON = 180.0
"""Seconds after which a test gives up waiting, on a machine that has other things to do, too."""

_SHOWN_LINES = 60
STREAMING = "reading the binlog from"


def eventually(condition: Callable[[], object], what: str, seconds: float = SOON) -> None:
    """Wait until a condition holds. What is slow to find out is looked at less often."""
    end = time.monotonic() + seconds
    while True:
        begin = time.monotonic()
        if condition():
            return
        assert time.monotonic() < end, f"waited {seconds} s in vain: {what}"
        time.sleep(max(0.05, time.monotonic() - begin))


class WorkerConfig:
    """A configuration with a unique name, unique topics and a unique server id.

    Args:
        folder: the folder of its files.
        server: the database server.
        bootstrap: the addresses of Kafka.
        more: further properties.
    """

    _server_ids = iter(range(7001, 9000))

    def __init__(self, folder: Path, server: SqlServer, bootstrap: str, more: Mapping[str, str]) -> None:
        self.name = f"w{uuid.uuid4().hex[:8]}"
        self.folder = folder
        self.properties = {
            "name": self.name,
            "topic.prefix": self.name,
            "database.flavor": server.name,
            **address(server),
            "database.server.id": str(next(self._server_ids)),
            "bootstrap.servers": bootstrap,
            "offset.storage.topic": f"{self.name}-offsets",
            "offset.storage.partitions": "1",
            "offset.storage.replication.factor": "1",
            "schema.history.internal.kafka.topic": f"{self.name}-history",
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
            "task.shutdown.graceful.timeout.ms": "60000",  # on a machine that has other things to do, too
            "key.converter": JSON_CONVERTER,
            "key.converter.schemas.enable": "false",
            "value.converter": JSON_CONVERTER,
            "value.converter.schemas.enable": "false",
            **more,
        }

    @property
    def path(self) -> Path:
        """The configuration file, written with the current properties."""
        path = self.folder / f"{self.name}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        return path

    def topic(self, table: str) -> str:
        """The topic of a table."""
        return f"{self.name}.{table}"


class Worker:
    """A running worker, which is killed at the end of ``with`` if it still runs.

    Args:
        config: its configuration.
        options: options of ``rowtide run``.
        command: instead of ``rowtide run CONFIG``; ``{port}`` in it stands for the port of its web server.
        environment: environment variables of the process; by default those of the tests, without the one of campaigns.
    """

    def __init__(
        self,
        config: WorkerConfig,
        *options: str,
        command: list[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = free_port()
        self._log = config.folder / f"{config.name}-{uuid.uuid4().hex[:6]}.log"
        if environment is None:  # the connector takes other variables that begin with ROWTIDE_ as properties
            environment = {name: value for name, value in os.environ.items() if name != "ROWTIDE_CAMPAIGN"}
        default = [sys.executable, "-m", "rowtide", "run", str(config.path), "--web-port", str(self.port), *options]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [part.format(port=self.port) for part in command or default],
                stdout=log,
                stderr=log,
                cwd=config.folder,
                env=environment,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        if error is not None:  # pytest shows it with the failure
            print(f"the end of the log of process {self.pid}:", *self.log.splitlines()[-_SHOWN_LINES:], sep="\n")

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """Its standard output and standard error."""
        return self._log.read_text()

    def wait_for_log(self, text: str, times: int = 1) -> Self:
        """Wait until its log contains a text."""
        try:
            eventually(
                lambda: self.log.count(text) >= times or self._process.poll() is not None, f"{text!r} in the log"
            )
            assert self.log.count(text) >= times, text
        except AssertionError as error:
            self.kill()
            raise AssertionError(f"{error}; the log is:\n{self.log}") from None
        return self

    def streaming(self) -> Self:
        """Wait until it reads the binlog."""
        return self.wait_for_log(STREAMING)

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        """The status and the text of a page."""
        return self.send("GET", path, token=token)

    def send(self, method: str, path: str, body: str = "", token: str = "") -> tuple[int, str]:
        """The status and the text of the answer to a request, with a token if one is given."""
        url, headers = f"http://127.0.0.1:{self.port}{path}", {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(url, body.encode() or None, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SOON) as answer:
                return int(answer.status), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def health(self) -> dict[str, Any]:
        """The response of /health."""
        return json.loads(self.get("/health")[1])  # type: ignore[no-any-return]

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait until it ends; returns the exit code."""
        return self._process.wait(SOON)

    def stop(self) -> str:
        """Stop it with SIGTERM, which must succeed; returns its log."""
        self.signal()
        code = self.wait()
        assert code == 0, self.log
        assert "Traceback" not in self.log, self.log
        return self.log

    def kill(self) -> None:
        """Kill it, as in a crash."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(SOON)
