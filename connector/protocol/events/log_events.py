"""The classes of events about the log itself: files, format, heartbeats, group replication, incidents."""

from typing import Literal, NamedTuple

from rowtide.connector.protocol.header import EventHeader


class FormatDescription(NamedTuple):
    """FORMAT_DESCRIPTION, the first event of every file: defines the format of the events after it.

    Attributes:
        header: common header.
        binlog_version: always 4.
        server_version: the result of ``SELECT VERSION()``.
        created: seconds since the epoch if the server started with this file, otherwise 0.
        post_header_lengths: one byte per event type, starting at type 1.
        checksum: ``"NONE"`` or ``"CRC32"``, for this file's events.
        packet: the bytes of the event.
    """

    header: EventHeader
    binlog_version: int
    server_version: str
    created: int
    post_header_lengths: bytes
    checksum: Literal["NONE", "CRC32"]
    packet: bytes

    @property
    def mariadb(self) -> bool:
        """Whether a MariaDB server wrote the file."""
        return "mariadb" in self.server_version.lower()


class Rotate(NamedTuple):
    """ROTATE: the log continues in another file; artificial at the start of a dump."""

    header: EventHeader
    next_file: str
    next_position: int


class Stop(NamedTuple):
    """STOP: the server shut down; nothing follows in this file."""

    header: EventHeader


class StartEncryption(NamedTuple):
    """MariaDB's START_ENCRYPTION: everything after it in the file is encrypted."""

    header: EventHeader
    scheme: int
    key_version: int
    nonce: bytes


class BinlogCheckpoint(NamedTuple):
    """MariaDB's BINLOG_CHECKPOINT: the oldest file that crash recovery needs."""

    header: EventHeader
    file: str


class Heartbeat(NamedTuple):
    """HEARTBEAT, HEARTBEAT_V2: the server has nothing to send; its dump thread is at this file and position."""

    header: EventHeader
    file: str
    position: int


class Incident(NamedTuple):
    """INCIDENT: the log lacks changes (number 1: LOST_EVENTS)."""

    header: EventHeader
    number: int
    message: str

    @property
    def problem(self) -> str:
        """The problem, and the way out."""
        return (
            "the server reports that changes are missing from its binlog "
            f"(INCIDENT {self.number}: {self.message}); take a new snapshot of the tables, or set "
            "event.processing.failure.handling.mode=warn to continue without them"
        )


class TransactionContext(NamedTuple):
    """TRANSACTION_CONTEXT: group replication's certification data of a transaction."""

    header: EventHeader
    server_uuid: str
    thread_id: int
    gtid_specified: bool
    snapshot_version: bytes
    write_set: tuple[bytes, ...]
    read_set: tuple[bytes, ...]


class ViewChange(NamedTuple):
    """VIEW_CHANGE: the membership of a replication group changed."""

    header: EventHeader
    view_id: str
    sequence_number: int
    certification: tuple[tuple[str, bytes], ...]


class Ignorable(NamedTuple):
    """IGNORABLE, or an event of unknown type that is flagged as ignorable."""

    header: EventHeader
    body: bytes
