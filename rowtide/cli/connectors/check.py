"""``rowtide check``: checks whether a connector can start."""

from dataclasses import replace

import click

from rowtide.cli.connectors import IGNORE_UNSUPPORTED, config_argument, ignore_unsupported_option
from rowtide.cli.connectors.check_report import report_json, report_text
from rowtide.connector.config import ConfigurationError, load_invalid

_NO_NAME = "without a name"


@click.command()
@config_argument()
@click.option("--without-tables", is_flag=True, help="Skip the check of tables and columns (faster on large servers).")
@click.option("--without-kafka", is_flag=True, help="Check only the configuration and the database.")
@click.option(
    "--web-port", type=click.IntRange(1, 65535), help="Port of the web server, as for rowtide run.  [default: 6066]"
)
@click.option("--web-bind", help="Address of the web server, as for rowtide run.  [default: 127.0.0.1]")
@ignore_unsupported_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def check(
    config: tuple[str, ...],
    *,
    without_tables: bool,
    without_kafka: bool,
    web_port: int | None,
    web_bind: str | None,
    ignore_unsupported: bool,
    as_json: bool,
) -> None:
    """Check whether a connector can start.

    Reads the configuration files CONFIG, of which each overrides those before it, then checks the settings of the
    database server, the privileges of the account, the captured tables, and the topics in Kafka. Reports all problems
    at once, and lists the captured tables and their topics. If the database and Kafka can be reached, it prints the
    position at which the connector would start. It
    changes no database, record, topic or position; with exactly-once delivery, it opens and closes a transaction of a
    transactional id of its own (that of the connector with -check).

    The exit code is 0 if there is no error, 1 if there is one, and 2 for wrong options.
    """
    from rowtide.connector import check as checks  # noqa: PLC0415 - needs the extra
    from rowtide.connector.engine.start.position import start_findings  # noqa: PLC0415
    from rowtide.connector.worker.web.address import WebAddress, port_findings  # noqa: PLC0415

    try:
        configuration, problems = load_invalid(config, more=IGNORE_UNSUPPORTED if ignore_unsupported else {})
        address = WebAddress.choose(web_bind, web_port)
    except ConfigurationError as error:
        if as_json:
            unread = checks.Report([checks.Finding(checks.Severity.ERROR, *problem) for problem in error.problems])
            click.echo(report_json(_NO_NAME, (), unread))
            raise SystemExit(1) from None
        raise click.ClickException(str(error)) from None
    report = checks.check(configuration, problems, tables=not without_tables, thorough=True, kafka=not without_kafka)
    more = port_findings(address, configuration.name)
    if report.reached and not problems:
        more += start_findings(configuration, report.tables)
    report = replace(report, findings=checks.ranked([*report.findings, *more]))
    name = configuration.name or _NO_NAME
    show = report_json if as_json else report_text
    click.echo(show(name, configuration.warnings, report))
    if checks.errors_in(report.findings):
        raise SystemExit(1)
