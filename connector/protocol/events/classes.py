"""The events of a binlog as values: one class per kind, each with its header. Knows nothing of how they are read.

They are named tuples, because constructing one costs a third of a frozen dataclass, and a one-row transaction has five
events. Equality of two different kinds cannot happen: the header carries the type. Do not subclass them.

Times are in microseconds or seconds since the epoch as stated. Names follow MySQL's and MariaDB's sources.
"""

from enum import Enum
from typing import Literal, NamedTuple

from rowtide.connector.protocol import charset
from rowtide.connector.protocol.events.log_events import (
    BinlogCheckpoint,
    FormatDescription,
    Heartbeat,
    Ignorable,
    Incident,
    Rotate,
    StartEncryption,
    Stop,
    TransactionContext,
    ViewChange,
)
from rowtide.connector.protocol.events.query_status import QueryStatus
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import EventHeader
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtid

__all__ = [
    "STATEMENT_END",
    "BinlogCheckpoint",
    "DeleteFile",
    "Event",
    "ExecuteLoadQuery",
    "FormatDescription",
    "Gtid",
    "Heartbeat",
    "Ignorable",
    "Incident",
    "IntVar",
    "LoadBlock",
    "MariadbGtidEvent",
    "MariadbGtidList",
    "PreviousGtids",
    "Query",
    "Rand",
    "Rotate",
    "Rows",
    "RowsKind",
    "RowsQuery",
    "StartEncryption",
    "Stop",
    "TableMap",
    "TransactionContext",
    "TransactionPayload",
    "UserVar",
    "ViewChange",
    "XaPrepare",
    "Xid",
]

STATEMENT_END = 0x0001
"""Flag of a rows event: the last one of its statement."""


class Query(NamedTuple):
    """QUERY (and MariaDB's QUERY_COMPRESSED): a statement; BEGIN, COMMIT, DDL, or DML in statement format.

    Attributes:
        header: common header.
        thread_id: the connection that ran it.
        execution_time: seconds.
        error_code: what the server answered to the statement; 0 if it succeeded.
        database: the session's database, ``""`` if none.
        statement: bytes in the client's character set, see `text`.
        status: the session's settings that matter for the statement.
    """

    header: EventHeader
    thread_id: int
    execution_time: int
    error_code: int
    database: str
    statement: bytes
    status: QueryStatus

    @property
    def text(self) -> str:
        """The statement as text; bytes that are invalid in the client's character set become U+FFFD."""
        return charset.decode_statement(self.statement, self.status.client_collation)


class ExecuteLoadQuery(NamedTuple):
    """EXECUTE_LOAD_QUERY: LOAD DATA in statement format; the data came in BEGIN_LOAD_QUERY and APPEND_BLOCK.

    ``statement[name_start:name_end]`` stands for the file's name; ``duplicates``: 0 error, 1 ignore, 2 replace.
    """

    header: EventHeader
    query: Query
    file_id: int
    name_start: int
    name_end: int
    duplicates: int


class LoadBlock(NamedTuple):
    """BEGIN_LOAD_QUERY and APPEND_BLOCK: a piece of the file of a LOAD DATA in statement format."""

    header: EventHeader
    file_id: int
    block: bytes


class DeleteFile(NamedTuple):
    """DELETE_FILE: the LOAD DATA with this file failed."""

    header: EventHeader
    file_id: int


class IntVar(NamedTuple):
    """INTVAR: LAST_INSERT_ID (1) or INSERT_ID (2) for the following statement."""

    header: EventHeader
    kind: int
    value: int


class Rand(NamedTuple):
    """RAND: the seeds of RAND() for the following statement."""

    header: EventHeader
    seed1: int
    seed2: int


class UserVar(NamedTuple):
    """USER_VAR: a user variable that the following statement uses; ``value`` is raw, in the form of ``value_type``."""

    header: EventHeader
    name: str
    value: bytes | None
    value_type: int
    collation: int
    flags: int


