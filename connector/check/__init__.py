"""Checks that the server, the account, the tables and Kafka meet the connector's requirements.

:func:`check` reports all findings together, for ``rowtide check``. The worker calls :func:`require` when it starts.
"""

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pymysql

from rowtide.connector.check.broker import broker_findings
from rowtide.connector.check.facts import ServerFacts
from rowtide.connector.check.findings import CheckFailedError, Finding, Severity, errors_in, from_problem, ranked
from rowtide.connector.check.kafka_access import access_findings
from rowtide.connector.check.privilege_rules import privilege_findings
from rowtide.connector.check.server import fetch_facts
from rowtide.connector.check.server_rules import OWN_REPLICA, server_findings
from rowtide.connector.check.signal_rules import signal_findings
from rowtide.connector.check.sink import sink_findings
from rowtide.connector.check.table_rules import cascade_findings, exact_differences, table_findings, values_finding
from rowtide.connector.check.topic_checks import CheckedTable, captured_tables, topic_findings
from rowtide.connector.config import Configuration, Problem
from rowtide.connector.source.connection import DatabaseUnreachableError

__all__ = [
    "CheckFailedError",
    "CheckReport",
    "CheckedTable",
    "Finding",
    "ServerFacts",
    "Severity",
    "captured_tables",
    "check",
    "check_database",
    "errors_in",
    "evaluate",
    "fetch_facts",
    "ranked",
    "require",
]


_DATABASE = re.compile(r"database\.(hostname|port|user|password|ssl\..*|initial\.statements)")
_KAFKA_S = 10.0
"""How long to wait for Kafka."""
_KAFKA = re.compile(r"bootstrap\.servers|(?!database\.)(.*\.)?(security\.protocol|(sasl|ssl)\..*)")
"""The properties without which neither can be connected to."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check.

    Attributes:
        findings: problems and remarks, errors first; empty if everything is in order.
        tables: the captured tables; ``None`` if they were not queried.
        reached: whether both the database and Kafka answered.
        exact_differences: values that exact values preserve and Debezium's defaults would change; empty without exact
            values.
    """

    findings: list[Finding]
    tables: tuple[CheckedTable, ...] | None = None
    reached: bool = False
    exact_differences: tuple[str, ...] = ()


def check(
    config: Configuration,
    problems: Iterable[Problem] = (),
    *,
    tables: bool = True,
    thorough: bool = False,
    kafka: bool = True,
) -> CheckReport:
    """Check the database and Kafka, as far as the configuration allows connections to them.

    Args:
        config: the configuration.
        problems: its problems, which become errors; invalid properties have their defaults in ``config``.
        tables: whether to check every table and column, too.
        thorough: whether to query the estimated rows of the tables, and to test the rights in Kafka. A start skips
            this, because it finds the same errors within seconds.
        kafka: whether to check Kafka, if the connector uses it.
    """
    wrong = [from_problem(problem) for problem in problems]
    invalid = {finding.subject.partition(" ")[0] for finding in wrong}  # a variable's name may follow
    found: list[Finding] = []
    facts: ServerFacts | None = None
    existing: Mapping[str, int] | None = None
    kafka = kafka and config.uses_kafka
    connects = kafka and not any(map(_KAFKA.fullmatch, invalid))
    with ThreadPoolExecutor(1, thread_name_prefix="brokers") as executor:  # Kafka and the database at the same time
        brokers = executor.submit(broker_findings, config, timeout=_KAFKA_S) if connects else None
        if any(map(_DATABASE.fullmatch, invalid)):
            wrong.append(_unchecked("database.hostname", "the database"))
        else:
            more, facts = check_database(config, tables=tables, estimates=thorough)
            found += more
    known = facts.tables if facts is not None and "topic.prefix" not in invalid else None
    if brokers is None and kafka:
        wrong.append(_unchecked("bootstrap.servers", "Kafka"))
    elif brokers is not None:
        about_brokers = brokers.result()
        found += about_brokers
        if not errors_in(about_brokers):
            more, existing = topic_findings(config, known, timeout=_KAFKA_S, rights=not thorough)
            found += more
    captured = None if known is None else captured_tables(config, known, existing)
    if thorough and existing is not None:
        found += access_findings(config, captured or (), existing, timeout=_KAFKA_S)
    found += sink_findings(config)
    found += signal_findings(config, facts.tables if facts is not None else None, existing)
    if config.databus.topic is None:
        found.append(values_finding(config))
    differences = exact_differences(config, known) if config.values.exact and known is not None else ()
    # For an invalid property, the rules used its default.
    found = [finding for finding in found if finding.subject not in invalid]
    reached = facts is not None and (not config.uses_kafka or existing is not None)
    return CheckReport(ranked([*wrong, *found]), captured, reached, differences)


def _unchecked(subject: str, what: str) -> Finding:
    return Finding.remark(subject, f"{what} is not checked until the properties of its connection are valid")


def check_database(
    config: Configuration, *, tables: bool = True, estimates: bool = False
) -> tuple[list[Finding], ServerFacts | None]:
    """Check the database alone; the facts are ``None`` if it cannot be queried."""
    try:
        facts = fetch_facts(config, tables=tables, estimates=estimates)
    except DatabaseUnreachableError as error:
        return [from_problem(error.problem, retriable=error.retriable)], None
    except pymysql.MySQLError as error:
        return [Finding.error("database.hostname", f"the server refuses a query: {error.args[-1]}")], None
    return evaluate(config, facts), facts


def evaluate(config: Configuration, facts: ServerFacts) -> list[Finding]:
    """Apply the rules to a server; pure. Returns the findings, errors first."""
    found = [*server_findings(config, facts), *privilege_findings(config, facts)]
    if facts.tables is not None:
        found += table_findings(config, facts.tables, zero_dates=facts.takes_zero_dates)
        found += cascade_findings(config, facts)
    return ranked(found)


def require(config: Configuration, *, server_only: bool = False) -> CheckReport:
    """Check everything before the connector starts.

    Args:
        config: the configuration.
        server_only: check only the server and the account: another worker has checked the rest.

    Returns:
        The captured tables, and the warnings, remarks and tolerated errors for the log.

    Raises:
        CheckFailedError: there are errors; ``retriable`` if only a server is unavailable.
    """
    report = check(config, tables=not server_only, kafka=not server_only)
    if any(not error.tolerated for error in errors_in(report.findings)):
        raise CheckFailedError(report.findings)
    # The connector's own replica is listed after every stop; a start ends its connection, if there still is one.
    findings = [one for one in report.findings if (one.severity, one.subject) != OWN_REPLICA]
    return replace(report, findings=findings)
