"""The replication stream: registers as a replica and reads events. An edge: a socket, and nothing but bytes come out.

PyMySQL logs in; from the dump command on the socket is read here, in large pieces, because reading packet by packet
costs more than decoding them. The server is asked for heartbeats, so a silent connection is a dead one.
"""

import contextlib
import logging
import secrets
import socket
import time
import uuid
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import pymysql

from rowtide.connector.config.model import DatabaseConfig
from rowtide.connector.errors import ConnectorError, PositionPurged
from rowtide.connector.protocol import commands
from rowtide.connector.protocol.packets import PacketBuffer
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.connection import connection_arguments, explain
from rowtide.schema_history.position.gtid import GtidSet

log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_RECEIVE_BUFFER = 4 << 20
_TICK_S = 0.25
"""How often an idle stream gives its reader a moment for other things."""
_FATAL_READING_BINLOG = 1236
_ACCESS_DENIED = 1227


class StreamBroken(ConnectorError):
    """The stream cannot be opened, or broke: begin again from the safe offset."""


class StreamRefused(ConnectorError):
    """The server will not send its binlog to us; trying again does not help."""


def stream_beside(config: DatabaseConfig, start: SourceOffset, *, mariadb: bool) -> "BinlogStream":
    """A stream that does not end the connector's own: a server ends a replica for one with the same server id."""
    return BinlogStream(replace(config, server_id=secrets.randbelow(1 << 30) + (1 << 31)), start, mariadb=mariadb)


