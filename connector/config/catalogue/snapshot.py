"""Properties: modes, locks and queries of snapshots."""

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
from rowtide.connector.config.choices import (
    NewTables,
    RowCountOrder,
    SnapshotLocking,
    SnapshotMode,
    SnapshotQuery,
    Watermarking,
)

TITLE = "Snapshots"

_SPI = "it names a Java class"
_PARTS = "a connection takes the next 50 000 rows whenever it is free"

MODE = Property(
    "snapshot.mode",
    choice(SnapshotMode),
    SnapshotMode.INITIAL,
    "When to take a snapshot: initial (at the first start, then stream), initial_only (then stop), no_data (structure "
    "only), when_needed (also if the server has purged the stored position), always (at each start), recovery (rebuild "
    "the schema history, keep the position), configuration_based (by the five flags below).",
    refused={
        "never": "never was removed in Debezium 3.6; use no_data, which reads the structure and then streams",
        "schema_only": "schema_only was removed in Debezium 3.3; its new name is no_data",
        "schema_only_recovery": "schema_only_recovery was removed in Debezium 3.3; its new name is recovery",
        "custom": f"custom is not supported: {_SPI}; use configuration_based",
    },
)
MODE_CUSTOM_NAME = Property(
    "snapshot.mode.custom.name",
    optional(text()),
    None,
    "Name of a custom snapshotter.",
    Status.NOT_YET,
    _SPI,
    ignorable=True,
)
_FLAG = "snapshot.mode.configuration.based."
BASED_SNAPSHOT_DATA = Property(f"{_FLAG}snapshot.data", boolean(), False, "configuration_based: read the rows.")
BASED_SNAPSHOT_SCHEMA = Property(
    f"{_FLAG}snapshot.schema", boolean(), False, "configuration_based: read the structure of the tables."
)
BASED_START_STREAM = Property(f"{_FLAG}start.stream", boolean(), False, "configuration_based: stream afterwards.")
BASED_ON_SCHEMA_ERROR = Property(
    f"{_FLAG}snapshot.on.schema.error",
    boolean(),
    False,
    "configuration_based: read the structure again if the schema history is lost.",
)
BASED_ON_DATA_ERROR = Property(
    f"{_FLAG}snapshot.on.data.error",
    boolean(),
    False,
    "configuration_based: read the rows again if the server has purged the stored position.",
)
LOCKING_MODE = Property(
    "snapshot.locking.mode",
    choice(SnapshotLocking),
    SnapshotLocking.MINIMAL,
    "The locks of a snapshot: minimal (a global read lock until structure and position are read), extended (until the "
    "rows are read too), none (only safe if no structure changes during the snapshot).",
    refused={"custom": f"custom is not supported: {_SPI}"},
)
LOCKING_CUSTOM_NAME = Property(
    "snapshot.locking.mode.custom.name",
    optional(text()),
    None,
    "Name of a custom locking strategy.",
    Status.NOT_YET,
    _SPI,
    ignorable=True,
)
QUERY_MODE = Property(
    "snapshot.query.mode",
    choice(SnapshotQuery),
    SnapshotQuery.SELECT_ALL,
    "How a snapshot reads rows.",
    refused={"custom": f"custom is not supported: {_SPI}; snapshot.select.statement.overrides sets a query per table"},
)
QUERY_CUSTOM_NAME = Property(
    "snapshot.query.mode.custom.name",
    optional(text()),
    None,
    "Name of a custom query.",
    Status.NOT_YET,
    _SPI,
    ignorable=True,
)
INCLUDE_COLLECTIONS = Property(
    "snapshot.include.collection.list",
    patterns(),
    None,
    "Regular expressions for the captured tables whose rows a snapshot reads; the others are only streamed.",
    default_text="all captured tables",
)
OVERRIDES = Property(
    "snapshot.select.statement.overrides",
    escaped_names(),
    (),
    "Tables, as `database.table`, with their own snapshot query.",
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
    "snapshot.max.threads",
    integer(1),
    1,
    "Connections that read rows in parallel, all in the same consistent view. Large tables are cut into ranges of "
    "their key, so their rows arrive in no particular order.",
)
MAX_THREADS_MULTIPLIER = Property(
    "snapshot.max.threads.multiplier",
    integer(1),
    1,
    "Chunks per connection of a parallel snapshot.",
    Status.WITHOUT_EFFECT,
    _PARTS,
)
TABLE_MULTIPLIER = Family(
    "snapshot.max.threads.multiplier.<database>.<table>",
    r"snapshot\.max\.threads\.multiplier\..+",
    "The same for one table.",
    Status.WITHOUT_EFFECT,
    _PARTS,
)
LEGACY_THREADS = Property(
    "legacy.snapshot.max.threads",
    boolean(),
    False,
    "With several connections, each reads whole tables instead of ranges of their keys.",
)
LEGACY_THREADS_INTERNAL = Property(
    "internal.legacy.snapshot.max.threads",
    boolean(),
    False,
    "The former name of `legacy.snapshot.max.threads`.",
)
RESUMABLE = Property(
    "rowtide.snapshot.resumable",
    boolean(),
    False,
    "After a crash or stop during the initial snapshot, read only the missing rows, together with the stream from the "
    "snapshot's position, instead of all rows again. Rows that are read later have `source.snapshot` incremental, "
    "and none has last.",
)
DELAY = Property("snapshot.delay.ms", long(0), 0, "The delay before the snapshot, in milliseconds.")
STREAMING_DELAY = Property("streaming.delay.ms", long(0), 0, "The delay before streaming, in milliseconds.")
FETCH_SIZE = Property(
    "snapshot.fetch.size",
    optional(integer(1)),
    None,
    "Rows to fetch from the server at a time.",
    Status.WITHOUT_EFFECT,
    "rows are streamed, so memory does not grow with the table",
    default_text="",
)
LOCK_TIMEOUT = Property(
    "snapshot.lock.timeout.ms", long(0), 10000, "The timeout for the locks of a snapshot, in milliseconds."
)
MIN_ROWS_TO_STREAM = Property(
    "min.row.count.to.stream.results",
    integer(0),
    1000,
    "The number of rows from which the rows of a table are streamed.",
    Status.WITHOUT_EFFECT,
    "the rows of every table are streamed",
)
QUERY_FETCH_SIZE = Property(
    "query.fetch.size",
    integer(0),
    0,
    "Rows that other queries fetch at a time.",
    Status.WITHOUT_EFFECT,
    "results of other queries are small",
)
CHUNK_SIZE = Property(
    "incremental.snapshot.chunk.size",
    integer(1),
    1024,
    "Rows per chunk of an incremental snapshot. Unless it is set, the size adapts to the target time.",
)
CHUNK_TARGET = Property(
    "rowtide.incremental.snapshot.chunk.target.ms",
    long(0),
    200,
    "How long reading a chunk of an incremental snapshot should take, in milliseconds. The number of its rows adapts "
    "to it, beginning with `incremental.snapshot.chunk.size`; 0 for chunks of that size.",
    default_text="200, or 0 if `incremental.snapshot.chunk.size` is set",
)
INCREMENTAL_THREADS = Property(
    "rowtide.incremental.snapshot.threads",
    integer(1),
    1,
    "Connections that read chunks of an incremental snapshot at the same time.",
)
WATERMARKING = Property(
    "incremental.snapshot.watermarking.strategy",
    choice(Watermarking),
    Watermarking.INSERT_INSERT,
    "How an incremental snapshot writes the window of a chunk to the signal table: insert_insert (two rows), or "
    "insert_delete (one row, which is deleted afterwards).",
)
ALLOW_SCHEMA_CHANGES = Property(
    "incremental.snapshot.allow.schema.changes",
    boolean(),
    False,
    "Allow schema changes during an incremental snapshot.",
    Status.WITHOUT_EFFECT,
    "they are always allowed: a chunk whose table has changed is read again",
)
READ_ONLY = Property(
    "read.only",
    boolean(),
    False,
    "Incremental snapshots without writing to the database, even if there is a signal table.",
)
NEW_TABLES = Property(
    "rowtide.snapshot.new.tables",
    optional(choice(NewTables)),
    None,
    "What happens to the rows of a table that enters the captured tables later: incremental (an incremental snapshot "
    "reads them), or none.",
    default_text="incremental, or none if `snapshot.mode` reads no rows",
)
SCAN_ALL_COLUMNS = Property(
    "internal.snapshot.scan.all.columns.force",
    boolean(),
    False,
    "Read the metadata of all columns.",
    Status.WITHOUT_EFFECT,
    "the structure comes from SHOW CREATE TABLE",
)
