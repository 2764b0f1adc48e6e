"""The configuration as one frozen tree of parsed and checked values.

``given`` names the property whose value a field has; the catalogue defines its type, check, default and meaning. The
other fields combine several properties (``sections``); docstrings describe those that are not obvious.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowtide.connector.config.catalogue import (
    capture,
    connect,
    connection,
    databus,
    history,
    running,
    snapshot,
    topics,
    values,
)
from rowtide.connector.config.catalogue.property import given
from rowtide.connector.config.choices import (
    Acknowledge,
    BigintUnsignedHandling,
    BinaryHandling,
    BoolHandling,
    CascadedChanges,
    ConverterClass,
    DecimalFormat,
    DecimalHandling,
    FailureHandling,
    HeaderConverterClass,
    LargeRecordsMode,
    LimitAction,
    NameAdjustment,
    NewTables,
    ProducerKind,
    RowCountOrder,
    Serializer,
    SnapshotLocking,
    SnapshotMode,
    SourceStructVersion,
    TimePrecision,
    TransactionBoundary,
    Watermarking,
    ZeroDateHandling,
)
from rowtide.connector.config.kafka.clients import ClientSettings
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.config.secret import Sanitizer, Secret
from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.converters.registry import SchemaIds, SubjectNames
from rowtide.envelope.protobuf.messages import ProtobufFormat
from rowtide.envelope.transforms import Plugin
from rowtide.schema_history.server.query_event import Flavor
from rowtide.topics.column_rules import ColumnRules
from rowtide.topics.filters import (
    EVERYTHING,
    ColumnFilter,
    ColumnSelector,
    MessageKeys,
    Patterns,
    Selection,
    TableFilter,
    TableNames,
)
from rowtide.topics.naming import TopicNaming
from rowtide.topics.settings import TopicCreation, TopicSettings

__all__ = [
    "AvroConverterConfig",
    "CaptureConfig",
    "CloudEventsConverterConfig",
    "Configuration",
    "ConverterConfig",
    "ConvertersConfig",
    "DeliveryConfig",
    "FailureConfig",
    "GuardrailConfig",
    "HeartbeatConfig",
    "HistoryConfig",
    "JsonConverterConfig",
    "KafkaConfig",
    "MirrorConfig",
    "PlainConverterConfig",
    "Properties",
    "ProtobufConverterConfig",
    "RegistryConfig",
    "SnapshotConfig",
    "SnapshotFlags",
    "StreamingConfig",
    "TelemetryConfig",
    "TopicsConfig",
    "ValuesConfig",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureConfig:
    """The captured databases, tables, columns and operations.

    Attributes:
        skipped_operations: any of c, u, d, t.
        gtid_sources: the sources whose GTIDs are considered.
    """

    tables: TableFilter
    columns: ColumnFilter
    keys: MessageKeys
    skipped_operations: frozenset[str]
    skip_messages_without_change: bool = given(capture.SKIP_UNCHANGED)
    gtid_sources: Selection
    gtid_filter_dml: bool = given(capture.GTID_FILTER_DML)
    gtid_ignore_on_recovery: bool = given(capture.GTID_IGNORE_ON_RECOVERY)
    cascaded_changes: CascadedChanges

    @property
    def counted_sources(self) -> Selection | None:
        """The sources whose GTIDs are considered; ``None`` for all of them."""
        return None if self.gtid_sources == EVERYTHING else self.gtid_sources


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesConfig:
    """The format of values and records.

    Attributes:
        exact: whether values are exact (``rowtide.values``); otherwise, they have Debezium's forms.
        canonical: whether a snapshot and the stream write each value in one form, even if values are not exact.
        unavailable_placeholder: as configured, including ``hex:``.
    """

    exact: bool
    canonical: bool = given(values.CANONICAL)
    decimal: DecimalHandling = given(values.DECIMAL_HANDLING)
    bigint_unsigned: BigintUnsignedHandling = given(values.BIGINT_UNSIGNED_HANDLING)
    time_precision: TimePrecision = given(values.TIME_PRECISION)
    bool_handling: BoolHandling = given(values.BOOL_HANDLING)
    zero_date: ZeroDateHandling = given(values.ZERO_DATE_HANDLING)
    binary: BinaryHandling = given(values.BINARY_HANDLING)
    time_adjuster: bool = given(values.TIME_ADJUSTER)
    schema_name_adjustment: NameAdjustment = given(values.SCHEMA_NAME_ADJUSTMENT)
    field_name_adjustment: NameAdjustment = given(values.FIELD_NAME_ADJUSTMENT)
    column_rules: ColumnRules
    propagate_columns: ColumnSelector
    propagate_types: ColumnSelector
    unavailable_placeholder: str = given(values.UNAVAILABLE_PLACEHOLDER)
    minimal_row_images: bool = given(values.MINIMAL_ROW_IMAGES)
    source_struct_version: SourceStructVersion = given(values.SOURCE_STRUCT_VERSION)
    include_query: bool = given(values.INCLUDE_QUERY)
    include_schema_comments: bool = given(values.INCLUDE_SCHEMA_COMMENTS)
    tombstones: bool = given(values.TOMBSTONES)
    extended_headers: bool = given(values.EXTENDED_HEADERS)
    transaction_metadata: bool = given(values.TRANSACTION_METADATA)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureConfig:
    """The handling and reporting of failures."""

    event_processing: FailureHandling
    event_converting: FailureHandling = given(values.CONVERTING_FAILURE)
    inconsistent_schema: FailureHandling = given(values.INCONSISTENT_SCHEMA)
    max_retries: int = given(values.MAX_RETRIES)
    retry_wait_ms: int = given(values.RETRY_WAIT)
    show_values: bool = given(connect.ERRORS_LOG_MESSAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalsConfig:
    """Signals to the running connector.

    Attributes:
        source: whether rows of ``signal.data.collection`` are signals.
        topic: the topic of the channel ``kafka``; ``None`` if the channel is off.
        consumer: the settings of its consumer, with librdkafka's names.
        file: the file of the channel ``file``; ``None`` if the channel is off.
    """

    source: bool
    topic: str | None
    consumer: ClientSettings
    poll_timeout_ms: int = given(topics.SIGNAL_POLL_TIMEOUT)
    file: str | None
    poll_interval_ms: int = given(topics.SIGNAL_POLL)
    ignore_position: bool = given(topics.IGNORE_POSITION)


@dataclass(frozen=True, slots=True)
class IncrementalConfig:
    """Incremental snapshots.

    Attributes:
        chunk_size: rows of the first chunk of a table.
        target_ms: the desired time to read a chunk, to which its size adapts; 0 for a fixed size.
        threads: the number of chunks read at the same time.
        watermarking: the way in which windows are written to the signal table.
        read_only: whether nothing is written to the database.
        new_tables: what to do with the rows of tables that are captured later; ``None`` for the default of the mode.
    """

    chunk_size: int = 1024
    target_ms: int = 0
    threads: int = 1
    watermarking: Watermarking = Watermarking.INSERT_INSERT
    read_only: bool = False
    new_tables: NewTables | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFlags:
    """The settings of ``snapshot.mode=configuration_based``."""

    data: bool = given(snapshot.BASED_SNAPSHOT_DATA)
    schema: bool = given(snapshot.BASED_SNAPSHOT_SCHEMA)
    stream: bool = given(snapshot.BASED_START_STREAM)
    on_schema_error: bool = given(snapshot.BASED_ON_SCHEMA_ERROR)
    on_data_error: bool = given(snapshot.BASED_ON_DATA_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotConfig:
    """The settings of snapshots.

    Attributes:
        flags: only used in mode ``configuration_based``.
        include: the captured tables whose rows are read; ``None`` for all.
        select_overrides: queries by (database, table).
        threads: the number of connections that read rows.
        cut_tables: whether several connections read parts of one table.
        resumable: whether an interrupted initial snapshot continues.
        incremental: snapshots alongside the stream.
    """

    mode: SnapshotMode = given(snapshot.MODE)
    flags: SnapshotFlags
    locking: SnapshotLocking = given(snapshot.LOCKING_MODE)
    include: TableNames | None = given(snapshot.INCLUDE_COLLECTIONS)
    select_overrides: Mapping[tuple[str, str], str]
    order: RowCountOrder = given(snapshot.ORDER)
    delay_ms: int = given(snapshot.DELAY)
    lock_timeout_ms: int = given(snapshot.LOCK_TIMEOUT)
    threads: int = 1
    cut_tables: bool = True
    resumable: bool = False
    incremental: IncrementalConfig = field(default_factory=IncrementalConfig)

    def reads_rows_of(self, database: str, table: str) -> bool:
        """Return whether the rows of a captured table belong to the snapshot."""
        return self.include is None or self.include.match(f"{database}.{table}")


@dataclass(frozen=True, slots=True)
class MirrorConfig:
    """A mirror of the binlog.

    Attributes:
        directory: the directory.
        always: whether it always replaces the server; otherwise, it has only the files that the server has purged.
    """

    directory: str
    always: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingConfig:
    """The queue between reading and delivering, and the source of the binlog.

    Attributes:
        mirror: ``None`` without a mirror.
        semi_sync: when transactions are acknowledged to the server; ``None`` without semi-synchronous replication.
        decoder_processes: ``None`` if it is not configured.
    """

    max_queue_size: int = given(running.MAX_QUEUE_SIZE)
    max_batch_size: int = given(running.MAX_BATCH_SIZE)
    max_queue_bytes: int = given(running.MAX_QUEUE_BYTES)
    poll_interval_ms: int = given(running.POLL_INTERVAL)
    delay_ms: int = given(snapshot.STREAMING_DELAY)
    shutdown_timeout_ms: int = given(running.SHUTDOWN_TIMEOUT)
    check_position: bool = given(running.POSITION_CHECK)
    semi_sync: Acknowledge | None
    decoder_processes: int | None = given(running.DECODER_PROCESSES)
    mirror: MirrorConfig | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """Names and settings of topics, and the channels of notifications (``None``: no topic)."""

    prefix: str = given(connection.TOPIC_PREFIX)
    naming: TopicNaming
    creation: TopicCreation
    include_schema_changes: bool = given(values.INCLUDE_SCHEMA_CHANGES)
    notification_topic: str | None
    log_notifications: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatConfig:
    """Heartbeats; ``interval_ms`` 0 for none."""

    interval_ms: int = given(running.HEARTBEAT_INTERVAL)
    action_query: str | None = given(running.HEARTBEAT_QUERY)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    """The schema history.

    Attributes:
        topic: the topic, if it is stored in Kafka.
        file: the file, if it is stored in a file. With neither, it is kept in memory only.
        ddl_filter: statements that are ignored; ``None`` for Debezium's default list.
        producer: settings of its producer, with librdkafka's names.
        consumer: settings of its consumer, with librdkafka's names.
    """

    topic: str | None
    file: str | None
    producer: ClientSettings
    consumer: ClientSettings
    admin: ClientSettings
    recovery_poll_interval_ms: int = given(history.POLL_INTERVAL)
    recovery_attempts: int = given(history.RECOVERY_ATTEMPTS)
    query_timeout_ms: int = given(history.QUERY_TIMEOUT)
    create_timeout_ms: int = given(history.CREATE_TIMEOUT)
    buffer_batch_size: int = given(history.BUFFER_SIZE)
    skip_unparseable_ddl: bool = given(history.SKIP_UNPARSEABLE)
    look_up_unparseable_ddl: bool = given(history.LOOK_UP_UNPARSEABLE)
    store_only_captured_tables: bool = given(history.ONLY_CAPTURED_TABLES)
    store_only_captured_databases: bool = given(history.ONLY_CAPTURED_DATABASES)
    prefer_ddl: bool = given(history.PREFER_DDL)
    compact_interval: int = given(history.COMPACT_INTERVAL)
    ddl_filter: Patterns | None


@dataclass(frozen=True, slots=True)
class JsonConverterConfig:
    """Kafka Connect's JsonConverter."""

    schemas_enable: bool
    decimal_format: DecimalFormat
    replace_null_with_default: bool


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """A schema registry.

    Attributes:
        urls: its URLs, tried in order.
        user_info: ``user:password``.
        token: a bearer token.
        tls: settings of TLS, with the names of librdkafka: ``ssl.ca.pem`` …
        auto_register: register new schemas; otherwise, they are looked up.
        latest_version: write with the latest version of the subject.
        normalize: let the registry normalize schemas.
        timeout_s: seconds to wait for an answer.
        prefix: the prefix of the properties, for messages: ``value.converter.``.
    """

    urls: tuple[str, ...]
    user_info: Secret | None
    token: Secret | None
    tls: ClientSettings
    auto_register: bool
    latest_version: bool
    normalize: bool
    timeout_s: float
    prefix: str


