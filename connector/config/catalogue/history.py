"""Properties: storage and contents of the schema history."""

from rowtide.connector.config.catalogue.kinds import boolean, choice, integer, long, optional, patterns, text
from rowtide.connector.config.catalogue.property import Family, Property, Status
from rowtide.connector.config.choices import MemoryOptimization

TITLE = "Schema history"

P = "schema.history.internal"
KAFKA_HISTORY = "io.debezium.storage.kafka.history.KafkaSchemaHistory"
FILE_HISTORY = "io.debezium.storage.file.history.FileSchemaHistory"
MEMORY_HISTORY = "io.debezium.relational.history.MemorySchemaHistory"
_DDL_FILTER = "the parser recognizes statements that change no table"
_KNOWN = (KAFKA_HISTORY, FILE_HISTORY, MEMORY_HISTORY)

IMPLEMENTATION = Property(
    P,
    text("|".join(name.replace(".", r"\.") for name in _KNOWN), "must be one of " + ", ".join(_KNOWN)),
    KAFKA_HISTORY,
    "The storage of the history: a topic, a file, or memory only (for tests).",
)
TOPIC = Property(
    f"{P}.kafka.topic",
    optional(text(r"[a-zA-Z0-9_.\-]{1,249}", "is not a valid name of a topic")),
    None,
    "The topic of the history, with one partition. Required unless `schema.history.internal.file.filename` stores the "
    "history in a file.",
)
SERVERS = Property(
    f"{P}.kafka.bootstrap.servers",
    optional(text()),
    None,
    "The Kafka brokers of that topic.",
    default_text="bootstrap.servers",
)
POLL_INTERVAL = Property(
    f"{P}.kafka.recovery.poll.interval.ms",
    integer(1),
    100,
    "How long to wait for records when reading the history, in milliseconds. Reading fails when none has arrived for "
    "this time multiplied by the number of attempts, but for at least a minute.",
)
RECOVERY_ATTEMPTS = Property(
    f"{P}.kafka.recovery.attempts",
    integer(0),
    100,
    "The number of consecutive waits without a record before reading the history fails.",
)
QUERY_TIMEOUT = Property(
    f"{P}.kafka.query.timeout.ms",
    long(1),
    3000,
    "The timeout of a request of the admin client, in milliseconds; requests are retried for a minute.",
)
CREATE_TIMEOUT = Property(
    f"{P}.kafka.create.timeout.ms", long(1), 30000, "The timeout for creating the topic, in milliseconds."
)
BUFFER_SIZE = Property(f"{P}.kafka.buffer.batch.size", integer(1), 1024, "Records written at a time during a snapshot.")
FILE_NAME = Property(
    f"{P}.file.filename",
    optional(text()),
    None,
    "The file of the history, with one JSON record per line. Required if the history is stored in a file.",
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
    "Skip statements that cannot be parsed, with a warning; the table's structure may be wrong afterwards.",
)
LOOK_UP_UNPARSEABLE = Property(
    "rowtide.unparseable.ddl.lookup",
    boolean(),
    True,
    "After a statement that cannot be parsed, take the structures of the tables that it names from their next rows or "
    "from the server. If false, such a statement stops the connector if it may concern a captured table.",
)
ONLY_CAPTURED_TABLES = Property(
    f"{P}.store.only.captured.tables.ddl", boolean(), False, "Store only statements about captured tables."
)
ONLY_CAPTURED_DATABASES = Property(
    f"{P}.store.only.captured.databases.ddl", boolean(), False, "Store only statements about captured databases."
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
    "rowtide only: the number of history records after which a summary of the history is written, so that a start "
    "reads only the records after the newest summary that fits the stored position; 0 for no summaries. Summaries are "
    "in the topic `<history topic>.<topic.prefix>.compact`, or in a file next to that of the history. The history "
    "itself stays complete, and Debezium can read it.",
)
PREFER_DDL = Property(
    f"{P}.prefer.ddl",
    boolean(),
    False,
    "When reading the history, parse the statements instead of using the table structures stored with them.",
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
    "Regular expressions for statements that are neither parsed nor stored.",
    Status.NOT_YET,
    _DDL_FILTER,
    default_text="statements of the server itself and of RDS, and those that change no table",
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
    "Settings of the producer that writes the history, in addition to those for all clients.",
)
CONSUMER = Family(
    f"{P}.consumer.*",
    r"schema\.history\.internal\.consumer\..+",
    "Settings of the consumer that reads it, in addition to those for all clients.",
)
OTHER_STORES = Family(
    f"{P}.<jdbc, redis, s3, azure, configmap, rocketmq, rocksdb …>.*",
    r"schema\.history\.internal\.(?:jdbc|redis|s3|azure|configmap|rocketmq|rocksdb|chronicle)\..+",
    "Options of Debezium's other stores.",
    Status.NOT_YET,
    "the history is stored in Kafka or in a file",
)
