"""Snapshots: when they are taken, what they lock, what they read."""

from rowtide.connector.config.catalogue.kinds import (
    boolean,
    choice,
    escaped_names,
    integer,
    long,
    optional,
    patterns,
    text,
)
from rowtide.connector.config.catalogue.property import Family, Property, Status
from rowtide.connector.config.choices import RowCountOrder, SnapshotLocking, SnapshotMode, SnapshotQuery, Watermarking

TITLE = "Snapshots"

_SPI = "it names a Java class"
_PARALLEL = "a snapshot reads one table after the other, on one connection"

MODE = Property(
    "snapshot.mode",
    choice(SnapshotMode),
    SnapshotMode.INITIAL,
    "When to read the tables as they are: initial (at the first start, then stream), initial_only (and stop), no_data "
    "(structure only), when_needed (also when the stored position is gone), always (at each start), recovery (rebuild "
    "the schema history, keep the position), configuration_based (by the five flags below).",
    refused={
        "never": "never was removed in Debezium 3.6; use no_data, which reads the structure and then streams",
        "schema_only": "schema_only was removed in Debezium 3.3; its new name is no_data",
        "schema_only_recovery": "schema_only_recovery was removed in Debezium 3.3; its new name is recovery",
        "custom": f"custom is not supported: {_SPI}; use configuration_based",
    },
)
MODE_CUSTOM_NAME = Property(
    "snapshot.mode.custom.name", optional(text()), None, "Name of a custom snapshotter.", Status.NOT_YET, _SPI
)
_FLAG = "snapshot.mode.configuration.based."
BASED_SNAPSHOT_DATA = Property(f"{_FLAG}snapshot.data", boolean(), False, "configuration_based: read the rows.")
BASED_SNAPSHOT_SCHEMA = Property(
    f"{_FLAG}snapshot.schema", boolean(), False, "configuration_based: read the structure."
)
BASED_START_STREAM = Property(f"{_FLAG}start.stream", boolean(), False, "configuration_based: stream afterwards.")
BASED_ON_SCHEMA_ERROR = Property(
    f"{_FLAG}snapshot.on.schema.error",
    boolean(),
    False,
    "configuration_based: read the structure anew if its history is lost.",
)
BASED_ON_DATA_ERROR = Property(
    f"{_FLAG}snapshot.on.data.error",
    boolean(),
    False,
    "configuration_based: read the rows anew if the position is gone.",
)
LOCKING_MODE = Property(
    "snapshot.locking.mode",
    choice(SnapshotLocking),
    SnapshotLocking.MINIMAL,
    "What is locked while a snapshot is taken: minimal (a global read lock until structure and position are read), "
    "extended (until the rows are read too), none (only safe if nobody changes structures meanwhile).",
    refused={"custom": f"custom is not supported: {_SPI}"},
)
LOCKING_CUSTOM_NAME = Property(
    "snapshot.locking.mode.custom.name", optional(text()), None, "Name of a custom lock.", Status.NOT_YET, _SPI
)
QUERY_MODE = Property(
    "snapshot.query.mode",
    choice(SnapshotQuery),
    SnapshotQuery.SELECT_ALL,
    "How a snapshot reads rows.",
    refused={
        "custom": f"custom is not supported: {_SPI}; snapshot.select.statement.overrides gives a table's own query"
    },
)
QUERY_CUSTOM_NAME = Property(
    "snapshot.query.mode.custom.name", optional(text()), None, "Name of a custom query.", Status.NOT_YET, _SPI
)
INCLUDE_COLLECTIONS = Property(
    "snapshot.include.collection.list",
    patterns(),
    None,
    "Regular expressions for those captured tables whose rows are read; the others are only streamed.",
    default_text="all captured tables",
)
OVERRIDES = Property(
    "snapshot.select.statement.overrides",
    escaped_names(),
    (),
    "Tables, as `database.table`, that are read by a query of their own.",
    default_text="",
)
OVERRIDE = Family(
    "snapshot.select.statement.overrides.<database>.<table>",
    r"snapshot\.select\.statement\.overrides\.(?s:.+)",
    "The query for a table of `snapshot.select.statement.overrides`.",
)
ORDER = Property(
    "snapshot.tables.order.by.row.count",
    choice(RowCountOrder),
    RowCountOrder.DISABLED,
    "Read small tables first (ascending) or large ones (descending).",
)
MAX_THREADS = Property(
    "snapshot.max.threads", integer(1), 1, "Connections that read rows at the same time.", Status.NOT_YET, _PARALLEL
)
MAX_THREADS_MULTIPLIER = Property(
    "snapshot.max.threads.multiplier",
    integer(1),
    1,
    "Chunks per connection of a parallel snapshot.",
    Status.NOT_YET,
    _PARALLEL,
)
TABLE_MULTIPLIER = Family(
    "snapshot.max.threads.multiplier.<database>.<table>",
    r"snapshot\.max\.threads\.multiplier\..+",
    "The same for one table.",
    Status.NOT_YET,
    _PARALLEL,
)
LEGACY_THREADS = Property(
    "legacy.snapshot.max.threads",
    boolean(),
    False,
    "One table per connection instead of chunks.",
    Status.NOT_YET,
    _PARALLEL,
)
LEGACY_THREADS_INTERNAL = Property(
    "internal.legacy.snapshot.max.threads",
    boolean(),
    False,
    "Older name of `legacy.snapshot.max.threads`.",
    Status.NOT_YET,
    _PARALLEL,
)
DELAY = Property("snapshot.delay.ms", long(0), 0, "Wait so long before the snapshot, in milliseconds.")
STREAMING_DELAY = Property("streaming.delay.ms", long(0), 0, "Wait so long before streaming, in milliseconds.")
FETCH_SIZE = Property(
    "snapshot.fetch.size",
    optional(integer(1)),
    None,
    "Rows to take from the server at a time.",
    Status.WITHOUT_EFFECT,
    "rows are streamed: memory does not grow with the table",
    default_text="",
)
LOCK_TIMEOUT = Property(
    "snapshot.lock.timeout.ms", long(0), 10000, "How long to wait for the snapshot's locks, in milliseconds."
)
MIN_ROWS_TO_STREAM = Property(
    "min.row.count.to.stream.results",
    integer(0),
    1000,
    "From so many rows on a table is read as a stream.",
    Status.WITHOUT_EFFECT,
    "every table is read as a stream",
)
QUERY_FETCH_SIZE = Property(
    "query.fetch.size",
    integer(0),
    0,
    "Rows that other queries take at a time.",
    Status.WITHOUT_EFFECT,
    "answers to other queries are small",
)
CHUNK_SIZE = Property(
    "incremental.snapshot.chunk.size",
    integer(1),
    1024,
    "Rows per chunk of an incremental snapshot.",
    Status.NOT_YET,
    "incremental snapshots are not there yet",
)
WATERMARKING = Property(
    "incremental.snapshot.watermarking.strategy",
    choice(Watermarking),
    Watermarking.INSERT_INSERT,
    "How an incremental snapshot marks the binlog.",
    Status.NOT_YET,
    "incremental snapshots are not there yet",
)
ALLOW_SCHEMA_CHANGES = Property(
    "incremental.snapshot.allow.schema.changes",
    boolean(),
    False,
    "Let structures change during an incremental snapshot.",
    Status.NOT_YET,
    "incremental snapshots are not there yet",
)
READ_ONLY = Property(
    "read.only",
    boolean(),
    False,
    "Incremental snapshots without writing to the database.",
    Status.NOT_YET,
    "incremental snapshots are not there yet",
)
SCAN_ALL_COLUMNS = Property(
    "internal.snapshot.scan.all.columns.force",
    boolean(),
    False,
    "Read the metadata of all columns.",
    Status.WITHOUT_EFFECT,
    "the structure comes from SHOW CREATE TABLE",
)
