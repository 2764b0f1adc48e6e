"""Checks that a connector's configuration allows messages in databus' form."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rowtide.connector.config import Configuration, ConfigurationError, Problem, load_invalid, read_properties
from rowtide.connector.config.catalogue import capture, connect, converters, databus, history, snapshot, values
from rowtide.connector.config.choices import NewTables, SnapshotMode, SourceStructVersion
from rowtide.connector.config.model import JsonConverterConfig
from rowtide.topics.naming import OneTopic

_WITHOUT_ROWS = frozenset({SnapshotMode.NO_DATA, SnapshotMode.RECOVERY})


def load_server(paths: Sequence[str], more: Mapping[str, str]) -> tuple[Configuration, tuple[Problem, ...]]:
    """Load the configuration of a databus server. ``snapshot.mode`` is ``no_data`` by default.

    All tables share the topic of the server, so topic names cannot clash.

    Args:
        paths: the configuration files; each overrides those before it.
        more: properties that override those of the files.

    Returns:
        The configuration, in which invalid properties have their defaults, and all problems.

    Raises:
        ConfigurationError: a file cannot be read, or has a syntax error.
    """
    written = read_properties(paths)[0]
    default = {} if snapshot.MODE.name in written else {snapshot.MODE.name: "no_data"}
    config, problems = load_invalid(paths, more={**default, **more})
    invalid = {problem.property for problem in problems}
    if config.databus.topic is not None:
        naming = OneTopic(config.databus.topic, config.topics.naming)
        config = replace(config, topics=replace(config.topics, naming=naming))
    return config, (*problems, *(problem for problem in _problems(config) if problem.property not in invalid))


def checked_topic(config: Configuration) -> str:
    """Return the topic of the messages.

    Raises:
        ConfigurationError: with all unsuitable properties.
    """
    problems = [*_problems(config)]
    if problems or config.databus.topic is None:
        raise ConfigurationError(problems)
    return config.databus.topic


def _problems(config: Configuration) -> Iterator[Problem]:
    if config.databus.topic is None:
        yield Problem(databus.TOPIC.name, "is required: the topic of all messages")
    elif other := _other_use(config, config.databus.topic):
        yield Problem(databus.TOPIC.name, f"must not be {config.databus.topic}, which is {other}: use another topic")
    if config.delivery.sink != "kafka":
        yield Problem(connect.SINK.name, f"must be kafka, not {config.delivery.sink}: databus' clients read Kafka")
    if config.snapshot.mode not in _WITHOUT_ROWS:
        yield Problem(
            snapshot.MODE.name,
            f"must be no_data or recovery, not {config.snapshot.mode}: the topic has changes only. Clients that begin "
            "with the rows read a dump",
        )
    if config.snapshot.incremental.new_tables is NewTables.INCREMENTAL:
        yield Problem(snapshot.NEW_TABLES.name, "must not be incremental: the topic has no rows of snapshots")
    if config.delivery.standby and config.databus.zookeeper:
        yield Problem(
            connect.STANDBY.name, f"must be false with {databus.ZOOKEEPER.name}, which decides which server runs"
        )
    refused = {
        connect.TRANSFORMS.name: bool(config.transforms),
        converters.KEY.converter.name: not isinstance(config.converters.key, JsonConverterConfig),
        converters.VALUE.converter.name: not isinstance(config.converters.value, JsonConverterConfig),
        "column.mask and column.truncate": bool(config.values.column_rules.rules),
        capture.SKIP_UNCHANGED.name: config.capture.skip_messages_without_change,
        values.MINIMAL_ROW_IMAGES.name: config.values.minimal_row_images,
        values.TRANSACTION_METADATA.name: config.values.transaction_metadata,
        values.SOURCE_STRUCT_VERSION.name: config.values.source_struct_version is SourceStructVersion.V1,
    }
    for name, is_set in refused.items():
        if is_set:
            yield Problem(name, "has no counterpart in the messages of databus: omit it")


def _other_use(config: Configuration, topic: str) -> str | None:
    """Return the property that uses the topic for another purpose."""
    used = {
        config.history.topic: history.TOPIC.name,
        config.delivery.offset_topic: connect.OFFSET_TOPIC.name,
        config.topics.naming.heartbeat: "that of heartbeats",
    }
    return used.get(topic)
