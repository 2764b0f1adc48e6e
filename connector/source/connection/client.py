"""PyMySQL's connection with time limits, a guard for the password, and one error for a lost connection."""

import contextlib
import io
import ipaddress
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND, CR
from pymysql.cursors import Cursor, DictCursor
from pymysql.protocol import MysqlPacket

from rowtide.connector.config.choices import SslMode
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.source.connection.credentials import renewed
from rowtide.connector.source.connection.errors import (
    DatabaseUnreachableError,
    connection_failed,
    connection_lost,
    is_lost,
)
from rowtide.connector.source.connection.open_connections import (
    ConnectionsInterrupted,
    ServerSession,
    register,
)
from rowtide.connector.source.connection.socket_reader import SocketReader
from rowtide.connector.source.connection.tcp import open_tcp
from rowtide.connector.source.connection.tls import TlsError, pinned_key, tls_context
from rowtide.connector.source.connection.tls_socket import Socket, TlsSocket

_TLS_OPTIONAL = frozenset({SslMode.DISABLED, SslMode.PREFERRED})
_TLS_VERIFIED = frozenset({SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY})
_GREETING_S = 10.0
"""A server of MySQL greets as soon as it has accepted a connection."""
_READABLE_PLUGINS = frozenset({b"mysql_clear_password", b"dialog", b"mysql_old_password"})
"""Plugins that send the password in clear text, or with a hash that is easily reversed."""
_CLIENT_ERRORS = range(2000, 3000)
"""Numbers of errors that the client raises itself: the server did not answer."""
_MULTI_STATEMENTS_ON, _MULTI_STATEMENTS_OFF = b"\0\0", b"\1\0"
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A peer that disappeared without closing is detected after a minute instead of the kernel's two hours."""


_PyMySQL: Any = Connection  # the members overridden below are private, and have no types


