"""``rowtide databus``: publishes changes in the form of mysql-databus."""

import click

from rowtide.cli.connectors import (
    config_argument,
    from_mirror_option,
    from_options,
    log_options,
    web_options,
)
from rowtide.connector.config import ConfigurationError
from rowtide.connector.worker import faust_app
from rowtide.connector.worker.web.settings import WebSettings
from rowtide.databus.server.settings import load_server
from rowtide.databus.server.worker import create_app


@click.command()
@config_argument()
@from_mirror_option
@log_options
@web_options
def databus(
    config: tuple[str, ...],
    *,
    from_mirror: str | None,
    log_level: str,
    log_format: str,
    web_settings: WebSettings,
    no_web: bool,
) -> None:
    """Publish changes in the form of mysql-databus until stopped.

    CONFIG... are the files of a connector, with databus.topic. All changes go to partition 0 of that topic, in the
    form that databus' clients read: one message for each row event and each statement. Positions, schema history,
    exactly-once delivery, /health and /metrics are those of rowtide run. The topic has no rows of snapshots
    (snapshot.mode is no_data by default); clients read them from a dump.

    \b
    Examples:
      rowtide databus shop.properties
    """  # noqa: D301 - Click's mark of a paragraph
    try:
        found, problems = load_server(config, from_options(None, from_mirror, ignore_unsupported=False))
        app = None if problems else create_app(found, web_settings)
        if app is not None:
            faust_app.run(
                app,
                log_level=log_level,
                log_format=log_format,
                log_file=None,
                summary_interval=60.0,
                web=not no_web,
                progress=False,
            )
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None
    raise click.ClickException(str(ConfigurationError(problems)))
