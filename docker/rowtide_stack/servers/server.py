"""The base of all servers of the local stack: address, life cycle and log."""

import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Self

from rowtide_stack.errors import StartFailedError
from rowtide_stack.ports import HOST, free_port
from rowtide_stack.runners.containers import ContainerRunner
from rowtide_stack.runners.process import ProcessRunner
from rowtide_stack.runners.runner import ContainerPlan, LocalPlan, Runner, provider

__all__ = ["Server"]


class Server(ABC):
    """A server on a free port of the loopback interface, with its data in a temporary folder.

    `start`, or entering ``with``, starts it and waits until it answers; `close`, or leaving ``with``, ends it and
    removes its data. In between it can be stopped, killed and started any number of times, with the same port and data.
    """

    name: ClassVar[str]
    patience: ClassVar[float] = 60
    """Seconds that the server may take to start, and to stop before it is killed."""

    def __init__(self) -> None:
        self.host = HOST
        self.port = free_port()
        self._runner: Runner | None = None

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{self.host}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the program runs. A paused program runs."""
        return self._runner is not None and self._runner.running()

    def start(self) -> Self:
        """Start the server if it is not running, and wait until it answers.

        Raises:
            StartFailedError: it exited, or did not answer in time. The message contains the end of its log.
            ProgramMissingError: it is not in the cache and cannot be downloaded on this machine.
        """
        if self._runner is None:
            self._runner = self._make_runner()
        self._runner.start()
        self._wait(self._runner)
        return self

    def stop(self) -> None:
        """Shut the server down, and wait until it has ended."""
        if self._runner is not None:
            self._runner.stop(self.patience)

    def kill(self) -> None:
        """Kill the server (SIGKILL), as in a crash."""
        if self._runner is not None:
            self._runner.kill()

    def restart(self) -> Self:
        """Stop and start the server."""
        self.stop()
        return self.start()

    def pause(self) -> None:
        """Suspend the server: its connections stay open, but it does not answer until `resume`."""
        if self._runner is not None:
            self._runner.pause()

    def resume(self) -> None:
        """Continue a paused server."""
        if self._runner is not None:
            self._runner.resume()

    def log(self) -> str:
        """Return the complete log of the server."""
        return self._runner.log() if self._runner else ""

    def close(self) -> None:
        """End the server and remove its data."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"

    @abstractmethod
    def _ready(self) -> bool:
        """Return whether the server answers. May raise any client error while it does not."""

    @abstractmethod
    def _local(self) -> LocalPlan:
        """How to run the server as a local process."""

    @abstractmethod
    def _container(self) -> ContainerPlan:
        """How to run the server as a container."""

    def _make_runner(self) -> Runner:
        if provider() == "docker":
            return ContainerRunner(self.name, self.port, self._container())
        return ProcessRunner(self.name, self._local())

    def _wait(self, runner: Runner) -> None:
        end = time.monotonic() + self.patience
        problem = "no answer"
        while time.monotonic() < end:
            if not runner.running():
                raise self._failed(runner, "exited during its start")
            try:
                if self._ready():
                    return
            except Exception as error:  # noqa: BLE001 - any error of a client while the server starts
                problem = f"{type(error).__name__}: {error}"
            time.sleep(0.05)
        raise self._failed(runner, f"did not answer within {self.patience:g} s ({problem})")

    def _failed(self, runner: Runner, what: str) -> StartFailedError:
        tail = "\n".join(runner.log().splitlines()[-40:]) or "(nothing)"
        return StartFailedError(f"{type(self).__name__} on {self.address} {what}. The end of its log:\n{tail}")
