"""The sections about Kafka: clients, converters, delivery and the schema history; pure."""

import re
from collections.abc import Mapping

from rowtide.connector.config.catalogue import capture, connect, converters, history, snapshot, values
from rowtide.connector.config.choices import (
    ConverterClass,
    ErrorsTolerance,
    ExactlyOnce,
    ExactlyOnceSource,
    FailureHandling,
    LargeRecordsMode,
    ProducerKind,
    TransactionBoundary,
)
from rowtide.connector.config.kafka import clients
from rowtide.connector.config.kafka.clients import ClientKind, ClientSettings
from rowtide.connector.config.kafka.producer_settings import (
    ProducerSettingsError,
    idempotent_settings,
    native_problems,
    transactional_settings,
)
from rowtide.connector.config.model import (
    DeadLettersConfig,
    DeliveryConfig,
    HistoryConfig,
    KafkaConfig,
    LargeRecordsConfig,
)
from rowtide.connector.config.secret import Secret
from rowtide.connector.config.sections.property_reader import PropertyReader
from rowtide.connector.config.sections.source import event_failure
from rowtide.topics.addresses import server_problems, url_problem
from rowtide.topics.internal import history_settings, offsets_settings

_COMMON = re.compile(connect.CLIENTS.pattern)
_PRODUCER = ("producer.", "producer.override.")


def kafka_config(reader: PropertyReader) -> KafkaConfig:
    """Return the settings of Kafka and its clients."""
    brokers = reader[connect.BOOTSTRAP_SERVERS]
    servers = ",".join(brokers)
    if reader.is_set(connect.BOOTSTRAP_SERVERS):
        check_servers(reader, connect.BOOTSTRAP_SERVERS.name, servers)
    base = {"bootstrap.servers": servers}
    return KafkaConfig(
        bootstrap_servers=servers,
        producer=client_settings(reader, ClientKind.PRODUCER, _PRODUCER).over(base),
        consumer=client_settings(reader, ClientKind.CONSUMER, ("consumer.", "consumer.override.")).over(base),
        admin=client_settings(reader, ClientKind.ADMIN, ("admin.", "admin.override.")).over(base),
    )


def client_settings(reader: PropertyReader, kind: ClientKind, prefixes: tuple[str, ...]) -> ClientSettings:
    """Return the settings of one client: those for all clients, overridden by those with each prefix, in order."""
    common = {name: text for name, text in reader.properties.items() if _COMMON.fullmatch(name)}
    settings, problems = clients.translate(kind, "", common, strict=False)
    for prefix, given in clients.layers(reader.properties, *prefixes):
        layer, more = clients.translate(kind, prefix, given)
        settings = layer.over(settings)
        problems += more
    for name, message in problems:
        if (name, message) not in reader.problems:
            reader.problem(name, message)
    return settings.over(clients.DEFAULTS)


def check_servers(reader: PropertyReader, name: str, servers: str) -> None:
    """Report brokers that do not have the form host:port, and a missing list."""
    for problem in server_problems(servers):
        reader.problem(name, problem)


