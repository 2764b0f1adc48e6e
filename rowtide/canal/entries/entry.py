"""Canal's entries: one for each binlog event that a client sees.

They are written as Canal's protocol buffers (package ``com.alibaba.otter.canal.protocol``, proto2): fields in the order
of their numbers, and only those that the reference server sets, so that the bytes are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from rowtide.canal.entries import protobuf
from rowtide.envelope.protobuf.wire import varint

_VERSION = protobuf.integer(1, 1)
_ENCODING = protobuf.text(5, "UTF-8")
_MYSQL = protobuf.integer(7, 2)
_VALUE = protobuf.tag(8)

Pairs = Sequence[tuple[str, str]]
"""Properties: names and texts."""


class EntryType(IntEnum):
    """The kind of an entry."""

    TRANSACTIONBEGIN = 1
    ROWDATA = 2
    TRANSACTIONEND = 3


class EventType(IntEnum):
    """The kind of change that an entry reports."""

    INSERT = 1
    UPDATE = 2
    DELETE = 3
    CREATE = 4
    ALTER = 5
    ERASE = 6
    QUERY = 7
    TRUNCATE = 8
    RENAME = 9
    CINDEX = 10
    DINDEX = 11
    XACOMMIT = 13
    XAROLLBACK = 14


@dataclass(frozen=True, slots=True)
class EntryColumn:
    """A column of a table, and the properties that all its values share.

    Attributes:
        index: its place in the table, from 0.
        name: its name.
        key: whether it belongs to the primary key.
        sql_type: number of ``java.sql.Types``.
        null_type: the same for NULL, which differs for SET and JSON.
        wide_type: the same for unsigned integers beyond the signed range.
        widest: the largest integer of ``sql_type``; ``None`` if the column has no wider type.
        mysql_type: the type as the table's definition spells it: ``bigint(20) unsigned``.
        heads: the bytes before the length of a value in the message ``Column``, by whether its type is wide and whether
            it is updated.
        nulls: the messages for NULL, by whether it is updated.
        tail: the field after a value.
    """

    index: int
    name: str
    key: bool
    sql_type: int
    null_type: int
    wide_type: int
    widest: int | None
    mysql_type: str
    heads: "Sequence[Sequence[bytes]]" = field(init=False, repr=False, compare=False)
    nulls: "Sequence[bytes]" = field(init=False, repr=False, compare=False)
    tail: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tail = protobuf.text(10, self.mysql_type)
        types = (self.sql_type, self.wide_type)
        heads = [[self._head(kind, updated, null=False) + _VALUE for updated in (False, True)] for kind in types]
        nulls = [self._head(self.null_type, updated, null=True) + tail for updated in (False, True)]
        for name, value in (("heads", heads), ("nulls", nulls), ("tail", tail)):
            object.__setattr__(self, name, value)  # the class is frozen

    def _head(self, sql_type: int, updated: bool, *, null: bool) -> bytes:
        integer = protobuf.integer
        start = integer(1, self.index) + integer(2, sql_type) + protobuf.text(3, self.name) + integer(4, self.key)
        return start + integer(5, updated) + integer(6, null)

    def is_wide(self, value: str) -> bool:
        """Return whether a value has ``wide_type``. Canal widens the type of an unsigned integer row by row."""
        return self.widest is not None and int(value) > self.widest

    def type_of(self, value: str | None) -> int:
        """Return the SQL type of one value."""
        if value is None:
            return self.null_type
        return self.wide_type if self.is_wide(value) else self.sql_type


Values = Sequence["str | Absent | None"]
"""The text of each column of an image, in the order of the table."""


class Absent:
    """The value of a column that an image does not hold (``binlog_row_image``)."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class RowChange:
    """The rows of one event, all of one kind.

    Attributes:
        type: INSERT, UPDATE or DELETE.
        table_id: of the event.
        columns: of the table, without those that are omitted (``canal.instance.filter.field``).
        rows: the images before and after each change; the first is ``None`` for an INSERT, the second for a DELETE.
    """

    type: EventType
    table_id: int
    columns: Sequence[EntryColumn]
    rows: Sequence[tuple[Values | None, Values | None]]

    def encoded(self) -> bytes:
        """Return the message ``RowChange``."""
        head = protobuf.integer(1, self.table_id) + protobuf.integer(2, self.type) + protobuf.integer(10, 0)
        return head + b"".join([protobuf.data(12, self._row(before, after)) for before, after in self.rows])

    def _row(self, before: Values | None, after: Values | None) -> bytes:
        """Return the message ``RowData``.

        In an UPDATE, the columns that differ count as updated; in an INSERT, all of them do.
        """
        out = [] if before is None else _image(1, self.columns, before, ())
        if after is not None:
            out += _image(2, self.columns, after, before)
        return b"".join(out)


