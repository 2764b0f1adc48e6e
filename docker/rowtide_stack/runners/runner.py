"""How a server is run: the seam between the servers and the two providers, local processes and containers."""

import contextlib
import functools
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rowtide_stack.errors import StackError

__all__ = ["ContainerPlan", "LocalPlan", "Runner", "docker_answers", "provider"]


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """A server as a local process."""

    prepare: Callable[[Path], list[str]]
    """Fills the server's empty folder (configuration, data) and gives the command to run in it."""


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """A server as a container."""

    image: str
    port: int
    """The port inside the container that is bound to the server's port of the loopback interface."""
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[Path, str] = field(default_factory=dict)
    """Folders of this machine, by where they are seen in the container, read only."""


_SOCKETS = (Path("/var/run/docker.sock"), Path.home() / ".docker/run/docker.sock")
"""Where the engine of a server, and that of Docker Desktop, listen."""


class Runner(Protocol):
    """One server program with its data: started and stopped any number of times, closed once."""

    def start(self) -> None:
        """Start the program if it is not running; it need not answer yet."""

    def stop(self, patience: float) -> None:
        """Let the program end by itself; kill it after ``patience`` seconds."""

    def kill(self) -> None:
        """End the program as a crash does (SIGKILL)."""

    def pause(self) -> None:
        """Let the program hang (SIGSTOP): connections stay open, nothing is answered."""

    def resume(self) -> None:
        """End the hanging."""

    def running(self) -> bool:
        """Whether the program has been started and has not ended."""

    def log(self) -> str:
        """What the program has written to its log since the first start."""

    def close(self) -> None:
        """End the program and remove its data; it cannot be started again."""


@functools.cache
def docker_answers() -> bool:
    """Whether a Docker engine answers; asked once."""
    # The library leaves sockets open when nothing listens, so it is asked only when something does.
    if not os.environ.get("DOCKER_HOST") and not any(_listens(path) for path in _SOCKETS):
        return False
    try:
        from testcontainers.core.docker_client import DockerClient  # noqa: PLC0415 - not for local processes
    except ImportError:
        return False
    try:
        client = DockerClient(timeout=3).client
    except Exception:  # noqa: BLE001 - the library's own errors and those of its HTTP client
        return False
    with contextlib.closing(client):
        return bool(client.ping())


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def provider() -> str:
    """``local`` or ``docker``: ``$ROWTIDE_STACK``, else whether a Docker engine answers.

    Raises:
        StackError: the variable has another value.
    """
    wanted = os.environ.get("ROWTIDE_STACK", "auto")
    if wanted not in ("auto", "docker", "local"):
        raise StackError(f"ROWTIDE_STACK is {wanted!r}: use auto, docker or local")
    if wanted == "auto":
        return "docker" if docker_answers() else "local"
    return wanted
