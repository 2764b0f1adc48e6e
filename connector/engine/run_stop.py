"""The end of a run: waiting calls are interrupted, and delivery gets the remaining time."""

import threading
import time

from rowtide.connector.source.connection.kill import kill_queries
from rowtide.connector.source.connection.open_connections import OpenConnections

_DRAINING = 0.8
"""The part of ``task.shutdown.graceful.timeout.ms`` in which delivery must end."""
_STOP_QUERIES_S = 1.0
"""How long reading may take to stop before its connections are interrupted: a stream stops within a tick."""
_STOP_READING_S = 1.0
"""How long reading may take to stop after that, before the event store is closed."""


class RunStop:
    """Stops a run.

    Args:
        event: set to end the run.
        limit_s: how long the end may take, in seconds (``task.shutdown.graceful.timeout.ms``).

    Attributes:
        event: the same.
        connections: the database connections of the run.
        given_up: whether reading has not stopped in time.
    """

    def __init__(self, event: threading.Event, limit_s: float) -> None:
        self.event = event
        self.connections = OpenConnections()
        self.given_up = False
        self._limit_s = limit_s
        self._delivered_by: float | None = None
        self._ended = threading.Event()

    @property
    def requested(self) -> bool:
        """Whether the run is to end."""
        return self.event.is_set()

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self._ended.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, unless the run is to end; return whether it is."""
        return self.event.wait(seconds)

    def request(self) -> None:
        """Let the run end; the time for it begins now."""
        self._delivered_by = time.monotonic() + self._limit_s * _DRAINING
        self.event.set()

    def await_reading(self) -> None:
        """Wait until reading has stopped, and interrupt its connections if that takes long; sets ``given_up``."""
        self._ended.wait(_STOP_QUERIES_S)
        kill_queries(self.connections.interrupt())  # nothing waits for threads that read chunks
        self.given_up = not self._ended.wait(_STOP_READING_S)

    def time_left(self) -> float:
        """Return for how many seconds the delivery may continue."""
        if self._delivered_by is None:
            return self._limit_s
        return max(0.0, self._delivered_by - time.monotonic())  # reading has taken a part of the time to stop

    def end(self) -> None:
        """Note that the run has ended."""
        self._ended.set()