class BinlogStream:
    """One connection that reads the binlog.

    Args:
        config: where, as whom, and with which server id.
        mariadb: whether the server is a MariaDB.
        start: from where on; with ``gtids`` by GTID set, else by file and position.
        send_annotations: ask MariaDB for ANNOTATE_ROWS events (``include.query``).
    """

    def __init__(
        self, config: DatabaseConfig, start: SourceOffset, *, mariadb: bool, send_annotations: bool = False
    ) -> None:
        self._config = config
        self._start = start
        self._mariadb = mariadb
        self._annotations = send_annotations
        self._connection: Any = None
        self._closed = False
        # Debezium asks for a heartbeat at 0.8 of the keep-alive interval; twice the interval of silence is a dead peer.
        self._heartbeat_s = (config.keep_alive_interval_ms or 60_000) * 0.8 / 1000
        self._received_bytes = 0

    def events(self) -> Generator[list[bytes], None, None]:
        """Lists of events as the bytes of each, as they come, empty ones while there is nothing new.

        Ends only by an exception or after :meth:`close`.

        Raises:
            StreamBroken: the connection cannot be made, broke, or is silent: begin again from the safe offset.
            StreamRefused: the server refuses for good (privilege, duplicate server id).
            PositionPurged: the server no longer has what comes after the start.
        """
        sock = self._open()
        buffer = PacketBuffer()
        heard = time.monotonic()
        try:
            while True:
                try:
                    chunk = sock.recv(_CHUNK)
                except TimeoutError:
                    self._check_silence(heard)
                    yield []
                    continue
                heard = time.monotonic()
                if not chunk and self._closed:
                    return
                if not chunk:
                    raise StreamBroken(f"{self._place()} closed the replication connection")
                self._received_bytes += len(chunk)
                if payloads := buffer.feed(chunk):
                    yield [self._event(payload) for payload in payloads]
        except OSError as error:
            if self._closed:
                return
            raise StreamBroken(f"the replication connection to {self._place()} broke: {error}") from error
        finally:
            self.close()

    def taken_bytes(self) -> int:
        """How many bytes came in since this was asked last."""
        taken, self._received_bytes = self._received_bytes, 0
        return taken

    def _check_silence(self, heard: float) -> None:
        limit = 2 * self._heartbeat_s / 0.8
        if time.monotonic() - heard > limit:
            raise StreamBroken(
                f"{self._place()} sent neither events nor heartbeats for {limit:.0f} s (connect.keep.alive.interval.ms)"
            )

    def close(self) -> None:
        """End the stream; may be called from another thread."""
        self._closed = True
        connection, self._connection = self._connection, None
        sock = getattr(connection, "_sock", None)
        if sock is not None:
            with contextlib.suppress(OSError):  # it may be closed already
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _place(self) -> str:
        return f"{self._config.hostname}:{self._config.port}"

    def _open(self) -> socket.socket:
        try:
            connection: Any = pymysql.connect(**connection_arguments(self._config))
            self._connection = connection
        except (pymysql.MySQLError, OSError) as error:
            problem = explain(error, self._config)
            kind = StreamBroken if problem.property == "database.hostname" else StreamRefused
            raise kind(f"{problem.property}: {problem.message}") from error
        try:
            with connection.cursor() as cursor:
                for statement in self._session():
                    cursor.execute(statement)
            self._command(connection, commands.register_replica(self._config.server_id))
            connection._read_ok_packet()  # noqa: SLF001 - PyMySQL has no public way to send a command of our own
            self._command(connection, self._dump())
        except pymysql.MySQLError as error:
            raise self._refused(int(error.args[0]), str(error.args[-1])) from None
        sock: socket.socket = connection._sock  # noqa: SLF001 - as above
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        sock.settimeout(_TICK_S)
        return sock

    def _session(self) -> Iterator[str]:
        yield "SET @master_binlog_checksum=@@global.binlog_checksum, @source_binlog_checksum=@@global.binlog_checksum"
        nanos = int(self._heartbeat_s * 1_000_000_000)
        yield f"SET @master_heartbeat_period={nanos}, @source_heartbeat_period={nanos}"
        # The same for every connection of this connector: the server then ends a dead one that it has not missed yet.
        replica = uuid.uuid5(uuid.NAMESPACE_OID, f"rowtide/{self._config.server_id}/{self._config.user}")
        yield f"SET @slave_uuid='{replica}', @replica_uuid='{replica}'"
        if self._config.net_write_timeout:
            yield f"SET SESSION net_write_timeout={self._config.net_write_timeout}"
        if self._config.net_read_timeout:
            yield f"SET SESSION net_read_timeout={self._config.net_read_timeout}"
        if self._mariadb:
            yield "SET @mariadb_slave_capability=4"
            if self._start.gtids:
                yield f"SET @slave_connect_state='{self._start.gtids}'"
                yield "SET @slave_gtid_strict_mode=0, @slave_gtid_ignore_duplicates=0"

    def _dump(self) -> bytes:
        start, server_id = self._start, self._config.server_id
        if self._mariadb:
            file, pos = ("", 4) if start.gtids else (start.file, start.pos)
            flags = commands.SEND_ANNOTATE_ROWS if self._annotations else 0
            return commands.binlog_dump(server_id, file, pos, flags=flags)
        if start.gtids is not None:
            return commands.binlog_dump_gtid(server_id, GtidSet.parse(start.gtids))
        return commands.binlog_dump(server_id, start.file, start.pos)

    @staticmethod
    def _command(connection: Any, payload: bytes) -> None:
        connection._next_seq_id = 0  # noqa: SLF001 - PyMySQL has no public way to send a command of our own
        connection.write_packet(payload)

    def _event(self, payload: bytes) -> bytes:
        status = payload[0]
        if status == 0:
            return payload[1:]
        if status == 0xFF:
            code = int.from_bytes(payload[1:3], "little")
            raise self._refused(code, payload[9:].decode("utf-8", "replace"))
        if status == 0xFE:
            raise StreamBroken(f"{self._place()} ended the replication stream")
        raise StreamBroken(f"{self._place()} sent a packet that begins with {payload[:8].hex()}, which is no event")

    def _refused(self, code: int, message: str) -> Exception:
        text = f"{self._place()} refuses to send the binlog: {message} (error {code})"
        lower = message.lower()
        if code == _FATAL_READING_BINLOG:
            if "purged" in lower or "could not find" in lower or "not found in binlog" in lower or "requested" in lower:
                at = self._start.gtids or f"{self._start.file}:{self._start.pos}"
                return PositionPurged(
                    f"{text}. The stream cannot go on from {at}. Restart with snapshot.mode=when_needed to take a new "
                    "snapshot, and let the server keep its binlogs longer (binlog_expire_logs_seconds)"
                )
            if "same server_uuid/server_id" in lower or "same server_id" in lower:
                return StreamRefused(
                    f"{text}. Another replica or connector uses server id {self._config.server_id}: give this one a "
                    "database.server.id of its own"
                )
        if code == _ACCESS_DENIED:
            return StreamRefused(f"{text}. Grant REPLICATION SLAVE to '{self._config.user}'")
        return StreamBroken(text)
