"""Edge: connections to the database for queries, as the configuration describes them, and what their errors mean."""

from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR, ER
from pymysql.cursors import Cursor

from rowtide.connector.config.choices import SslMode
from rowtide.connector.config.errors import Problem
from rowtide.connector.config.model import DatabaseConfig
from rowtide.connector.source.tls import TlsError, tls_context

_SERVER_ZONES = frozenset({"server", "local"})
_UTC_ZONES = frozenset({"utc", "gmt", "z", "etc/utc"})
_ACCOUNT_UNUSABLE = frozenset({1820, 1862, 3118, 4151})  # password expired, account locked (MySQL's, MariaDB's)
_PLUGIN_UNKNOWN = 2059  # CR_AUTH_PLUGIN_CANNOT_LOAD, which pymysql does not name


class DatabaseUnreachableError(Exception):
    """No connection to the database; ``problem`` tells the property and the way out."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def connect(config: DatabaseConfig, *, timeout_ms: int | None = None, **arguments: Any) -> "Connection[Any]":
    """Log in, and set what the configuration asks for on the session.

    Args:
        config: how the database is reached.
        timeout_ms: for connecting, instead of ``connect.timeout.ms``.
        arguments: further arguments of ``pymysql.connect``.

    Raises:
        DatabaseUnreachableError: the server cannot be reached or does not let us in.
    """
    try:
        connection = pymysql.connect(**{**connection_arguments(config, timeout_ms), **arguments})
    except TlsError as error:
        raise DatabaseUnreachableError(Problem(error.property, str(error))) from None
    except (pymysql.MySQLError, OSError, RuntimeError) as error:
        raise DatabaseUnreachableError(explain(error, config)) from error
    try:
        _prepare(connection, config)
    except BaseException:
        connection.close()
        raise
    return connection


def connection_arguments(config: DatabaseConfig, timeout_ms: int | None = None) -> dict[str, Any]:
    """The arguments of ``pymysql.connect``.

    Raises:
        TlsError: a file of certificates or keys cannot be used.
    """
    context = tls_context(config.tls)
    seconds = max(1, (timeout_ms or config.connect_timeout_ms) // 1000)
    arguments: dict[str, Any] = {
        "host": config.hostname,
        "port": config.port,
        "user": config.user,
        "password": config.password.reveal(),
        "charset": "utf8mb4",
        "autocommit": True,
        "connect_timeout": seconds,
        "read_timeout": config.query_timeout_ms / 1000 or None,
    }
    if context is None:
        arguments["ssl_disabled"] = True
    elif config.tls.mode is not SslMode.PREFERRED or config.tls.keystore is not None:
        # pymysql offers TLS by itself, without asking for it; a context makes it a demand.
        arguments["ssl"] = context
    return arguments


def _prepare(connection: "Connection[Any]", config: DatabaseConfig) -> None:
    with connection.cursor(Cursor) as cursor:
        zone = session_time_zone(config.time_zone)
        if zone is not None:
            try:
                cursor.execute("SET SESSION time_zone = %s", (zone,))
            except pymysql.MySQLError as error:
                message = (
                    f"the server does not know the time zone {zone!r} ({error.args[-1]}); load the time zone tables "
                    "with mysql_tzinfo_to_sql, or give an offset such as +02:00"
                )
                raise DatabaseUnreachableError(Problem("database.connectionTimeZone", message)) from error
        for statement in config.initial_statements:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                message = f"the server refuses the statement {statement!r}: {error.args[-1]}"
                raise DatabaseUnreachableError(Problem("database.initial.statements", message)) from error


def session_time_zone(name: str | None) -> str | None:
    """What to set as ``time_zone``, for a name as JDBC takes it; ``None`` for the server's own."""
    if name is None or name.lower() in _SERVER_ZONES:
        return None
    if name.lower() in _UTC_ZONES:
        return "+00:00"
    if name[:3].upper() in ("UTC", "GMT") and name[3:4] in ("+", "-"):
        hours, _, minutes = name[4:].partition(":")
        return f"{name[3]}{int(hours):02}:{int(minutes or 0):02}" if hours.isdecimal() else name
    return name


def explain(error: Exception, config: DatabaseConfig) -> Problem:
    """What an error on connecting means, and what to do about it."""
    code = error.args[0] if error.args else None
    text = str(error.args[-1] if error.args else error)
    where, who = f"{config.hostname}:{config.port}", config.user
    if code == ER.ACCESS_DENIED_ERROR:
        given = "with this password" if config.password else "without a password"
        more = "Check database.user too"
        if config.tls.mode is SslMode.DISABLED:
            more += ", and database.ssl.mode if the account is one that REQUIREs TLS"
        return Problem("database.password", f"the server {where} does not let user {who!r} in {given}: {text}. {more}")
    if code in (ER.HOST_NOT_PRIVILEGED, ER.HOST_IS_BLOCKED):
        return Problem("database.user", f"the server {where} accepts no connection from this host: {text}")
    if code in _ACCOUNT_UNUSABLE:
        return Problem("database.user", f"the account {who!r} cannot be used: {text}")
    if code == ER.CON_COUNT_ERROR:
        return Problem("database.hostname", f"the server {where} has no connection free: {text}. Raise max_connections")
    if code == _PLUGIN_UNKNOWN:
        return Problem("database.user", f"the account {who!r} logs in by a plug-in that is not supported: {text}")
    if code == CR.CR_SSL_CONNECTION_ERROR or "SSL" in text or "certificate" in text.lower():
        hint = ""
        if "CERTIFICATE_VERIFY_FAILED" in text:
            hint = (
                ". The certificate's authority must be in database.ssl.truststore, and for verify_identity the "
                "certificate must name database.hostname"
            )
        return Problem("database.ssl.mode", f"no TLS connection to {where} with this mode: {text}{hint}")
    if "cryptography" in text:
        return Problem("database.user", f"logging in as {who!r} needs a package: pip install 'rowtide[connector]'")
    return Problem(
        "database.hostname",
        f"the server {where} cannot be reached: {text}. Check database.hostname and database.port, that the server "
        "runs, and that no firewall is between",
    )
