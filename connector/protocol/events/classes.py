"""The events of a binlog as values: one class per kind, each with its header.

They are named tuples, because constructing one takes a third of the time of a frozen dataclass, and a one-row
transaction has five events. Events of different kinds are never equal, since the header has the type. Do not subclass
them. Names follow the sources of MySQL and MariaDB.
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

STATEMENT_END = 0x0001
"""STMT_END_F, flag of a rows event: the last one of its statement."""


class Query(NamedTuple):
    """QUERY (and MariaDB's QUERY_COMPRESSED): a statement; BEGIN, COMMIT, DDL, or DML in statement format.

    Attributes:
        header: common header.
        thread_id: the connection that ran the statement.
        execution_time: in seconds.
        error_code: the error that the statement ended with; 0 if it succeeded.
        database: the session's default database, ``""`` if none.
        statement: bytes in the client's character set, see `text`.
        status: the session's settings that affect the statement.
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
    """EXECUTE_LOAD_QUERY: LOAD DATA in statement format; its data is in BEGIN_LOAD_QUERY and APPEND_BLOCK events.

    ``statement[name_start:name_end]`` is the name of the file; ``duplicates``: 0 error, 1 ignore, 2 replace.
    """

    header: EventHeader
    query: Query
    file_id: int
    name_start: int
    name_end: int
    duplicates: int


class LoadBlock(NamedTuple):
    """BEGIN_LOAD_QUERY and APPEND_BLOCK: a block of the file of a LOAD DATA in statement format."""

    header: EventHeader
    file_id: int
    block: bytes


class DeleteFile(NamedTuple):
    """DELETE_FILE: the LOAD DATA of this file failed."""

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
    """USER_VAR: a user variable that the following statement uses; ``value`` is raw, encoded as ``value_type`` says."""

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
    """Return the identifier of an XA transaction as servers write it in the binlog's statements."""
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{format_id}"


class XaPrepare(NamedTuple):
    """XA_PREPARE: the end of the first phase of an XA transaction, or with ``one_phase`` its commit."""

    header: EventHeader
    one_phase: bool
    format_id: int
    gtrid: bytes
    bqual: bytes

    @property
    def xid(self) -> str:
        """The identifier as the server writes it in the ``XA COMMIT X'…',X'…',1`` of the second phase."""
        return xid_text(self.gtrid, self.bqual, self.format_id)


class Gtid(NamedTuple):
    """GTID, ANONYMOUS_GTID, GTID_TAGGED: the start of every transaction and of every statement outside of one.

    Attributes:
        header: common header.
        uuid: the source's uuid, lower case; all zeros if anonymous.
        tag: lower case, or ``""``.
        gno: number of the transaction; 0 if anonymous.
        flags: bit 0: the transaction may contain changes logged as statements.
        last_committed, sequence_number: logical clock for parallel appliers.
        immediate_commit_timestamp: commit on the server that wrote this file, in µs since the epoch; 0 if unknown.
        original_commit_timestamp: commit on the server where it originated, in µs since the epoch; 0 if unknown
            (before 8.0.1).
        transaction_length: bytes of the transaction including this event; 0 if unknown.
        original_server_version, immediate_server_version: such as 80030 for 8.0.30; 0 if unknown.
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
    def may_have_statements(self) -> bool:
        """Whether the transaction may contain changes logged as statements (FLAG_MAY_HAVE_SBR)."""
        return bool(self.flags & 1)

    @property
    def text(self) -> str:
        """``uuid:gno`` or ``uuid:tag:gno``; meaningless if `anonymous`."""
        return f"{self.uuid}:{self.tag}:{self.gno}" if self.tag else f"{self.uuid}:{self.gno}"


class PreviousGtids(NamedTuple):
    """PREVIOUS_GTIDS: all GTIDs in the files before this one."""

    header: EventHeader
    gtids: GtidSet


class MariadbGtidEvent(NamedTuple):
    """MariaDB's GTID: the start of a transaction, or of a single statement if `standalone`.

    Attributes:
        header: common header.
        gtid: domain, server and sequence number.
        flags: FL_STANDALONE 1, FL_GROUP_COMMIT_ID 2, FL_TRANSACTIONAL 4, FL_ALLOW_PARALLEL 8, FL_WAITED 16, FL_DDL 32,
            FL_PREPARED_XA 64, FL_COMPLETED_XA 128.
        commit_id: id of the group commit; 0 if none.
        xa: format id, gtrid and bqual, if one of the XA flags is set.
        flags_extra: FL_EXTRA_MULTI_ENGINE 1, FL_START_ALTER 2, FL_COMMIT_ALTER 4, FL_ROLLBACK_ALTER 8,
            FL_EXTRA_THREAD_ID 16.
        start_alter: with FL_COMMIT_ALTER and FL_ROLLBACK_ALTER, the sequence number of the START ALTER.
        thread_id: the connection that ran the transaction, if logged (MariaDB ≥ 11.6).
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
    def xid(self) -> str:
        """The identifier of the XA transaction, as in its ``XA COMMIT``; ``""`` if there is none."""
        return "" if self.xa is None else xid_text(self.xa[1], self.xa[2], self.xa[0])

    @property
    def standalone(self) -> bool:
        """Whether a single statement follows, without COMMIT or XID."""
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
    """MariaDB's GTID_LIST: the last GTID per domain and server before this file; flags: 1 until, 2 ignored."""

    header: EventHeader
    gtids: tuple[MariadbGtid, ...]
    flags: int


class RowsQuery(NamedTuple):
    """ROWS_QUERY, and MariaDB's ANNOTATE_ROWS: the statement that caused the following rows, usually in UTF-8."""

    header: EventHeader
    statement: bytes

    @property
    def text(self) -> str:
        """The statement as text; bytes that are not valid UTF-8 become U+FFFD."""
        return self.statement.decode("utf-8", "replace")


class TableMap(NamedTuple):
    """TABLE_MAP: the table that a table id stands for in the following rows events.

    ``structure`` is the same object as long as nothing but the id changes, so it can be the key of a cache.
    """

    header: EventHeader
    table_id: int
    flags: int
    structure: TableStructure


class RowsKind(Enum):
    """The operation of a rows event; the value is Debezium's ``op``."""

    WRITE = "c"
    UPDATE = "u"
    DELETE = "d"


class Rows(NamedTuple):
    """A rows event of any version, uncompressed. The row images are not copied: they are in ``buffer[start:end]``.

    An image is a bitmap of nulls (one bit per *present* column) and the values of the present columns. WRITE has after
    images, DELETE before images, UPDATE pairs of both; with `partial` (PARTIAL_UPDATE_ROWS) value options precede each
    after image.

    Attributes:
        header: common header.
        kind: write, update or delete.
        table_id: the id from a preceding TABLE_MAP of the same statement.
        flags: `STATEMENT_END` 1, NO_FOREIGN_KEY_CHECKS 2, RELAXED_UNIQUE_CHECKS 4, COMPLETE_ROWS 8,
            USE_SQL_FOREIGN_KEY 16.
        column_count: number of columns of the table.
        columns: bitmap of the columns that are present in the (before) image, least significant bit first; the bits
            after the last column are undefined.
        columns_after: the same for the after image of an UPDATE; equal to ``columns`` for the other kinds.
        partial: whether after images may hold JSON differences.
        extra: raw extra data of version 2 (partition, NDB information), without its length.
        buffer: the bytes that hold the row images.
        start: offset of the first row image.
        end: offset after the last one.
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
        buffer: the bytes that hold the payload.
        start: offset of the payload.
        end: offset after it.
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
