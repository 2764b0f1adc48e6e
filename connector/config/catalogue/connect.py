"""Kafka Connect's properties of the worker and of a source connector, and those of Kafka's clients."""

from rowtide.connector.config.catalogue.kinds import boolean, choice, integer, long, names, optional, text
from rowtide.connector.config.catalogue.property import Family, Property, Status
from rowtide.connector.config.choices import (
    DecimalFormat,
    ErrorsTolerance,
    ExactlyOnce,
    ExactlyOnceSource,
    TransactionBoundary,
)

TITLE = "Kafka and Kafka Connect"

_WORKER = "rowtide is one worker with one connector; there is no cluster of workers to configure"
_TOPIC = r"[a-zA-Z0-9_.\-]{1,249}"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
_CONVERTERS = rf"(?:{JSON_CONVERTER.replace('.', '[.]')}|JsonConverter)"
_CONVERTER = "How {} are written. A converter's settings count only if its class is given beside them."
_ONLY_JSON = f"is not supported yet: only {JSON_CONVERTER} is"

BOOTSTRAP_SERVERS = Property(
    "bootstrap.servers",
    names(),
    (),
    "Kafka brokers to begin with, as `host:port,…`.",
    required=True,
)
SINK = Property(
    "rowtide.sink",
    text(r"kafka|stdout|file:.+|https?://.+|python", "must be kafka, stdout, file:DIRECTORY or an http(s) URL"),
    "kafka",
    "Where records go: `kafka`; `stdout` and `file:DIRECTORY` write JSON lines; a URL receives them by POST. "
    "`--sink` of `rowtide run` sets it. `python` is set by `rowtide.Engine`.",
)
HTTP_HEADERS = Family(
    "rowtide.sink.http.header.*",
    r"rowtide\.sink\.http\.header\..+",
    "Headers of the requests of an HTTP sink by their names, such as `rowtide.sink.http.header.Authorization`. Their "
    "values are secrets.",
)
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
    "Name of the group of Kafka Connect workers. With exactly-once it is part of the transactional id "
    "`<group.id>-<name>-0`, so that whoever takes a connector over fences the one before.",
)
OFFSET_TOPIC = Property(
    "offset.storage.topic",
    text(_TOPIC, "is not a valid name of a topic"),
    "connect-offsets",
    "The topic where the connector's position is kept, in Kafka Connect's form.",
)
OFFSETS_TOPIC = Property(
    "offsets.storage.topic",
    optional(text(_TOPIC, "is not a valid name of a topic")),
    None,
    "The connector's own topic of that kind, instead of offset.storage.topic.",
)
OFFSET_REPLICATION = Property(
    "offset.storage.replication.factor",
    integer(-1, 32767),
    -1,
    "Copies of that topic when rowtide creates it; -1 for the broker's default.",
)
OFFSET_PARTITIONS = Property(
    "offset.storage.partitions",
    integer(-1),
    25,
    "Partitions of that topic when rowtide creates it; -1 for the broker's default.",
)
OFFSET_FLUSH_INTERVAL = Property(
    "offset.flush.interval.ms",
    long(0),
    60000,
    "How often the position is written, in milliseconds, without exactly-once.",
)
OFFSET_FLUSH_TIMEOUT = Property(
    "offset.flush.timeout.ms", long(1), 5000, "How long writing the position may take, in milliseconds."
)
SHUTDOWN_TIMEOUT = Property(
    "task.shutdown.graceful.timeout.ms",
    long(0),
    5000,
    "How long delivering what was read may take when rowtide is stopped, in milliseconds.",
)
KEY_CONVERTER = Property("key.converter", text(_CONVERTERS, _ONLY_JSON), JSON_CONVERTER, _CONVERTER.format("keys"))
VALUE_CONVERTER = Property(
    "value.converter", text(_CONVERTERS, _ONLY_JSON), JSON_CONVERTER, _CONVERTER.format("values")
)
HEADER_CONVERTER = Property(
    "header.converter",
    text(
        r"org[.]apache[.]kafka[.]connect[.]storage[.]SimpleHeaderConverter",
        "is not supported yet: only org.apache.kafka.connect.storage.SimpleHeaderConverter is",
    ),
    "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "How headers are written.",
)
_SCHEMAS = "Write the schema with each {}."
KEY_SCHEMAS = Property("key.converter.schemas.enable", boolean(), True, _SCHEMAS.format("key"))
VALUE_SCHEMAS = Property("value.converter.schemas.enable", boolean(), True, _SCHEMAS.format("value"))
_DECIMAL = "Exact decimals in {} as Base64 of their bytes, or as numbers (NUMERIC)."
KEY_DECIMAL = Property(
    "key.converter.decimal.format", choice(DecimalFormat), DecimalFormat.BASE64, _DECIMAL.format("keys")
)
VALUE_DECIMAL = Property(
    "value.converter.decimal.format", choice(DecimalFormat), DecimalFormat.BASE64, _DECIMAL.format("values")
)
_NULLS = "Write a column's default in place of a NULL in {}."
KEY_NULLS = Property("key.converter.replace.null.with.default", boolean(), True, _NULLS.format("keys"))
VALUE_NULLS = Property("value.converter.replace.null.with.default", boolean(), True, _NULLS.format("values"))
_CACHE = "rowtide keeps each schema once per version of its table"
KEY_CACHE = Property(
    "key.converter.schemas.cache.size", integer(0), 1000, "Schemas kept in memory.", Status.WITHOUT_EFFECT, _CACHE
)
VALUE_CACHE = Property(
    "value.converter.schemas.cache.size", integer(0), 1000, "Schemas kept in memory.", Status.WITHOUT_EFFECT, _CACHE
)
EXACTLY_ONCE_SOURCE = Property(
    "exactly.once.source.support",
    choice(ExactlyOnceSource),
    ExactlyOnceSource.DISABLED,
    "Whether the worker may deliver exactly once: records and position in one Kafka transaction.",
)
EXACTLY_ONCE = Property(
    "exactly.once.support",
    choice(ExactlyOnce),
    ExactlyOnce.REQUESTED,
    "Deliver exactly once if the worker may (requested), or in any case (required).",
)
BOUNDARY = Property(
    "transaction.boundary",
    choice(TransactionBoundary),
    TransactionBoundary.POLL,
    "With exactly-once, a Kafka transaction for every batch (poll) or for a stretch of time (interval).",
    refused={"connector": "Debezium's connector does not define its own transactions; use poll or interval"},
)
BOUNDARY_INTERVAL = Property(
    "transaction.boundary.interval.ms",
    optional(long(1)),
    None,
    "That stretch of time, in milliseconds.",
    default_text="offset.flush.interval.ms",
)
TOPIC_CREATION = Property("topic.creation.enable", boolean(), True, "Create topics that do not exist.")
CREATION_GROUPS = Property(
    "topic.creation.groups",
    names(),
    (),
    "Names of groups of topics with settings of their own, asked in this order.",
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
    "The same for a group, with `include` and `exclude`: regular expressions for the topics' names.",
)
TRANSFORMS = Property(
    "transforms",
    names(),
    (),
    "Names of single message transforms, applied in this order.",
    default_text="",
)
TRANSFORM = Family(
    "transforms.<name>.*",
    r"transforms\.[^.]+\..+",
    "`type` and options of a transform. There are Debezium's ExtractNewRecordState, ByLogicalTableRouter, "
    "outbox.EventRouter and TimezoneConverter, and Kafka Connect's RegexRouter, Filter, InsertField, ReplaceField and "
    "MaskField.",
)
PREDICATES = Property(
    "predicates",
    names(),
    (),
    "Names of predicates that tell which records a transform is for.",
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
    "Whether a record that a converter or transform refuses stops the connector (none) or is left out (all).",
    refused={"all": "all is not supported yet; Debezium's own failure handling modes decide what may be left out"},
)
_RETRY = "a converter or transform of rowtide has no error that passes with time"
ERRORS_RETRY_TIMEOUT = Property(
    "errors.retry.timeout", long(-1), 0, "How long to retry such a record.", Status.WITHOUT_EFFECT, _RETRY
)
ERRORS_RETRY_DELAY = Property(
    "errors.retry.delay.max.ms", long(0), 60000, "The longest pause between those.", Status.WITHOUT_EFFECT, _RETRY
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
    "What happens when a referenced value changes.",
    Status.WITHOUT_EFFECT,
    "references are read at the start",
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
    "Names of providers of references such as `${file:/path:key}`.",
    Status.WITHOUT_EFFECT,
    "file, env and dir are always there",
    default_text="",
)
CONFIG_PROVIDER = Family(
    "config.providers.<name>.*",
    r"config\.providers\..+",
    "Class and options of a provider.",
    Status.WITHOUT_EFFECT,
    "file, env and dir are always there",
)
OVERRIDE_POLICY = Property(
    "connector.client.config.override.policy",
    text(),
    "All",
    "What producer.override.* may set.",
    Status.WITHOUT_EFFECT,
    "all of it",
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
    r"|scheduled\.rebalance\.max\.delay\.ms|rebalance\.timeout\.ms|session\.timeout\.ms|connect\.protocol"
    r"|inter\.worker\..+|internal\.(?:key|value)\.converter(?:\..+)?",
    "Properties of a cluster of Kafka Connect workers.",
    Status.WITHOUT_EFFECT,
    _WORKER,
)
CLIENTS = Family(
    "security.protocol, sasl.*, ssl.*, client.* and others of all Kafka clients",
    r"(?:security\.protocol|sasl\.(?:.+)|ssl\.(?:.+)|client\.id|client\.dns\.lookup|client\.rack|request\.timeout\.ms"
    r"|retry\.backoff(?:\.max)?\.ms|reconnect\.backoff(?:\.max)?\.ms|connections\.max\.idle\.ms|metadata\.max\.age\.ms"
    r"|send\.buffer\.bytes|receive\.buffer\.bytes|enable\.metrics\.push|security\.providers)",
    "Settings of every Kafka client that rowtide opens.",
)
PRODUCER_OVERRIDE = Family(
    "producer.override.*",
    r"producer\.override\..+",
    "Settings of the producer of records, in the Java client's words or in librdkafka's.",
)
PRODUCER = Family("producer.*", r"producer\..+", "The same; producer.override.* comes before it.")
CONSUMER_OVERRIDE = Family("consumer.override.*", r"consumer\.override\..+", "The same for consumers.")
CONSUMER = Family("consumer.*", r"consumer\..+", "Settings of consumers (of the offsets, of the schema history).")
ADMIN_OVERRIDE = Family("admin.override.*", r"admin\.override\..+", "The same for the admin client.")
ADMIN = Family("admin.*", r"admin\..+", "Settings of the admin client, which creates topics.")
