"""``rowtide worker``: runs connectors as one of a fleet's workers."""

import click

from rowtide.cli import importing
from rowtide.cli.connectors import config_argument, log_options, web_options
from rowtide.connector.config import ConfigurationError
from rowtide.connector.worker.web.settings import WebSettings
from rowtide.topics.errors import TopicError


@click.command()
@config_argument()
@log_options
@click.option(
    "--log-file",
    type=click.Path(dir_okay=False),
    help="Append the log to this file instead of writing it to the terminal.",
)
@web_options
def worker(
    config: tuple[str, ...],
    *,
    log_level: str,
    log_format: str,
    log_file: str | None,
    web_settings: WebSettings,
    no_web: bool,
) -> None:
    """Run connectors as one of a fleet's workers.

    Workers with the same group.id and Kafka cluster share the connectors whose configurations are in
    config.storage.topic. If a worker ends, its connectors continue on the others. CONFIG... are the properties of the
    worker, with Kafka Connect's names; they are the defaults for all connectors. SIGHUP reads them again.

    \b
    Example:
      rowtide worker fleet.properties
    """  # noqa: D301 - Click's mark of a paragraph
    with importing():  # slow, and not needed to report a wrong configuration
        from rowtide.connector.fleet import faust_app as fleet_app  # noqa: PLC0415
        from rowtide.connector.fleet.settings import fleet_settings  # noqa: PLC0415
        from rowtide.connector.fleet.topics import prepare_topics  # noqa: PLC0415
        from rowtide.connector.worker import faust_app  # noqa: PLC0415

    try:
        settings = fleet_settings(config)
        faust_app.require_places(None if no_web else web_settings, log_file)  # before it waits for Kafka
        app = fleet_app.create_app(settings, prepare_topics(settings), web_settings, lambda: fleet_settings(config))
        faust_app.run(
            app,
            log_level=log_level,
            log_format=log_format,
            log_file=log_file,
            summary_interval=0,
            web=not no_web,
            progress=False,
        )
    except (ConfigurationError, TopicError) as error:
        raise click.ClickException(str(error)) from None
