"""The schema history: where it is kept, what it keeps."""

from rowtide.connector.config.catalogue.kinds import boolean, choice, integer, long, optional, patterns, text
from rowtide.connector.config.catalogue.property import Family, Property, Status
from rowtide.connector.config.choices import MemoryOptimization

TITLE = "Schema history"

P = "schema.history.internal"
KAFKA_HISTORY = "io.debezium.storage.kafka.history.KafkaSchemaHistory"
FILE_HISTORY = "io.debezium.storage.file.history.FileSchemaHistory"
MEMORY_HISTORY = "io.debezium.relational.history.MemorySchemaHistory"
_DDL_FILTER = "which statements change no table is known to the parser"
_KNOWN = (KAFKA_HISTORY, FILE_HISTORY, MEMORY_HISTORY)

IMPLEMENTATION = Property(
    P,
    text("|".join(name.replace(".", r"\.") for name in _KNOWN), "must be one of " + ", ".join(_KNOWN)),
    KAFKA_HISTORY,
    "Where the history is kept: in a topic, in a file, or only in memory (for tests).",
)
TOPIC = Property(
    f"{P}.kafka.topic",
    optional(text(r"[a-zA-Z0-9_.\-]{1,249}", "is not a valid name of a topic")),
    None,
    "The topic of the history, with one partition. Required when the history is kept in a topic.",
)
SERVERS = Property(
    f"{P}.kafka.bootstrap.servers",
    optional(text()),
    None,
    "Kafka of that topic.",
    default_text="bootstrap.servers",
)
POLL_INTERVAL = Property(
    f"{P}.kafka.recovery.poll.interval.ms",
    integer(1),
    100,
    "How long to wait for records when reading the history, in milliseconds; reading gives up when none has come for "
    "this time by the number of attempts, but never before a minute.",
)
RECOVERY_ATTEMPTS = Property(
    f"{P}.kafka.recovery.attempts",
    integer(0),
    100,
    "How often in a row nothing may come while reading the history.",
)
QUERY_TIMEOUT = Property(
    f"{P}.kafka.query.timeout.ms",
    long(1),
    3000,
    "How long a question to Kafka's admin interface may take, in milliseconds; then it is asked again, for a minute.",
)
CREATE_TIMEOUT = Property(
    f"{P}.kafka.create.timeout.ms", long(1), 30000, "How long creating the topic may take, in milliseconds."
)
BUFFER_SIZE = Property(f"{P}.kafka.buffer.batch.size", integer(1), 1024, "Records written at a time during a snapshot.")
FILE_NAME = Property(
    f"{P}.file.filename",
    optional(text()),
    None,
    "The file of the history, one JSON record a line. Required when the history is kept in a file.",
)
HISTORY_NAME = Property(
    f"{P}.name",
    optional(text()),
    None,
    "The name of the history's Kafka clients.",
    default_text="<topic.prefix>-schemahistory",
)
SKIP_UNPARSEABLE = Property(
    f"{P}.skip.unparseable.ddl",
    boolean(),
    False,
    "Go on after a statement that cannot be understood, with a warning; the structure may be wrong from there on.",
)
ONLY_CAPTURED_TABLES = Property(
    f"{P}.store.only.captured.tables.ddl", boolean(), False, "Keep only statements on captured tables."
)
ONLY_CAPTURED_DATABASES = Property(
    f"{P}.store.only.captured.databases.ddl", boolean(), False, "Keep only statements on captured databases."
)
MEMORY_OPTIMIZATION = Property(
    f"{P}.memory.optimization",
    choice(MemoryOptimization),
    MemoryOptimization.OFF,
    "Share equal parts of structures in memory.",
    Status.WITHOUT_EFFECT,
    "equal parts are always shared",
)
COMPACT_INTERVAL = Property(
    f"{P}.compact.interval",
    integer(0),
    0,
    "rowtide's own: after how many records of the history a summary of them is written beside it, so a start reads "
    "only the records behind the newest summary that fits the stored position; 0 writes none. It is the topic "
    "`<history topic>.<topic.prefix>.compact`, or a file beside the history's; the history itself stays whole, and "
    "Debezium reads it as before.",
)
PREFER_DDL = Property(
    f"{P}.prefer.ddl",
    boolean(),
    False,
    "When reading the history, parse the statements again instead of taking the structures stored beside them.",
)
CONNECTOR_CLASS = Property(
    f"{P}.connector.class",
    optional(text()),
    None,
    "Set by Debezium itself.",
    Status.WITHOUT_EFFECT,
    "only shown in its logs",
)
CONNECTOR_ID = Property(
    f"{P}.connector.id",
    optional(text()),
    None,
    "Set by Debezium itself.",
    Status.WITHOUT_EFFECT,
    "only shown in its logs",
)
DDL_FILTER = Property(
    f"{P}.ddl.filter",
    patterns(),
    None,
    "Regular expressions for statements that are neither parsed nor kept.",
    Status.NOT_YET,
    _DDL_FILTER,
    default_text="the statements of the server itself, of RDS, and those that change no table",
)
DDL_FILTER_INTERNAL = Property(
    f"internal.{P}.ddl.filter",
    patterns(),
    None,
    f"Debezium's own name of `{P}.ddl.filter`.",
    Status.NOT_YET,
    _DDL_FILTER,
)
PRODUCER = Family(
    f"{P}.producer.*",
    r"schema\.history\.internal\.producer\..+",
    "The Kafka producer that writes the history, on top of the settings for all clients.",
)
CONSUMER = Family(
    f"{P}.consumer.*",
    r"schema\.history\.internal\.consumer\..+",
    "The Kafka consumer that reads it, on top of the settings for all clients.",
)
OTHER_STORES = Family(
    f"{P}.<jdbc, redis, s3, azure, configmap, rocketmq, rocksdb …>.*",
    r"schema\.history\.internal\.(?:jdbc|redis|s3|azure|configmap|rocketmq|rocksdb|chronicle)\..+",
    "Options of Debezium's other stores.",
    Status.NOT_YET,
    "the history is kept in Kafka or in a file",
)
