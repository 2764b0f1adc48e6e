"""Makes the tree of values out of properties, and checks what single properties cannot tell; pure."""

import re
from collections.abc import Mapping
from typing import TypeVar

from rowtide.connector.config import clients
from rowtide.connector.config.catalogue import capture, connect, connection, history, running, snapshot, topics, values
from rowtide.connector.config.choices import ExactlyOnce, ExactlyOnceSource, SslMode
from rowtide.connector.config.clients import ClientKind, ClientSettings
from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.config.model import (
    CaptureConfig,
    Configuration,
    ConvertersConfig,
    DatabaseConfig,
    DeliveryConfig,
    FailureConfig,
    GuardrailConfig,
    HeartbeatConfig,
    HistoryConfig,
    JsonConverterConfig,
    KafkaConfig,
    Plugin,
    Properties,
    SnapshotConfig,
    SnapshotFlags,
    StreamingConfig,
    Tls,
    TopicsConfig,
    ValuesConfig,
)
from rowtide.connector.config.property import Flavor, Property
from rowtide.connector.config.reader import Reader
from rowtide.connector.config.secret import MASK, Sanitizer, Secret
from rowtide.topics.column_rules import ColumnRules, is_rule_name, parse_rule_name
from rowtide.topics.filters import (
    ColumnFilter,
    ColumnSelector,
    MessageKeys,
    Patterns,
    Selection,
    TableFilter,
    TypeSelector,
)
from rowtide.topics.java_regex import InvalidPatternError, Replacement, compile_java
from rowtide.topics.naming import Parts, Routing, StandardNaming
from rowtide.topics.settings import TopicCreation, TopicGroup, TopicSettings, topic_patterns

T = TypeVar("T")


def build(properties: Mapping[str, str], written: Mapping[str, str] | None = None) -> Configuration:
    """Check properties and make a configuration of them.

    Args:
        properties: Debezium's, Kafka Connect's and Kafka's properties, references resolved.
        written: the same with their references, for showing; by default ``properties``.

    Raises:
        ConfigurationError: with every problem that was found.
    """
    sanitizer = _sanitizer(properties)
    reader = Reader(properties, _flavor(properties), sanitizer)
    _flavors_agree(reader)
    kafka, history_config = _kafka(reader), _history(reader)
    delivery = _delivery(reader, kafka.producer)
    configuration = Configuration(
        name=reader[connection.NAME] or reader[connection.TOPIC_PREFIX],
        flavor=reader.flavor,
        database=_database(reader),
        capture=_capture(reader),
        values=_values(reader),
        failure=_failure(reader),
        snapshot=_snapshot(reader),
        streaming=_streaming(reader),
        topics=_topics(reader),
        heartbeat=HeartbeatConfig(reader[running.HEARTBEAT_INTERVAL], reader[running.HEARTBEAT_QUERY]),
        history=history_config,
        converters=_converters(reader),
        delivery=delivery,
        kafka=kafka,
        transforms=_plugins(reader, connect.TRANSFORMS),
        predicates=_plugins(reader, connect.PREDICATES),
        guardrail=GuardrailConfig(reader[running.GUARDRAIL_MAX], reader[running.GUARDRAIL_ACTION]),
        metric_tags=_metric_tags(reader),
        warnings=tuple(reader.notes),
        sanitizer=sanitizer,
        properties=Properties(properties if written is None else written),
    )
    if reader.problems:
        raise ConfigurationError(reader.problems)
    return configuration


def _sanitizer(properties: Mapping[str, str]) -> Sanitizer:
    try:
        return Sanitizer(properties.get(running.SANITIZE_PATTERN.name) or running.SANITIZE_PATTERN.default)
    except InvalidPatternError:  # reported with the other properties
        return Sanitizer()


def _flavor(properties: Mapping[str, str]) -> Flavor:
    flavor = properties.get(connection.DATABASE_FLAVOR.name, "").strip().lower()
    if flavor in set(Flavor):
        return Flavor(flavor)
    return connection.CONNECTORS.get(properties.get(connection.CONNECTOR_CLASS.name, "").strip().lower(), Flavor.MYSQL)


def _flavors_agree(reader: Reader) -> None:
    name = reader[connection.CONNECTOR_CLASS]
    if name is None:
        return
    flavor = connection.CONNECTORS.get(name.strip().lower())
    if flavor is None:
        known = "io.debezium.connector.mysql.MySqlConnector, io.debezium.connector.mariadb.MariaDbConnector"
        reader.problem(connection.CONNECTOR_CLASS.name, f"must be one of {known}, not {name!r}")
    elif reader[connection.DATABASE_FLAVOR] not in (None, flavor):
        reader.problem(connection.DATABASE_FLAVOR.name, f"says another kind of server than connector.class={name}")


