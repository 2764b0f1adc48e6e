"""The connector's errors. Messages name the location (binlog file and position, table) and the solution.

ConnectorError               of all packages (rowtide/errors.py)
├── ProtocolError            the replication protocol or a binlog file
│   ├── RemoteProtocolError    invalid bytes from the server or in the file
│   │   ├── ChecksumMismatch     an event's CRC32 does not match its bytes
│   │   └── TruncatedEvent       the bytes end inside an event
│   ├── LocalProtocolError     a request that the protocol cannot express
│   ├── UnsupportedEvent       intact bytes of unknown meaning: event type, status variable, field, algorithm
│   └── EncryptedBinlog        a binlog file that only its server can read
├── SchemaError              rows do not match the structure of their table
│   ├── UnknownTable           rows of a table that is not in the schema history
│   ├── ColumnCountMismatch    rows with a different number of columns from the schema history
│   └── UnparsedDdl            a statement that may change a structure and could not be parsed
├── TransactionNotHeld       no space to hold a transaction until its end
├── MirrorError              a mirror of the binlog that cannot be continued
├── TopicClash               two tables whose names lead to the same topic
├── OffsetError              a stored position from which the connector cannot resume
│   └── PositionPurged         the server has purged the binlog at that position
├── RegistryError            a schema registry refuses a schema
│   └── RegistryUnreachable    a schema registry that does not answer
├── SnapshotError            a snapshot that is not allowed, or that failed
│   └── HistoryMissing         a stored position without its schema history
├── EngineError              rowtide.Engine is used in a way that cannot work
│   └── EngineTypeError        an argument of a type that its method does not accept
└── SignalError              a signal that cannot be carried out; the connector continues
"""

import errno
from collections.abc import Sequence

from rowtide.errors import ConnectorError as ConnectorError  # noqa: PLC0414 - for all who import it from here

_NO_MEMORY = (
    "no memory is left. Give the process more memory, or let it use less: max.queue.size.in.bytes, max.queue.size, "
    "fewer connectors in the process"
)
_REMEDIES = {
    errno.EMFILE: "too many files are open in this process. Raise its limit: ulimit -n, LimitNOFILE= of the systemd "
    "unit, --ulimit nofile= of the container",
    errno.ENFILE: "too many files are open on this machine. Raise fs.file-max",
    errno.ENOMEM: _NO_MEMORY,
    errno.ENOSPC: "no space is left on the disk. Free some",
    errno.EDQUOT: "the disk quota is used up. Free some space, or raise it",
}
_NO_THREAD = "can't start new thread"
"""Python's message for it; the class of the error says less."""


class ProtocolError(ConnectorError):
    """An error in the replication protocol or in a binlog file.

    Attributes:
        location: ``file:position`` of the event, or ``""`` until a caller adds it.
    """

    def __init__(self, message: str, location: str = "") -> None:
        super().__init__(message, location)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        return f"{self.message} (at {self.location})" if self.location else self.message


class RemoteProtocolError(ProtocolError):
    """The bytes from the server or in the file do not follow the protocol."""


class ChecksumMismatch(RemoteProtocolError):
    """The CRC32 of an event does not match its bytes."""


class TruncatedEvent(RemoteProtocolError):
    """The bytes end inside an event."""


class LocalProtocolError(ProtocolError):
    """The protocol cannot express the request."""


class UnsupportedEvent(ProtocolError):
    """Intact bytes of unknown meaning. Skipping them could lose changes, so they are an error that names them."""


class EncryptedBinlog(ProtocolError):
    """An encrypted binlog file, which only its server can read."""


class SchemaError(ConnectorError):
    """Rows do not match the structure of their table."""


class UnknownTable(SchemaError):
    """A table that is not in the schema history, or rows of one."""


class ColumnCountMismatch(SchemaError):
    """Rows with a different number of columns from the table in the schema history."""


class UnparsedDdl(SchemaError):
    """A statement that may change a structure and could not be parsed."""


class TransactionNotHeld(ConnectorError):
    """There is no space to hold a transaction until its end, which shows whether it was rolled back."""


class MirrorError(ConnectorError):
    """A mirror of the binlog that cannot be continued."""


class TopicClash(ConnectorError):
    """Two tables whose names lead to the same topic, without a setting that asks for it."""


class OffsetError(ConnectorError):
    """A stored position from which the connector cannot resume."""


class PositionPurged(OffsetError):
    """The server does not have the binlog at the stored position.

    Attributes:
        purged: whether the server used to have it, as far as known.
    """

    def __init__(self, message: str, *, purged: bool = True) -> None:
        super().__init__(message)
        self.purged = purged


class RegistryError(ConnectorError):
    """A schema registry refuses a schema or a request."""


class RegistryUnreachable(RegistryError):
    """A schema registry does not answer; it may later."""


class SnapshotError(ConnectorError):
    """A snapshot that the configuration does not allow, or that failed."""


class HistoryMissing(SnapshotError):
    """There is a position to resume from, but no schema history for it."""


class EngineError(ConnectorError):
    """The engine is used in a way that cannot work."""


class EngineTypeError(EngineError, TypeError):
    """An argument has a type that the engine's method does not accept."""


class RowTypeError(EngineError):
    """A row does not match the class of the requested object: its structure or its values differ."""


class SignalError(ConnectorError):
    """A signal that cannot be carried out; the connector continues without it.

    Attributes:
        signal_id: the id of the signal; ``""`` if it is not known, or if a caller adds it.
        signal_type: its type, or ``""`` in the same cases.
    """

    def __init__(self, message: str, signal_id: str = "", signal_type: str = "") -> None:
        super().__init__(message)
        self.signal_id = signal_id
        self.signal_type = signal_type


def some_of(names: Sequence[object], most: int = 5) -> str:
    """Return the first of some names, and the number of the others, for a message."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def exhausted(error: BaseException) -> str | None:
    """Return the exhausted resource and how to get more of it; ``None`` for other errors."""
    if isinstance(error, MemoryError):
        return _NO_MEMORY
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return "no thread can be started. Raise the limit: ulimit -u, TasksMax= of the systemd unit, --pids-limit"
    if not isinstance(error, OSError) or error.errno not in _REMEDIES:
        return None
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{_REMEDIES[error.errno]}"


class StructureUncertain(Exception):
    """The server's current structure of a table may not be that of earlier rows; the message says why."""
