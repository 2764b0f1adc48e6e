"""``rowtide run``: runs connectors until they are stopped."""

from typing import TextIO

import click

from rowtide.cli import importing
from rowtide.cli.connectors import (
    config_argument,
    connectors_option,
    from_mirror_option,
    from_options,
    ignore_unsupported_option,
    log_options,
    read_configurations,
    sink_option,
    token_of,
    web_options,
)
from rowtide.connector.config import ConfigurationError


@click.command()
@config_argument(required=False)
@connectors_option(
    "The configuration of one of several connectors that run in this process; repeat it for each. CONFIG... are then "
    "the properties of all of them, such as those of a worker, which FILE overrides."
)
@sink_option(
    "Where records go: Kafka; JSON lines on standard output or in files of a directory; an HTTP server, by POST.  "
    "[default: rowtide.sink of CONFIG, or kafka]"
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
    type=click.FloatRange(min=0),
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
    web_port: int | None,
    web_bind: str | None,
    web_token_file: TextIO | None,
    no_web: bool,
    summary_interval: float,
    no_progress: bool,
) -> None:
    """Run connectors until they are stopped.

    Reads the configuration files CONFIG, of which each overrides those before it, checks the database and Kafka, takes
    a snapshot if no position is stored yet, and then writes every row change to Kafka or to another sink. SIGTERM and
    Ctrl-C stop it cleanly: it delivers what it has read, stores the position, and resumes exactly there at the next
    start.

    With --connector, several connectors run in one process, each in its own threads. If one fails, the others continue.

    While it runs, /health reports the state as JSON (with status 503 if a connector does not work), and /metrics serves
    Prometheus metrics. The exit code is 0 after SIGTERM or Ctrl-C, and 1 if a connector has failed.

    \b
    Examples:
      rowtide run shop.properties
      rowtide run connector.json worker.properties
      rowtide run --connector shop.json --connector crm.json worker.properties
    """  # noqa: D301 - Click's mark of a paragraph
    token = token_of(web_token_file)
    more = from_options(sink, from_mirror, ignore_unsupported=ignore_unsupported)
    configurations = read_configurations(config, connectors, more)
    if any(one.delivery.sink == "python" for one in configurations.values()):
        raise click.ClickException("rowtide.sink=python is for rowtide.Engine in a Python program; use another --sink")
    if any(one.databus.topic is not None for one in configurations.values()):
        raise click.ClickException(
            "databus.topic is for rowtide databus: rowtide run would move its position past changes that are not in "
            "that topic. Use rowtide databus; or leave databus.topic out, and use another name and topic.prefix"
        )
    with importing():  # slow, and not needed to report a wrong configuration
        from rowtide.connector.worker import faust_app  # noqa: PLC0415

    try:
        app = faust_app.create_app(*configurations.values(), web_bind=web_bind, web_port=web_port, web_token=token)
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
