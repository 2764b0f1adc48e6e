"""``rowtide run``: runs connectors until they are stopped."""

from pathlib import Path

import click

from rowtide.cli import importing
from rowtide.cli.connectors import (
    config_argument,
    connector_files,
    connectors_option,
    from_mirror_option,
    from_options,
    given_twice,
    ignore_unsupported_option,
    log_options,
    no_files,
    read_configurations,
    require_files,
    sink_option,
    web_options,
)
from rowtide.cli.option_types import FiniteRange
from rowtide.connector.config import Configuration, ConfigurationError, Problem
from rowtide.connector.config.catalogue import databus
from rowtide.connector.config.catalogue.connect import SINK
from rowtide.connector.worker.reload import ConfigurationFiles, Found, read_each
from rowtide.connector.worker.web.settings import WebSettings


@click.command()
@config_argument(required=False)
@connectors_option(
    "The configuration of one of several connectors that run in this process, or a directory of such files; repeat it "
    "for each. CONFIG... are then the properties of all of them, such as those of a worker, which FILE overrides."
)
@sink_option(
    "Where records go: Kafka; JSON lines on standard output or in files of a directory; an HTTP server, by POST. "
    "duckdb:FILE and delta:DIR keep the tables themselves.  [default: rowtide.sink of CONFIG, or kafka]"
)
@from_mirror_option
@ignore_unsupported_option
@log_options
@click.option(
    "--log-file",
    type=click.Path(dir_okay=False),
    help="Append the log to this file instead of writing it to the terminal.",
)
@web_options
@click.option(
    "--summary-interval",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    default=60.0,
    show_default=True,
    help="How often a summary is logged; 0 for never. On a terminal, a live view replaces it.",
)
@click.option("--no-progress", is_flag=True, help="Do not draw the live view, even on a terminal.")
def run(
    config: tuple[str, ...],
    *,
    connectors: tuple[str, ...],
    sink: str | None,
    from_mirror: str | None,
    ignore_unsupported: bool,
    log_level: str,
    log_format: str,
    log_file: str | None,
    web_settings: WebSettings,
    no_web: bool,
    summary_interval: float,
    no_progress: bool,
) -> None:
    """Run connectors until they are stopped.

    Reads the configuration files CONFIG, each of which overrides those before it, checks the database and Kafka, takes
    a snapshot if no position is stored yet, and then writes every row change to Kafka or to another sink. SIGTERM and
    Ctrl-C shut it down gracefully: it delivers what it has read, stores the position, and resumes exactly there at the
    next start.

    With --connector, several connectors run in one process, each in its own threads. If one fails, the others continue.

    SIGHUP reads the files again: connectors whose configuration has changed start again, one after the other, new files
    in a directory of --connector start connectors, and deleted files stop theirs. The other connectors are not
    interrupted.

    While it runs, /health reports the state as JSON (with status 503 if a connector does not work), and /metrics serves
    Prometheus metrics. The exit code is 0 after SIGTERM or Ctrl-C, and 1 if a connector has failed.

    \b
    Examples:
      rowtide run shop.properties
      rowtide run connector.json worker.properties
      rowtide run --connector shop.json --connector crm.json worker.properties
    """  # noqa: D301 - Click's mark of a paragraph
    more = from_options(sink, from_mirror, ignore_unsupported=ignore_unsupported)
    configurations = read_configurations(config, connectors, more)
    require_files(configurations, connectors)
    if problems := [problem for one in configurations.values() if (problem := _problem(one))]:
        raise click.ClickException(problems[0].message)
    folders = [given for given in connectors if Path(given).is_dir()]

    def read_again() -> Found:
        if gone := [folder for folder in folders if not Path(folder).is_dir()]:
            raise ConfigurationError([(folder, "is no longer a directory") for folder in gone])
        try:
            twice, files = given_twice(connectors), connector_files(config, connectors)
        except OSError as error:
            raise ConfigurationError([(str(error.filename), f"cannot be read: {error.strerror}")]) from None
        if twice:
            raise ConfigurationError(twice)
        if not files:  # a volume that is not mounted rather than the wish to stop all connectors
            raise ConfigurationError([no_files(connectors)])
        read = read_each(files, more)
        refused = {
            file: ConfigurationError([problem])
            for file, one in read.items()
            if isinstance(one, Configuration) and (problem := _problem(one))
        }
        return {**read, **refused}

    with importing():  # slow, and not needed to report a wrong configuration
        from rowtide.connector.worker import faust_app  # noqa: PLC0415

    try:
        app = faust_app.create_app(
            *configurations.values(),
            web=web_settings,
            files=ConfigurationFiles(
                read_again, {file: one.name for file, one in configurations.items()}, several=bool(connectors)
            ),
        )
        faust_app.run(
            app,
            log_level=log_level,
            log_format=log_format,
            log_file=log_file,
            summary_interval=summary_interval,
            web=not no_web,
            progress=not no_progress,
        )
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None


def _problem(config: Configuration) -> Problem | None:
    """Return the reason why this command cannot run a connector."""
    if config.delivery.sink == "python":
        message = "rowtide.sink=python is for rowtide.Engine in a Python program; use another --sink"
        return Problem(SINK.name, message)
    if config.databus.topic is not None:
        message = (
            "databus.topic is for rowtide databus: rowtide run would move its position past changes that are not in "
            "that topic. Use rowtide databus; or omit databus.topic, and use another name and topic.prefix"
        )
        return Problem(databus.TOPIC.name, message)
    return None
