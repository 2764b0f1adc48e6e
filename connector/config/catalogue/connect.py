"""Properties: Kafka Connect's worker and source connectors, and Kafka's clients."""

from rowtide.connector.config.catalogue.kinds import boolean, choice, integer, long, names, optional, text
from rowtide.connector.config.catalogue.property import Family, Property, Status
from rowtide.connector.config.choices import (
    ErrorsTolerance,
    ExactlyOnce,
    ExactlyOnceSource,
    LargeRecordsMode,
    ProducerKind,
    TransactionBoundary,
)

TITLE = "Kafka and Kafka Connect"

_WORKER = "a single worker needs no cluster; rowtide worker uses those of a fleet"
_TOPIC = r"[a-zA-Z0-9_.\-]{1,249}"
LABEL = r"[a-zA-Z0-9_\-]{1,60}"
"""A label of workers, which is part of the name of a topic."""

BOOTSTRAP_SERVERS = Property(
    "bootstrap.servers",
    names(),
    (),
    "The Kafka brokers to connect to first, as `host:port,…`. Not needed if nothing is in Kafka: with another sink, "
    "`offset.storage.file.filename` and `schema.history.internal.file.filename`.",
    required=True,
)
SINK = Property(
    "rowtide.sink",
    text(
        r"kafka|stdout|file:.+|duckdb:.+|delta:.+|https?://.+|python",
        "must be kafka, stdout, file:DIRECTORY, duckdb:FILE, delta:DIRECTORY or an http(s) URL",
    ),
    "kafka",
    "Where records go: `kafka`; `stdout` and `file:DIRECTORY` write JSON lines; a URL receives them by POST; "
    "`duckdb:FILE` and `delta:DIRECTORY` keep the tables themselves. "
    "`--sink` of `rowtide run` sets it. `python` is set by `rowtide.Engine`.",
)
DELTA_INTERVAL_MS = 10_000
TABLES_INTERVAL = Property(
    "rowtide.sink.commit.interval.ms",
    integer(10),
    1000,
    "How often the sink `duckdb:FILE` commits, in milliseconds, and the sink `delta:DIRECTORY`, whose default is "
    f"`{DELTA_INTERVAL_MS}`. A large batch is committed earlier.",
)
PRODUCER_KIND = Property(
    "rowtide.producer",
    choice(ProducerKind),
    ProducerKind.AUTO,
    "The producer of records: `native`, which is rowtide's own and needs half of the processor time, but has no login "
    "by Kerberos or OAUTHBEARER and no settings that only librdkafka has; `librdkafka`; or `auto`: `native` if it has "
    "all settings and its compiled code is installed, otherwise `librdkafka`.",
)
HTTP_HEADERS = Family(
    "rowtide.sink.http.header.*",
    r"rowtide\.sink\.http\.header\..+",
    "Headers of the requests of an HTTP sink by their names, such as `rowtide.sink.http.header.Authorization`. Their "
    "values are secrets.",
)
TABLE_SINKS = ("duckdb:", "delta:")
"""The prefixes of the sinks that keep tables, and the position in the same transaction."""
KAFKA_OFFSETS = "org.apache.kafka.connect.storage.KafkaOffsetBackingStore"
FILE_OFFSETS = "org.apache.kafka.connect.storage.FileOffsetBackingStore"
MEMORY_OFFSETS = "org.apache.kafka.connect.storage.MemoryOffsetBackingStore"
_OFFSET_STORES = (KAFKA_OFFSETS, FILE_OFFSETS, MEMORY_OFFSETS)
OFFSET_STORAGE = Property(
    "offset.storage",
    text("|".join(name.replace(".", r"\.") for name in _OFFSET_STORES), "must be one of " + ", ".join(_OFFSET_STORES)),
    KAFKA_OFFSETS,
    "Where the connector's position is kept: in a topic; in a file, in the format of Kafka Connect's standalone worker "
    "and of Debezium Engine; or in memory only (for tests). A file is the default if its name is given.",
)
OFFSET_FILE = Property(
    "offset.storage.file.filename",
    optional(text()),
    None,
    "The file of the position, when it is kept in a file. Its directory must exist.",
)
GROUP_ID = Property(
    "group.id",
    text(r".+", "must not be empty"),
    "connect-cluster",
    "The name of the group of Kafka Connect workers. With exactly-once delivery it is part of the transactional id "
    "`<group.id>-<name>-0`, with which a new instance of the connector fences the previous one.",
)
OFFSET_TOPIC = Property(
    "offset.storage.topic",
    text(_TOPIC, "is not a valid name of a topic"),
    "connect-offsets",
    "The topic that stores the connector's position, in Kafka Connect's format.",
)
OFFSETS_TOPIC = Property(
    "offsets.storage.topic",
    optional(text(_TOPIC, "is not a valid name of a topic")),
    None,
    "A topic for this connector's position only, instead of offset.storage.topic.",
)
OFFSET_REPLICATION = Property(
    "offset.storage.replication.factor",
    integer(-1, 32767),
    -1,
    "The replication factor of that topic if rowtide creates it; -1 for the broker's default.",
)
OFFSET_PARTITIONS = Property(
    "offset.storage.partitions",
    integer(-1),
    25,
    "The partitions of that topic if rowtide creates it; -1 for the broker's default.",
)
OFFSET_FLUSH_INTERVAL = Property(
    "offset.flush.interval.ms",
    long(0),
    60000,
    "The interval for storing the position, in milliseconds, without exactly-once delivery.",
)
OFFSET_FLUSH_TIMEOUT = Property(
    "offset.flush.timeout.ms", long(1), 5000, "The timeout for storing the position, in milliseconds."
)
SHUTDOWN_TIMEOUT = Property(
    "task.shutdown.graceful.timeout.ms",
    long(0),
    5000,
    "The time limit of a stop, in milliseconds: pending records are delivered, or the process ends without it.",
)
EXACTLY_ONCE_SOURCE = Property(
    "exactly.once.source.support",
    choice(ExactlyOnceSource),
    ExactlyOnceSource.DISABLED,
    "Whether the worker supports exactly-once delivery: records and position in one Kafka transaction.",
)
EXACTLY_ONCE = Property(
    "exactly.once.support",
    choice(ExactlyOnce),
    ExactlyOnce.REQUESTED,
    "Deliver exactly once if the worker supports it (requested), or always (required).",
)
BOUNDARY = Property(
    "transaction.boundary",
    choice(TransactionBoundary),
    TransactionBoundary.POLL,
    "With exactly-once delivery, one Kafka transaction per batch (poll) or per interval (interval).",
    refused={"connector": "Debezium's connector does not define its own transactions; use poll or interval"},
)
BOUNDARY_INTERVAL = Property(
    "transaction.boundary.interval.ms",
    optional(long(1)),
    None,
    "That interval, in milliseconds.",
    default_text="offset.flush.interval.ms",
)
STANDBY = Property(
    "rowtide.standby",
    boolean(),
    False,
    "Let several processes share this connector: one runs it, and the others stand by until its session in Kafka ends. "
    "Set this property for all of them. Delivery is exactly once then, as `exactly.once.source.support=enabled` sets "
    "it. A fleet does not need it.",
)
RUNS_ON = Property(
    "rowtide.runs.on",
    optional(text(LABEL, "must be a label: 1 to 60 letters, digits, _ and -")),
    None,
    "In a fleet, the label of the workers that may run the connector (`rowtide.worker.labels`). Any worker runs one "
    "without a label.",
)
TOPIC_CREATION = Property("topic.creation.enable", boolean(), True, "Create topics that do not exist.")
CREATION_GROUPS = Property(
    "topic.creation.groups",
    names(),
    (),
    "Names of groups of topics with their own settings; the first group that matches applies.",
    default_text="",
)
CREATION_DEFAULT = Family(
    "topic.creation.default.*",
    r"topic\.creation\.default\..+",
    "Settings of new topics: `replication.factor`, `partitions` (-1, the default, for the broker's), and any setting "
    "of a Kafka topic such as `cleanup.policy`.",
)
CREATION_GROUP = Family(
    "topic.creation.<group>.*",
    r"topic\.creation\.[^.]+\..+",
    "The same for a group, with `include` and `exclude`: regular expressions for names of topics.",
)
TRANSFORMS = Property(
    "transforms",
    names(),
    (),
    "Names of single message transforms, applied in this order.",
    Status.PARTLY,
    "ExtractNewRecordState, ExtractChangedRecordState, ByLogicalTableRouter, EventRouter, TimezoneConverter, "
    "ReadToInsertEvent, SchemaChangeEventFilter, PartitionRouting, HeaderToValue, SwapGeometryCoordinates, "
    "GeometryFormatTransformer, VectorToJsonConverter, Filter and ContentBasedRouter with expressions in Python's "
    "syntax; RegexRouter, TimestampRouter, Filter, InsertField, ReplaceField, MaskField, Cast, Flatten, "
    "TimestampConverter, ValueToKey, ExtractField, HoistField, SetSchemaMetadata, HeaderFrom, InsertHeader, "
    "DropHeaders; Python's by `python:module.function`",
    default_text="",
)
TRANSFORM = Family(
    "transforms.<name>.*",
    r"transforms\.[^.]+\..+",
    "`type` and options of a transform: Debezium's ExtractNewRecordState, ExtractChangedRecordState, "
    "ByLogicalTableRouter, outbox.EventRouter, TimezoneConverter, ReadToInsertEvent, SchemaChangeEventFilter, "
    "partitions.PartitionRouting, HeaderToValue, SwapGeometryCoordinates, GeometryFormatTransformer, "
    "VectorToJsonConverter, Filter or ContentBasedRouter, or Kafka Connect's RegexRouter, TimestampRouter, Filter, "
    "InsertField, ReplaceField, "
    "MaskField, Cast, Flatten, TimestampConverter, ValueToKey, ExtractField, HoistField, SetSchemaMetadata, "
    "HeaderFrom, InsertHeader or DropHeaders; or a function "
    "or class in Python, `python:module.function`.",
)
PREDICATES = Property(
    "predicates",
    names(),
    (),
    "Names of predicates, which select the records that a transform applies to.",
    Status.PARTLY,
    "RecordIsTombstone, HasHeaderKey, TopicNameMatches",
    default_text="",
)
PREDICATE = Family(
    "predicates.<name>.*",
    r"predicates\.[^.]+\..+",
    "`type` and options of a predicate: RecordIsTombstone, HasHeaderKey or TopicNameMatches.",
)
ERRORS_TOLERANCE = Property(
    "errors.tolerance",
    choice(ErrorsTolerance),
    ErrorsTolerance.NONE,
    "Whether a record that a converter or transform rejects stops the connector (none) or is skipped (all), with a "
    "warning; with `errors.deadletterqueue.topic.name`, it is kept there.",
)
DEAD_LETTER_TOPIC = Property(
    "errors.deadletterqueue.topic.name",
    optional(text(_TOPIC, "is not a valid name of a topic")),
    None,
    "The topic of records that a transform or converter rejects (with `errors.tolerance=all`), of those that are too "
    "large for their own topic (with `rowtide.large.records=dead-letter`), and of events that cannot be decoded (with "
    "`event.processing.failure.handling.mode=warn` or `skip`). If the connector creates it, it has one partition and "
    "keeps all records. `rowtide deadletters` shows and replays them.",
)
DEAD_LETTER_REPLICATION = Property(
    "errors.deadletterqueue.topic.replication.factor",
    integer(-1),
    3,
    "The replication factor of that topic, if the connector creates it; -1 for the broker's default.",
)
DEAD_LETTER_CONTEXT = Property(
    "errors.deadletterqueue.context.headers.enable",
    boolean(),
    False,
    "Give such a record headers that say why it is there, with Kafka Connect's names `__connect.errors.*`.",
)
LARGE_RECORDS = Property(
    "rowtide.large.records",
    choice(LargeRecordsMode),
    LargeRecordsMode.FAIL,
    "What to do with a record that is larger than `max.request.size` of the producer or `max.message.bytes` of its "
    "topic: stop (fail); keep its value in a folder, and send a record that points to it (claim-check); send an update "
    "without the row before it (without-before); or send it to errors.deadletterqueue.topic.name, in parts "
    "(dead-letter).",
)
CLAIM_CHECK_URL = Property(
    "rowtide.large.records.claim.check.url",
    optional(text()),
    None,
    "The folder of the values of such records: a path, or a URL of an object store such as `s3://bucket/folder`, which "
    "needs the extra `rowtide[claim-check]`.",
)
_RETRY = "rowtide's converters and transforms have no temporary errors"
ERRORS_RETRY_TIMEOUT = Property(
    "errors.retry.timeout", long(-1), 0, "How long to retry such a record.", Status.WITHOUT_EFFECT, _RETRY
)
ERRORS_RETRY_DELAY = Property(
    "errors.retry.delay.max.ms",
    long(0),
    60000,
    "The maximum delay between these retries.",
    Status.WITHOUT_EFFECT,
    _RETRY,
)
ERRORS_LOG = Property(
    "errors.log.enable", boolean(), False, "Log such a record.", Status.WITHOUT_EFFECT, "every error is logged"
)
ERRORS_LOG_MESSAGES = Property(
    "errors.log.include.messages",
    boolean(),
    False,
    "Show row keys, values and the literals of SQL statements in log lines, error messages and `/health`. By default "
    "they name the table, the column and the position only.",
)
ACTION_RELOAD = Property(
    "config.action.reload",
    text(),
    "restart",
    "The action when a referenced value changes.",
    Status.WITHOUT_EFFECT,
    "references are read at each start, and again at SIGHUP",
)
TASKS_ENFORCE = Property(
    "tasks.max.enforce",
    boolean(),
    True,
    "Refuse more tasks than tasks.max.",
    Status.WITHOUT_EFFECT,
    "there is one task",
)
CONFIG_PROVIDERS = Property(
    "config.providers",
    names(),
    (),
    "Names of config providers, for references such as `${file:/path:key}`.",
    Status.WITHOUT_EFFECT,
    "file, env and dir are always available",
    default_text="",
)
IGNORE_UNSUPPORTED = Property(
    "rowtide.ignore.unsupported",
    boolean(),
    False,
    "Start without the properties of Debezium that rowtide does not support, as far as all records stay the same, and "
    "log which they are. `--ignore-unsupported` of `rowtide run` and `rowtide check` sets it.",
)
CONFIG_PROVIDER = Family(
    "config.providers.<name>.*",
    r"config\.providers\..+",
    "`class` and options of a provider.",
    Status.WITHOUT_EFFECT,
    "file, env and dir are always available",
)
OVERRIDE_POLICY = Property(
    "connector.client.config.override.policy",
    text(),
    "All",
    "The settings that producer.override.* may contain.",
    Status.WITHOUT_EFFECT,
    "all settings are allowed",
)
PLUGIN_VERSIONS = Family(
    "connector.plugin.version, <converter>.plugin.version",
    r"(?:connector|(?:key|value|header)\.converter)\.plugin\.version",
    "Versions of plug-ins.",
    Status.WITHOUT_EFFECT,
    "there are no plug-ins to load",
)
WORKER_ONLY = Family(
    "config.storage.*, status.storage.*, rest.*, listeners, plugin.* …",
    r"(?:config|status)\.storage\..+|rest\..+|listeners|plugin\.(?:path|discovery)|admin\.listeners|access\.control\..+"
    r"|response\.http\.headers\.config|topic\.tracking\..+|metrics\..+|metric\.reporters|worker\..+"
    r"|rowtide\.fleet\..+|rowtide\.worker\.labels|heartbeat\.interval\.ms|scheduled\.rebalance\.max\.delay\.ms|rebalance\.timeout\.ms|session\.timeout\.ms|connect\.protocol"
    r"|inter\.worker\..+|confluent\.(?:license|topic|metadata|monitoring)\..+|confluent\.license|internal\.(?:key|value)\.converter(?:\..+)?",
    "Properties of a cluster of Kafka Connect workers.",
    Status.WITHOUT_EFFECT,
    _WORKER,
)
CLIENTS = Family(
    "security.protocol, sasl.*, ssl.*, client.* and others of all Kafka clients",
    r"(?:security\.protocol|sasl\.(?:.+)|ssl\.(?:.+)|client\.id|client\.dns\.lookup|client\.rack|request\.timeout\.ms"
    r"|retry\.backoff(?:\.max)?\.ms|reconnect\.backoff(?:\.max)?\.ms|connections\.max\.idle\.ms|metadata\.max\.age\.ms"
    r"|send\.buffer\.bytes|receive\.buffer\.bytes|enable\.metrics\.push|security\.providers)",
    "Settings of all Kafka clients.",
)
PRODUCER_OVERRIDE = Family(
    "producer.override.*",
    r"producer\.override\..+",
    "Settings of the producer of records, with the names of the Java client or of librdkafka.",
)
PRODUCER = Family("producer.*", r"producer\..+", "The same; producer.override.* takes precedence.")
CONSUMER_OVERRIDE = Family("consumer.override.*", r"consumer\.override\..+", "The same for consumers.")
CONSUMER = Family("consumer.*", r"consumer\..+", "Settings of the consumers of offsets and of the schema history.")
ADMIN_OVERRIDE = Family("admin.override.*", r"admin\.override\..+", "The same for the admin client.")
ADMIN = Family("admin.*", r"admin\..+", "Settings of the admin client, which creates topics.")