def delivery_config(reader: PropertyReader, producer: ClientSettings) -> DeliveryConfig:
    """Return the settings of delivery."""
    required = reader[connect.EXACTLY_ONCE] is ExactlyOnce.REQUIRED
    worker = reader[connect.EXACTLY_ONCE_SOURCE]
    if required and reader.is_set(connect.EXACTLY_ONCE_SOURCE) and worker is ExactlyOnceSource.DISABLED:
        reader.problem(
            connect.EXACTLY_ONCE.name, "required is not possible with exactly.once.source.support=disabled; enable it"
        )
    standby = reader[connect.STANDBY]
    exactly_once = required or worker is ExactlyOnceSource.ENABLED or standby
    storage, sink = offset_storage(reader.properties), reader[connect.SINK]
    if standby:
        _check_standby(reader, in_kafka=storage == connect.KAFKA_OFFSETS and sink == "kafka")
    elif exactly_once and (storage != connect.KAFKA_OFFSETS or sink != "kafka"):
        name = connect.EXACTLY_ONCE.name if required else connect.EXACTLY_ONCE_SOURCE.name
        reader.problem(
            name,
            "needs records and position in Kafka: disable it to use another rowtide.sink (--sink) or offset.storage",
        )
    if storage == connect.FILE_OFFSETS and not reader.is_set(connect.OFFSET_FILE):
        reader.missing(connect.OFFSET_FILE)
    interval = reader[connect.BOUNDARY_INTERVAL] or reader[connect.OFFSET_FLUSH_INTERVAL]
    by_interval = interval if reader[connect.BOUNDARY] is TransactionBoundary.INTERVAL else 0
    try:
        if exactly_once:
            transactional_settings(producer, "any", by_interval)
        else:
            idempotent_settings(producer)
    except ProducerSettingsError as error:
        reader.problem("producer.override", str(error))
    if sink == "kafka" and reader[connect.PRODUCER_KIND] is ProducerKind.NATIVE:
        for problem in native_problems(producer):
            reader.problem(_property_of(reader.properties, problem.property), problem.message)
    if table_sink(reader.properties) is not None:
        _check_table_sink(reader)
    wrong = url_problem(sink) if sink.startswith("http") else None
    if wrong is not None:
        reader.problem(connect.SINK.name, wrong)
    topic = reader[connect.OFFSETS_TOPIC] or reader[connect.OFFSET_TOPIC]
    return DeliveryConfig(
        **reader.declared(DeliveryConfig),
        tables=table_sink(reader.properties),
        tables_interval_ms=_tables_interval_ms(reader, sink),
        http_headers={name: Secret(text) for name, text in reader.with_prefix("rowtide.sink.http.header.").items()},
        exactly_once=exactly_once,
        boundary_interval_ms=interval,
        offset_topic=topic if storage == connect.KAFKA_OFFSETS else None,
        offset_file=reader[connect.OFFSET_FILE] if storage == connect.FILE_OFFSETS else None,
        offset_topic_settings=offsets_settings(reader[connect.OFFSET_PARTITIONS], reader[connect.OFFSET_REPLICATION]),
        large_records=_large_records_config(reader),
        dead_letters=_dead_letters_config(reader),
    )


def _check_table_sink(reader: PropertyReader) -> None:
    """Report properties that would make tables differ from those of the source, or that have no effect."""
    missing = {operation.lower() for operation in reader[capture.SKIPPED_OPERATIONS]} - {"t", "none"}
    if missing:
        reader.problem(
            capture.SKIPPED_OPERATIONS.name,
            f"{', '.join(sorted(missing))} cannot be skipped: the tables of {connect.SINK.name} (--sink) would differ "
            "from those of the source; set none",
        )
    if reader[snapshot.OVERRIDES]:
        reader.problem(
            snapshot.OVERRIDES.name,
            f"cannot be used: the tables of {connect.SINK.name} (--sink) would lack what the query does not select. "
            "Use column.exclude.list for columns, and a view of the tables for rows",
        )
    for name in (connect.OFFSET_STORAGE.name, connect.OFFSET_FILE.name):
        if reader.properties.get(name, "").strip():
            reader.warnings.append(f"{name} has no effect: the sink keeps the position together with the rows")
    for name in (connect.TRANSFORMS.name, values.POST_PROCESSORS.name):
        if reader.properties.get(name, "").strip():
            reader.warnings.append(f"{name} has no effect: the sink keeps the tables as they are in the source")


def _check_standby(reader: PropertyReader, *, in_kafka: bool) -> None:
    """Report properties that several processes cannot share, or that would let two of them write."""
    name, support = connect.STANDBY.name, connect.EXACTLY_ONCE_SOURCE
    if not in_kafka or history_implementation(reader.properties) != history.KAFKA_HISTORY:
        reader.problem(
            name,
            "needs records, position and schema history in Kafka: another process could not continue without them. Set "
            "it to false, or do not set another rowtide.sink (--sink), offset.storage or schema.history.internal",
        )
    if reader.is_set(support) and reader[support] is not ExactlyOnceSource.ENABLED:
        reader.problem(
            name,
            f"needs {support.name}=enabled, not {reader[support].value}: with transactions, Kafka refuses the records "
            "of a process that was replaced",
        )


