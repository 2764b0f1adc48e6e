"""The Faust app that runs connectors, with their threads, signals and web server.

``rowtide run CONFIG`` and ``ROWTIDE_CONFIG=CONFIG faust -A rowtide.connector.worker worker`` start the same app. Faust
provides the life cycle, signals and the web server. The connectors send their records themselves, because Faust's
producer can neither put offsets into the same transaction nor wait for acknowledgements in bulk. This app has no agents
and no tables, so Faust's Kafka clients are not started: there is no consumer group, no leader election and no topic of
Faust's own.
"""

import asyncio
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from rowtide.connector.config import Configuration, ConfigurationError, load
from rowtide.connector.config.files.environment import CONFIG_VARIABLE
from rowtide.connector.records.settings import MessageForm
from rowtide.connector.worker.connectors import Connectors
from rowtide.connector.worker.memory_release import MemoryRelease
from rowtide.connector.worker.process import Worker
from rowtide.connector.worker.reload import ConfigurationFiles, read_each
from rowtide.connector.worker.reports.otel_metrics import OtelMetrics
from rowtide.connector.worker.reports.reporter import Reporter
from rowtide.connector.worker.reports.systemd import SystemdNotifier
from rowtide.connector.worker.standalone_app import App
from rowtide.connector.worker.web.address import require_address
from rowtide.connector.worker.web.settings import WebSettings
from rowtide.topics.errors import TopicError


def create_app(
    *configs: Configuration,
    web: WebSettings | None = None,
    form: MessageForm | None = None,
    files: ConfigurationFiles | None = None,
) -> App:
    """Create the Faust app of one or several connectors.

    Args:
        configs: the configurations of the connectors.
        web: the settings of the web server; by default those of the environment.
        form: the form of the messages of rows and statements, instead of Debezium's.
        files: the files of the configurations, which SIGHUP and requests for a restart read again.

    Raises:
        ConfigurationError: ``WEB_PORT`` of the environment is not a port.
    """
    web = web or WebSettings.choose()
    app = App(
        "-".join(["rowtide", *(config.name for config in configs)]),
        Worker=Worker,
        web_bind=web.address.host,
        web_port=web.address.port,
        web_ssl_context=web.tls,
        env={},  # variables would override what is given here
    )
    app.web_settings = web
    app.connectors = Connectors(configs, form, files)
    services = app.connectors.services.values()
    app.reporter = Reporter(lambda: [service.status for service in services])
    app.systemd = SystemdNotifier(lambda: [service.status_at_once for service in services])
    app.services += [app.connectors, app.reporter, app.systemd, MemoryRelease(), OtelMetrics(lambda: services)]
    return app


def require_places(web: WebSettings | None, log_file: str | None) -> None:
    """Check where a process listens and logs.

    Args:
        web: the settings of the web server; ``None`` if it is not started.
        log_file: a file to log to.

    Raises:
        ConfigurationError: the web server cannot listen at its address, or the log file cannot be written.
    """
    if web is not None:
        require_address(web.address.host, web.address.port, any_port=web.address.any_port)
    if log_file is not None:
        try:
            Path(log_file).open("a").close()
        except OSError as error:
            raise ConfigurationError([("--log-file", f"{log_file} cannot be written: {error.strerror}")]) from error


def run(
    app: App,
    *,
    log_level: str,
    log_format: str,
    log_file: str | None,
    summary_interval: float,
    web: bool,
    progress: bool,
) -> NoReturn:
    """Run an app in this process until it ends, for the command line.

    Args:
        app: from :func:`create_app`.
        log_level: one of ``logs.LEVELS``.
        log_format: one of ``logs.FORMATS``.
        log_file: a file to log to instead of standard error.
        summary_interval: seconds between two summaries in the log; 0 for none.
        web: whether the web server is started.
        progress: whether a live view may be drawn on the terminal.

    Raises:
        ConfigurationError: as :func:`require_places`.
    """
    require_places(app.web_settings if web else None, log_file)
    app.show_progress = progress
    app.log_format = log_format
    app.reporter.interval = summary_interval
    app.finalize()
    app.conf.web_enabled = web
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    Worker(app, loglevel=log_level.upper(), logfile=log_file, loop=loop, quiet=True).execute_from_commandline()


def app_of_files(create: Callable[[list[str]], App]) -> App:
    """Create an app from the files in ``ROWTIDE_CONFIG``, for ``faust -A``.

    Args:
        create: creates it from the paths of the files.

    Raises:
        click.ClickException: the variable is not set, or the configuration is wrong.
    """
    paths = os.environ.get(CONFIG_VARIABLE)
    if paths is None:
        raise click.ClickException(f"the environment must name the configuration file: {CONFIG_VARIABLE}=FILE")
    try:
        return create(paths.split(os.pathsep))
    except (ConfigurationError, TopicError) as error:
        raise click.ClickException(str(error)) from None


@functools.cache
def app_from_environment() -> App:
    """Return the app for ``faust -A rowtide.connector.worker``, created once; see :func:`app_of_files`."""

    def create(files: list[str]) -> App:
        config = load(files)
        again = ConfigurationFiles(lambda: read_each({files[-1]: files}), {files[-1]: config.name})
        return create_app(config, files=again)

    return app_of_files(create)