def _database(reader: Reader) -> DatabaseConfig:
    default_mode = SslMode.PREFERRED if reader.flavor is Flavor.MYSQL else SslMode.DISABLED
    zone = (connection.TIME_ZONE, connection.TIME_ZONE_OLD, connection.TIME_ZONE_MARIADB)
    return DatabaseConfig(
        hostname=reader[connection.HOSTNAME],
        port=reader[connection.PORT],
        user=reader[connection.USER],
        password=reader[connection.PASSWORD] or Secret(""),
        server_id=reader[connection.SERVER_ID],
        tls=Tls(
            reader[connection.SSL_MODE] or default_mode,
            reader[connection.SSL_KEYSTORE],
            reader[connection.SSL_KEYSTORE_PASSWORD],
            reader[connection.SSL_TRUSTSTORE],
        ),
        query_timeout_ms=reader[connection.QUERY_TIMEOUT],
        initial_statements=split_statements(reader[connection.INITIAL_STATEMENTS]),
        time_zone=next((reader[name] for name in zone if reader[name]), None),
        connect_timeout_ms=reader[connection.CONNECT_TIMEOUT],
        validation_timeout_ms=reader[connection.VALIDATION_TIMEOUT],
        keep_alive_interval_ms=reader[connection.KEEP_ALIVE_INTERVAL] if reader[connection.KEEP_ALIVE] else 0,
        net_write_timeout=reader[connection.NET_WRITE_TIMEOUT],
        net_read_timeout=reader[connection.NET_READ_TIMEOUT],
    )


def split_statements(text: str) -> tuple[str, ...]:
    """Take SQL statements apart at ``;``, where ``;;`` is a semicolon."""
    parts = re.split(r"(?<!;);(?!;)", text)
    return tuple(part.replace(";;", ";").strip() for part in parts if part.strip())


def _selection(reader: Reader, include: Property[Patterns | None], exclude: Property[Patterns | None]) -> Selection:
    reader.exclusive(include, exclude)
    return Selection(reader[include], reader[exclude])


def _capture(reader: Reader) -> CaptureConfig:
    return CaptureConfig(
        tables=TableFilter(
            _selection(reader, capture.DATABASE_INCLUDE, capture.DATABASE_EXCLUDE),
            _selection(reader, capture.TABLE_INCLUDE, capture.TABLE_EXCLUDE),
            reader[capture.IGNORE_BUILTIN],
            frozenset(
                table
                for name in reader[capture.SIGNAL_COLLECTION]
                if (table := _table(reader, capture.SIGNAL_COLLECTION.name, name)) is not None
            ),
        ),
        columns=ColumnFilter(_selection(reader, capture.COLUMN_INCLUDE, capture.COLUMN_EXCLUDE)),
        keys=_keys(reader),
        skipped_operations=_skipped(reader),
        skip_messages_without_change=reader[capture.SKIP_UNCHANGED],
        gtid_sources=_selection(reader, capture.GTID_INCLUDES, capture.GTID_EXCLUDES),
        gtid_filter_dml=reader[capture.GTID_FILTER_DML],
        gtid_ignore_on_recovery=reader[capture.GTID_IGNORE_ON_RECOVERY],
    )


def _table(reader: Reader, property_name: str, name: str) -> tuple[str, str] | None:
    """A table's name in two parts; quotes keep a dot within one."""
    parts = re.fullmatch(r"(`[^`]+`|[^.`]+)\.(`[^`]+`|[^`]+)", name.strip())
    if parts is None:
        reader.problem(property_name, f"{name!r} is not of the form database.table")
        return None
    return parts[1].strip("`"), parts[2].strip("`")


def _keys(reader: Reader) -> MessageKeys:
    try:
        return MessageKeys.parse(reader[capture.MESSAGE_KEY_COLUMNS])
    except ValueError as error:
        reader.problem(capture.MESSAGE_KEY_COLUMNS.name, str(error))
        return MessageKeys()


