"""Edge: the Faust app that runs one connector, with its threads, signals and web server.

``rowtide run CONFIG`` and ``ROWTIDE_CONFIG=CONFIG faust -A rowtide.connector.worker worker`` start the same app. Faust
provides the life cycle, signals and the web server. Records are sent by rowtide's own producer: Faust's can neither put
offsets into the same transaction nor wait for acknowledgements in bulk. Faust's use of Kafka is therefore switched off:
no consumer group, no leader election, no topics (``-__assignor-__leader``, reply, changelogs) and no data folder.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn, cast

import click
import faust
from faust.app.base import BootStrategy as FaustBootStrategy
from mode import Service

from rowtide import __version__
from rowtide.connector.config import Configuration, ConfigurationError, load
from rowtide.connector.config.files.environment import CONFIG_VARIABLE
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.source.binlog_end import BinlogEnd
from rowtide.connector.worker import logs
from rowtide.connector.worker.failures import StopTimeoutError, report
from rowtide.connector.worker.metrics import CONTENT_TYPE, render
from rowtide.connector.worker.progress_display import ProgressLog, SnapshotBar
from rowtide.connector.worker.status import Status, health, status_of

log = logging.getLogger(__name__)

WEB_BIND = "127.0.0.1"
WEB_PORT = 6066
_LAG_TIMEOUT_S = 2.0
"""A page waits this long for the lag in bytes, then it is served without it."""
_LEAST_STOP_S = 1.0
"""The least time to stop, also with ``task.shutdown.graceful.timeout.ms=0``."""
_TICK_S = 5.0


class BootStrategy(FaustBootStrategy):
    """Starts Faust's web server, and nothing that connects to Kafka."""

    enable_kafka = False


class App(faust.App):
    """The Faust app of one connector.

    Attributes:
        rowtide: the service that runs the connector.
        show_progress: whether a snapshot may draw a progress bar on the terminal.
    """

    logger = logging.getLogger("mode.rowtide")
    BootStrategy = BootStrategy
    rowtide: "ConnectorService"
    show_progress = True

    async def on_first_start(self) -> None:
        """Create no data folder, which Faust would do here: offsets and schema history are in Kafka."""


