"""The replication stream, which registers as a replica and yields the bytes of events.

PyMySQL logs in; then a session of ``protocol.replication`` takes over the socket, which is read in large chunks. The
server sends heartbeats, so a silent connection is a dead one.
"""

import contextlib
import logging
import secrets
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial

import pymysql
from pymysql.constants import ER

from rowtide.connector.config.choices import Acknowledge
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import ConnectorError, PositionPurged, RemoteProtocolError
from rowtide.connector.protocol.replication.commands import NON_BLOCK
from rowtide.connector.protocol.replication.request import ReplicaRegistration, StreamRequest
from rowtide.connector.protocol.replication.semi_sync import Acknowledgement
from rowtide.connector.protocol.replication.session import (
    ReplicationSession,
    ServerError,
    ServerIdInUse,
    State,
    StreamEnded,
)
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.connection import Client, DatabaseUnreachableError, log_in
from rowtide.connector.source.connection.tls_socket import Socket
from rowtide.connector.source.connection.wakeable_socket import WakeableSocket
from rowtide.connector.source.position.check import check_position, start_gtids
from rowtide.connector.source.server_queries import binlog_readers
from rowtide.topics.filters import EVERYTHING, Selection

log = logging.getLogger(__name__)

_RECEIVE_BUFFER = 4 << 20
_TICK_S = 0.25
"""An idle stream yields an empty list this often, so that its reader can send heartbeats and stop."""
_SHORT_TICK_S = 0.01
_SEMI_SYNC_HEARTBEAT_S = 1.0
"""A commit may wait for the acknowledgement of a heartbeat."""
_FATAL_READING_BINLOG = 1236
_SAME_ID = {_FATAL_READING_BINLOG, 4052}
"""MariaDB has its own code."""
_ACCESS_DENIED = 1227
_OTHER_ID = "Set a database.server.id that no other replica has"


class StreamBroken(ConnectorError):
    """The stream cannot be opened, or it broke: open another one at the resume position."""


class StreamRefused(ConnectorError):
    """The server refuses to send its binlog, and will refuse it again."""


class ReplicaReplaced(StreamRefused):
    """The server has ended the stream, because another replica with the same id has connected."""


def second_stream(
    config: DatabaseConfig, start: SourceOffset, *, mariadb: bool, send_annotations: bool = False
) -> "BinlogStream":
    """Return a second stream, in addition to the connector's own.

    It has a random server id, because a server disconnects a replica when another one with the same id connects.
    """
    server_id = secrets.randbelow(1 << 30) + (1 << 31)
    beside = replace(config, server_id=server_id, replica=replace(config.replica, uuid=None))
    return BinlogStream(beside, start, mariadb=mariadb, send_annotations=send_annotations)


def registered_replica(config: DatabaseConfig) -> ReplicaRegistration:
    """Return the registration of the connector as a replica.

    The UUID is the same for every connection of the connector: the server then ends a dead connection that it has not
    noticed yet. MariaDB, which has no UUIDs, identifies them by the server id, and shows the host.
    """
    replica = config.replica
    made = uuid.uuid5(uuid.NAMESPACE_OID, f"rowtide/{config.server_id}/{replica.name}")
    return ReplicaRegistration(config.server_id, replica.uuid or str(made), replica.host, replica.user, replica.port)


