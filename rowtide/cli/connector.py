"""The commands that start a connector: ``rowtide check`` and ``rowtide run``."""

from collections.abc import Collection, Mapping

import click

from rowtide.connector.config import Configuration, ConfigurationError, load
from rowtide.connector.worker.logs import FORMATS, LEVELS

_CONFIG = click.Path(exists=True, dir_okay=False)


def read_configuration(
    path: str, not_required: Collection[str] = (), more: Mapping[str, str] | None = None
) -> Configuration:
    """Read the configuration of a command.

    Args:
        path: the configuration file.
        not_required: names of required properties that this command does not need.
        more: properties from options, which override those of the file.

    Raises:
        click.ClickException: the configuration has errors; the message lists all of them.
    """
    try:
        return load(path, not_required=not_required, more=more)
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None


@click.command()
@click.argument("config", type=_CONFIG)
@click.option("--without-tables", is_flag=True, help="Skip the check of tables and columns (faster on large servers).")
@click.option("--without-kafka", is_flag=True, help="Check only the configuration and the database.")
def check(config: str, *, without_tables: bool, without_kafka: bool) -> None:
    """Check whether a connector can start.

    Reads the configuration file CONFIG, then checks the settings of the database server, the privileges of the account,
    the captured tables, and the topics in Kafka. Reports all problems at once. If there are none, it prints the
    position at which the connector would start. It changes nothing in the database or in Kafka.

    The exit code is 0 if the connector can start, and 1 if it cannot.
    """
    from rowtide.connector.check import Severity, check_database, errors_in  # noqa: PLC0415
    from rowtide.connector.check.broker import broker_findings  # noqa: PLC0415
    from rowtide.connector.engine.start_position import start_findings  # noqa: PLC0415 - needs the extra

    configuration = read_configuration(config)
    found, facts = check_database(configuration, tables=not without_tables)
    if not without_kafka:
        if configuration.uses_kafka:
            found += broker_findings(configuration, facts.tables if facts is not None else None)
        if not errors_in(found):
            found += start_findings(configuration)
    styles = {
        Severity.ERROR: ("error", "red"),
        Severity.WARNING: ("warning", "yellow"),
        Severity.REMARK: ("note", "blue"),
    }
    for note in configuration.warnings:
        click.echo(f"{click.style('note', fg='blue')}: {note}")
    for finding in sorted(found, key=lambda finding: finding.severity):
        word, colour = styles[finding.severity]
        click.echo(f"{click.style(word, fg=colour, bold=finding.severity is Severity.ERROR)}: {finding}")
    errors = len(errors_in(found))
    if errors:
        number = "one error" if errors == 1 else f"{errors} errors"
        raise click.ClickException(f"the connector {configuration.name} cannot start: {number}")
    click.echo(f"the connector {configuration.name} can start")


@click.command()
@click.argument("config", type=_CONFIG)
@click.option(
    "--sink",
    metavar="kafka|stdout|file:DIR|URL",
    help="Where records go: Kafka; JSON lines on standard output or in files of a directory; an HTTP server, by POST.  "
    "[default: rowtide.sink of CONFIG, or kafka]",
)
@click.option(
    "--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="The lowest level that is logged."
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Lines of text, or one JSON object per line.",
)
@click.option(
    "--log-file",
    type=click.Path(dir_okay=False),
    help="Append the log to this file instead of writing it to the terminal.",
)
@click.option(
    "--web-port",
    type=click.IntRange(1, 65535),
    help="Port of the web server.  [default: 6066, or a free port if it is in use]",
)
@click.option("--web-bind", help="Address of the web server; 0.0.0.0 for all interfaces.  [default: 127.0.0.1]")
@click.option("--no-web", is_flag=True, help="Do not start the web server.")
@click.option(
    "--summary-interval",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=60.0,
    show_default=True,
    help="How often a summary is logged; 0 for never. On a terminal, a live view replaces it.",
)
@click.option("--no-progress", is_flag=True, help="Do not draw the live view, even on a terminal.")
def run(
    config: str,
    *,
    sink: str | None,
    log_level: str,
    log_format: str,
    log_file: str | None,
    web_port: int | None,
    web_bind: str | None,
    no_web: bool,
    summary_interval: float,
    no_progress: bool,
) -> None:
    """Run a connector until it is stopped.

    Reads the configuration file CONFIG, checks the database and Kafka, takes a snapshot if no position is stored yet,
    and then writes every row change to Kafka or to another sink. SIGTERM and Ctrl-C stop it cleanly: it delivers what
    it has read, stores the position, and resumes exactly there at the next start.

    While it runs, /health reports its state as JSON (with status 503 if the connector does not work), and /metrics
    serves Prometheus metrics. The exit code is 0 after SIGTERM or Ctrl-C, and 1 after a failure.
    """
    configuration = read_configuration(config, more=None if sink is None else {"rowtide.sink": sink})
    if configuration.delivery.sink == "python":
        raise click.ClickException("rowtide.sink=python is for rowtide.Engine in a Python program; use another --sink")
    from rowtide.connector.worker import faust_app  # noqa: PLC0415 - slow to import, and not needed to report a wrong configuration

    app = faust_app.create_app(configuration, web_bind=web_bind, web_port=web_port)
    faust_app.run(
        app,
        log_level=log_level,
        log_format=log_format,
        log_file=log_file,
        summary_interval=summary_interval,
        web=not no_web,
        progress=not no_progress,
    )
