"""Checks that the server, the account, the tables and Kafka meet the connector's requirements.

:func:`check` reports all findings at once, for ``rowtide check``. The worker calls :func:`require` when it starts.
"""

import pymysql

from rowtide.connector.check.broker import broker_findings
from rowtide.connector.check.facts import ServerFacts
from rowtide.connector.check.findings import CheckFailedError, Finding, Severity, errors_in, from_problem
from rowtide.connector.check.privilege_rules import privilege_findings
from rowtide.connector.check.server import fetch_facts
from rowtide.connector.check.server_rules import server_findings
from rowtide.connector.check.table_rules import table_findings
from rowtide.connector.config import Configuration
from rowtide.connector.source.connection import DatabaseUnreachableError

__all__ = [
    "CheckFailedError",
    "Finding",
    "ServerFacts",
    "Severity",
    "check",
    "check_database",
    "errors_in",
    "evaluate",
    "fetch_facts",
    "require",
]


def check(config: Configuration, *, tables: bool = True, kafka_timeout: float = 10.0) -> list[Finding]:
    """Check the database and Kafka.

    Args:
        config: the configuration.
        tables: whether to check every table and column, too.
        kafka_timeout: seconds to wait for Kafka.

    Returns:
        All findings, errors first; an empty list if everything is in order.
    """
    found, facts = check_database(config, tables=tables)
    if config.uses_kafka:
        found += broker_findings(config, facts.tables if facts is not None else None, timeout=kafka_timeout)
    return sorted(found, key=lambda finding: -finding.severity)


def check_database(config: Configuration, *, tables: bool = True) -> tuple[list[Finding], ServerFacts | None]:
    """Check the database alone; the facts are ``None`` if it cannot be queried."""
    try:
        facts = fetch_facts(config, tables=tables)
    except DatabaseUnreachableError as error:
        return [from_problem(error.problem, retriable=error.retriable)], None
    except pymysql.MySQLError as error:
        return [Finding(Severity.ERROR, "database.hostname", f"the server refuses a query: {error.args[-1]}")], None
    return evaluate(config, facts), facts


def evaluate(config: Configuration, facts: ServerFacts) -> list[Finding]:
    """Apply the rules to a server; pure. Returns the findings, errors first."""
    found = [*server_findings(config, facts), *privilege_findings(config, facts)]
    if facts.tables is not None:
        found += table_findings(config, facts.tables, zero_dates=facts.takes_zero_dates)
    return sorted(found, key=lambda finding: -finding.severity)


def require(config: Configuration) -> list[Finding]:
    """Check everything before the connector starts.

    Returns:
        Warnings and remarks, for the log.

    Raises:
        CheckFailedError: there are errors; ``retriable`` if only a server is away.
    """
    found = check(config)
    if errors_in(found):
        raise CheckFailedError(found)
    return found
