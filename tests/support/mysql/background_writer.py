"""Changes of a database in a thread, while a test does something else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

from tests.support.processes.worker_process import eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

__all__ = ["BackgroundWriter"]


class BackgroundWriter:
    """Writes from the begin of a ``with`` block to its end, where an error of the thread is raised.

    Args:
        database: the database.

    Attributes:
        writes: the number of times it has written.
    """

    def __init__(self, database: Database) -> None:
        self.writes = 0
        self._database = database
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="writer")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def wait_for(self, further: int) -> None:
        """Wait until it has written so many times more."""
        end = self.writes + further
        eventually(lambda: self._error or self.writes >= end, "further changes")

    def _run(self) -> None:
        try:
            with self._database.connect() as connection, connection.cursor() as cursor:
                while not self._stop.wait(self._pause_s()):
                    self._write(connection, cursor)
                    self.writes += 1
        except BaseException as error:  # noqa: BLE001 - raised when the block ends
            self._error = error

    def _pause_s(self) -> float:
        """Seconds before it writes again."""
        return 0.01

    def _write(self, connection: Any, cursor: Any) -> None:
        """Run statements, and end their transaction."""
        raise NotImplementedError