def _large_records_config(reader: PropertyReader) -> LargeRecordsConfig:
    """Return the handling of records that are too large."""
    mode, name, url = reader[connect.LARGE_RECORDS], connect.LARGE_RECORDS.name, reader[connect.CLAIM_CHECK_URL]
    sink, needed = reader[connect.SINK], _NEEDED.get(mode)
    if mode is not LargeRecordsMode.FAIL and sink != "kafka":
        reader.warnings.append(f"{name} has no effect with {connect.SINK.name}={sink} (--sink)")
    if needed is not None and not reader[needed]:
        reader.problem(needed.name, f"is required with {name}={mode.value}. {needed.doc}")
    if url and mode is not LargeRecordsMode.CLAIM_CHECK:
        reader.warnings.append(
            f"{connect.CLAIM_CHECK_URL.name} has no effect without {name}={LargeRecordsMode.CLAIM_CHECK.value}"
        )
    elif url and "://" in url and re.search(r"[\s?#]|://[^/]*@", url):  # each record has it
        reader.problem(
            connect.CLAIM_CHECK_URL.name,
            "must not have spaces, a query or credentials, because each record that points to a value contains it. "
            "Give "
            "credentials in the environment, as fsspec's package for such URLs documents it",
        )
    converter = reader[converters.VALUE.converter]
    if mode is LargeRecordsMode.WITHOUT_BEFORE and converter is not ConverterClass.JSON:
        reader.problem(
            name,
            f"{mode.value} needs {converters.VALUE.converter.name}={ConverterClass.JSON.value}. Or set claim-check",
        )
    return LargeRecordsConfig(mode=mode, claim_check_url=url)


_NEEDED = {
    LargeRecordsMode.CLAIM_CHECK: connect.CLAIM_CHECK_URL,
    LargeRecordsMode.DEAD_LETTER: connect.DEAD_LETTER_TOPIC,
}


def _dead_letters_config(reader: PropertyReader) -> DeadLettersConfig | None:
    """Return the topic of dead letters; its records are kept forever, and in order."""
    topic, name, sink = reader[connect.DEAD_LETTER_TOPIC], connect.DEAD_LETTER_TOPIC.name, reader[connect.SINK]
    if not topic:
        return None
    used = (
        reader[connect.ERRORS_TOLERANCE] is ErrorsTolerance.ALL
        or reader[connect.LARGE_RECORDS] is LargeRecordsMode.DEAD_LETTER
        or event_failure(reader) is not FailureHandling.FAIL
        or reader[values.INCONSISTENT_SCHEMA] is not FailureHandling.FAIL
    )
    if sink != "kafka":
        reader.warnings.append(f"{name} has no effect with {connect.SINK.name}={sink} (--sink)")
    elif not used:
        reader.warnings.append(
            f"{name} has no effect without {connect.ERRORS_TOLERANCE.name}=all, {connect.LARGE_RECORDS.name}="
            f"dead-letter or {values.EVENT_FAILURE.name}=warn"
        )
    settings = history_settings(reader[connect.DEAD_LETTER_REPLICATION])
    return DeadLettersConfig(
        **reader.declared(DeadLettersConfig),
        topic=topic,
        settings=settings,
        used=used and sink == "kafka",
    )


def _property_of(properties: Mapping[str, str], setting: str) -> str:
    """Return the property that determines a setting of the producer; the setting's own name if none does."""
    common = {name: text for name, text in properties.items() if _COMMON.fullmatch(name)}
    for prefix, given in reversed([("", common), *clients.layers(properties, *_PRODUCER)]):
        for name, text in given.items():
            if setting in clients.translate(ClientKind.PRODUCER, prefix, {name: text}, strict=False)[0]:
                return prefix + name
    return setting


