"""The process of a worker, with its signals, its log, its end and its exit code."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any, NoReturn, cast

import mode
from mode import ServiceT

from rowtide.connector.worker import logs
from rowtide.connector.worker.connectors import Failure
from rowtide.connector.worker.failures import StopTimeoutError, failed_threads, report
from rowtide.connector.worker.standalone_app import App

log = logging.getLogger(__name__)


class Worker(mode.Worker):
    """Runs the app in this process, and reports a failure once, without a traceback if it is expected.

    Its base is Mode's worker: the additions of Faust's worker, a spinner and log formats for Faust's topics, are
    useless here.

    Args:
        app: the app.
        services: further services that start with the worker.
        settings: the settings of Mode's worker.
    """

    def __init__(self, app: App, *services: ServiceT, **settings: Any) -> None:
        super().__init__(*services, **settings)
        self.app = app
        self._reported: list[Failure] = []

    def on_init_dependencies(self) -> Iterable[ServiceT]:
        """Return the services that start and stop with the worker."""
        self.app.beacon.reattach(self.beacon)
        return [*self.services, self.app]

    def _setup_logging(self) -> None:
        console = None
        if self.app.show_progress and self.logfile is None and sys.stderr.isatty() and self.app.log_format == "text":
            from rich.console import Console  # noqa: PLC0415 - only on a terminal

            console = self.app.reporter.console = Console(stderr=True)
        file = cast("str | None", self.logfile)
        as_json = self.app.log_format == "json"
        logs.set_up(self.loglevel or "info", file, console, as_json=as_json, threads=self.app.connectors.several)
        logging.getLogger("mode.rowtide").addFilter(_is_no_crash)

    async def on_first_start(self) -> None:
        """Set up the log, the signal handlers, and the handler of failed threads."""
        self.app.connectors.on_failure = self._report
        self.app.connectors.on_end = self._all_ended
        self.add_context(failed_threads(self._thread_failed))
        await super().on_first_start()

    def _thread_failed(self, reason: BaseException) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self._crash, reason)

    def _crash(self, reason: BaseException) -> None:
        """Stop gracefully: a service, or a thread, has failed."""
        if not self.crashed:
            self._limit_stop()
        super()._crash(reason)

    @property
    def _failures(self) -> list[Failure]:
        """The connectors that have failed; or all of them, if another part of the process has failed."""
        failures = self.app.connectors.failures
        if not failures and self.crash_reason is not None:
            return [self._of_all(self.crash_reason)]
        return failures

    def _of_all(self, reason: BaseException) -> Failure:
        return ", ".join(self.app.connectors.services), reason

    def _all_ended(self) -> None:
        self._stopping = asyncio.ensure_future(self.stop(), loop=self.loop)

    def install_signal_handlers(self) -> None:
        """Stop gracefully at the first SIGTERM or SIGINT, immediately at the second."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self.loop.add_signal_handler(number, self._signalled, number)
        if self.app.connectors.files is not None and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            self._terminal = has_terminal()
            self.loop.add_signal_handler(signal.SIGHUP, self._hung_up)

    def _hung_up(self) -> None:
        """Read the configuration files again, or stop gracefully if the terminal of this process was closed."""
        if self._terminal and not has_terminal():
            self._signalled(signal.SIGHUP)
            return
        log.info("SIGHUP: reading the configuration files again; options and environment variables stay as they are")
        self._reload = asyncio.ensure_future(self._reloaded(), loop=self.loop)

    async def _reloaded(self) -> None:
        self.app.systemd.reloading()
        try:
            await self.app.connectors.reload()
        except Exception:
            log.exception("the files were read only in part. This is an error in rowtide; please report what follows")
        finally:
            self.app.systemd.reloaded()

    def _signalled(self, number: signal.Signals) -> None:
        if self._signal_stop_time:
            log.warning(
                "%s again: stopping immediately; undelivered changes are read again at the next start", number.name
            )
            os._exit(1)
        log.info("%s: delivering what was read, then stopping", number.name)
        self._limit_stop()
        self._schedule_shutdown(number)

    def _limit_stop(self) -> None:
        watchdog = threading.Timer(self.app.connectors.stop_timeout_s, self._give_up)
        watchdog.daemon = True
        watchdog.start()

    def _give_up(self) -> NoReturn:
        """End the process because something hangs that cannot be interrupted, such as a thread of a library.

        The exit code is 0 if it is not a connector that hangs, because everything is delivered then.
        """
        connectors = self.app.connectors
        late = {
            name: StopTimeoutError(one.config.delivery.shutdown_timeout_ms)
            for name, one in connectors.services.items()
            if not (one.stands_by or one.connector.ended or one.connector.left_behind)
        }
        failures = {**late, **dict(self._failures)}
        for failure in failures.items():
            self._report(failure)
        os._exit(1 if failures else 0)

    def execute_from_commandline(self) -> NoReturn:
        """Run until the end, and exit with 0 after a stop, or with 1 if a connector or another part has failed."""
        failures: list[Failure] = []
        self._starting_fut = asyncio.ensure_future(self.start(), loop=self.loop)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                self.loop.run_until_complete(self._starting_fut)
        except Exception as error:  # noqa: BLE001 - every error is reported below
            failures = [self._of_all(error)]
        finally:
            self.stop_and_shutdown()
        failures = self._failures or failures
        for failure in failures:
            self._report(failure)
        if not failures and any(one.connector.left_behind for one in self.app.connectors.services.values()):
            logging.shutdown()
            os._exit(0)  # Python would wait for threads that wait for a server
        raise SystemExit(1 if failures else 0)

    def _report(self, failure: Failure) -> None:
        """Report a failure of a connector, once."""
        if failure not in self._reported:
            self._reported.append(failure)
            name, reason = failure
            report(reason, name, as_log=self.app.log_format == "json")

    def _shutdown_loop(self) -> None:
        pending = asyncio.all_tasks(self.loop)
        for task in pending:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            self.loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        self.loop.close()


def has_terminal() -> bool:
    """Return whether this process has a controlling terminal; see tty(4)."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _is_no_crash(record: logging.LogRecord) -> bool:
    """Return whether a line from Mode does not concern a failed service, which the worker reports at its end."""
    return "Crashed reason=" not in str(record.msg)