def _skipped(reader: Reader) -> frozenset[str]:
    operations = frozenset(operation.lower() for operation in reader[capture.SKIPPED_OPERATIONS])
    name = capture.SKIPPED_OPERATIONS.name
    if strange := operations - set("cudt") - {"none"}:
        reader.problem(name, f"may hold c, u, d, t, or be none; {', '.join(sorted(strange))} is not one of them")
    elif "none" in operations and len(operations) > 1:
        reader.problem(name, "must hold nothing else when it holds 'none'")
    return operations - {"none"}


def _rules(reader: Reader) -> ColumnRules:
    valid: dict[str, str] = {}
    for name, text in reader.properties.items():
        if is_rule_name(name):
            shown = re.sub(r"(?s)(?<=with\.salt\.).*", MASK, name)  # the salt is a secret within a name
            try:
                parse_rule_name(name)
                Patterns.parse(text)
            except ValueError as error:
                reader.problem(shown, str(error))
            else:
                valid[name] = text
    return ColumnRules.parse(valid)


def _values(reader: Reader) -> ValuesConfig:
    placeholder = reader[values.UNAVAILABLE_PLACEHOLDER]
    if placeholder.startswith("hex:"):
        try:
            bytes.fromhex(placeholder.removeprefix("hex:"))
        except ValueError:
            reader.problem(values.UNAVAILABLE_PLACEHOLDER.name, "must have pairs of hexadecimal digits after 'hex:'")
    return ValuesConfig(
        decimal=reader[values.DECIMAL_HANDLING],
        bigint_unsigned=reader[values.BIGINT_UNSIGNED_HANDLING],
        time_precision=reader[values.TIME_PRECISION],
        binary=reader[values.BINARY_HANDLING],
        time_adjuster=reader[values.TIME_ADJUSTER],
        schema_name_adjustment=reader[values.SCHEMA_NAME_ADJUSTMENT],
        field_name_adjustment=reader[values.FIELD_NAME_ADJUSTMENT],
        column_rules=_rules(reader),
        propagate_columns=ColumnSelector(reader[values.COLUMN_PROPAGATE]),
        propagate_types=TypeSelector(reader[values.DATATYPE_PROPAGATE]),
        unavailable_placeholder=placeholder,
        source_struct_version=reader[values.SOURCE_STRUCT_VERSION],
        include_query=reader[values.INCLUDE_QUERY],
        include_schema_comments=reader[values.INCLUDE_SCHEMA_COMMENTS],
        tombstones=reader[values.TOMBSTONES],
        extended_headers=reader[values.EXTENDED_HEADERS],
        transaction_metadata=reader[values.TRANSACTION_METADATA],
    )


def _failure(reader: Reader) -> FailureConfig:
    event = reader[values.EVENT_FAILURE]
    if not reader.given(values.EVENT_FAILURE):
        event = reader[values.EVENT_FAILURE_OLD] or event
    return FailureConfig(
        event_processing=event,
        event_converting=reader[values.CONVERTING_FAILURE],
        inconsistent_schema=reader[values.INCONSISTENT_SCHEMA],
        max_retries=reader[values.MAX_RETRIES],
        retry_wait_ms=reader[values.RETRY_WAIT],
    )


def _snapshot(reader: Reader) -> SnapshotConfig:
    overrides: dict[tuple[str, str], str] = {}
    listed: set[str] = set()
    prefix = f"{snapshot.OVERRIDES.name}."
    for name in reader[snapshot.OVERRIDES]:
        query_name = prefix + name
        listed.add(query_name)
        table = _table(reader, snapshot.OVERRIDES.name, name)
        query = reader.properties.get(query_name, "").strip()
        if not query:
            reader.problem(query_name, f"is required, since {snapshot.OVERRIDES.name} names the table")
        elif table is not None:
            overrides[table] = query
    for name in reader.properties:
        if name.startswith(prefix) and name not in listed:
            reader.problem(name, f"has no effect unless {snapshot.OVERRIDES.name} names {name.removeprefix(prefix)}")
    return SnapshotConfig(
        mode=reader[snapshot.MODE],
        flags=SnapshotFlags(
            reader[snapshot.BASED_SNAPSHOT_DATA],
            reader[snapshot.BASED_SNAPSHOT_SCHEMA],
            reader[snapshot.BASED_START_STREAM],
            reader[snapshot.BASED_ON_SCHEMA_ERROR],
            reader[snapshot.BASED_ON_DATA_ERROR],
        ),
        locking=reader[snapshot.LOCKING_MODE],
        include=reader[snapshot.INCLUDE_COLLECTIONS],
        select_overrides=overrides,
        order=reader[snapshot.ORDER],
        delay_ms=reader[snapshot.DELAY],
        lock_timeout_ms=reader[snapshot.LOCK_TIMEOUT],
    )