class Xid(NamedTuple):
    """XID: the commit of a transaction."""

    header: EventHeader
    xid: int


def xid_text(gtrid: bytes, bqual: bytes, format_id: int) -> str:
    """The identifier of an XA transaction as servers write it in the binlog's statements."""
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{format_id}"


class XaPrepare(NamedTuple):
    """XA_PREPARE: the end of the first part of an XA transaction, or with ``one_phase`` its commit."""

    header: EventHeader
    one_phase: bool
    format_id: int
    gtrid: bytes
    bqual: bytes

    @property
    def xid(self) -> str:
        """The identifier as the server writes it in ``XA COMMIT X'…',X'…',1`` of the second part."""
        return xid_text(self.gtrid, self.bqual, self.format_id)


class Gtid(NamedTuple):
    """GTID, ANONYMOUS_GTID, GTID_TAGGED: the head of every transaction and of every statement outside of one.

    Attributes:
        header: common header.
        uuid: the source's uuid, lower case; all zeros if anonymous.
        tag: lower case, or ``""``.
        gno: number of the transaction; 0 if anonymous.
        flags: bit 0: the transaction may contain changes logged as statements.
        last_committed, sequence_number: logical clock for parallel appliers.
        immediate_commit_timestamp: commit on the server that wrote this file, in µs; 0 if not known.
        original_commit_timestamp: commit on the server where it was first made, in µs; 0 if not known (before 8.0.1).
        transaction_length: bytes of the transaction with this event; 0 if not known.
        original_server_version, immediate_server_version: as 80030 for 8.0.30; 0 if not known.
        commit_group_ticket: 0 if none.
    """

    header: EventHeader
    uuid: str
    tag: str
    gno: int
    flags: int
    last_committed: int
    sequence_number: int
    immediate_commit_timestamp: int
    original_commit_timestamp: int
    transaction_length: int
    immediate_server_version: int
    original_server_version: int
    commit_group_ticket: int

    @property
    def anonymous(self) -> bool:
        """Whether the transaction has no identifier (``gtid_mode=OFF``)."""
        return not self.gno

    @property
    def text(self) -> str:
        """``uuid:gno`` or ``uuid:tag:gno``; meaningless if `anonymous`."""
        return f"{self.uuid}:{self.tag}:{self.gno}" if self.tag else f"{self.uuid}:{self.gno}"


class PreviousGtids(NamedTuple):
    """PREVIOUS_GTIDS: all GTIDs in the files before this one."""

    header: EventHeader
    gtids: GtidSet


class MariadbGtidEvent(NamedTuple):
    """MariaDB's GTID: the head of a transaction, which it also begins unless `standalone`.

    Attributes:
        header: common header.
        gtid: domain, server and sequence number.
        flags: FL_STANDALONE 1, FL_GROUP_COMMIT_ID 2, FL_TRANSACTIONAL 4, FL_ALLOW_PARALLEL 8, FL_WAITED 16, FL_DDL 32,
            FL_PREPARED_XA 64, FL_COMPLETED_XA 128.
        commit_id: number of the group commit; 0 if none.
        xa: format id, gtrid and bqual, if one of the XA flags is set.
        flags_extra: FL_EXTRA_MULTI_ENGINE 1, FL_START_ALTER 2, FL_COMMIT_ALTER 4, FL_ROLLBACK_ALTER 8,
            FL_EXTRA_THREAD_ID 16.
        start_alter: with FL_COMMIT_ALTER and FL_ROLLBACK_ALTER, the sequence number of the START ALTER.
        thread_id: the connection that made the transaction, if the server says so (MariaDB ≥ 11.6).
    """

    header: EventHeader
    gtid: MariadbGtid
    flags: int
    commit_id: int
    xa: tuple[int, bytes, bytes] | None
    flags_extra: int
    start_alter: int | None
    thread_id: int | None

    @property
    def standalone(self) -> bool:
        """Whether a single statement follows and no COMMIT or XID."""
        return bool(self.flags & 1)

    @property
    def ddl(self) -> bool:
        """Whether the statement is DDL."""
        return bool(self.flags & 32)

    @property
    def text(self) -> str:
        """``domain-server-sequence``."""
        return str(self.gtid)


