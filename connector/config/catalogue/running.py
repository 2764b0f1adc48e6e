"""Queue, batches, heartbeats, and what an operator sees."""

from rowtide.connector.config.catalogue.kinds import boolean, choice, integer, java_pattern, long, names, optional, text
from rowtide.connector.config.catalogue.property import Property, Status
from rowtide.connector.config.choices import LimitAction
from rowtide.connector.config.secret import DEFAULT_SANITIZE_PATTERN

TITLE = "Queue, heartbeat, operation"

_JMX = "there is no Java virtual machine to hold MBeans; metrics are served at /metrics"
_LINEAGE = "OpenLineage is not there yet"
_MEMORY = "the model of the structure is kept in memory in one way"

MAX_QUEUE_SIZE = Property(
    "max.queue.size",
    integer(1),
    8192,
    "Records between reading and delivering; reading waits when it is full. Must be greater than max.batch.size.",
)
MAX_BATCH_SIZE = Property(
    "max.batch.size",
    integer(1),
    2048,
    "Records that are delivered at a time, at most.",
    Status.WITHOUT_EFFECT,
    "records are delivered as they come; producer.override.batch.size and linger.ms decide how they are packed",
)
MAX_QUEUE_BYTES = Property(
    "max.queue.size.in.bytes",
    long(0),
    0,
    "Bytes of records between reading and delivering; 0 for no limit of its own.",
)
POLL_INTERVAL = Property(
    "poll.interval.ms",
    long(1),
    500,
    "How long to wait for new records before delivering what is there, in milliseconds.",
    Status.WITHOUT_EFFECT,
    "records are delivered as they come",
)
POLL_DISPATCH = Property(
    "poll.dispatch.interval.ms",
    long(0),
    0,
    "Pause between deliveries.",
    Status.NOT_YET,
    "it came with Debezium 3.7",
)
QUEUE_PROVIDER = Property(
    "queue.provider.type",
    text(),
    "memory",
    "Kind of the queue.",
    Status.NOT_YET,
    "the queue is in memory",
)
BINLOG_BUFFER = Property(
    "binlog.buffer.size",
    integer(0),
    0,
    "Events to look ahead for a ROLLBACK.",
    Status.WITHOUT_EFFECT,
    "a transaction that is rolled back gives no records in any case",
)
HEARTBEAT_INTERVAL = Property(
    "heartbeat.interval.ms",
    integer(0),
    0,
    "Write to the heartbeat topic so often, in milliseconds, also when nothing changes; 0 for never.",
)
HEARTBEAT_QUERY = Property(
    "heartbeat.action.query", optional(text()), None, "SQL to run on the database at each heartbeat."
)
SHUTDOWN_TIMEOUT = Property(
    "executor.shutdown.timeout.ms", long(0), 4000, "How long parts of the connector may take to stop, in milliseconds."
)
METRIC_TAGS = Property(
    "custom.metric.tags",
    names(),
    (),
    "Labels `name=value,…` added to every metric.",
    default_text="",
)
SANITIZE_PATTERN = Property(
    "custom.sanitize.pattern",
    java_pattern(),
    DEFAULT_SANITIZE_PATTERN,
    "Regular expression for names of properties whose values are never shown, besides those that rowtide knows.",
)
GUARDRAIL_MAX = Property(
    "guardrail.collections.max", integer(0), 0, "How many tables may be captured; 0 for any number."
)
GUARDRAIL_ACTION = Property(
    "guardrail.collections.limit.action",
    choice(LimitAction),
    LimitAction.WARN,
    "What happens when it are more: a warning (warn) or a stop (fail).",
)
STATISTICS = Property(
    "statistics.metrics.enabled",
    boolean(),
    True,
    "Quantiles of lag in MBeans.",
    Status.WITHOUT_EFFECT,
    _JMX,
)
MEMORY_SCHEMAS = Property(
    "memory.management.schemas.class",
    text(),
    "io.debezium.relational.ConcurrentMapTableMappingStorage",
    "Class that holds schemas.",
    Status.WITHOUT_EFFECT,
    _MEMORY,
)
MEMORY_TABLES = Property(
    "memory.management.tables.class",
    text(),
    "io.debezium.relational.ConcurrentMapTableMappingStorage",
    "Class that holds tables.",
    Status.WITHOUT_EFFECT,
    _MEMORY,
)
_OL = "openlineage.integration."
LINEAGE = Property(f"{_OL}enabled", boolean(), False, "Report lineage to OpenLineage.", Status.NOT_YET, _LINEAGE)
LINEAGE_FILE = Property(
    f"{_OL}config.file.path",
    text(),
    "./openlineage.yml",
    "OpenLineage's own configuration.",
    Status.WITHOUT_EFFECT,
    _LINEAGE,
)
LINEAGE_NAMESPACE = Property(
    f"{_OL}job.namespace", optional(text()), None, "Namespace of the job.", Status.WITHOUT_EFFECT, _LINEAGE
)
LINEAGE_DESCRIPTION = Property(
    f"{_OL}job.description",
    text(),
    "Debezium change data capture job",
    "Description of the job.",
    Status.WITHOUT_EFFECT,
    _LINEAGE,
)
LINEAGE_TAGS = Property(
    f"{_OL}job.tags", names(), (), "Tags of the job.", Status.WITHOUT_EFFECT, _LINEAGE, default_text=""
)
LINEAGE_OWNERS = Property(
    f"{_OL}job.owners", names(), (), "Owners of the job.", Status.WITHOUT_EFFECT, _LINEAGE, default_text=""
)
LINEAGE_KAFKA = Property(
    f"{_OL}dataset.kafka.bootstrap.servers",
    optional(text()),
    None,
    "Kafka of the datasets.",
    Status.WITHOUT_EFFECT,
    _LINEAGE,
)
POSITION_CHECK = Property(
    "internal.log.position.check.enable",
    boolean(),
    True,
    "At the start, check that the server still has the stored position.",
)
ACTIVITY_MONITOR = Property(
    "internal.offset.activity.monitor.interval.ms",
    long(0),
    600000,
    "How often Debezium looks whether offsets move.",
    Status.WITHOUT_EFFECT,
    "the lag is in the metrics",
)
ADVANCED_METRICS = Property(
    "internal.advanced.metrics.enable",
    boolean(),
    False,
    "Counters per table in MBeans.",
    Status.WITHOUT_EFFECT,
    _JMX,
)
