"""How values, keys and envelopes look."""

from rowtide.connector.config.catalogue.kinds import (
    boolean,
    choice,
    failure_handling,
    integer,
    long,
    names,
    optional,
    patterns,
    text,
)
from rowtide.connector.config.catalogue.property import MYSQL_ONLY, Property, Status
from rowtide.connector.config.choices import (
    BigintUnsignedHandling,
    BinaryHandling,
    DecimalHandling,
    FailureHandling,
    NameAdjustment,
    SourceStructVersion,
    TimePrecision,
    ZeroDateHandling,
)

TITLE = "Values and records"

DECIMAL_HANDLING = Property(
    "decimal.handling.mode",
    choice(DecimalHandling),
    DecimalHandling.PRECISE,
    "DECIMAL columns as exact Connect decimals (precise), as double, or as string.",
)
BIGINT_UNSIGNED_HANDLING = Property(
    "bigint.unsigned.handling.mode",
    choice(BigintUnsignedHandling),
    BigintUnsignedHandling.LONG,
    "BIGINT UNSIGNED as a signed 64-bit number (long; values from 2^63 become negative) or as an exact decimal "
    "(precise).",
)
TIME_PRECISION = Property(
    "time.precision.mode",
    choice(TimePrecision),
    TimePrecision.ADAPTIVE_TIME_MICROSECONDS,
    "Form and unit of DATE, TIME, DATETIME and TIMESTAMP.",
    refused={
        "adaptive": "The 'adaptive' time.precision.mode is no longer supported; use adaptive_time_microseconds",
        "structured": "structured came with Debezium 3.7 and is not supported by rowtide yet",
    },
)
ZERO_DATE_HANDLING = Property(
    "zero.date.handling.mode",
    choice(ZeroDateHandling),
    ZeroDateHandling.EPOCH,
    "rowtide's own: what stands for `0000-00-00`, `2024-00-10` and other dates that no calendar has, in a NOT NULL "
    "DATE, DATETIME or TIMESTAMP column: 1970-01-01 or the column's default, as in Debezium (epoch), or null, and then "
    "every column of these types is optional and without a default in the schema (null).",
)
BINARY_HANDLING = Property(
    "binary.handling.mode",
    choice(BinaryHandling),
    BinaryHandling.BYTES,
    "Binary columns as bytes, or as text in base64, base64-url-safe or hex.",
)
TIME_ADJUSTER = Property(
    "enable.time.adjuster",
    boolean(),
    True,
    "Years of two digits in DDL defaults and values: 00-69 mean 2000-2069, 70-99 mean 1970-1999.",
)
SCHEMA_NAME_ADJUSTMENT = Property(
    "schema.name.adjustment.mode",
    choice(NameAdjustment),
    NameAdjustment.NONE,
    "How names of schemas are made fit for Avro: not at all, by `_`, or by `_uXXXX`.",
)
FIELD_NAME_ADJUSTMENT = Property(
    "field.name.adjustment.mode", choice(NameAdjustment), NameAdjustment.NONE, "The same for names of fields."
)
INCLUDE_QUERY = Property(
    "include.query",
    boolean(),
    False,
    "Put the SQL statement into `source.query`; the server needs binlog_rows_query_log_events=ON (MariaDB: "
    "binlog_annotate_row_events=ON).",
)
INCLUDE_SCHEMA_CHANGES = Property(
    "include.schema.changes", boolean(), True, "Write changes of structure to the topic named by topic.prefix."
)
INCLUDE_SCHEMA_COMMENTS = Property(
    "include.schema.comments",
    boolean(),
    False,
    "Carry comments of tables and columns in schemas and in the schema history.",
)
TOMBSTONES = Property(
    "tombstones.on.delete",
    boolean(),
    True,
    "After each delete, a record with the same key and no value, so that Kafka's compaction can drop the key.",
)
COLUMN_PROPAGATE = Property(
    "column.propagate.source.type",
    patterns(),
    None,
    "Regular expressions for columns whose schemas tell the column's type, length and scale, on "
    "`database.table.column`.",
)
DATATYPE_PROPAGATE = Property(
    "datatype.propagate.source.type",
    patterns(),
    None,
    "The same by type, on `database.table.TYPE`, for example `.+\\.VARCHAR`.",
)
CONVERTERS = Property(
    "converters",
    names(),
    (),
    "Names of custom column converters, each with `<name>.type` and its own options.",
    Status.NOT_YET,
    "custom column converters are Java classes; rowtide has none of its own yet",
    default_text="",
)
POST_PROCESSORS = Property(
    "post.processors",
    names(),
    (),
    "Names of post-processors, each with `<name>.type` and its own options.",
    Status.NOT_YET,
    "post-processors are not there yet",
    default_text="",
)
UNAVAILABLE_PLACEHOLDER = Property(
    "unavailable.value.placeholder",
    text(),
    "__debezium_unavailable_value",
    "Stands for a value that the binlog does not have (binlog_row_image=NOBLOB); bytes as `hex:…`.",
)
MINIMAL_ROW_IMAGES = Property(
    "binlog.row.image.minimal.allowed",
    boolean(),
    False,
    "rowtide's own: also read rows without the columns that did not change (binlog_row_image=MINIMAL). What no image "
    "of a row has is `unavailable.value.placeholder` in texts and bytes, and null elsewhere; for that all columns but "
    "those of the key are optional and without a default in the schema.",
)
RESOLVE_LIKE = Property(
    "resolve.create.table.like.schema",
    boolean(),
    False,
    "On CREATE TABLE … LIKE of an unknown table, ask the server for that table's structure.",
    Status.NOT_YET,
    "it came with Debezium 3.7",
)
DDL_PARSER = Property(
    "ddl.parser.type",
    text(),
    "default",
    "Debezium's grammar: default or legacy.",
    Status.WITHOUT_EFFECT,
    "rowtide has one DDL parser of its own",
    MYSQL_ONLY,
)
SOURCE_INFO_MAKER = Property(
    "sourceinfo.struct.maker",
    optional(text()),
    None,
    "Class that builds the `source` block.",
    Status.NOT_YET,
    "rowtide writes Debezium's own source block; source.struct.version=v1 gives the legacy one",
    default_text="the connector's own",
)
SOURCE_STRUCT_VERSION = Property(
    "source.struct.version",
    choice(SourceStructVersion),
    SourceStructVersion.V2,
    "Form of the envelope and its `source` block: today's (v2), or that of the first releases for old consumers (v1).",
)
TRANSACTION_METADATA = Property(
    "provide.transaction.metadata",
    boolean(),
    False,
    "Write where transactions begin and end to a topic of its own, and number the records within each.",
)
TRANSACTION_METADATA_FACTORY = Property(
    "transaction.metadata.factory",
    text(),
    "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",
    "Class that builds transaction metadata.",
    Status.NOT_YET,
    "rowtide writes Debezium's standard form",
)
EXTENDED_HEADERS = Property(
    "extended.headers.enabled", boolean(), True, "Add the headers `__debezium.context.*` to records."
)
EVENT_FAILURE = Property(
    "event.processing.failure.handling.mode",
    failure_handling(),
    FailureHandling.FAIL,
    "When an event cannot be read or handled: stop (fail), or leave it out with a warning (warn) or quietly (skip).",
)
EVENT_FAILURE_OLD = Property(
    "event.deserialization.failure.handling.mode",
    optional(failure_handling()),
    None,
    "Older name of `event.processing.failure.handling.mode`.",
)
CONVERTING_FAILURE = Property(
    "event.converting.failure.handling.mode",
    failure_handling(),
    FailureHandling.WARN,
    "When a value does not fit its schema: stop (fail), or write null or the default with a warning (warn) or quietly "
    "(skip).",
)
INCONSISTENT_SCHEMA = Property(
    "inconsistent.schema.handling.mode",
    failure_handling(),
    FailureHandling.FAIL,
    "When rows come for a table whose structure is unknown or does not fit: stop (fail), or leave them out with a "
    "warning (warn) or quietly (skip).",
)
MAX_RETRIES = Property(
    "errors.max.retries",
    integer(-1),
    -1,
    "How often an error that may pass (a lost connection) is retried; -1 for ever, 0 never.",
)
RETRY_WAIT = Property(
    "retriable.restart.connector.wait.ms",
    long(0),
    10000,
    "The longest pause before such a retry, in milliseconds.",
)
CUSTOM_RETRIABLE = Property(
    "internal.custom.retriable.exception",
    optional(text()),
    None,
    "Regular expression on the messages of further errors to retry.",
    Status.NOT_YET,
    "which errors are retried is built in",
)
