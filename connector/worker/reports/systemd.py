"""Reports to systemd, for units with ``Type=notify``; see sd_notify(3)."""

import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mode import Service

from rowtide.connector.worker.status import Status

log = logging.getLogger(__name__)

_INTERVAL_S = 10.0


class SystemdNotifier(Service):
    """Reports that the worker has started, its current state, that it is alive (``WatchdogSec=``), and that it stops.

    The keep-alive is sent by the event loop: if that hangs, systemd restarts the worker. An outage of a server does not
    stop it.

    Args:
        sources: returns the statuses of the connectors, which may come and go.
        environ: the environment; without ``NOTIFY_SOCKET`` in it, the service does nothing.
    """

    logger = logging.getLogger("mode.rowtide")

    def __init__(
        self,
        sources: Callable[[], Sequence[Callable[[], Awaitable[Status]]]],
        environ: Mapping[str, str] = os.environ,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._sources = sources
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._interval = interval(environ, os.getpid())

    async def on_start(self) -> None:
        """Report that the worker has started. It may still take a snapshot, which has no time limit."""
        self._notify("READY=1")

    async def on_stop(self) -> None:
        """Report that the worker stops."""
        self._notify("STOPPING=1")

    def reloading(self) -> None:
        """Report that configurations are being read again, until :meth:`reloaded`."""
        self._notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def reloaded(self) -> None:
        """Report that they have been read."""
        self._notify("READY=1")

    @Service.task
    async def _keep_alive(self) -> None:
        while self._address and not self.should_stop:
            self._notify("WATCHDOG=1")
            text = "; ".join([described(await source()) for source in self._sources()])
            self._notify(f"STATUS={text}")
            await self.sleep(self._interval)

    def _notify(self, text: str) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
                sending.setblocking(False)
                sending.sendto(text.encode(), address)
        except OSError as error:
            log.warning("systemd cannot be reached at %s: %s", self._address, error)


def described(status: Status) -> str:
    """Return a connector's status in one line, for ``systemctl status``."""
    return f"{status.name}: {status.state}" + (f", {' '.join(status.problem.split())}" if status.problem else "")


def interval(environ: Mapping[str, str], pid: int) -> float:
    """Seconds between two keep-alives: a third of the watchdog's limit, if there is one.

    Args:
        environ: has the limit in ``WATCHDOG_USEC``, in microseconds, and the process that must obey it in
            ``WATCHDOG_PID``, which may be missing.
        pid: this process.
    """
    limit = environ.get("WATCHDOG_USEC", "")
    if not limit.isdecimal() or environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return _INTERVAL_S
    return min(_INTERVAL_S, int(limit) / 3_000_000)