@dataclass(frozen=True, slots=True)
class EntryStatement:
    """A statement, or the end of a distributed transaction.

    Attributes:
        type: what it does, as Canal sees it.
        sql: its text.
        ddl: whether it is DDL; ``None`` if Canal does not say.
        database: the session's default database; ``""`` if none, or if Canal does not say.
        props: properties.
    """

    type: EventType
    sql: str
    ddl: bool | None = None
    database: str = ""
    props: Pairs = ()

    def encoded(self) -> bytes:
        """Return the message ``RowChange``."""
        out = protobuf.integer(2, self.type)
        if self.ddl is not None:
            out += protobuf.integer(10, self.ddl)
        out += protobuf.text(11, self.sql) + _pairs(13, self.props)
        return out + (protobuf.text(14, self.database) if self.database else b"")


@dataclass(frozen=True, slots=True)
class TransactionBegin:
    """The beginning of a transaction: the connection's thread."""

    thread: int
    props: Pairs = ()

    def encoded(self) -> bytes:
        """Return the message ``TransactionBegin``."""
        return _pairs(3, self.props) + protobuf.integer(4, self.thread)


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """The end of a transaction: its XID, or 0."""

    transaction: int
    props: Pairs = ()

    def encoded(self) -> bytes:
        """Return the message ``TransactionEnd``."""
        return protobuf.text(2, str(self.transaction)) + _pairs(3, self.props)


Content = RowChange | EntryStatement | TransactionBegin | TransactionEnd
"""What an entry holds."""


@dataclass(frozen=True, slots=True)
class EntryHeader:
    """The origin of an entry.

    Attributes:
        file: binlog file.
        offset: the position at which its event begins.
        length: bytes of the event.
        server_id: the server that wrote it first.
        seconds: when, in seconds since the epoch.
        database: of the table; ``None`` if Canal does not set it.
        table: the table; ``None`` if Canal does not set it.
        gtid: the executed GTID set, with this transaction; ``""`` without ``canal.instance.gtidon``.
        props: the transaction's own GTID, the number of rows.
    """

    file: str
    offset: int
    length: int
    server_id: int
    seconds: int
    database: str | None = ""
    table: str | None = ""
    gtid: str = ""
    props: Pairs = ()

    @property
    def execute_time(self) -> int:
        """When the event was written, in milliseconds since the epoch."""
        return self.seconds * 1000

    def encoded(self, event_type: EventType | None) -> bytes:
        """Return the message ``Header``."""
        integer, text = protobuf.integer, protobuf.text
        out = [
            _VERSION,
            text(2, self.file),
            integer(3, self.offset),
            integer(4, self.server_id),
            _ENCODING,
            integer(6, self.execute_time),
            _MYSQL,
        ]
        if self.database is not None:
            out.append(text(8, self.database))
        if self.table is not None:
            out.append(text(9, self.table))
        out.append(integer(10, self.length))
        if event_type is not None:
            out.append(integer(11, event_type))
        out.append(_pairs(12, self.props))
        if self.gtid:
            out.append(text(13, self.gtid))
        return b"".join(out)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its origin and its content."""

    header: EntryHeader
    content: Content

    @property
    def type(self) -> EntryType:
        """The kind of the entry."""
        if isinstance(self.content, TransactionBegin):
            return EntryType.TRANSACTIONBEGIN
        return EntryType.TRANSACTIONEND if isinstance(self.content, TransactionEnd) else EntryType.ROWDATA

    @property
    def event_type(self) -> EventType | None:
        """What it reports; ``None`` for the bounds of a transaction."""
        return self.content.type if isinstance(self.content, RowChange | EntryStatement) else None

    def encoded(self) -> bytes:
        """Return the message ``Entry``, as a client gets it."""
        header = protobuf.data(1, self.header.encoded(self.event_type))
        return header + protobuf.integer(2, self.type) + protobuf.data(3, self.content.encoded())


def _pairs(field: int, pairs: Pairs) -> bytes:
    return b"".join(protobuf.data(field, protobuf.text(1, key) + protobuf.text(2, value)) for key, value in pairs)


def _image(number: int, columns: Sequence[EntryColumn], image: Values, before: Values | None) -> list[bytes]:
    """Return the columns of an image, each as ``index sqlType name isKey updated isNull value mysqlType``.

    Args:
        number: of the field of the message ``RowData``.
        columns: those to write.
        image: the values.
        before: the values before an update; ``None`` for a new row, ``()`` if no column counts as updated.
    """
    tag = protobuf.tag(number)
    out: list[bytes] = []
    for column in columns:
        index = column.index
        value = image[index]
        updated = before is None or (before != () and before[index] != value)
        if isinstance(value, str):
            text = value.encode("utf-8", "replace")
            wide = column.widest is not None and column.is_wide(value)
            head, size, tail = column.heads[wide][updated], varint(len(text)), column.tail
            out += (tag, varint(len(head) + len(size) + len(text) + len(tail)), head, size, text, tail)
        elif value is None:
            null = column.nulls[updated]
            out += (tag, varint(len(null)), null)
    return out