class MariadbGtidList(NamedTuple):
    """MariaDB's GTID_LIST: the last GTID of every domain and server before this file; flags: 1 until, 2 ignored."""

    header: EventHeader
    gtids: tuple[MariadbGtid, ...]
    flags: int


class RowsQuery(NamedTuple):
    """ROWS_QUERY, and MariaDB's ANNOTATE_ROWS: the statement that caused the following rows, UTF-8 as a rule."""

    header: EventHeader
    statement: bytes

    @property
    def text(self) -> str:
        """The statement; bytes that are not UTF-8 become U+FFFD."""
        return self.statement.decode("utf-8", "replace")


class TableMap(NamedTuple):
    """TABLE_MAP: which table a table id in the following rows events means.

    ``structure`` is the same object for the same table as long as nothing in the event's body but the id changed, so
    what is derived from it can be kept under it.
    """

    header: EventHeader
    table_id: int
    flags: int
    structure: TableStructure


class RowsKind(Enum):
    """What a rows event does; the value is Debezium's ``op``."""

    WRITE = "c"
    UPDATE = "u"
    DELETE = "d"


class Rows(NamedTuple):
    """A rows event of any version, uncompressed. The row images stay where they are: ``buffer[start:end]``.

    An image is a bitmap of nulls (one bit per *present* column) and the values of the present columns. WRITE has after
    images, DELETE before images, UPDATE pairs of both; with `partial` (PARTIAL_UPDATE_ROWS) value options stand
    before each after image.

    Attributes:
        header: common header.
        kind: write, update or delete.
        table_id: of a TABLE_MAP before it in the same statement.
        flags: `STATEMENT_END` 1, NO_FOREIGN_KEY_CHECKS 2, RELAXED_UNIQUE_CHECKS 4, COMPLETE_ROWS 8,
            USE_SQL_FOREIGN_KEY 16.
        column_count: columns of the table.
        columns: bitmap of the columns that are present in the (before) image, least significant bit first; the bits
            behind the last column may be anything.
        columns_after: the same of the after image of an UPDATE; ``columns`` for the other kinds.
        partial: whether after images may hold JSON differences.
        extra: raw extra data of version 2 (partition, NDB information), without its length.
        buffer: bytes that hold the row images.
        start: offset of the first row image.
        end: offset behind the last one.
    """

    header: EventHeader
    kind: RowsKind
    table_id: int
    flags: int
    column_count: int
    columns: bytes
    columns_after: bytes
    partial: bool
    extra: bytes
    buffer: bytes
    start: int
    end: int


class TransactionPayload(NamedTuple):
    """TRANSACTION_PAYLOAD: the events of a whole transaction, compressed; see ``EventDecoder.unpack``.

    Attributes:
        header: common header.
        compression: ``"ZSTD"`` or ``"NONE"``.
        uncompressed_size: bytes of all inner events.
        buffer: bytes that hold the payload.
        start: offset of the payload.
        end: offset behind it.
    """

    header: EventHeader
    compression: Literal["ZSTD", "NONE"]
    uncompressed_size: int
    buffer: bytes
    start: int
    end: int


Event = (
    FormatDescription
    | Rotate
    | Stop
    | Query
    | ExecuteLoadQuery
    | LoadBlock
    | DeleteFile
    | IntVar
    | Rand
    | UserVar
    | Xid
    | XaPrepare
    | Gtid
    | PreviousGtids
    | MariadbGtidEvent
    | MariadbGtidList
    | BinlogCheckpoint
    | StartEncryption
    | RowsQuery
    | TableMap
    | Rows
    | TransactionPayload
    | Heartbeat
    | Incident
    | TransactionContext
    | ViewChange
    | Ignorable
)
"""Everything that ``EventDecoder.decode`` returns."""
