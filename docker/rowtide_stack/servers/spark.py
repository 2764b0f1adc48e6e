"""A standalone cluster of Spark on this machine: a master and workers from the pyspark package."""

import json
import urllib.request
from pathlib import Path
from typing import Self

from rowtide_stack.errors import ProgramMissingError
from rowtide_stack.ports import free_port
from rowtide_stack.programs.catalogue import java_command
from rowtide_stack.programs.host import java
from rowtide_stack.runners.process import ProcessRunner
from rowtide_stack.runners.runner import ContainerPlan, LocalPlan, Runner
from rowtide_stack.servers.server import Server

__all__ = ["Spark"]

_WORKERS = 2
_MEMORY = "1g"
"""What the executors of one worker may take."""


class _Daemon(Server):
    """A process of the cluster. It is never a container, because drivers and executors share paths of this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.web_port = free_port()

    def _answer(self) -> dict[str, object]:
        with urllib.request.urlopen(f"http://{self.host}:{self.web_port}/json/", timeout=2) as answer:
            found: dict[str, object] = json.load(answer)
        return found

    def _command(self, main: str, *arguments: str) -> list[str]:
        home = _home()
        variables = {
            "JAVA_HOME": str(java().resolve().parents[1]),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": self.host,
            "SPARK_SCALA_VERSION": "2.13",  # Spark's scripts set it, and a worker does not start executors without it
        }
        address = ["--host", self.host, "--port", str(self.port), "--webui-port", str(self.web_port)]
        command = java_command(home / "jars", "256m", f"org.apache.spark.deploy.{main}", *address, *arguments)
        return ["env", *(f"{name}={value}" for name, value in variables.items()), *command]

    def _make_runner(self) -> Runner:
        return ProcessRunner(self.name, self._local())

    def _container(self) -> ContainerPlan:
        raise NotImplementedError


class _Worker(_Daemon):
    """A worker with one core."""

    name = "spark-worker"

    def __init__(self, master: str) -> None:
        super().__init__()
        self._master = master

    def _ready(self) -> bool:
        return self._answer()["masterurl"] == self._master

    def _local(self) -> LocalPlan:
        def prepare(folder: Path) -> list[str]:
            resources = ["--cores", "1", "--memory", _MEMORY, "--work-dir", str(folder / "work")]
            return self._command("worker.Worker", *resources, self._master)

        return LocalPlan(prepare)


class Spark(_Daemon):
    """A master with two workers, each with one core and 1 GB for executors.

    `url` is the master for ``spark-submit`` and ``rowtide tables --master``. `workers` can be stopped and killed one by
    one; the methods of the cluster itself are those of its master.
    """

    name = "spark"

    def __init__(self) -> None:
        super().__init__()
        self.workers: list[Server] = []

    @property
    def url(self) -> str:
        """``spark://host:port``."""
        return f"spark://{self.address}"

    def start(self) -> Self:
        """Start the master and its workers, and wait until it knows them."""
        super().start()
        self.workers = self.workers or [_Worker(self.url) for _ in range(_WORKERS)]
        for worker in self.workers:
            worker.start()
        return self

    def close(self) -> None:
        """End the cluster."""
        for worker in self.workers:
            worker.close()
        super().close()

    def _ready(self) -> bool:
        return self._answer()["status"] == "ALIVE"

    def _local(self) -> LocalPlan:
        return LocalPlan(lambda _folder: self._command("master.Master"))


def _home() -> Path:
    try:
        import pyspark  # noqa: PLC0415 - not needed for the other servers
    except ImportError as error:
        raise ProgramMissingError("pyspark is not installed: pip install 'rowtide[spark]'") from error
    return Path(pyspark.__file__).parent
