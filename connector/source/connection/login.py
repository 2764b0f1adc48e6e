"""Connects to the database as the configuration describes it, and prepares the session."""

import pymysql

from rowtide.connector.config.errors import Problem
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.source.connection.client import Client
from rowtide.connector.source.connection.errors import DatabaseUnreachableError, connection_failed
from rowtide.connector.source.connection.tls import TlsError

_SERVER_ZONES = frozenset({"server", "local"})
_UTC_ZONES = frozenset({"utc", "gmt", "z", "etc/utc"})


def log_in(config: DatabaseConfig, *, timeout_ms: int | None = None) -> Client:
    """Connect and log in, without changes to the session.

    Args:
        config: address, account, TLS and time limits.
        timeout_ms: limit for each step of the log-in, instead of ``connect.timeout.ms``.

    Raises:
        DatabaseUnreachableError: the server cannot be reached or refuses the log-in.
    """
    try:
        return Client(config, timeout_ms)
    except TlsError as error:
        raise DatabaseUnreachableError(Problem(error.property, str(error))) from None
    except (pymysql.MySQLError, OSError, RuntimeError) as error:
        raise connection_failed(error, config) from error


def connect(config: DatabaseConfig, *, timeout_ms: int | None = None) -> Client:
    """Log in, set the time zone, and run ``database.initial.statements``.

    Args:
        config: address, account, TLS, time limits, and what to set on the session.
        timeout_ms: limit for each step of the log-in, instead of ``connect.timeout.ms``.

    Raises:
        DatabaseUnreachableError: the server cannot be reached, or refuses the log-in or a statement.
    """
    client = log_in(config, timeout_ms=timeout_ms)
    try:
        _prepare(client, config)
    except BaseException:
        client.close()
        raise
    return client


def _prepare(client: Client, config: DatabaseConfig) -> None:
    zone = session_time_zone(config.time_zone)
    if zone is not None:
        try:
            client.fetch(f"SET SESSION time_zone = {client.escape(zone)}")
        except pymysql.MySQLError as error:
            message = (
                f"the server does not know the time zone {zone!r} ({error.args[-1]}); load the time zone tables with "
                "mysql_tzinfo_to_sql, or set an offset such as +02:00"
            )
            raise DatabaseUnreachableError(Problem("database.connectionTimeZone", message)) from error
    for statement in config.initial_statements:
        try:
            client.fetch(statement)
        except pymysql.MySQLError as error:
            message = f"the server refuses the statement {statement!r}: {error.args[-1]}"
            raise DatabaseUnreachableError(Problem("database.initial.statements", message)) from error


def session_time_zone(name: str | None) -> str | None:
    """Return the value for the session's ``time_zone`` for a name in JDBC's form; ``None`` for the server's own."""
    if name is None or name.lower() in _SERVER_ZONES:
        return None
    if name.lower() in _UTC_ZONES:
        return "+00:00"
    if name[:3].upper() in ("UTC", "GMT") and name[3:4] in ("+", "-"):
        hours, _, minutes = name[4:].partition(":")
        return f"{name[3]}{int(hours):02}:{int(minutes or 0):02}" if hours.isdecimal() else name
    return name
