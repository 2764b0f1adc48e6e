"""Edge: the process of a worker, with its signals, its log, its end and its exit code."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from typing import Any, NoReturn, cast

import faust

from rowtide.connector.worker import logs
from rowtide.connector.worker.base_app import App
from rowtide.connector.worker.failures import StopTimeoutError, report

log = logging.getLogger(__name__)

_LEAST_STOP_S = 1.0
"""The least time to stop, also with ``task.shutdown.graceful.timeout.ms=0``."""


class Worker(faust.Worker):
    """Runs the app in this process, and reports a failure once; an expected one without a traceback."""

    app: App

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.spinner = None

    def on_worker_shutdown(self) -> None:
        """Leave the terminal unchanged."""

    def _setup_logging(self) -> None:
        console = None
        if self.app.show_progress and self.logfile is None and sys.stderr.isatty() and self.app.log_format == "text":
            from rich.console import Console  # noqa: PLC0415 - only on a terminal

            console = self.app.reporter.console = Console(stderr=True)
        file = cast("str | None", self.logfile)
        logs.set_up(self.loglevel or "info", file, console, as_json=self.app.log_format == "json")

    async def on_first_start(self) -> None:
        """Set up the log and the signals."""
        self.app.rowtide.on_end = self._connector_ended
        await super().on_first_start()

    def _connector_ended(self) -> None:
        self._stopping = asyncio.ensure_future(self.stop(), loop=self.loop)

    def install_signal_handlers(self) -> None:
        """Stop gracefully at the first SIGTERM or SIGINT, at once at the second."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self.loop.add_signal_handler(number, self._signalled, number)

    def _signalled(self, number: signal.Signals) -> None:
        if self._signal_stop_time:
            log.warning("%s again: stopping at once; undelivered changes are read again at the next start", number.name)
            os._exit(1)
        log.info("%s: delivering what was read, then stopping", number.name)
        service = self.app.rowtide
        limit = max(_LEAST_STOP_S, service.config.delivery.shutdown_timeout_ms / 1000)
        watchdog = threading.Timer(limit, self._give_up)
        watchdog.daemon = True
        watchdog.start()
        self._schedule_shutdown(number)

    def _give_up(self) -> NoReturn:
        """End the process: something hangs that cannot be interrupted, such as a thread of a library."""
        service = self.app.rowtide
        failure = service.connector.failure or service.failure
        self._report(failure or StopTimeoutError(service.config.delivery.shutdown_timeout_ms))
        os._exit(1)

    def execute_from_commandline(self) -> NoReturn:
        """Run until the end, and exit with 0 after a stop, with 1 after a failure."""
        failure: BaseException | None = None
        self._starting_fut = asyncio.ensure_future(self.start(), loop=self.loop)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                self.loop.run_until_complete(self._starting_fut)
        except Exception as error:  # noqa: BLE001 - every error is reported below
            failure = error
        finally:
            self.stop_and_shutdown()
        service = self.app.rowtide
        failure = service.connector.failure or service.failure or failure
        if failure is not None:
            self._report(failure)
        raise SystemExit(1 if failure is not None else 0)

    def _report(self, failure: BaseException) -> None:
        report(failure, self.app.rowtide.config.name, as_log=self.app.log_format == "json")

    def _shutdown_loop(self) -> None:
        pending = asyncio.all_tasks(self.loop)
        for task in pending:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            self.loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        self.loop.close()