def uses_kafka(properties: Mapping[str, str]) -> bool:
    """Return whether anything is written to Kafka, so that ``bootstrap.servers`` is needed."""
    sink = properties.get(connect.SINK.name, "").strip() or connect.SINK.default
    in_kafka = history_implementation(properties) == history.KAFKA_HISTORY
    return sink == "kafka" or offset_storage(properties) == connect.KAFKA_OFFSETS or in_kafka


def offset_storage(properties: Mapping[str, str]) -> str:
    """Return ``offset.storage``: a file if only its name is given. A sink of tables stores the position itself."""
    if table_sink(properties):
        return connect.SINK.name
    given = properties.get(connect.OFFSET_STORAGE.name, "").strip()
    named = properties.get(connect.OFFSET_FILE.name, "").strip()
    return given or (connect.FILE_OFFSETS if named else connect.OFFSET_STORAGE.default)


def history_implementation(properties: Mapping[str, str]) -> str:
    """Return ``schema.history.internal``: a file if only its name is given."""
    given = properties.get(history.IMPLEMENTATION.name, "").strip()
    file, topic = (properties.get(entry.name, "").strip() for entry in (history.FILE_NAME, history.TOPIC))
    in_file = file or table_sink(properties)
    return given or (history.FILE_HISTORY if in_file and not topic else history.IMPLEMENTATION.default)


def table_sink(properties: Mapping[str, str]) -> str | None:
    """Return the path of a sink that keeps tables, if ``rowtide.sink`` is one."""
    sink = properties.get(connect.SINK.name, "").strip()
    return sink.partition(":")[2].rstrip("/") if sink.startswith(connect.TABLE_SINKS) else None


def _tables_interval_ms(reader: PropertyReader, sink: str) -> int:
    """Return the commit interval of a sink that keeps tables. Each commit of Delta Lake creates files."""
    given = reader.is_set(connect.TABLES_INTERVAL)
    return reader[connect.TABLES_INTERVAL] if given or not sink.startswith("delta:") else connect.DELTA_INTERVAL_MS


def history_config(reader: PropertyReader) -> HistoryConfig:
    """Return the storage and contents of the schema history."""
    kind = history_implementation(reader.properties)
    topic = reader[history.TOPIC] if kind == history.KAFKA_HISTORY else None
    file = reader[history.FILE_NAME] if kind == history.FILE_HISTORY else None
    tables = table_sink(reader.properties)
    if kind == history.FILE_HISTORY and file is None and tables is not None:
        file = f"{tables}.history"
    if kind == history.KAFKA_HISTORY and not reader.is_set(history.TOPIC):
        reader.missing(history.TOPIC)
    if kind == history.FILE_HISTORY and file is None:
        reader.missing(history.FILE_NAME)
    brokers = reader[connect.BOOTSTRAP_SERVERS]
    servers = reader[history.SERVERS] or ",".join(brokers)
    if reader.is_set(history.SERVERS):
        check_servers(reader, history.SERVERS.name, servers)
    base = {"bootstrap.servers": servers}
    producer = f"{history.P}.producer."
    consumer = f"{history.P}.consumer."
    return HistoryConfig(
        **reader.declared(HistoryConfig),
        topic=topic,
        file=file,
        producer=client_settings(reader, ClientKind.PRODUCER, (producer,)).over(base),
        consumer=client_settings(reader, ClientKind.CONSUMER, (consumer,)).over(base),
        admin=_history_admin(reader, producer).over(base),
        ddl_filter=reader[history.DDL_FILTER] or reader[history.DDL_FILTER_INTERNAL],
    )


def _history_admin(reader: PropertyReader, prefix: str) -> ClientSettings:
    """Return the admin client's settings. Debezium creates the topic with the producer's, and ignores others."""
    settings = client_settings(reader, ClientKind.ADMIN, ())
    layer, _ = clients.translate(ClientKind.ADMIN, prefix, reader.with_prefix(prefix), strict=False)
    return layer.over(settings)