def _streaming(reader: Reader) -> StreamingConfig:
    queue, batch = reader[running.MAX_QUEUE_SIZE], reader[running.MAX_BATCH_SIZE]
    if queue <= batch:
        reader.problem(
            running.MAX_QUEUE_SIZE.name, f"must be greater than max.batch.size, but {queue} is not above {batch}"
        )
    return StreamingConfig(
        max_queue_size=queue,
        max_batch_size=batch,
        max_queue_bytes=reader[running.MAX_QUEUE_BYTES],
        poll_interval_ms=reader[running.POLL_INTERVAL],
        delay_ms=reader[snapshot.STREAMING_DELAY],
        shutdown_timeout_ms=reader[running.SHUTDOWN_TIMEOUT],
        check_position=reader[running.POSITION_CHECK],
    )


def _topics(reader: Reader) -> TopicsConfig:
    strategy = reader[topics.NAMING_STRATEGY].rpartition(".")[2]
    heartbeat = reader[topics.HEARTBEAT_PREFIX]
    if not reader.given(topics.HEARTBEAT_PREFIX):
        heartbeat = reader[topics.HEARTBEAT_PREFIX_OLD] or heartbeat
    return TopicsConfig(
        prefix=reader[connection.TOPIC_PREFIX],
        naming=StandardNaming(
            prefix=reader[connection.TOPIC_PREFIX],
            parts=Parts.TABLE if strategy.startswith("Schema") else Parts.DATABASE_AND_TABLE,
            unicode="Unicode" in strategy,
            delimiter=reader[topics.DELIMITER],
            heartbeat_prefix=heartbeat,
            heartbeat_name=reader[topics.HEARTBEAT_NAME],
            transaction_suffix=reader[topics.TRANSACTION],
            routing=_routing(reader, strategy),
        ),
        creation=_creation(reader),
        include_schema_changes=reader[values.INCLUDE_SCHEMA_CHANGES],
    )


def _routing(reader: Reader, strategy: str) -> Routing | None:
    only_regex = (topics.REGEX, topics.REPLACEMENT, topics.KEY_FIELD_REGEX, topics.KEY_FIELD_REPLACEMENT)
    if "Regex" not in strategy:
        for property_ in only_regex:
            if reader.given(property_):
                reader.problem(property_.name, f"has no effect with {strategy}; use DefaultRegexTopicNamingStrategy")
        return None
    topic = _replacement(reader, topics.REGEX, topics.REPLACEMENT, required=True)
    key = _replacement(reader, topics.KEY_FIELD_REGEX, topics.KEY_FIELD_REPLACEMENT, required=False)
    if topic is None:
        return None
    return Routing(topic, key, reader[topics.KEY_FIELD_NAME], reader[topics.KEY_UNIQUENESS])


def _replacement(
    reader: Reader, regex: Property[str | None], text: Property[str | None], *, required: bool
) -> Replacement | None:
    pattern, replacement = reader[regex], reader[text]
    if pattern is None or replacement is None:
        if required or pattern != replacement:
            for property_ in (regex, text):
                if reader[property_] is None and not reader.given(property_):
                    other = text if property_ is regex else regex
                    why = (
                        f"when {topics.NAMING_STRATEGY.name} is a Regex strategy" if required else f"with {other.name}"
                    )
                    reader.problem(property_.name, f"is required {why}")
        return None
    try:
        return Replacement(replacement, compile_java(pattern, ignore_case=required))
    except ValueError as error:
        reader.problem(text.name, str(error))
        return None


def _creation(reader: Reader) -> TopicCreation:
    default = _topic_settings(reader, "default", {})
    groups: list[TopicGroup] = []
    for name in reader[connect.CREATION_GROUPS]:
        options = _below(reader.properties, f"topic.creation.{name}.")
        try:
            groups.append(
                TopicGroup(
                    name,
                    topic_patterns(options.pop("include", "")),
                    topic_patterns(options.pop("exclude", "")),
                    _topic_settings(
                        reader,
                        name,
                        {"replication.factor": default.replication_factor, "partitions": default.partitions},
                    ),
                )
            )
        except InvalidPatternError as error:
            reader.problem(f"topic.creation.{name}.include", str(error))
        if not reader.properties.get(f"topic.creation.{name}.include", "").strip():
            reader.problem(
                f"topic.creation.{name}.include", f"is required, since {connect.CREATION_GROUPS.name} names the group"
            )
    known = {"default", "enable", "groups", *reader[connect.CREATION_GROUPS]}
    for name in reader.properties:
        if name.startswith("topic.creation.") and name.count(".") > 2 and name.split(".")[2] not in known:
            reader.problem(
                name, f"has no effect unless {connect.CREATION_GROUPS.name} names the group {name.split('.')[2]!r}"
            )
    return TopicCreation(reader[connect.TOPIC_CREATION], default, tuple(groups))