class BinlogStream:
    """One connection that reads the binlog.

    Args:
        config: address, account and server id.
        start: the start position; with ``gtids`` by GTID set, otherwise by file and position.
        mariadb: whether the server is MariaDB.
        send_annotations: request ANNOTATE_ROWS events from MariaDB (``include.query``).
        checked_sources: before it reads, check that the server has every change after ``start``; the GTIDs of these
            servers count. ``None`` for no check.
        semi_sync: ``RECEIVED`` if this class acknowledges transactions, ``DELIVERED`` if the caller does.
    """

    def __init__(
        self,
        config: DatabaseConfig,
        start: SourceOffset,
        *,
        mariadb: bool,
        send_annotations: bool = False,
        checked_sources: Selection | None = None,
        semi_sync: Acknowledge | None = None,
    ) -> None:
        self._config = config
        self._start = start
        self._mariadb = mariadb
        self._annotations = send_annotations
        self._checked_sources = checked_sources
        self._semi_sync = semi_sync
        self._requested: Acknowledgement | None = None
        self._acknowledged: deque[Acknowledgement] = deque()
        self._client: Client | None = None
        self._socket: Socket | WakeableSocket | None = None
        self._closed = False
        # Debezium requests a heartbeat at 0.8 of the keep-alive interval; silence for twice the interval means a dead
        # peer.
        self._heartbeat_s = (config.keep_alive_interval_ms or 60_000) * 0.8 / 1000
        self._received_bytes = 0

    def events(self) -> Generator[list[bytes], None, None]:
        """Yield lists of events, each as its bytes, as they arrive; an empty list while there is nothing new.

        This ends only with an exception or after :meth:`close`; with the dump flag ``NON_BLOCK``, it also ends when the
        server has sent its whole binlog.

        Raises:
            StreamBroken: the connection cannot be established, broke, or is silent; retry from the resume position.
            StreamRefused: the server refuses permanently (privilege, duplicate server id).
            PositionPurged: the server lacks changes after the start position.
        """
        try:
            session, sock = self._open()
            heard = time.monotonic()
            while True:
                try:
                    count = sock.recv_into(session.space())
                except TimeoutError:
                    if self._closed:
                        return
                    self._check_silence(heard)
                    self._acknowledge(session, sock)
                    yield []
                    continue
                heard = time.monotonic()
                if not count and self._closed:
                    return
                if events := self._received(session, count):
                    self._acknowledge(session, sock)
                    yield events
        except (ServerError, ServerIdInUse, StreamEnded, RemoteProtocolError) as error:
            if isinstance(error, StreamEnded) and self._config.replica.dump_flags & NON_BLOCK:
                return
            raise self._failed(error) from None
        except OSError as error:
            if self._closed:
                return
            raise StreamBroken(f"the replication connection to {self._address()} broke: {error}") from error
        finally:
            self.close()
            if isinstance(self._socket, WakeableSocket):
                self._socket.close()

    def yield_often(self, *, often: bool) -> None:
        """Yield empty lists more often while there is nothing new, for a reader that also waits for something else."""
        if self._socket is not None:
            self._socket.settimeout(_SHORT_TICK_S if often else _TICK_S)

    def requested_acknowledgement(self) -> Callable[[], None] | None:
        """Return the function that acknowledges the events so far, if the server waits for this (``DELIVERED``).

        It is returned once.

        Any thread may call the function.
        """
        requested, self._requested = self._requested, None
        return None if requested is None else partial(self._delivered, requested)

    def _delivered(self, acknowledgement: Acknowledgement) -> None:
        self._acknowledged.append(acknowledgement)
        if isinstance(self._socket, WakeableSocket):
            self._socket.wake()

    def _acknowledge(self, session: ReplicationSession, sock: Socket | WakeableSocket) -> None:
        """Send the acknowledgement that is due, if there is one."""
        if not session.semi_sync:
            return
        due = session.requested_acknowledgement()
        if self._semi_sync is Acknowledge.DELIVERED:
            self._requested, due = due or self._requested, None
            while self._acknowledged:
                due = self._acknowledged.popleft()  # the last one includes the others
        if due is not None:
            session.acknowledge(due)
            sock.sendall(session.to_send())

    def taken_bytes(self) -> int:
        """Return the bytes received since the last call."""
        taken, self._received_bytes = self._received_bytes, 0
        return taken

    def _check_silence(self, heard: float) -> None:
        limit = 2 * self._heartbeat_s / 0.8
        if time.monotonic() - heard > limit:
            raise StreamBroken(
                f"{self._address()} sent neither events nor heartbeats for {limit:.0f} s "
                "(connect.keep.alive.interval.ms)"
            )

    def close(self) -> None:
        """End the stream; any thread may call this."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            client.abort()
        if isinstance(self._socket, WakeableSocket):
            self._socket.wake()

    def _address(self) -> str:
        return f"{self._config.hostname}:{self._config.port}"

    def _open(self) -> tuple[ReplicationSession, Socket | WakeableSocket]:
        try:
            client = self._client = log_in(self._config)
        except DatabaseUnreachableError as error:
            raise (StreamBroken if error.retriable else StreamRefused)(str(error)) from error
        try:
            self._check_position(client)
            gtids = start_gtids(client, self._start, self._checked_sources or EVERYTHING, mariadb=self._mariadb)
        except DatabaseUnreachableError as error:
            raise StreamBroken(str(error)) from error
        except pymysql.MySQLError as error:
            raise self._refused(int(error.args[0]), str(error.args[-1])) from None
        sock = client.raw_socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        sock.settimeout(self._config.connect_timeout_ms / 1000)
        session = ReplicationSession(self._request(gtids))
        sock.sendall(session.start())
        while session.state is not State.STREAMING:
            self._received(session, sock.recv_into(session.space()))
            sock.sendall(session.to_send())
        if session.same_id is not None:
            log.warning(
                "another replica%s has registered at %s with the same server id %d. %s",
                f" from {session.same_id.host}" if session.same_id.host else "", self._address(),
                self._config.server_id, _OTHER_ID,
            )  # fmt: skip
        if self._semi_sync is not None and not session.semi_sync:
            log.warning(
                "%s has no semi-synchronous replication, so commits do not wait for rowtide (rowtide.semi.sync). "
                "Install the plugin rpl_semi_sync_source, and restart the connector",
                self._address(),
            )
        sock.settimeout(_TICK_S)
        if self._semi_sync is Acknowledge.DELIVERED and session.semi_sync:
            self._socket = WakeableSocket(sock, _TICK_S)
        else:
            self._socket = sock
        return session, self._socket

    def _received(self, session: ReplicationSession, count: int) -> list[bytes]:
        self._received_bytes += count
        events = session.received(count)
        if not count:
            raise StreamBroken(f"{self._address()} closed the replication connection")
        return events

    def _request(self, gtids: str | None) -> StreamRequest:
        config, start = self._config, self._start
        return StreamRequest(
            registered_replica(config),
            start.file,
            start.pos,
            gtids,
            mariadb=self._mariadb,
            flags=config.replica.dump_flags,
            annotate=self._annotations,
            heartbeat_s=min(self._heartbeat_s, _SEMI_SYNC_HEARTBEAT_S) if self._semi_sync else self._heartbeat_s,
            net_write_timeout=config.net_write_timeout,
            net_read_timeout=config.net_read_timeout,
            semi_sync=self._semi_sync is not None,
        )

    def _check_position(self, client: Client) -> None:
        """Refuse a server that lacks changes, which may be another one after a fail-over."""
        if self._checked_sources is None:
            return
        found = check_position(
            client, self._start, self._checked_sources, mariadb=self._mariadb, semi_sync=self._semi_sync is not None
        )
        if not found.available:
            at = self._start.gtids or f"{self._start.file}:{self._start.pos}"
            raise PositionPurged(
                f"the stream from {self._address()} cannot resume at {at}: {found.reason}. Connect to a server that "
                "has these changes, or restart with snapshot.mode=when_needed to take a new snapshot",
                purged=found.purged,
            )

    def _failed(self, error: ServerError | ServerIdInUse | StreamEnded | RemoteProtocolError) -> ConnectorError:
        if isinstance(error, ServerError):
            return self._refused(error.code, error.text)
        if isinstance(error, ServerIdInUse):
            return StreamBroken(f"{self._address()} cannot be read: {error}. {_OTHER_ID}")
        return StreamBroken(f"{self._address()}: {error}")

    def _where(self) -> str:
        """Return the server and the account, as part of a message."""
        try:
            with contextlib.closing(log_in(self._config)) as client:
                readers = binlog_readers(client)
        except (DatabaseUnreachableError, pymysql.MySQLError):
            return ""
        return f", from {' or '.join(readers)}" if readers else ""

    def _refused(self, code: int, message: str) -> ConnectorError:
        text = f"{self._address()} refuses to send the binlog: {message} (error {code})"
        lower = message.lower()
        if code in _SAME_ID and "same server_" in lower:
            return ReplicaReplaced(
                f"{text}. Another program now reads the binlog as replica {self._config.server_id}{self._where()}. If "
                "it is this connector, started a second time, stop one of the two. If it is another connector or a "
                "replica, set its own database.server.id"
            )
        if code == _FATAL_READING_BINLOG:
            if "purged" in lower or "could not find" in lower or "not found in binlog" in lower or "requested" in lower:
                at = self._start.gtids or f"{self._start.file}:{self._start.pos}"
                return PositionPurged(
                    f"{text}. The stream cannot resume at {at}. Restart with snapshot.mode=when_needed to take a new "
                    "snapshot, and let the server keep its binlogs longer (binlog_expire_logs_seconds)"
                )
            if "anonymous transaction" in lower:
                return StreamRefused(f"{text}. The file was written before the server had gtid_mode=ON")
        if code in (_ACCESS_DENIED, ER.ACCESS_DENIED_ERROR):
            return StreamRefused(f"{text}. Grant REPLICATION SLAVE and REPLICATION CLIENT to '{self._config.user}'")
        return StreamBroken(text)
