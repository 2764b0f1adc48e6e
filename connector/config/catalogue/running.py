"""Properties: queue, heartbeats, limits and metrics."""

from rowtide.connector.config.catalogue.kinds import boolean, choice, integer, java_pattern, long, names, optional, text
from rowtide.connector.config.catalogue.property import Property, Status
from rowtide.connector.config.choices import LimitAction, MirrorRead
from rowtide.connector.config.secret import DEFAULT_SANITIZE_PATTERN

TITLE = "Queue, heartbeat, operation"

_JMX = "there are no MBeans without a Java virtual machine; metrics are served at /metrics"
_MEMORY = "there is only one in-memory representation of structures"

MAX_QUEUE_SIZE = Property(
    "max.queue.size",
    integer(1),
    8192,
    "The capacity of the queue between reading and delivering, in records; reading waits when the queue is full. Must "
    "be greater than max.batch.size.",
)
MAX_BATCH_SIZE = Property(
    "max.batch.size",
    integer(1),
    2048,
    "The maximum number of records that are delivered at a time.",
    Status.WITHOUT_EFFECT,
    "records are delivered immediately; producer.override.batch.size and linger.ms determine the size of requests",
)
MAX_QUEUE_BYTES = Property(
    "max.queue.size.in.bytes",
    long(0),
    0,
    "The capacity of that queue, in bytes; 0 for no limit in bytes.",
)
POLL_INTERVAL = Property(
    "poll.interval.ms",
    long(1),
    500,
    "How long to wait for new records before a delivery, in milliseconds.",
    Status.WITHOUT_EFFECT,
    "records are delivered immediately",
)
POLL_DISPATCH = Property(
    "poll.dispatch.interval.ms",
    long(0),
    0,
    "The delay between deliveries.",
    Status.NOT_YET,
    "it came with Debezium 3.7",
    ignorable=True,
)
QUEUE_PROVIDER = Property(
    "queue.provider.type",
    text(),
    "memory",
    "The type of the queue.",
    Status.NOT_YET,
    "the queue is in memory",
    ignorable=True,
)
BINLOG_BUFFER = Property(
    "binlog.buffer.size",
    integer(0),
    0,
    "The number of events to look ahead for a ROLLBACK.",
    Status.WITHOUT_EFFECT,
    "transactions that are rolled back never produce records",
)
DECODER_PROCESSES = Property(
    "rowtide.decoder.processes",
    optional(integer(0)),
    None,
    "The number of further processes that decode row events; 0 for none. Each needs about 60 MB.",
    default_text="0; for the lines of `rowtide replay` on more than two cores one less than there are, 8 at most",
)
HEARTBEAT_INTERVAL = Property(
    "heartbeat.interval.ms",
    integer(0),
    0,
    "The interval of heartbeat messages, in milliseconds, even while nothing changes; 0 for no heartbeats.",
)
HEARTBEAT_QUERY = Property(
    "heartbeat.action.query", optional(text()), None, "An SQL statement that runs on the database at each heartbeat."
)
SHUTDOWN_TIMEOUT = Property(
    "executor.shutdown.timeout.ms", long(0), 4000, "The timeout for stopping the connector's threads, in milliseconds."
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
    "A regular expression for names of further properties whose values are masked.",
)
GUARDRAIL_MAX = Property(
    "guardrail.collections.max", integer(0), 0, "The maximum number of captured tables; 0 for no limit."
)
GUARDRAIL_ACTION = Property(
    "guardrail.collections.limit.action",
    choice(LimitAction),
    LimitAction.WARN,
    "The action if more tables are captured: a warning (warn) or a stop (fail).",
)
STATISTICS = Property(
    "statistics.metrics.enabled",
    boolean(),
    True,
    "Quantiles of the lag in MBeans.",
    Status.WITHOUT_EFFECT,
    _JMX,
)
MEMORY_SCHEMAS = Property(
    "memory.management.schemas.class",
    text(),
    "io.debezium.relational.ConcurrentMapTableMappingStorage",
    "The class that stores schemas.",
    Status.WITHOUT_EFFECT,
    _MEMORY,
)
MEMORY_TABLES = Property(
    "memory.management.tables.class",
    text(),
    "io.debezium.relational.ConcurrentMapTableMappingStorage",
    "The class that stores tables.",
    Status.WITHOUT_EFFECT,
    _MEMORY,
)
OPENTELEMETRY = Property(
    "rowtide.opentelemetry.enabled",
    boolean(),
    False,
    "Send traces and metrics to an OpenTelemetry collector; the variables `OTEL_*` of the environment say where and "
    "how. Needs the extra `otel`.",
)
_OL = "openlineage.integration."
LINEAGE = Property(
    f"{_OL}enabled",
    boolean(),
    False,
    "Send OpenLineage's events of the connector, its tables and its topics. Needs the extra `openlineage`.",
)
LINEAGE_FILE = Property(
    f"{_OL}config.file.path",
    text(),
    "./openlineage.yml",
    "The file with the configuration of OpenLineage's client, such as `transport: {type: http, url: …}`.",
)
LINEAGE_NAMESPACE = Property(
    f"{_OL}job.namespace", optional(text()), None, "Namespace of the job.", default_text="topic.prefix"
)
LINEAGE_DESCRIPTION = Property(
    f"{_OL}job.description", text(), "Debezium change data capture job", "Description of the job."
)
LINEAGE_TAGS = Property(f"{_OL}job.tags", names(), (), "Tags of the job: name=value, ….", default_text="")
LINEAGE_OWNERS = Property(f"{_OL}job.owners", names(), (), "Owners of the job: name=role, ….", default_text="")
LINEAGE_KAFKA = Property(
    f"{_OL}dataset.kafka.bootstrap.servers",
    optional(text()),
    None,
    "The Kafka brokers in the names of topics; the first one is used.",
    default_text="bootstrap.servers",
)
POSITION_CHECK = Property(
    "internal.log.position.check.enable",
    boolean(),
    True,
    "At each start and reconnect, check that the server still has every change after the stored position.",
)
MIRROR_DIRECTORY = Property(
    "rowtide.mirror.directory",
    optional(text()),
    None,
    "A directory that rowtide mirror writes. The part of the binlog that the server has purged is read from there.",
)
MIRROR_READ = Property(
    "rowtide.mirror.read",
    choice(MirrorRead),
    MirrorRead.PURGED,
    "What is read from the mirror: only the part of the binlog that the server has purged, or always everything, which "
    "reduces the load on the server.",
)
ACTIVITY_MONITOR = Property(
    "internal.offset.activity.monitor.interval.ms",
    long(0),
    600000,
    "How often Debezium checks that offsets advance.",
    Status.WITHOUT_EFFECT,
    "the lag is a metric",
)
ADVANCED_METRICS = Property(
    "internal.advanced.metrics.enable",
    boolean(),
    False,
    "Counters per table in MBeans.",
    Status.WITHOUT_EFFECT,
    _JMX,
)
