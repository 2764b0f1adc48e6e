"""What is wrong with the configuration of a connector, as Kafka Connect's validation asks, and what it captures."""

from collections.abc import Callable, Collection, Mapping

from rowtide.connector.check import Severity, captured_tables, check_database
from rowtide.connector.config import Configuration, ConfigurationError, Problem
from rowtide.connector.config.catalogue import PROPERTIES, connection, history
from rowtide.connector.config.sections.property_reader import family_of

_CONNECTION = frozenset(
    {"database.hostname", "database.port", "database.user", "database.password", "database.ssl.mode"}
)


Build = Callable[[Mapping[str, str], Collection[str]], Configuration]
"""Makes a configuration of properties, and of names that are not required; raises ``ConfigurationError``."""

NOT_REQUIRED = frozenset({history.TOPIC.name})
"""What a start needs, and Debezium's validation does not."""


def password_source_problem() -> Problem:
    """Return the problem of a configuration from a request or a topic that names a program."""
    message = "is a property of the worker's file only: a request could run any program on its machine"
    return Problem(connection.PASSWORD_SOURCE.name, message)


def problems_of(properties: Mapping[str, str], build: Build) -> list[Problem]:
    """Return the problems of a configuration. If it has none, connect to the database.

    The properties with errors are those that Kafka Connect and Debezium report: unknown properties are not errors, and
    a database that does not accept the log-in is always an error of ``database.hostname``.

    Args:
        properties: of the connector.
        build: makes the configuration of them.
    """
    try:
        config = _configuration(properties, build)
    except ConfigurationError as error:
        return list(error.problems)
    findings, _ = check_database(config, tables=False)
    return [
        Problem("database.hostname", f"Unable to connect: {finding}")
        for finding in findings
        if finding.severity is Severity.ERROR and finding.subject in _CONNECTION
    ]


def matching_tables(properties: Mapping[str, str], build: Build) -> list[tuple[str, str]]:
    """Return the captured tables of a configuration without problems, each with its database; see ``problems_of``."""
    config = _configuration(properties, build)
    _, facts = check_database(config)
    tables = None if facts is None else facts.tables
    return [] if tables is None else [(one.database, one.name) for one in captured_tables(config, tables, None)]


def _configuration(properties: Mapping[str, str], build: Build) -> Configuration:
    """Return a configuration without the properties that are unknown.

    Raises:
        ConfigurationError: properties that are known are wrong.
    """
    if connection.PASSWORD_SOURCE.name in properties:
        raise ConfigurationError([password_source_problem()])
    try:
        return build(properties, NOT_REQUIRED)
    except ConfigurationError as error:
        known = [problem for problem in error.problems if problem.property in PROPERTIES or family_of(problem.property)]
        if known:
            raise ConfigurationError(known) from None
        accepted = {problem.property for problem in error.problems}
        return build({name: text for name, text in properties.items() if name not in accepted}, NOT_REQUIRED)
