"""Decoder processes as threads of the tests' process, which start at once; everything else is as in production."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from multiprocessing.connection import Connection

from rowtide.connector.engine.decoding.memory import SharedMemory
from rowtide.connector.engine.decoding.worker import DecoderWorker, LogWatch

__all__ = ["DecoderThread"]


class DecoderThread:
    """Stands for ``subprocess.Popen``. Log entries of the thread are only noticed.

    Args:
        connection: the descriptor of the connection.
        memory: the descriptor of the shared memory.
    """

    pid = 0

    def __init__(self, connection: int, memory: int) -> None:
        self._descriptors = os.dup(connection), os.dup(memory)
        self._logged = LogWatch()
        self._thread = threading.Thread(target=self._run, name="decoder", daemon=True)
        self._logged.addFilter(lambda record: record.thread == self._thread.ident)
        logging.getLogger("rowtide").addHandler(self._logged)
        self._thread.start()

    def _run(self) -> None:
        connection, memory = self._descriptors
        with Connection(connection) as parent:
            try:
                DecoderWorker(parent, SharedMemory(memory), self._logged).run()
            except (EOFError, ConnectionError):
                return
            finally:
                os.close(memory)
                logging.getLogger("rowtide").removeHandler(self._logged)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise subprocess.TimeoutExpired("decoder", timeout or 0)
        return 0

    def kill(self) -> None:
        """Do nothing: it ends with its connection."""