@dataclass(frozen=True, slots=True)
class AvroConverterConfig:
    """Confluent's AvroConverter."""

    registry: RegistryConfig
    format: AvroFormat
    subjects: SubjectNames
    ids: SchemaIds

    @property
    def replace_null_with_default(self) -> bool:
        """Whether null becomes the default of its column."""
        return self.format.replace_null_with_default


@dataclass(frozen=True, slots=True)
class ProtobufConverterConfig:
    """Confluent's ProtobufConverter."""

    registry: RegistryConfig
    format: ProtobufFormat
    subjects: SubjectNames
    ids: SchemaIds

    @property
    def replace_null_with_default(self) -> bool:
        """Whether null becomes the default of its column."""
        return self.format.replace_null_with_default


@dataclass(frozen=True, slots=True)
class CloudEventsConverterConfig:
    """Debezium's CloudEventsConverter.

    Attributes:
        metadata: where the metadata comes from: ``value`` or ``header``.
        fields: the sources of single attributes: ``header`` or ``generate``.
        avro: the converter of the parts in Avro; ``None`` if there are none.
    """

    serializer: Serializer
    data_serializer: Serializer
    json: JsonConverterConfig
    extensions: bool
    tracing: bool
    schema_names: NameAdjustment
    schema_name: str | None
    metadata: str
    fields: Mapping[str, str]
    avro: AvroConverterConfig | None

    @property
    def replace_null_with_default(self) -> bool:
        """Whether null becomes the default of its column."""
        part = self.json if self.avro is None else self.avro
        return part.replace_null_with_default


