"""Properties: the format of values, keys and envelopes, and failure handling."""

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
    BoolHandling,
    DecimalHandling,
    FailureHandling,
    NameAdjustment,
    SourceStructVersion,
    TimePrecision,
    Values,
    ZeroDateHandling,
)

TITLE = "Values and records"

VALUES = Property(
    "rowtide.values",
    optional(choice(Values)),
    None,
    "rowtide only: the values in records. `exact`: as the server stores them; a value that its type cannot hold stops "
    "the connector. `debezium`: as Debezium writes them by default, which changes some of them. It selects the "
    "defaults of other properties, which say so; each of them can still be set.",
    default_text="debezium if connector.class names Debezium's class, otherwise exact",
)
CANONICAL = Property(
    "rowtide.canonical.values",
    boolean(),
    False,
    "rowtide only: with Debezium's values, write FLOAT, TIMESTAMP, JSON and the labels of ENUM in one form, that of "
    "exact values, whether a snapshot or the stream reads them. Debezium writes two. Exact values always have one.",
)
DECIMAL_HANDLING = Property(
    "decimal.handling.mode",
    choice(DecimalHandling),
    DecimalHandling.PRECISE,
    "The type of DECIMAL columns: exact Connect decimals (precise), double, or string.",
)
BIGINT_UNSIGNED_HANDLING = Property(
    "bigint.unsigned.handling.mode",
    choice(BigintUnsignedHandling),
    BigintUnsignedHandling.LONG,
    "The type of BIGINT UNSIGNED columns: a signed 64-bit number (long; values of 2^63 and above become negative), an "
    "exact decimal (precise), or, in rowtide only, the same signed number, where values of 2^63 and above obey "
    "`event.converting.failure.handling.mode` (long_exact), or text (string).",
    exact=BigintUnsignedHandling.LONG_EXACT,
)
BOOL_HANDLING = Property(
    "rowtide.bool.handling.mode",
    choice(BoolHandling),
    BoolHandling.BOOLEAN,
    "rowtide only: the type in the stream of columns that a statement in the binlog has declared BOOL or BOOLEAN, "
    "which are TINYINT for the server: boolean, as in Debezium, where values other than 0 and 1 become true, or stop "
    "the connector (in a key, and with `event.converting.failure.handling.mode=fail`); or int16, as in snapshots, "
    "where the server no longer says BOOL.",
    exact=BoolHandling.INT16,
)
TIME_PRECISION = Property(
    "time.precision.mode",
    choice(TimePrecision),
    TimePrecision.ADAPTIVE_TIME_MICROSECONDS,
    "The format and unit of DATE, TIME, DATETIME and TIMESTAMP columns.",
    refused={
        "adaptive": "The 'adaptive' time.precision.mode is no longer supported; use adaptive_time_microseconds",
        "structured": "structured came with Debezium 3.7 and is not supported by rowtide yet",
    },
)
ZERO_DATE_HANDLING = Property(
    "zero.date.handling.mode",
    choice(ZeroDateHandling),
    ZeroDateHandling.EPOCH,
    "rowtide only: the value of invalid dates such as `0000-00-00` and `2024-00-10` in NOT NULL DATE, DATETIME and "
    "TIMESTAMP columns: 1970-01-01 or the column's default, as in Debezium (epoch), or null; then all columns of these "
    "types are optional and without a default in the schema (null).",
    exact=ZeroDateHandling.NULL,
)
BINARY_HANDLING = Property(
    "binary.handling.mode",
    choice(BinaryHandling),
    BinaryHandling.BYTES,
    "The type of binary columns: bytes, or text in base64, base64-url-safe or hex.",
)
TIME_ADJUSTER = Property(
    "enable.time.adjuster",
    boolean(),
    True,
    "Expand two-digit years in DDL defaults and values: 00-69 to 2000-2069, 70-99 to 1970-1999.",
    exact=False,
)
SCHEMA_NAME_ADJUSTMENT = Property(
    "schema.name.adjustment.mode",
    choice(NameAdjustment),
    NameAdjustment.NONE,
    "How names of schemas are adjusted for Avro: not at all, with `_`, or with `_uXXXX` for invalid characters.",
)
FIELD_NAME_ADJUSTMENT = Property(
    "field.name.adjustment.mode", choice(NameAdjustment), NameAdjustment.NONE, "The same for names of fields."
)
INCLUDE_QUERY = Property(
    "include.query",
    boolean(),
    False,
    "Publish the SQL statement as `source.query`; the server needs binlog_rows_query_log_events=ON (MariaDB: "
    "binlog_annotate_row_events=ON).",
)
INCLUDE_SCHEMA_CHANGES = Property(
    "include.schema.changes", boolean(), True, "Publish schema changes to the topic named by topic.prefix."
)
INCLUDE_SCHEMA_COMMENTS = Property(
    "include.schema.comments",
    boolean(),
    False,
    "Include comments of tables and columns in schemas and in the schema history.",
)
TOMBSTONES = Property(
    "tombstones.on.delete",
    boolean(),
    True,
    "After each delete, publish a record with the same key and no value, so that Kafka's log compaction can remove the "
    "key.",
)
COLUMN_PROPAGATE = Property(
    "column.propagate.source.type",
    patterns(),
    None,
    "Regular expressions for columns whose schemas include the column's type, length and scale, on "
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
    Status.PARTLY,
    "Debezium's own converters, and classes in Python by `python:module.Class`; no other classes in Java",
    default_text="",
)
POST_PROCESSORS = Property(
    "post.processors",
    names(),
    (),
    "Names of post-processors, each with `<name>.type` and its own options.",
    Status.PARTLY,
    "Debezium's ReselectColumnsPostProcessor, and classes in Python by `python:module.Class`; no other classes in Java",
    default_text="",
)
UNAVAILABLE_PLACEHOLDER = Property(
    "unavailable.value.placeholder",
    text(),
    "__debezium_unavailable_value",
    "The placeholder for a value that is not in the binlog (binlog_row_image=NOBLOB); `hex:…` for bytes.",
)
MINIMAL_ROW_IMAGES = Property(
    "binlog.row.image.minimal.allowed",
    boolean(),
    False,
    "rowtide only: accept row images without unchanged columns (binlog_row_image=MINIMAL). A value that is in no image "
    "of a row is `unavailable.value.placeholder` in strings and bytes, and null elsewhere; therefore all columns "
    "except those of the key are optional and without a default in the schema.",
)
RESOLVE_LIKE = Property(
    "resolve.create.table.like.schema",
    boolean(),
    False,
    "On CREATE TABLE … LIKE an unknown table, query the server for that table's structure.",
    Status.NOT_YET,
    "it came with Debezium 3.7",
)
DDL_PARSER = Property(
    "ddl.parser.type",
    text(),
    "default",
    "Debezium's grammar: default or legacy.",
    Status.WITHOUT_EFFECT,
    "rowtide has its own DDL parser",
    MYSQL_ONLY,
)
SOURCE_INFO_MAKER = Property(
    "sourceinfo.struct.maker",
    optional(text()),
    None,
    "The class that builds the `source` block.",
    Status.NOT_YET,
    "rowtide writes Debezium's source block; source.struct.version=v1 selects the legacy one",
    default_text="the connector's own",
)
SOURCE_STRUCT_VERSION = Property(
    "source.struct.version",
    choice(SourceStructVersion),
    SourceStructVersion.V2,
    "The format of the envelope and its `source` block: the current one (v2), or that of Debezium's first releases, "
    "for old consumers (v1).",
)
TRANSACTION_METADATA = Property(
    "provide.transaction.metadata",
    boolean(),
    False,
    "Publish the start and the end of transactions to a separate topic, and number the records within each.",
)
TRANSACTION_METADATA_FACTORY = Property(
    "transaction.metadata.factory",
    text(),
    "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",
    "The class that builds transaction metadata.",
    Status.NOT_YET,
    "rowtide writes Debezium's standard format",
)
EXTENDED_HEADERS = Property(
    "extended.headers.enabled", boolean(), True, "Add the headers `__debezium.context.*` to records."
)
EVENT_FAILURE = Property(
    "event.processing.failure.handling.mode",
    failure_handling(),
    FailureHandling.FAIL,
    "When an event cannot be processed: stop (fail), or skip it with a warning (warn) or silently (skip); with "
    "`errors.deadletterqueue.topic.name`, row events are kept there.",
)
EVENT_FAILURE_OLD = Property(
    "event.deserialization.failure.handling.mode",
    optional(failure_handling()),
    None,
    "The former name of `event.processing.failure.handling.mode`.",
)
CONVERTING_FAILURE = Property(
    "event.converting.failure.handling.mode",
    failure_handling(),
    FailureHandling.WARN,
    "When a value cannot be converted to its schema: stop (fail), or publish null or the default with a warning (warn) "
    "or silently (skip).",
    exact=FailureHandling.FAIL,
)
INCONSISTENT_SCHEMA = Property(
    "inconsistent.schema.handling.mode",
    failure_handling(),
    FailureHandling.FAIL,
    "When the structure of a table is unknown or does not match its rows: stop (fail), or skip the rows with a warning "
    "(warn) or silently (skip).",
)
MAX_RETRIES = Property(
    "errors.max.retries",
    integer(-1),
    -1,
    "The number of retries after a temporary error, such as a lost connection; -1 for no limit, 0 for none.",
)
RETRY_WAIT = Property(
    "retriable.restart.connector.wait.ms",
    long(0),
    10000,
    "The maximum delay before such a retry, in milliseconds.",
)
CUSTOM_RETRIABLE = Property(
    "internal.custom.retriable.exception",
    optional(text()),
    None,
    "A regular expression for the messages of further errors to retry.",
    Status.NOT_YET,
    "the errors to retry are built in",
    ignorable=True,
)


def placeholder_bytes(text: str) -> bytes:
    """Return the bytes of a value of ``unavailable.value.placeholder``.

    Raises:
        ValueError: there are no pairs of hexadecimal digits after ``hex:``.
    """
    return bytes.fromhex(text.removeprefix("hex:")) if text.startswith("hex:") else text.encode()
