"""Properties: names of topics, signals, notifications."""

from rowtide.connector.config.catalogue.kinds import boolean, integer, java_pattern, long, names, optional, text
from rowtide.connector.config.catalogue.property import Family, Property, Status

TITLE = "Topics, signals, notifications"

_TOPIC = r"[a-zA-Z0-9_.\-]+"
_TOPIC_RULE = "may only contain ASCII letters, digits, '.', '_' and '-'"
_WATERMARKS = "nothing is retried: a chunk whose watermarks cannot be written is read by positions in the binlog"

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
    "The names of tables' topics: `prefix.database.table` (Default…), `prefix.table` (Schema…), names rewritten by "
    "topic.regex (…Regex…), `_uXXXX` instead of `_` for characters that Kafka does not allow (…Unicode…).",
)
DELIMITER = Property(
    "topic.delimiter", text(_TOPIC, _TOPIC_RULE), ".", "The separator between the parts of a topic's name."
)
CACHE_SIZE = Property(
    "topic.cache.size", integer(1), 10000, "The number of cached names.", Status.WITHOUT_EFFECT, "all names are cached"
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
    "The former name of `topic.heartbeat.prefix`.",
)
HEARTBEAT_NAME = Property(
    "topic.heartbeat.name", optional(text(_TOPIC, _TOPIC_RULE)), None, "The full name of the heartbeat topic."
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
    "…Regex… strategies: the regular expression for names of topics to rewrite; it must match the whole name.",
)
REPLACEMENT = Property(
    "topic.replacement", optional(text()), None, "…Regex… strategies: the new name, with `$1` or `${group}`."
)
KEY_UNIQUENESS = Property(
    "topic.key.enforce.uniqueness",
    boolean(),
    True,
    "…Regex… strategies: add a field to keys that identifies the table within a shared topic.",
)
KEY_FIELD_NAME = Property(
    "topic.key.field.name", text(), "__dbz__physicalTableIdentifier", "…Regex… strategies: the name of that field."
)
KEY_FIELD_REGEX = Property(
    "topic.key.field.regex",
    optional(java_pattern()),
    None,
    "…Regex… strategies: the regular expression on the table's original topic name that yields that field's value.",
)
KEY_FIELD_REPLACEMENT = Property(
    "topic.key.field.replacement",
    optional(text()),
    None,
    "…Regex… strategies: the replacement that yields that field's value.",
)
SIGNAL_CHANNELS = Property(
    "signal.enabled.channels",
    names(),
    ("source",),
    "The channels of signals: `source`, `kafka`, `file`. HTTP, in place of `jmx`, and calls (`in-process`) are always "
    "possible.",
    default_text="source",
)
SIGNAL_POLL = Property(
    "signal.poll.interval.ms", long(0), 5000, "The interval between two polls of the channels `kafka` and `file`."
)
SIGNAL_RETRIES = Property(
    "signal.emit.failure.max.retries",
    integer(-1),
    0,
    "The number of retries of writing watermarks.",
    Status.WITHOUT_EFFECT,
    _WATERMARKS,
)
SIGNAL_BACKOFF = Property(
    "signal.emit.failure.backoff.ms",
    long(0),
    10000,
    "The delay between these retries.",
    Status.WITHOUT_EFFECT,
    _WATERMARKS,
)
SIGNAL_TOPIC = Property(
    "signal.kafka.topic",
    optional(text(_TOPIC, _TOPIC_RULE)),
    None,
    "The topic of the channel `kafka`: partition 0, records whose key is `topic.prefix`.",
    default_text="<topic.prefix>-signal",
)
SIGNAL_GROUP = Property(
    "signal.kafka.groupId", text(), "kafka-signal", "The consumer group whose position in that topic is committed."
)
SIGNAL_SERVERS = Property(
    "signal.kafka.bootstrap.servers",
    optional(text()),
    None,
    "The Kafka brokers of that topic.",
    default_text="bootstrap.servers",
)
SIGNAL_POLL_TIMEOUT = Property(
    "signal.kafka.poll.timeout.ms", integer(0), 0, "How long a poll waits for records; at least 100."
)
SIGNAL_CONSUMER = Family(
    "signal.consumer.*",
    r"signal\.consumer\..+",
    "Settings of the consumer that reads that topic.",
)
SIGNAL_FILE = Property(
    "signal.file",
    text(),
    "file-signals.txt",
    "The file of the channel `file`: one signal as JSON per line. Lines that are read are removed.",
)
IGNORE_POSITION = Property(
    "rowtide.ignore.set.binlog.position",
    boolean(),
    False,
    "Resume at the stored position although a signal of type `set-binlog-position` has set another one. For one start, "
    "if the other one is wrong.",
)
NOTIFICATION_CHANNELS = Property(
    "notification.enabled.channels",
    names(),
    (),
    "The channels of notifications about snapshots and signals: `sink` (a topic) and `log`. The HTTP endpoint, in "
    "place of `jmx`, always has the last ones.",
    default_text="",
)
NOTIFICATION_TOPIC = Property(
    "notification.sink.topic.name", optional(text(_TOPIC, _TOPIC_RULE)), None, "The topic of notifications."
)