@dataclass(frozen=True, slots=True)
class PlainConverterConfig:
    """A converter without schemas.

    Attributes:
        converter: its class.
        delegate: of ``BinaryDataConverter``: the converter of everything that is not bytes.
    """

    converter: ConverterClass
    delegate: JsonConverterConfig | None = None

    @property
    def replace_null_with_default(self) -> bool:
        """Whether null becomes the default of its column."""
        return self.delegate is not None and self.delegate.replace_null_with_default


ConverterConfig = (
    JsonConverterConfig
    | AvroConverterConfig
    | ProtobufConverterConfig
    | CloudEventsConverterConfig
    | PlainConverterConfig
)
"""The converter of keys or of values."""


@dataclass(frozen=True, slots=True)
class ConvertersConfig:
    """The converters of keys, values and headers.

    Attributes:
        header: ``JsonConverter``'s settings if it converts the headers; otherwise the class.
        tolerant: ``errors.tolerance=all``.
    """

    key: ConverterConfig
    value: ConverterConfig
    header: JsonConverterConfig | HeaderConverterClass
    tolerant: bool = False


@dataclass(frozen=True, slots=True)
class LargeRecordsConfig:
    """Records that are too large for Kafka.

    Attributes:
        mode: ``rowtide.large.records``.
        claim_check_url: ``rowtide.large.records.claim.check.url``.
    """

    mode: LargeRecordsMode
    claim_check_url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLettersConfig:
    """The topic of records that cannot be written or sent.

    Attributes:
        topic: ``errors.deadletterqueue.topic.name``.
        settings: the settings of this topic, for its creation.
        context: ``errors.deadletterqueue.context.headers.enable``.
        used: whether any record can go there.
    """

    topic: str
    settings: TopicSettings
    context: bool = given(connect.DEAD_LETTER_CONTEXT)
    used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig:
    """The delivery of records and positions.

    Attributes:
        tables: the path of a sink that keeps tables; ``None`` for other sinks.
        tables_interval_ms: ``rowtide.sink.commit.interval.ms``.
        http_headers: headers of the requests of an HTTP sink.
        offset_topic: the topic that stores the position; ``None`` if it is not stored in Kafka.
        offset_file: the file that stores the position; ``None`` if it is not stored in a file.
        exactly_once: records and position are written in one Kafka transaction.
        group_id: part of the transactional id (``producer_settings.transactional_id``).
        boundary_interval_ms: length of a transaction with ``transaction.boundary=interval``.
        large_records: records that are too large for Kafka.
        dead_letters: the topic of records that cannot be written or sent, if there is one.
    """

    sink: str = given(connect.SINK)
    tables: str | None
    tables_interval_ms: int
    producer: ProducerKind = given(connect.PRODUCER_KIND)
    http_headers: Mapping[str, Secret]
    exactly_once: bool
    standby: bool = given(connect.STANDBY)
    group_id: str = given(connect.GROUP_ID)
    boundary: TransactionBoundary = given(connect.BOUNDARY)
    boundary_interval_ms: int
    offset_topic: str | None
    offset_topic_settings: TopicSettings
    offset_file: str | None
    offset_flush_interval_ms: int = given(connect.OFFSET_FLUSH_INTERVAL)
    offset_flush_timeout_ms: int = given(connect.OFFSET_FLUSH_TIMEOUT)
    shutdown_timeout_ms: int = given(connect.SHUTDOWN_TIMEOUT)
    large_records: LargeRecordsConfig
    dead_letters: DeadLettersConfig | None


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """Kafka, and the settings of each kind of client, with librdkafka's names."""

    bootstrap_servers: str
    producer: ClientSettings
    consumer: ClientSettings
    admin: ClientSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailConfig:
    """The maximum number of captured tables (0: no limit), and the action beyond it."""

    max_tables: int = given(running.GUARDRAIL_MAX)
    action: LimitAction = given(running.GUARDRAIL_ACTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabusConfig:
    """The databus server. Dumps are served only if ZooKeeper servers are named."""

    topic: str | None = given(databus.TOPIC)
    dump_address: str = given(databus.DUMP_ADDRESS)
    dump_port: int = given(databus.DUMP_PORT)
    dump_folder: str = given(databus.DUMP_FOLDER)
    dump_interval_s: int = given(databus.DUMP_INTERVAL)
    zookeeper: tuple[str, ...] = given(databus.ZOOKEEPER)
    zookeeper_root: str = given(databus.ZOOKEEPER_ROOT)
    dump_node: str = given(databus.DUMP_NODE)
    alive_node: str = given(databus.ALIVE_NODE)
    alive_timeout_s: int = given(databus.ALIVE_TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryConfig:
    """The data sent to monitoring systems."""

    opentelemetry: bool = given(running.OPENTELEMETRY)
    lineage: bool = given(running.LINEAGE)
    lineage_file: str = given(running.LINEAGE_FILE)
    lineage_namespace: str | None = given(running.LINEAGE_NAMESPACE)
    lineage_description: str = given(running.LINEAGE_DESCRIPTION)
    lineage_tags: tuple[str, ...] = given(running.LINEAGE_TAGS)
    lineage_owners: tuple[str, ...] = given(running.LINEAGE_OWNERS)
    lineage_kafka: str | None = given(running.LINEAGE_KAFKA)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The complete configuration.

    Attributes:
        name: the connector's name, part of the key of its offsets.
        canal_gtids: whether the headers of Canal's entries have GTIDs.
        properties: all properties as written, without defaults. They may contain secrets; display
            ``masked_properties`` instead.
        file_values: the values, read from files, of the properties that refer only to files, without user and password;
            ``load`` sets them.
        fingerprint: changes with any property or value of a reference, without revealing them.
        sanitizer: decides which properties are secrets.
    """

    name: str
    flavor: Flavor
    database: DatabaseConfig
    capture: CaptureConfig
    values: ValuesConfig
    failure: FailureConfig
    snapshot: SnapshotConfig
    streaming: StreamingConfig
    topics: TopicsConfig
    signals: SignalsConfig
    heartbeat: HeartbeatConfig
    history: HistoryConfig
    converters: ConvertersConfig
    delivery: DeliveryConfig
    kafka: KafkaConfig
    transforms: tuple[Plugin, ...]
    predicates: tuple[Plugin, ...]
    column_converters: tuple[Plugin, ...]
    post_processors: tuple[Plugin, ...]
    guardrail: GuardrailConfig
    telemetry: TelemetryConfig
    metric_tags: Mapping[str, str]
    canal_gtids: bool
    databus: DatabusConfig
    warnings: tuple[str, ...]
    sanitizer: Sanitizer
    properties: "Properties"
    file_values: "Properties"
    fingerprint: str

    @property
    def mariadb(self) -> bool:
        """Whether the server is MariaDB, not MySQL."""
        return self.flavor is Flavor.MARIADB

    @property
    def uses_kafka(self) -> bool:
        """Whether records, positions or the schema history are in Kafka."""
        return self.delivery.sink == "kafka" or self.delivery.offset_topic is not None or self.history.topic is not None

    def masked_properties(self) -> dict[str, str]:
        """Return all properties, with asterisks instead of secrets."""
        return self.sanitizer.masked(self.properties)


class Properties(dict[str, str]):
    """Properties whose values do not appear in ``str()`` and ``repr()``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Properties({len(self)} of them)"

    __str__ = __repr__
