"""The request of a replica to a server, and the statements that prepare a session for it."""

from collections.abc import Iterator
from dataclasses import dataclass

from rowtide.connector.protocol.replication import commands
from rowtide.schema_history.position.gtid import GtidSet

_SLAVE_CAPABILITY = 4
"""MARIA_SLAVE_CAPABILITY_GTID: MariaDB sends all its event types as they are."""
SEMI_SYNC = "SET @rpl_semi_sync_replica=1, @rpl_semi_sync_slave=1"
"""Makes the dump a semi-synchronous one; servers read one of the names, by their version."""


@dataclass(frozen=True, slots=True)
class ReplicaRegistration:
    """The registration of a client.

    Attributes:
        server_id: its server id.
        uuid: identifies it. MySQL ends an older session of the same UUID, MariaDB one of the same server id.
        host: shown by ``SHOW REPLICAS``, at most 60 bytes, which every version accepts.
        user: shown with ``--show-replica-auth-info``.
        port: shown by ``SHOW REPLICAS``.
    """

    server_id: int
    uuid: str
    host: str = ""
    user: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A stream of the binlog, and its options.

    Attributes:
        replica: the replica that requests it.
        file: the binlog file; not used with ``gtids``.
        position: the position in that file.
        gtids: the GTIDs that must not be sent, or MariaDB's position; ``None`` to start at the file and position. If
            it is empty, the stream starts with the first transaction of the server.
        mariadb: whether the server is MariaDB.
        flags: of the dump command, such as ``NON_BLOCK``; those that the other attributes require are added.
        annotate: send ANNOTATE_ROWS events (MariaDB).
        heartbeat_s: send a heartbeat after this many seconds without an event.
        net_write_timeout: of the session, in seconds; 0 for the server's.
        net_read_timeout: of the session, in seconds; 0 for the server's.
        gtid_strict: refuse a start at a GTID that the server does not have (MariaDB).
        ignore_duplicates: skip GTIDs that another replication connection got before (MariaDB).
        semi_sync: acknowledge transactions, if the server has semi-synchronous replication.
    """

    replica: ReplicaRegistration
    file: str
    position: int = 4
    gtids: str | None = None
    mariadb: bool = False
    flags: int = 0
    annotate: bool = False
    heartbeat_s: float = 30.0
    net_write_timeout: int = 0
    net_read_timeout: int = 0
    gtid_strict: bool = False
    ignore_duplicates: bool = False
    semi_sync: bool = False

    def settings(self) -> Iterator[str]:
        """Yield the statements that prepare the session, in order; both spellings of names, old and new."""
        yield "SET @master_binlog_checksum=@@global.binlog_checksum, @source_binlog_checksum=@@global.binlog_checksum"
        nanos = int(self.heartbeat_s * 1_000_000_000)
        yield f"SET @master_heartbeat_period={nanos}, @source_heartbeat_period={nanos}"
        yield f"SET @slave_uuid='{self.replica.uuid}', @replica_uuid='{self.replica.uuid}'"
        if self.net_write_timeout:
            yield f"SET SESSION net_write_timeout={self.net_write_timeout}"
        if self.net_read_timeout:
            yield f"SET SESSION net_read_timeout={self.net_read_timeout}"
        if self.mariadb:
            yield f"SET @mariadb_slave_capability={_SLAVE_CAPABILITY}"
            if self.gtids is not None:
                yield f"SET @slave_connect_state='{self.gtids}'"
                strict, ignore = int(self.gtid_strict), int(self.ignore_duplicates)
                yield f"SET @slave_gtid_strict_mode={strict}, @slave_gtid_ignore_duplicates={ignore}"

    def registration(self) -> bytes:
        """Return COM_REGISTER_SLAVE. Raises ``LocalProtocolError`` if a value does not fit its field."""
        replica = self.replica
        return commands.register_replica(replica.server_id, host=replica.host, user=replica.user, port=replica.port)

    def dump(self) -> bytes:
        """Return the command that starts the stream.

        Raises:
            LocalProtocolError: the command cannot express the request.
        """
        server_id = self.replica.server_id
        if self.mariadb:
            file, position = (self.file, self.position) if self.gtids is None else ("", 4)
            flags = self.flags | (commands.SEND_ANNOTATE_ROWS if self.annotate else 0)
            return commands.binlog_dump(server_id, file, position, flags=flags)
        if self.gtids is not None:
            flags = self.flags | commands.THROUGH_GTID
            return commands.binlog_dump_gtid(server_id, GtidSet.parse(self.gtids), flags=flags)
        return commands.binlog_dump(server_id, self.file, self.position, flags=self.flags)
