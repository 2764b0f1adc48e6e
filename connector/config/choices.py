"""The enumerations of the configuration, with the values of Debezium and Kafka Connect."""

import enum


class Values(enum.StrEnum):
    """``rowtide.values``, a property of rowtide."""

    EXACT = "exact"
    DEBEZIUM = "debezium"


class CascadedChanges(enum.StrEnum):
    """``rowtide.cascaded.changes``, a property of rowtide."""

    IGNORE = "ignore"
    DERIVE = "derive"


class DecimalHandling(enum.StrEnum):
    """``decimal.handling.mode``."""

    PRECISE = "precise"
    DOUBLE = "double"
    STRING = "string"


class BigintUnsignedHandling(enum.StrEnum):
    """``bigint.unsigned.handling.mode``; ``long_exact`` and ``string`` are rowtide's."""

    LONG = "long"
    LONG_EXACT = "long_exact"
    PRECISE = "precise"
    STRING = "string"


class BoolHandling(enum.StrEnum):
    """``rowtide.bool.handling.mode``, a property of rowtide."""

    BOOLEAN = "boolean"
    INT16 = "int16"


class ZeroDateHandling(enum.StrEnum):
    """``zero.date.handling.mode``, a property of rowtide."""

    EPOCH = "epoch"
    NULL = "null"


class TimePrecision(enum.StrEnum):
    """``time.precision.mode``."""

    ADAPTIVE_TIME_MICROSECONDS = "adaptive_time_microseconds"
    CONNECT = "connect"
    ISOSTRING = "isostring"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


class BinaryHandling(enum.StrEnum):
    """``binary.handling.mode``."""

    BYTES = "bytes"
    BASE64 = "base64"
    BASE64_URL_SAFE = "base64-url-safe"
    HEX = "hex"


class NameAdjustment(enum.StrEnum):
    """``schema.name.adjustment.mode`` and ``field.name.adjustment.mode``."""

    NONE = "none"
    AVRO = "avro"
    AVRO_UNICODE = "avro_unicode"


class FailureHandling(enum.StrEnum):
    """``*.failure.handling.mode`` and ``inconsistent.schema.handling.mode``."""

    FAIL = "fail"
    WARN = "warn"
    SKIP = "skip"


class SourceStructVersion(enum.StrEnum):
    """``source.struct.version``: Debezium's current ``source`` block, or that of its first releases."""

    V2 = "v2"
    V1 = "v1"


class SnapshotMode(enum.StrEnum):
    """``snapshot.mode``."""

    INITIAL = "initial"
    INITIAL_ONLY = "initial_only"
    NO_DATA = "no_data"
    WHEN_NEEDED = "when_needed"
    ALWAYS = "always"
    RECOVERY = "recovery"
    CONFIGURATION_BASED = "configuration_based"


class SnapshotLocking(enum.StrEnum):
    """``snapshot.locking.mode``."""

    MINIMAL = "minimal"
    MINIMAL_PERCONA = "minimal_percona"
    MINIMAL_PERCONA_NO_TABLE_LOCKS = "minimal_percona_no_table_locks"
    EXTENDED = "extended"
    NONE = "none"


class SnapshotQuery(enum.StrEnum):
    """``snapshot.query.mode``."""

    SELECT_ALL = "select_all"


class RowCountOrder(enum.StrEnum):
    """``snapshot.tables.order.by.row.count``."""

    DISABLED = "disabled"
    ASCENDING = "ascending"
    DESCENDING = "descending"


class NewTables(enum.StrEnum):
    """``rowtide.snapshot.new.tables``."""

    INCREMENTAL = "incremental"
    NONE = "none"


class Watermarking(enum.StrEnum):
    """``incremental.snapshot.watermarking.strategy``."""

    INSERT_INSERT = "insert_insert"
    INSERT_DELETE = "insert_delete"


class SslMode(enum.StrEnum):
    """``database.ssl.mode``, with MySQL's names; MariaDB's names are synonyms (``kinds.ssl_mode``)."""

    DISABLED = "disabled"
    PREFERRED = "preferred"
    REQUIRED = "required"
    VERIFY_CA = "verify_ca"
    VERIFY_IDENTITY = "verify_identity"


class MirrorRead(enum.StrEnum):
    """``rowtide.mirror.read``."""

    PURGED = "purged"
    ALWAYS = "always"


class LimitAction(enum.StrEnum):
    """``guardrail.collections.limit.action``."""

    WARN = "warn"
    FAIL = "fail"


class ExactlyOnce(enum.StrEnum):
    """``exactly.once.support``."""

    REQUESTED = "requested"
    REQUIRED = "required"


class ExactlyOnceSource(enum.StrEnum):
    """``exactly.once.source.support``."""

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"


class TransactionBoundary(enum.StrEnum):
    """``transaction.boundary``."""

    POLL = "poll"
    INTERVAL = "interval"


class ProducerKind(enum.StrEnum):
    """``rowtide.producer``."""

    AUTO = "auto"
    LIBRDKAFKA = "librdkafka"
    NATIVE = "native"


class LargeRecordsMode(enum.StrEnum):
    """``rowtide.large.records``."""

    FAIL = "fail"
    CLAIM_CHECK = "claim-check"
    WITHOUT_BEFORE = "without-before"
    DEAD_LETTER = "dead-letter"


class ConverterClass(enum.StrEnum):
    """``key.converter`` and ``value.converter``."""

    JSON = "org.apache.kafka.connect.json.JsonConverter"
    STRING = "org.apache.kafka.connect.storage.StringConverter"
    BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
    BINARY = "io.debezium.converters.BinaryDataConverter"
    AVRO = "io.confluent.connect.avro.AvroConverter"
    APICURIO_AVRO = "io.apicurio.registry.utils.converter.AvroConverter"
    PROTOBUF = "io.confluent.connect.protobuf.ProtobufConverter"
    CLOUD_EVENTS = "io.debezium.converters.CloudEventsConverter"


class Serializer(enum.StrEnum):
    """``serializer.type`` and ``data.serializer.type`` of ``CloudEventsConverter``."""

    JSON = "json"
    AVRO = "avro"


class HeaderConverterClass(enum.StrEnum):
    """``header.converter``."""

    SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
    JSON = "org.apache.kafka.connect.json.JsonConverter"
    STRING = "org.apache.kafka.connect.storage.StringConverter"
    BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class DecimalFormat(enum.StrEnum):
    """``*.converter.decimal.format`` of Kafka Connect's JsonConverter."""

    BASE64 = "BASE64"
    NUMERIC = "NUMERIC"


class ErrorsTolerance(enum.StrEnum):
    """``errors.tolerance``."""

    NONE = "none"
    ALL = "all"


class MemoryOptimization(enum.StrEnum):
    """``schema.history.internal.memory.optimization``."""

    OFF = "off"
    ON = "on"
    SHARED = "shared"


class Acknowledge(enum.StrEnum):
    """``rowtide.semi.sync.acknowledge``, a property of rowtide."""

    RECEIVED = "received"
    DELIVERED = "delivered"