class ConnectorService(Service):
    """Runs a connector in Faust's life cycle.

    Args:
        config: the connector's configuration.

    Attributes:
        connector: the task that runs the connector.
        failure: the error if the service could not stop in time.
        on_end: called in the event loop when the connector ends by itself.
    """

    logger = logging.getLogger("mode.rowtide")

    def __init__(self, config: Configuration, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.console: Any = None
        self.on_end: Callable[[], None] = lambda: None
        self._bar: SnapshotBar | None = None
        self._binlog_end = BinlogEnd(config)
        self._progress_log = ProgressLog(log.info)
        self.failure: BaseException | None = None
        self.connector = ConnectorTask(config, progress=self._show, on_end=self._ended)

    async def on_start(self) -> None:
        """Log the configuration, and start the connector in its thread."""
        log.info("rowtide %s starts connector %s, process %d", __version__, self.config.name, os.getpid())
        for name, value in sorted(self.config.masked_properties().items()):
            log.info("  %s = %s", name, value)
        for warning in self.config.warnings:
            log.warning("%s", warning)
        if self.console is not None:
            self._bar = SnapshotBar(self.console)
        self.connector.start()

    async def on_stop(self) -> None:
        """Deliver what was read, store the last offset, and stop."""
        begin = time.monotonic()
        complete = await asyncio.to_thread(self.connector.stop)
        if self._bar is not None:
            self._bar.close()
        self._binlog_end.close()
        if complete:
            log.info("stopped in %.1f s; everything that was read is delivered", time.monotonic() - begin)
        elif self.connector.failure is None:
            self.failure = StopTimeoutError(self.config.delivery.shutdown_timeout_ms)

    async def status(self) -> Status:
        """The connector's status."""
        reader = self.connector.current.reader
        behind: int | None = None
        if reader is not None and not self.connector.failure:
            file, pos = reader.status.file, reader.status.pos
            behind = await asyncio.to_thread(self._binlog_end.behind, file, pos, _LAG_TIMEOUT_S)
        return status_of(self.connector, time.time(), behind)

    @Service.task
    async def _log_progress(self) -> None:
        while not self.should_stop:
            await self.sleep(_TICK_S)
            self._progress_log.tick(await self.status())

    def _show(self, snapshot: Any) -> None:
        if self._bar is not None:
            self._bar(snapshot)

    def _ended(self, _failure: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self._report_end)

    def _report_end(self) -> None:
        if not self.should_stop:
            self.on_end()


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
        if self.app.show_progress and self.logfile is None and sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415 - only on a terminal

            console = self.app.rowtide.console = Console(stderr=True)
        logs.set_up(self.loglevel or "info", cast("str | None", self.logfile), console)

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
        report(failure or StopTimeoutError(service.config.delivery.shutdown_timeout_ms), service.config.name)
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
            report(failure, service.config.name)
        raise SystemExit(1 if failure is not None else 0)

    def _shutdown_loop(self) -> None:
        pending = asyncio.all_tasks(self.loop)
        for task in pending:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            self.loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        self.loop.close()


def create_app(config: Configuration, *, web_bind: str | None = None, web_port: int | None = None) -> App:
    """Create the Faust app of a connector.

    Args:
        config: the connector's configuration.
        web_bind: address of the web server; by default ``WEB_BIND`` of the environment, or the loopback address.
        web_port: its port; by default ``WEB_PORT`` of the environment, or 6066.
    """
    app = App(
        f"rowtide-{config.name}",
        broker=f"kafka://{config.kafka.bootstrap_servers.replace(',', ';') or 'localhost'}",  # never connected to
        Worker=Worker,
        web_bind=web_bind or os.environ.get("WEB_BIND", WEB_BIND),
        web_port=web_port or int(os.environ.get("WEB_PORT", WEB_PORT)),
        web_router_enabled=False,
        web_tables_enabled=False,
    )
    app.rowtide = ConnectorService(config)
    app.service(app.rowtide)  # type: ignore[arg-type]  # it takes services and their classes alike
    _add_pages(app)
    return app


def _add_pages(app: App) -> None:
    @app.page("/health")
    async def page_health(web: Any, _request: Any) -> Any:
        status = await app.rowtide.status()
        return web.json(health(status), status=200 if status.healthy else 503)

    @app.page("/metrics")
    async def page_metrics(web: Any, _request: Any) -> Any:
        text = render(await app.rowtide.status())
        return web.bytes(text.encode(), headers={"Content-Type": CONTENT_TYPE})


def run(app: App, *, log_level: str, log_file: str | None, web: bool, progress: bool) -> NoReturn:
    """Run an app in this process until it ends, for the command line.

    Args:
        app: from :func:`create_app`.
        log_level: one of ``logs.LEVELS``.
        log_file: a file to log to instead of standard error.
        web: whether ``/health`` and ``/metrics`` are served.
        progress: whether a snapshot may draw a progress bar on the terminal.
    """
    app.show_progress = progress
    app.finalize()
    app.conf.web_enabled = web
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    Worker(app, loglevel=log_level.upper(), logfile=log_file, loop=loop, quiet=True).execute_from_commandline()


_apps: list[App] = []


def app_from_environment() -> App:
    """The app for ``faust -A rowtide.connector.worker``, created once from the file that ``ROWTIDE_CONFIG`` names.

    Raises:
        click.ClickException: the variable is not set, or the configuration is wrong.
    """
    if not _apps:
        path = os.environ.get(CONFIG_VARIABLE)
        if path is None:
            raise click.ClickException(f"the environment must name the configuration file: {CONFIG_VARIABLE}=FILE")
        try:
            _apps.append(create_app(load(path)))
        except ConfigurationError as error:
            raise click.ClickException(str(error)) from None
    return _apps[0]