class Client(_PyMySQL):  # type: ignore[misc]
    """A connection to the database, logged in.

    It differs from PyMySQL's in five ways:

    * Each step of the log-in is limited by ``connect.timeout.ms``, and not only the TCP connection.
    * While a query is silent, a second log-in checks after each ``connect.timeout.ms`` that the server still answers. A
      server that hangs is noticed long before ``database.query.timeout.ms``.
    * The password is sent in a readable form over verified TLS only. A mode that requires TLS never uses plain text.
    * The password is encrypted with the server's key that the configuration names, and with one that the server offers
      only if the connection is encrypted, or does not leave the machine, or the configuration allows it.
    * A lost connection raises :class:`DatabaseUnreachableError`: a ``pymysql.MySQLError`` is an answer of the server. A
      packet that cannot be parsed ends the connection, too.

    Args:
        config: address, account, TLS and time limits.
        timeout_ms: limit for each step of the log-in, instead of ``connect.timeout.ms``.

    Raises:
        DatabaseUnreachableError: the connection is lost during the log-in, :class:`OpenConnections` are interrupted,
            or there is no password.
        pymysql.MySQLError: the server cannot be reached or refuses the log-in.
        TlsError: a file of certificates or keys cannot be used.
    """

    _rfile: io.BufferedReader
    _auth_plugin_name: str

    def __init__(self, config: DatabaseConfig, timeout_ms: int | None = None) -> None:
        config = self._config = renewed(config)
        arguments = connection_arguments(config, timeout_ms)
        self._query_timeout: float | None = arguments["read_timeout"]
        self._logged_in = False
        self._encrypted = False
        self._offered: bytes | None = None
        self._pinned = None if config.server_public_key is None else pinned_key(config.server_public_key)
        try:
            register(self)
            super().__init__(**arguments)
        except ConnectionsInterrupted:
            self.abort()
            raise connection_lost(InterruptedError("the connector stops"), config) from None

    @property
    def _verified(self) -> bool:
        """Whether the server has proved that it is the right one, as far as the configuration demands it."""
        return self._config.tls.mode in _TLS_VERIFIED

    @property
    def _secure(self) -> bool:
        """Whether the password may be sent unencrypted; with a pinned key, only to a verified server."""
        return self._encrypted and (self._pinned is None or self._verified)

    @_secure.setter
    def _secure(self, encrypted: bool) -> None:
        self._encrypted = encrypted

    @property
    def server_public_key(self) -> bytes | None:
        """The key with which the password is encrypted."""
        return self._pinned or self._offered

    @server_public_key.setter
    def server_public_key(self, offered: bytes | None) -> None:
        """Accept the key that the server offers, unless one is pinned."""
        if offered is not None and self._pinned is None and not self._config.takes_public_key and self._is_remote():
            raise TlsError(
                "database.ssl.mode",
                f"the server {self.host}:{self.port} offers its own key for the password of {self._config.user!r}, "
                "without TLS: whoever answers in its place could read the password. Set database.ssl.mode=required, or "
                "verify_identity, or name the server's key in database.server.public.key.file; or allow it: "
                "database.allowPublicKeyRetrieval=true",
            )
        self._offered = offered

    def _is_remote(self) -> bool:
        return not ipaddress.ip_address(self._sock.getpeername()[0].partition("%")[0]).is_loopback

    def _get_server_information(self) -> None:
        self._read_timeout = min(self.connect_timeout, _GREETING_S)
        try:
            super()._get_server_information()
        except DatabaseUnreachableError as error:
            if "timed out" not in str(error):
                raise
            message = f"no greeting came within {self._read_timeout:.0f} s: another program may use the port"
            raise connection_failed(pymysql.err.OperationalError(CR.CR_SERVER_LOST, message), self._config) from error
        self._read_timeout = self.connect_timeout
        if self._pinned is not None and not self._verified and self._auth_plugin_name == "sha256_password":
            # PyMySQL would send the password unencrypted over TLS; after a switch request, it encrypts the password.
            self._auth_plugin_name = "mysql_native_password"

    def connect(self, sock: socket.socket | None = None) -> None:
        """Connect and log in; PyMySQL calls this from its constructor."""
        # Until the log-in is complete, PyMySQL's time limits for reading and writing are those for connecting.
        self._read_timeout = self._write_timeout = self.connect_timeout
        sock = sock or self._open_socket()
        with self.parsing():
            super().connect(sock)
        if self._config.tls.mode not in _TLS_OPTIONAL and not isinstance(self._sock, TlsSocket):
            self._force_close()
            raise pymysql.err.OperationalError(CR.CR_SSL_CONNECTION_ERROR, "the connection is not encrypted")
        for option, value in _KEEP_ALIVE.items():
            if hasattr(socket, option):
                self._sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        step = float(self.connect_timeout)
        self._read_timeout = min(step, self._query_timeout or step)
        self._rfile.close()
        self._rfile = io.BufferedReader(SocketReader(self._sock, self._check_alive))
        self._logged_in = True
        if self._config.renewal is not None:
            self._config.renewal.accepted = True

    def _open_socket(self) -> socket.socket:
        """Open the connection as PyMySQL does, except that :meth:`interrupt` ends the wait for it."""
        try:
            sock = open_tcp(self.host, self.port, float(self.connect_timeout), self._opening)
        except OSError as error:
            failure = pymysql.err.OperationalError(
                CR.CR_CONN_HOST_ERROR, f"Can't connect to MySQL server on {self.host!r} ({error})"
            )
            failure.original_exception = error  # type: ignore[attr-defined]
            raise failure from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return sock

    def _opening(self, sock: socket.socket) -> None:
        self._sock = sock
        register(self)  # raises if they were interrupted before the socket was there

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement and return all rows of its result; an empty list if it has none.

        Raises:
            DatabaseUnreachableError: the connection is lost.
            pymysql.MySQLError: the server refuses the statement.
        """
        return self._fetch(statement, Cursor)

    def fetch_named(self, statement: str) -> list[dict[str, Any]]:
        """Return rows as :meth:`fetch` does, but by column name, because the columns may depend on the version."""
        return self._fetch(statement, DictCursor)

    def _fetch(self, statement: str, kind: type[Cursor]) -> list[Any]:
        try:
            with self.parsing(), self.cursor(kind) as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        except pymysql.MySQLError as error:
            self._raise_if_lost(error)
            raise
        except RuntimeError as error:  # the server requests a file of this host, which PyMySQL refuses
            self._force_close()
            raise connection_lost(error, self._config) from error

    def fetch_bytes(self, statement: str) -> list[tuple[Any, ...]]:
        """Return rows as :meth:`fetch` does, with texts as bytes: those of binlog events are in any character set."""
        self.use_unicode = False
        try:
            return self.fetch(statement)
        finally:
            self.use_unicode = True

    def fetch_each(self, statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        """Run statements in one round trip, so that little time passes between them, and return the rows of each.

        The connection accepts several statements in one command for this call only.

        Raises:
            DatabaseUnreachableError: the connection is lost.
            pymysql.MySQLError: the server refuses a statement; those after it are not run.
        """
        self._execute_command(COMMAND.COM_SET_OPTION, _MULTI_STATEMENTS_ON)
        self._read_packet()
        try:
            with self.parsing(), self.cursor(Cursor) as cursor:
                cursor.execute("; ".join(statements))
                found = [list(cursor.fetchall())]
                while cursor.nextset():
                    found.append(list(cursor.fetchall()))
                return found
        except pymysql.MySQLError as error:
            self._raise_if_lost(error)
            raise
        finally:
            if self.open:  # otherwise the error that closed it is the one to report
                self._execute_command(COMMAND.COM_SET_OPTION, _MULTI_STATEMENTS_OFF)
                self._read_packet()

    def raw_socket(self) -> Socket:
        """Return the socket, for a reader that takes over after a command.

        Keep the client, which closes it when deleted.
        """
        sock: Socket = self._sock
        return sock

    def interrupt(self) -> ServerSession | None:
        """End a read or write in which another thread waits: that thread gets the error of a lost connection.

        Returns:
            The session on the server, which may continue with a query; ``None`` if the connection was closed.
        """
        session = None
        with contextlib.suppress(AttributeError, OSError):  # it is closed already, or the server has not answered
            session = ServerSession(self._config, self.server_thread_id[0], self._sock.getsockname()[1])
        with contextlib.suppress(AttributeError, OSError):  # likewise
            self._sock.shutdown(socket.SHUT_RDWR)
        return session

    def abort(self) -> None:
        """Close the connection without waiting for the server, which ends a read in which another thread waits."""
        with contextlib.suppress(AttributeError, OSError):  # it may be closed already
            self._sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(pymysql.MySQLError, OSError):
            self._force_close()

    def lost(self, error: Exception) -> DatabaseUnreachableError | None:
        """Return the error to raise if ``error``, of this connection, means that it is lost; else ``None``."""
        if isinstance(error, OSError) or is_lost(error):
            return connection_lost(error, self._config)
        return None

    def _check_alive(self, silent_s: float) -> None:
        """Raise ``TimeoutError`` if the query has taken too long, or the server no longer accepts log-ins."""
        if self._query_timeout and silent_s >= self._query_timeout:
            raise TimeoutError(f"no answer within {self._query_timeout:.0f} s (database.query.timeout.ms)")
        with contextlib.suppress(TlsError):  # a certificate file is being replaced, which says nothing of the server
            try:
                Client(self._config).close()
            except (DatabaseUnreachableError, pymysql.MySQLError) as error:
                # Any other number is an answer of the server, such as "too many connections".
                if isinstance(error, DatabaseUnreachableError) or error.args[0] in _CLIENT_ERRORS:
                    raise TimeoutError(f"no answer for {silent_s:.0f} s, and a new connection cannot log in") from error

    def _create_ssl_ctx(self, given: Any) -> "_TlsSockets":
        """Return the context of the configuration, even if TLS is optional.

        PyMySQL's own context for that case does not verify anything either, but loads all certificates of the system
        (25 ms).
        """
        context: Any = given or tls_context(self._config.tls)
        return _TlsSockets(context)

    def _process_auth(self, plugin_name: bytes, *arguments: Any) -> Any:
        if plugin_name in _READABLE_PLUGINS and not self._verified:
            raise pymysql.err.OperationalError(
                CR.CR_SSL_CONNECTION_ERROR,
                f"the server requests the password in clear text or nearly so ({plugin_name.decode()}), which is "
                "sent over verified TLS only: set database.ssl.mode=verify_identity (MariaDB: verify-full)",
            )
        return super()._process_auth(plugin_name, *arguments)

    @contextlib.contextmanager
    def parsing(self) -> Iterator[None]:
        """Raise one error, without a number, for packets that PyMySQL cannot parse, instead of many kinds of errors."""
        try:
            yield
        except (pymysql.MySQLError, OSError, RuntimeError, DatabaseUnreachableError, TlsError):
            raise
        except Exception as error:
            self._force_close()
            raise pymysql.err.InternalError(f"the server sent a packet that cannot be parsed: {error!r}") from error

    def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        try:
            with self.parsing():
                return super()._read_packet(packet_type)
        except pymysql.MySQLError as error:
            self._raise_if_lost(error)
            raise

    def _write_bytes(self, data: bytes) -> None:
        try:
            super()._write_bytes(data)
        except pymysql.MySQLError as error:
            self._raise_if_lost(error)
            raise

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        try:
            super()._execute_command(command, sql)
        except pymysql.MySQLError as error:
            self._raise_if_lost(error)
            raise

    def _raise_if_lost(self, error: pymysql.MySQLError) -> None:
        if is_lost(error):
            raise (connection_lost if self._logged_in else connection_failed)(error, self._config) from error


class _TlsSockets:
    """Creates the TLS sockets, where PyMySQL expects the method of an ``ssl.SSLContext``."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    def wrap_socket(self, sock: socket.socket, server_hostname: str) -> TlsSocket:
        return TlsSocket(sock, self._context, server_hostname)


def connection_arguments(config: DatabaseConfig, timeout_ms: int | None = None) -> dict[str, Any]:
    """Return the arguments of PyMySQL's connection.

    Raises:
        TlsError: a file of certificates or keys cannot be used.
    """
    context = tls_context(config.tls)
    seconds = max(1, (timeout_ms or config.connect_timeout_ms) // 1000)
    arguments: dict[str, Any] = {
        "host": config.hostname,
        "port": config.port,
        "user": config.user,
        "password": config.password.reveal().encode(),  # PyMySQL encodes a text as Latin-1
        "charset": "utf8mb4",
        "autocommit": True,
        "connect_timeout": seconds,
        "read_timeout": config.query_timeout_ms / 1000 or None,
    }
    if context is None:
        arguments["ssl_disabled"] = True
    elif config.tls.mode is not SslMode.PREFERRED or config.tls.keystore is not None:
        # PyMySQL uses TLS on its own if the server offers it; a context makes TLS a requirement.
        arguments["ssl"] = context
    return arguments