def _topic_settings(reader: Reader, group: str, inherited: Mapping[str, int]) -> TopicSettings:
    prefix = f"topic.creation.{group}."
    options = _below(reader.properties, prefix)
    numbers = {"replication.factor": 32767, "partitions": 2**31 - 1}
    found: dict[str, int] = {}
    for name, most in numbers.items():
        text = options.pop(name, "").strip()
        found[name] = inherited.get(name, -1)
        if text:
            if re.fullmatch(r"-1|[1-9][0-9]*", text) and int(text) <= most:
                found[name] = int(text)
            else:
                reader.problem(prefix + name, f"must be positive, or -1 for the broker's default, not {text!r}")
    options.pop("include", None)
    options.pop("exclude", None)
    return TopicSettings(found["partitions"], found["replication.factor"], options)


def _below(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}


def _plugins(reader: Reader, names: Property[tuple[str, ...]]) -> tuple[Plugin, ...]:
    plugins: list[Plugin] = []
    for name in reader[names]:
        options = _below(reader.properties, f"{names.name}.{name}.")
        kind = options.pop("type", "").strip()
        if not kind:
            reader.problem(f"{names.name}.{name}.type", f"is required, since {names.name} names {name}")
        plugins.append(Plugin(name, kind, options))
    return tuple(plugins)


def _metric_tags(reader: Reader) -> dict[str, str]:
    tags: dict[str, str] = {}
    for item in reader[running.METRIC_TAGS]:
        name, equals, value = item.partition("=")
        if not equals or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name.strip()):
            reader.problem(running.METRIC_TAGS.name, f"{item!r} is not of the form name=value")
        tags[name.strip()] = value.strip()
    return tags


def _converters(reader: Reader) -> ConvertersConfig:
    return ConvertersConfig(
        JsonConverterConfig(reader[connect.KEY_SCHEMAS], reader[connect.KEY_DECIMAL], reader[connect.KEY_NULLS]),
        JsonConverterConfig(reader[connect.VALUE_SCHEMAS], reader[connect.VALUE_DECIMAL], reader[connect.VALUE_NULLS]),
    )


def _delivery(reader: Reader, producer: ClientSettings) -> DeliveryConfig:
    required = reader[connect.EXACTLY_ONCE] is ExactlyOnce.REQUIRED
    worker = reader[connect.EXACTLY_ONCE_SOURCE]
    if required and reader.given(connect.EXACTLY_ONCE_SOURCE) and worker is ExactlyOnceSource.DISABLED:
        reader.problem(
            connect.EXACTLY_ONCE.name, "required is not possible with exactly.once.source.support=disabled; enable it"
        )
    exactly_once = required or worker is ExactlyOnceSource.ENABLED
    if exactly_once:
        _transactional(reader, producer)
    return DeliveryConfig(
        exactly_once=exactly_once,
        boundary=reader[connect.BOUNDARY],
        boundary_interval_ms=reader[connect.BOUNDARY_INTERVAL] or reader[connect.OFFSET_FLUSH_INTERVAL],
        offset_topic=reader[connect.OFFSETS_TOPIC] or reader[connect.OFFSET_TOPIC],
        offset_topic_settings=TopicSettings(
            reader[connect.OFFSET_PARTITIONS], reader[connect.OFFSET_REPLICATION], {"cleanup.policy": "compact"}
        ),
        offset_flush_interval_ms=reader[connect.OFFSET_FLUSH_INTERVAL],
        offset_flush_timeout_ms=reader[connect.OFFSET_FLUSH_TIMEOUT],
        shutdown_timeout_ms=reader[connect.SHUTDOWN_TIMEOUT],
    )


def _transactional(reader: Reader, producer: ClientSettings) -> None:
    needed = {"acks": ("all", "-1"), "enable.idempotence": ("true",)}
    for setting, allowed in needed.items():
        value = producer.get(setting)
        if value is not None and value.strip().lower() not in allowed:
            reader.problem(
                f"producer.override.{setting}", f"must be {allowed[0]} for delivery exactly once, not {value!r}"
            )


