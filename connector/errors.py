"""What the connector raises on purpose. Messages name the place (binlog file and position, table) and the way out.

ConnectorError
├── ProtocolError            the replication protocol or a binlog file
│   ├── RemoteProtocolError    the other side's bytes are wrong
│   │   ├── ChecksumMismatch     an event's CRC32 is not that of its bytes
│   │   └── TruncatedEvent       bytes end inside an event
│   ├── LocalProtocolError     we were asked to send what the protocol cannot say
│   ├── UnsupportedEvent       sound bytes whose meaning is not known: event type, status variable, field, algorithm
│   └── EncryptedBinlog        a binlog file that only its server can read
├── SchemaError              rows and structure do not fit together
│   ├── UnknownTable           rows of a table that the history does not know
│   ├── ColumnCountMismatch    rows with more or fewer columns than the history says
│   └── UnparsedDdl            a statement that may change structure and was not understood
├── TopicClash               two tables whose rows would stand in one topic though nobody wants that
├── OffsetError              a stored position that cannot be continued from
│   └── PositionPurged         the server no longer has the binlog at that position
└── SnapshotError            a snapshot that is not allowed, or cannot be taken
    └── HistoryMissing         a position without the schema history that belongs to it
"""


class ConnectorError(Exception):
    """The root of the tree above: catch it to catch all that the connector raises on purpose."""


class ProtocolError(ConnectorError):
    """Something is wrong with the replication protocol or a binlog file.

    Attributes:
        location: ``file:position`` of the event, or ``""`` as long as nobody up the stack has added it.
    """

    def __init__(self, message: str, location: str = "") -> None:
        super().__init__(message, location)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        return f"{self.message} (at {self.location})" if self.location else self.message


class RemoteProtocolError(ProtocolError):
    """The server or the file sent bytes that are not what the protocol says."""


class ChecksumMismatch(RemoteProtocolError):
    """An event's bytes were changed on their way: its CRC32 does not fit."""


class TruncatedEvent(RemoteProtocolError):
    """The bytes end inside an event."""


class LocalProtocolError(ProtocolError):
    """We were asked to send something that the protocol cannot express."""


class UnsupportedEvent(ProtocolError):
    """Sound bytes whose meaning is not known; passing over them could lose changes, so they are refused by name."""


class EncryptedBinlog(ProtocolError):
    """A binlog file that is encrypted: only its server can read it."""


class SchemaError(ConnectorError):
    """Rows and the structure of their table do not fit together."""


class UnknownTable(SchemaError):
    """Rows of a table that the schema history does not know."""


class ColumnCountMismatch(SchemaError):
    """Rows that have more or fewer columns than the schema history says."""


class UnparsedDdl(SchemaError):
    """A statement that may change a structure and was not understood."""


class TopicClash(ConnectorError):
    """Two tables whose rows would stand in one topic though nobody wants that."""


class OffsetError(ConnectorError):
    """A stored position that cannot be continued from."""


class PositionPurged(OffsetError):
    """The server no longer has the binlog at the stored position."""


class SnapshotError(ConnectorError):
    """A snapshot that the configuration does not allow, or that the server does not let us take."""


class HistoryMissing(SnapshotError):
    """There is a position to go on from, but the schema history that belongs to it is missing."""
