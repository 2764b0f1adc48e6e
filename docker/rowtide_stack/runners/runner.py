"""The interface between the servers and the two ways to run them, as local processes and as containers."""

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
    """How to run a server as a local process."""

    prepare: Callable[[Path], list[str]]
    """Writes configuration and data into the server's empty folder, and returns the command to run there."""


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """How to run a server as a container."""

    image: str
    port: int
    """The port inside the container that is published as the server's port of the loopback interface."""
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[Path, str] = field(default_factory=dict)
    """Folders of this machine and where they are mounted in the container, read only."""


_SOCKETS = (Path("/var/run/docker.sock"), Path.home() / ".docker/run/docker.sock")
"""The sockets of the Docker engine and of Docker Desktop."""


class Runner(Protocol):
    """A server program with its data. It is started and stopped any number of times, and closed once."""

    def start(self) -> None:
        """Start the program if it is not running, without waiting until it answers."""

    def stop(self, patience: float) -> None:
        """Shut the program down; kill it if that takes more than ``patience`` seconds."""

    def kill(self) -> None:
        """Kill the program (SIGKILL), as in a crash."""

    def pause(self) -> None:
        """Suspend the program (SIGSTOP): connections stay open, but it does not answer."""

    def resume(self) -> None:
        """Continue a suspended program."""

    def running(self) -> bool:
        """Return whether the program runs. A suspended program runs."""

    def log(self) -> str:
        """Return the log of the program since its first start."""

    def close(self) -> None:
        """Kill the program and remove its data. It cannot be started again."""


@functools.cache
def docker_answers() -> bool:
    """Return whether a Docker engine is running; the result is cached."""
    # The library leaves sockets open if nothing listens, so it is used only if something does.
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
    """``local`` or ``docker``: the value of ``$ROWTIDE_STACK``, otherwise ``docker`` if a Docker engine is running.

    Raises:
        StackError: the variable has another value.
    """
    choice = os.environ.get("ROWTIDE_STACK", "auto")
    if choice not in ("auto", "docker", "local"):
        raise StackError(f"ROWTIDE_STACK is {choice!r}: use auto, docker or local")
    if choice == "auto":
        return "docker" if docker_answers() else "local"
    return choice
