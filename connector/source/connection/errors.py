"""Explains errors of database connections: their meaning, the property to check, and whether a retry may help."""

import ssl

import pymysql
from pymysql.constants import CR, ER

from rowtide.connector.config.choices import SslMode
from rowtide.connector.config.errors import Problem
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import ConnectorError

_ACCOUNT_UNUSABLE = frozenset({1820, 1862, 3118, 4151})  # password expired, account locked (MySQL's, MariaDB's)
_LIMITS = {
    ER.CON_COUNT_ERROR: "Raise max_connections",
    ER.TOO_MANY_USER_CONNECTIONS: "Raise max_user_connections",
    ER.USER_LIMIT_REACHED: "Raise the limit of the account (ALTER USER ... WITH), or max_user_connections",
    3032: "SET GLOBAL offline_mode = OFF ends that",
    3955: "It was blocked for a time by log-ins with a wrong password; ALTER USER ... ACCOUNT UNLOCK ends that",
}
"""The remedies if the server currently accepts no log-in at all, or none of this account."""
_PLUGIN_UNKNOWN = 2059  # CR_AUTH_PLUGIN_CANNOT_LOAD, which pymysql does not name
_INTERRUPTED = (ConnectionError, TimeoutError, ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_DAMAGED = ("DECRYPTION_FAILED_OR_BAD_RECORD_MAC", "SSLV3_ALERT_BAD_RECORD_MAC")
"""TLS errors that mean that bytes changed in transit, as detected by this side or by the server."""
_LOST = frozenset(
    {
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
        ER.SERVER_SHUTDOWN,
        ER.NORMAL_SHUTDOWN,
        ER.SHUTDOWN_COMPLETE,
        ER.ABORTING_CONNECTION,
        ER.NEW_ABORTING_CONNECTION,
        ER.NET_READ_ERROR,
        ER.NET_READ_INTERRUPTED,
        ER.NET_ERROR_ON_WRITE,
        ER.NET_WRITE_INTERRUPTED,
        ER.QUERY_INTERRUPTED,
        1927,  # MariaDB's ER_CONNECTION_KILLED
        3032,  # MySQL's ER_SERVER_OFFLINE_MODE
        3169,  # MySQL's ER_SESSION_WAS_KILLED
        4031,  # MySQL's ER_CLIENT_INTERACTION_TIMEOUT
    }
)
"""Errors after which the server no longer answers on this connection: it stops, or it ended the session."""


class DatabaseUnreachableError(ConnectorError):
    """There is no connection to the database, or the connection was lost.

    Attributes:
        problem: the property to check, the error, and what to do.
        retriable: whether a later attempt may succeed without a change of the configuration or the account.
    """

    def __init__(self, problem: Problem, *, retriable: bool = False) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.retriable = retriable


class AnswerUnreadableError(DatabaseUnreachableError):
    """The server has sent an answer that cannot be parsed.

    Bytes can be damaged in transit, so a retry may help. It does not if the same answer is repeated.
    """


def is_lost(error: Exception) -> bool:
    """Return whether an error of PyMySQL means that the connection can no longer be used."""
    if isinstance(error, pymysql.err.InterfaceError):
        return True
    code = error.args[0] if error.args else None
    # PyMySQL's own errors without a number are violations of the protocol, such as a wrong sequence number.
    return code in _LOST or not isinstance(code, int)


def connection_lost(error: Exception, config: DatabaseConfig) -> DatabaseUnreachableError:
    """Return the error for a connection that was lost during a query."""
    where = f"{config.hostname}:{config.port}"
    if isinstance(error, pymysql.err.InternalError) and not isinstance(error.args[0] if error.args else None, int):
        message = f"an answer of the server {where} cannot be read: {_text(error)}"
        return AnswerUnreadableError(Problem("database.hostname", message), retriable=True)
    message = f"the connection to the server {where} was lost: {_text(error) or 'it is closed'}"
    return DatabaseUnreachableError(Problem("database.hostname", message), retriable=True)


def connection_failed(error: Exception, config: DatabaseConfig) -> DatabaseUnreachableError:
    """Return the error for a connection that cannot be established."""
    refusal = None if _interrupted(error) else _refusal(error, config)
    if refusal is not None:
        denied = error.args[:1] == (ER.ACCESS_DENIED_ERROR,)
        renewed = config.renewal is not None and config.renewal.accepted
        return DatabaseUnreachableError(refusal, retriable=denied and renewed)
    where = f"{config.hostname}:{config.port}"
    limit = _LIMITS.get(error.args[0]) if error.args else None
    if limit is not None:
        message = f"the server {where} has no connection free for {config.user!r}: {_text(error)}. {limit}"
    else:
        message = (
            f"the server {where} cannot be reached: {_text(error)}. Check database.hostname and database.port, that "
            "the server runs, and that no firewall blocks the connection"
        )
    return DatabaseUnreachableError(Problem("database.hostname", message), retriable=True)


def _interrupted(error: Exception) -> bool:
    """Return whether the peer closed the connection or stayed silent, or bytes were damaged, even in the handshake."""
    if any(reason in _text(error) for reason in _DAMAGED):
        return True
    return isinstance(getattr(error, "original_exception", error), _INTERRUPTED)


def _refusal(error: Exception, config: DatabaseConfig) -> Problem | None:
    """Return why the server or this client refuses the connection; ``None`` if no server was reached."""
    code = error.args[0] if error.args else None
    text = _text(error)
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
    if code == _PLUGIN_UNKNOWN:
        return Problem(
            "database.user", f"the account {who!r} logs in with an authentication plugin that is not supported: {text}"
        )
    if code == CR.CR_SSL_CONNECTION_ERROR or "SSL" in text or "certificate" in text.lower():
        hint = ""
        if "CERTIFICATE_VERIFY_FAILED" in text:
            hint = (
                ". The certificate's authority must be in database.ssl.truststore, and for verify_identity the "
                "certificate must name database.hostname"
            )
        return Problem("database.ssl.mode", f"no TLS connection to {where} with this mode: {text}{hint}")
    if "package is required" in text:
        package = "pynacl" if "pynacl" in text else "'rowtide[connector]'"
        return Problem("database.user", f"logging in as {who!r} needs a package: pip install {package}")
    return None


def _text(error: Exception) -> str:
    return str(error.args[-1] if error.args else error)
