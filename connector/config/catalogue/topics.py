"""Names and settings of topics, signals and notifications."""

from rowtide.connector.config.catalogue.kinds import boolean, integer, java_pattern, long, names, optional, text
from rowtide.connector.config.catalogue.property import Family, Property, Status

TITLE = "Topics, signals, notifications"

_TOPIC = r"[a-zA-Z0-9_.\-]+"
_TOPIC_RULE = "may only have letters of ASCII, digits, '.', '_' and '-'"
_SIGNALS = "signals are not read yet"

STRATEGIES = (
    "DefaultTopicNamingStrategy",
    "SchemaTopicNamingStrategy",
    "DefaultRegexTopicNamingStrategy",
    "SchemaRegexTopicNamingStrategy",
    "DefaultUnicodeTopicNamingStrategy",
    "SchemaUnicodeTopicNamingStrategy",
)
NAMING_STRATEGY = Property(
    "topic.naming.strategy",
    text(
        rf"(?:io\.debezium\.schema\.)?(?:{'|'.join(STRATEGIES)})",
        "must be one of io.debezium.schema." + ", ".join(STRATEGIES),
    ),
    "io.debezium.schema.DefaultTopicNamingStrategy",
    "How a table's topic is named: `prefix.database.table` (Default…), `prefix.table` (Schema…), names rewritten by "
    "topic.regex (…Regex…), characters that Kafka does not allow as `_uXXXX` (…Unicode…) instead of `_`.",
)
DELIMITER = Property(
    "topic.delimiter", text(_TOPIC, _TOPIC_RULE), ".", "What stands between the parts of a topic's name."
)
CACHE_SIZE = Property(
    "topic.cache.size", integer(1), 10000, "Names kept in memory.", Status.WITHOUT_EFFECT, "every name is kept"
)
HEARTBEAT_PREFIX = Property(
    "topic.heartbeat.prefix",
    text(_TOPIC, _TOPIC_RULE),
    "__debezium-heartbeat",
    "The heartbeat topic is `<this>.<topic.prefix>`.",
)
HEARTBEAT_PREFIX_OLD = Property(
    "heartbeat.topics.prefix",
    optional(text(_TOPIC, _TOPIC_RULE)),
    None,
    "Older name of `topic.heartbeat.prefix`.",
)
HEARTBEAT_NAME = Property(
    "topic.heartbeat.name", optional(text(_TOPIC, _TOPIC_RULE)), None, "The whole name of the heartbeat topic."
)
TRANSACTION = Property(
    "topic.transaction",
    text(_TOPIC, _TOPIC_RULE),
    "transaction",
    "The topic of transaction metadata is `<topic.prefix>.<this>`.",
)
REGEX = Property(
    "topic.regex",
    optional(java_pattern()),
    None,
    "…Regex… strategies: names of topics that are rewritten; must match the whole name.",
)
REPLACEMENT = Property(
    "topic.replacement", optional(text()), None, "…Regex… strategies: the new name, with `$1` or `${group}`."
)
KEY_UNIQUENESS = Property(
    "topic.key.enforce.uniqueness",
    boolean(),
    True,
    "…Regex… strategies: add a field to keys that tells the joined tables apart.",
)
KEY_FIELD_NAME = Property(
    "topic.key.field.name", text(), "__dbz__physicalTableIdentifier", "…Regex… strategies: the name of that field."
)
KEY_FIELD_REGEX = Property(
    "topic.key.field.regex",
    optional(java_pattern()),
    None,
    "…Regex… strategies: on a table's own topic name, for that field's value.",
)
KEY_FIELD_REPLACEMENT = Property(
    "topic.key.field.replacement", optional(text()), None, "…Regex… strategies: that field's value."
)
SIGNAL_CHANNELS = Property(
    "signal.enabled.channels",
    names(),
    ("source",),
    "Where signals come from.",
    Status.NOT_YET,
    _SIGNALS,
    default_text="source",
)
SIGNAL_POLL = Property(
    "signal.poll.interval.ms", long(0), 5000, "How often to look for signals.", Status.WITHOUT_EFFECT, _SIGNALS
)
SIGNAL_RETRIES = Property(
    "signal.emit.failure.max.retries", integer(-1), 0, "Retries of writing watermarks.", Status.NOT_YET, _SIGNALS
)
SIGNAL_BACKOFF = Property(
    "signal.emit.failure.backoff.ms", long(0), 10000, "Pause between them.", Status.NOT_YET, _SIGNALS
)
SIGNAL_TOPIC = Property("signal.kafka.topic", optional(text()), None, "Topic of signals.", Status.NOT_YET, _SIGNALS)
SIGNAL_GROUP = Property(
    "signal.kafka.groupId", text(), "kafka-signal", "Consumer group that reads signals.", Status.NOT_YET, _SIGNALS
)
SIGNAL_SERVERS = Property(
    "signal.kafka.bootstrap.servers", optional(text()), None, "Kafka of the signals.", Status.NOT_YET, _SIGNALS
)
SIGNAL_POLL_TIMEOUT = Property(
    "signal.kafka.poll.timeout.ms", integer(0), 0, "How long to wait for signals.", Status.NOT_YET, _SIGNALS
)
SIGNAL_CONSUMER = Family(
    "signal.consumer.*", r"signal\.consumer\..+", "The signals' Kafka consumer.", Status.NOT_YET, _SIGNALS
)
SIGNAL_FILE = Property("signal.file", text(), "file-signals.txt", "File of signals.", Status.NOT_YET, _SIGNALS)
NOTIFICATION_CHANNELS = Property(
    "notification.enabled.channels",
    names(),
    (),
    "Where notifications about snapshots go: `sink` (a topic), `log`, or both.",
    default_text="",
)
NOTIFICATION_TOPIC = Property(
    "notification.sink.topic.name", optional(text(_TOPIC, _TOPIC_RULE)), None, "Topic of notifications."
)
