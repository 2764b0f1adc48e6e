"""Commands about the connector: ``rowtide check``, ``rowtide properties`` and ``rowtide run``."""

import difflib
from collections.abc import Collection

import click

from rowtide.connector.config import Configuration, ConfigurationError, load
from rowtide.connector.config.catalogue import FAMILIES, PROPERTIES, SECTIONS, entries
from rowtide.connector.config.reference import default_of, describe, markdown, name_of
from rowtide.connector.config.sections.reader import family_of
from rowtide.connector.worker.logs import LEVELS

_CONFIG = click.Path(exists=True, dir_okay=False)


def loaded(path: str, unneeded: Collection[str] = ()) -> Configuration:
    """Read a configuration for a command; properties that it does not need may be missing.

    Raises:
        click.ClickException: it has problems; all of them are told.
    """
    try:
        return load(path, unneeded=unneeded)
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None


@click.command()
@click.argument("config", type=_CONFIG)
@click.option("--without-tables", is_flag=True, help="Do not look at tables and columns (quicker on large servers).")
@click.option("--without-kafka", is_flag=True, help="Look at the configuration and the database only.")
def check(config: str, *, without_tables: bool, without_kafka: bool) -> None:
    """Check that a connector could start.

    Reads the configuration file CONFIG, then asks the database's server for its settings, the account's privileges and
    the tables, and Kafka for its topics. Everything that is found is told at once, and if nothing is wrong, from where
    a start would go on. Nothing is changed anywhere.

    The exit code is 0 if the connector could start, 1 if not.
    """
    from rowtide.connector.check import Severity, check_database, errors_in  # noqa: PLC0415
    from rowtide.connector.check.broker import broker_findings  # noqa: PLC0415
    from rowtide.connector.engine.start_position import beginning_findings  # noqa: PLC0415 - needs the extra

    configuration = loaded(config)
    found, facts = check_database(configuration, tables=not without_tables)
    if not without_kafka:
        found += broker_findings(configuration, facts.tables if facts is not None else None)
        if not errors_in(found):
            found += beginning_findings(configuration)
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
    errors = errors_in(found)
    if errors:
        raise click.ClickException(f"the connector {configuration.name} cannot start: {len(errors)} to put right")
    click.echo(f"the connector {configuration.name} can start")


@click.command()
@click.argument("config", type=_CONFIG)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="What is logged.")
@click.option("--log-file", type=click.Path(dir_okay=False), help="Append the log to a file instead of the terminal.")
@click.option("--web-port", type=click.IntRange(1, 65535), help="Port of /health and /metrics.  [default: 6066]")
@click.option("--web-bind", help="Address of /health and /metrics; 0.0.0.0 for all.  [default: 127.0.0.1]")
@click.option("--no-web", is_flag=True, help="Do not serve /health and /metrics.")
@click.option("--no-progress", is_flag=True, help="No progress bar, also on a terminal.")
def run(
    config: str,
    *,
    log_level: str,
    log_file: str | None,
    web_port: int | None,
    web_bind: str | None,
    no_web: bool,
    no_progress: bool,
) -> None:
    """Run a connector until it is told to stop.

    Reads the configuration file CONFIG, checks the database and Kafka, takes a snapshot if there is no stored position
    yet, and then writes every change to Kafka. SIGTERM and Ctrl-C stop it in order: what was read is delivered and the
    position stored, so that the next start goes on exactly there.

    While it runs, /health tells how it is doing as JSON (answering 503 if it does not work), and /metrics gives numbers
    for Prometheus. The exit code is 0 after an order to stop, 1 after a failure.
    """
    configuration = loaded(config)
    from rowtide.connector.worker import faust_app  # noqa: PLC0415 - takes long, and a wrong configuration is told without it

    app = faust_app.create_app(configuration, web_bind=web_bind, web_port=web_port)
    faust_app.run(app, log_level=log_level, log_file=log_file, web=not no_web, progress=not no_progress)


@click.command()
@click.argument("name", required=False)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the whole reference as Markdown.")
def properties(name: str | None, *, as_markdown: bool) -> None:
    """Look up what can be configured.

    With NAME, tells that property's meaning, type and default, and whether rowtide supports it; a part of a name lists
    all that have it. Without NAME, lists every property.
    """
    if as_markdown:
        click.echo(markdown(), nl=False)
        return
    if name is None:
        for section in SECTIONS:
            click.secho(section.TITLE, bold=True)
            for entry in entries(section):
                default = default_of(entry)
                click.echo(f"  {name_of(entry)}{f' = {default}' if default else ''}")
        return
    exact = PROPERTIES.get(name) or next((family for family in FAMILIES if family.form == name), None)
    exact = exact or family_of(name)
    if exact is not None:
        click.echo(describe(exact))
        return
    found = [entry for section in SECTIONS for entry in entries(section) if name.lower() in name_of(entry).lower()]
    if found:
        click.echo("\n\n".join(describe(entry) for entry in found))
        return
    near = difflib.get_close_matches(name, PROPERTIES, n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    raise click.ClickException(f"there is no property {name!r}{hint}")
