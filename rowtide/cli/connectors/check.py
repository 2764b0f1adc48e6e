"""``rowtide check``: checks whether connectors can start."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import click

from rowtide.cli.connectors import (
    config_argument,
    connector_files,
    connectors_option,
    from_mirror_option,
    from_options,
    given_twice,
    ignore_unsupported_option,
    require_files,
    sink_option,
)
from rowtide.cli.connectors.check_report import Checked, report_json, report_text, reports_json, reports_text
from rowtide.cli.option_types import HOST
from rowtide.connector.config import Configuration, ConfigurationError, Problem, load_invalid, read_properties
from rowtide.connector.config.catalogue import databus
from rowtide.connector.config.catalogue.connect import BOOTSTRAP_SERVERS, SINK
from rowtide.connector.config.conflicts import conflicts
from rowtide.databus.server.settings import load_server

_NO_NAME = "without a name"


@click.command()
@config_argument(required=False)
@connectors_option(
    "The configuration of one of several connectors that run in one process, or a directory of such files; repeat it "
    "for each. CONFIG... are then the properties of all of them, as for rowtide run."
)
@click.option("--without-tables", is_flag=True, help="Skip the check of tables and columns (faster on large servers).")
@click.option("--without-kafka", is_flag=True, help="Check only the configuration and the database.")
@sink_option("Where records go, as for rowtide run; python for the configuration of a rowtide.Engine.")
@from_mirror_option
@click.option(
    "--web-port", type=click.IntRange(1, 65535), help="Port of the web server, as for rowtide run.  [default: 6066]"
)
@click.option(
    "--web-bind", type=HOST, metavar="TEXT", help="Address of the web server, as for rowtide run.  [default: 127.0.0.1]"
)
@click.option(
    "--ddl",
    metavar="STATEMENT",
    help="Report which schemas the schema registry would refuse after this statement, which is not executed.",
)
@ignore_unsupported_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def check(
    config: tuple[str, ...],
    *,
    connectors: tuple[str, ...],
    without_tables: bool,
    without_kafka: bool,
    sink: str | None,
    from_mirror: str | None,
    web_port: int | None,
    web_bind: str | None,
    ddl: str | None,
    ignore_unsupported: bool,
    as_json: bool,
) -> None:
    """Check whether connectors can start.

    Reads the configuration files CONFIG, each of which overrides those before it, then checks the settings of the
    database server, the privileges of the account, the captured tables, and the topics in Kafka. Reports all problems
    together, and lists the captured tables and their topics. If the database and Kafka can be reached, it prints the
    position at which the connector would start. It changes no database, record, topic or position; with exactly-once
    delivery, it opens and closes a transaction with another transactional id (the connector's with -check).

    With a schema registry, it asks for each captured table whether its schemas would be accepted, and registers none.
    --ddl asks the same for the tables as a statement would change them.

    With --connector, it checks each of several connectors, and whether they can run in one process.

    The exit code is 0 if there is no error, 1 if there is one, and 2 for wrong options.

    \b
    Examples:
      rowtide check shop.properties
      rowtide check --connector shop.json --connector crm.json worker.properties
      rowtide check --sink python library.properties
      rowtide check shop.properties --ddl "ALTER TABLE orders ADD note TEXT"
    """  # noqa: D301 - Click's mark of a paragraph
    from rowtide.connector.check import CheckReport, Finding, Severity, check, ranked  # noqa: PLC0415 - needs the extra
    from rowtide.connector.engine.cascade_check import cascade_findings  # noqa: PLC0415
    from rowtide.connector.engine.package_check import package_findings  # noqa: PLC0415
    from rowtide.connector.engine.registry_check import registry_findings  # noqa: PLC0415
    from rowtide.connector.engine.start.position import as_signalled, start_findings  # noqa: PLC0415
    from rowtide.connector.worker.web.address import WebAddress, port_findings  # noqa: PLC0415

    more = from_options(sink, from_mirror, ignore_unsupported=ignore_unsupported)
    configurations: dict[str, Configuration] = {}

    def checked(name: str, files: Sequence[str], address: WebAddress) -> Checked:
        try:
            publishes = databus.TOPIC.name in read_properties(files)[0]
            loader = load_server if publishes else load_invalid
            configuration, problems = loader(files, more=more)
        except ConfigurationError as error:
            return Checked(_NO_NAME, (), CheckReport([Finding(Severity.ERROR, *problem) for problem in error.problems]))
        configurations[name] = configuration
        tested = partial(check, tables=not without_tables, thorough=True, kafka=not without_kafka)
        report = tested(configuration, problems)
        found = [Finding(Severity.REMARK, SINK.name, _FOR_ENGINES)] if _lacks_kafka(problems) else []
        if configuration.delivery.sink != "python":
            found += port_findings(address, configuration.name)
        missing = list(package_findings(configuration))
        found += missing
        if report.reached and not problems and not missing:
            signalled = as_signalled(configuration)
            if signalled is not None:
                report = tested(signalled)
            differences = [report.exact_differences] if report.exact_differences else []
            found += start_findings(configuration, report.tables, *differences)
            found += registry_findings(configuration, report.tables or (), ddl)
            found += cascade_findings(configuration, report.tables or ())
        if publishes:
            from rowtide.databus.server.check import server_findings  # noqa: PLC0415 - needs the extra

            invalid = {problem.property for problem in problems}
            more_found = server_findings(configuration, report.tables)
            found += [finding for finding in more_found if finding.subject not in invalid]
        report = replace(report, findings=ranked([*report.findings, *found]))
        return Checked(configuration.name or _NO_NAME, configuration.warnings, report)

    try:
        address = WebAddress.choose(web_bind, web_port)
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None
    given = connector_files(config, connectors)
    require_files(given, connectors)
    results = [checked(name, files, address) for name, files in given.items()]
    if connectors:
        problems = [*given_twice(connectors), *conflicts(configurations)]
        clashes = [Finding(Severity.ERROR, *problem) for problem in problems]
        click.echo((reports_json if as_json else reports_text)(results, clashes))
    else:
        clashes = []
        click.echo((report_json if as_json else report_text)(results[0]))
    if clashes or not all(one.ready for one in results):
        raise SystemExit(1)


_FOR_ENGINES = "for the configuration of a rowtide.Engine, which needs no Kafka: rowtide check --sink python CONFIG"


def _lacks_kafka(problems: Sequence[Problem]) -> bool:
    return any(problem.property == BOOTSTRAP_SERVERS.name and "is required" in problem.message for problem in problems)