def _clients(reader: Reader, kind: ClientKind, prefixes: tuple[str, ...]) -> ClientSettings:
    """The settings for one client: those for all clients, then those below each prefix, later ones over earlier."""
    common = {name: text for name, text in reader.properties.items() if _COMMON.fullmatch(name)}
    settings, problems = clients.translate(kind, "", common, strict=False)
    for prefix, given in clients.layers(reader.properties, *prefixes):
        layer, more = clients.translate(kind, prefix, given)
        settings = layer.over(settings)
        problems += more
    for name, message in problems:
        if (name, message) not in reader.problems:
            reader.problem(name, message)
    return settings


_COMMON = re.compile(connect.CLIENTS.pattern)


def _kafka(reader: Reader) -> KafkaConfig:
    brokers = reader[connect.BOOTSTRAP_SERVERS]
    servers = ",".join(brokers)
    _check_servers(reader, connect.BOOTSTRAP_SERVERS.name, brokers)
    base = {"bootstrap.servers": servers}
    return KafkaConfig(
        bootstrap_servers=servers,
        producer=_clients(reader, ClientKind.PRODUCER, ("producer.", "producer.override.")).over(base),
        consumer=_clients(reader, ClientKind.CONSUMER, ("consumer.", "consumer.override.")).over(base),
        admin=_clients(reader, ClientKind.ADMIN, ("admin.", "admin.override.")).over(base),
    )


def _check_servers(reader: Reader, name: str, servers: tuple[str, ...]) -> None:
    for server in servers:
        if not re.fullmatch(r"(?:[A-Z_]+://)?(?:\[[0-9a-fA-F:%.]+\]|[a-zA-Z0-9_.\-]+):[0-9]{1,5}", server):
            reader.problem(name, f"{server!r} is not of the form host:port")


def _history(reader: Reader) -> HistoryConfig:
    kind = reader[history.IMPLEMENTATION]
    topic = reader[history.TOPIC] if kind == history.KAFKA_HISTORY else None
    file = reader[history.FILE_NAME] if kind == history.FILE_HISTORY else None
    if kind == history.KAFKA_HISTORY and not reader.given(history.TOPIC):
        reader.problem(history.TOPIC.name, f"is required. {history.TOPIC.doc}")
    if kind == history.FILE_HISTORY and file is None:
        reader.problem(history.FILE_NAME.name, f"is required. {history.FILE_NAME.doc}")
    brokers = reader[connect.BOOTSTRAP_SERVERS]
    servers = reader[history.SERVERS] or ",".join(brokers)
    if reader.given(history.SERVERS):
        _check_servers(reader, history.SERVERS.name, tuple(item.strip() for item in servers.split(",")))
    base = {"bootstrap.servers": servers}
    producer = f"{history.P}.producer."
    consumer = f"{history.P}.consumer."
    return HistoryConfig(
        topic=topic,
        file=file,
        producer=_clients(reader, ClientKind.PRODUCER, (producer,)).over(base),
        consumer=_clients(reader, ClientKind.CONSUMER, (consumer,)).over(base),
        admin=_history_admin(reader, producer).over(base),
        recovery_poll_interval_ms=reader[history.POLL_INTERVAL],
        recovery_attempts=reader[history.RECOVERY_ATTEMPTS],
        query_timeout_ms=reader[history.QUERY_TIMEOUT],
        create_timeout_ms=reader[history.CREATE_TIMEOUT],
        buffer_batch_size=reader[history.BUFFER_SIZE],
        skip_unparseable_ddl=reader[history.SKIP_UNPARSEABLE],
        store_only_captured_tables=reader[history.ONLY_CAPTURED_TABLES],
        store_only_captured_databases=reader[history.ONLY_CAPTURED_DATABASES],
        prefer_ddl=reader[history.PREFER_DDL],
        ddl_filter=reader[history.DDL_FILTER] or reader[history.DDL_FILTER_INTERNAL],
    )


def _history_admin(reader: Reader, prefix: str) -> ClientSettings:
    """Debezium creates the history's topic with its producer's settings; what is not an admin's is left out."""
    settings = _clients(reader, ClientKind.ADMIN, ())
    layer, _ = clients.translate(ClientKind.ADMIN, prefix, _below(reader.properties, prefix), strict=False)
    return layer.over(settings)
