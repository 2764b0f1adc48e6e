"""Checks that topics in Kafka meet the connector's requirements, and looks up those of the captured tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rowtide.connector.check.facts import TableFact, captured_names
from rowtide.connector.check.findings import Finding, Severity
from rowtide.connector.check.message_sizes import size_findings
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import capture, connect
from rowtide.connector.config.choices import LargeRecordsMode
from rowtide.connector.delivery.claim_check_folder import open_folder
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.errors import some_of
from rowtide.topics.admin.topic_admin import Overview, TopicAdmin
from rowtide.topics.errors import KafkaUnreachable, TopicDenied, TopicError
from rowtide.topics.internal import wrong_history_config

_HISTORY = "schema.history.internal.kafka.topic"


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """A captured table and its topic.

    Attributes:
        database: its database.
        name: its name.
        rows: the server's estimate of its rows; ``None`` if it was not queried or is unknown.
        created_at: when it was created or last rebuilt, in seconds since the epoch; ``None`` if unknown.
        topic: the topic of its records, before transforms; ``None`` if records do not go to Kafka.
        partitions: the number of partitions of the topic; 0 if it does not exist, ``None`` if it was not looked up.
    """

    database: str
    name: str
    rows: int | None
    created_at: int | None
    topic: str | None
    partitions: int | None = None


def captured_tables(
    config: Configuration, tables: tuple[TableFact, ...], existing: Mapping[str, int] | None
) -> tuple[CheckedTable, ...]:
    """Return the captured tables, sorted by name.

    Args:
        config: the configuration.
        tables: the tables that the account can see.
        existing: the partitions of all topics; ``None`` if they were not looked up.
    """
    to_kafka = config.delivery.sink == "kafka"
    naming, names, found = config.topics.naming, captured_names(config, tables), []
    for table in sorted(tables, key=lambda table: (table.database, table.name)):
        if names.captures(table.database, table.name):
            topic = naming.data_change(table.database, table.name) if to_kafka else None
            partitions = existing.get(topic, 0) if topic is not None and existing is not None else None
            found.append(CheckedTable(table.database, table.name, table.rows, table.created_at, topic, partitions))
    return tuple(found)


def topic_findings(
    config: Configuration,
    tables: tuple[TableFact, ...] | None = None,
    *,
    timeout: float = 10.0,
    rights: bool = True,
) -> tuple[list[Finding], Mapping[str, int] | None]:
    """Return the findings about topics, and the partitions of all topics; ``None`` if they cannot be looked up.

    Args:
        config: the configuration.
        tables: the tables on the server, to look up the topics of captured ones; ``None`` if they are not known.
        timeout: seconds to wait for an answer.
        rights: whether a missing right is a finding; otherwise, ``kafka_access`` reports it.
    """
    found: list[Finding] = []

    def look(subject: str, look_up: Callable[[], Iterable[Finding]]) -> None:
        try:
            found.extend(look_up())
        except TopicDenied as error:
            if rights:
                found.append(_unavailable(subject, error))

    admin = TopicAdmin(config.kafka.admin, timeout)
    existing: Mapping[str, int] | None = None
    try:
        overview = admin.overview()
        existing = overview.topics
        captured = captured_tables(config, tables or (), existing) if config.delivery.sink == "kafka" else ()
        found += _replication_factors(config, overview, captured)
        look("offset.storage.topic", lambda: _offsets(config, admin))
        found += _refused(config, admin)
        if config.delivery.sink == "kafka":
            found += _no_longer_captured(config, tables or (), existing)
            found += _missing(config, captured)
            found += _of_tables(config, captured)
            look(connect.DEAD_LETTER_TOPIC.name, lambda: _dead_letters(config, admin))
            found += _claim_checks(config)
            topics = sorted({str(table.topic) for table in captured})
            look("bootstrap.servers", lambda: size_findings(config, topics, admin))
    except TopicError as error:
        found.append(_unavailable("bootstrap.servers", error))
    topic = config.history.topic
    if topic is not None:
        look(_HISTORY, lambda: _history(topic, config.history.admin, timeout))
    return found, existing


def _no_longer_captured(
    config: Configuration, tables: tuple[TableFact, ...], existing: Mapping[str, int]
) -> Iterator[Finding]:
    """Yield the tables that look like helper tables of online schema changes, but whose records used to be written."""
    names, naming = captured_names(config, tables), config.topics.naming
    for table in tables:
        if not names.leaves_out(table.database, table.name):
            continue
        topic = naming.data_change(table.database, table.name)
        if topic in existing and not naming.shares_topic(table.database, table.name):
            message = (
                f"{table.database}.{table.name} is skipped as a helper table of "
                f"{table.database}.{names.helped(table.database, table.name)}, but topic {topic} exists, so its "
                "records were written before. If it is another table, name it in table.include.list, or set "
                "this property to none"
            )
            yield Finding.warning(capture.ONLINE_SCHEMA_CHANGE.name, message)


def _unavailable(name: str, error: TopicError) -> Finding:
    """Return the finding that topics cannot be looked up.

    A broker that has just answered may be unavailable a moment later.
    """
    return Finding.error(name, str(error), retriable=isinstance(error, KafkaUnreachable))


def _replication_factors(
    config: Configuration, overview: Overview, captured: tuple[CheckedTable, ...]
) -> Iterator[Finding]:
    """Yield replication factors above the number of brokers.

    If the topics exist, a broker may be down, and the connector can run.
    """
    creation, delivery, brokers = config.topics.creation, config.delivery, overview.brokers
    exist = bool(captured) and all(table.partitions for table in captured)
    factors = [("topic.creation.default", creation.default.replication_factor, exist)]
    factors += [(f"topic.creation.{group.name}", group.settings.replication_factor, exist) for group in creation.groups]
    factors.append(
        ("offset.storage", delivery.offset_topic_settings.replication_factor, delivery.offset_topic in overview.topics)
    )
    letters = delivery.dead_letters
    if letters is not None and letters.used:
        factors.append(
            ("errors.deadletterqueue.topic", letters.settings.replication_factor, letters.topic in overview.topics)
        )
    for name, factor, exists in factors:
        if factor > brokers:
            message = f"is {factor}, but Kafka has {brokers} broker{'s' * (brokers != 1)}"
            if exists:
                message += "; the topics exist, but no further one could be created now"
            yield Finding(Severity.WARNING if exists else Severity.ERROR, f"{name}.replication.factor", message)


def _history(topic: str, settings: Mapping[str, Any], timeout: float) -> Iterator[Finding]:
    name = _HISTORY
    try:
        found = TopicAdmin(settings, timeout).describe(topic)
    except TopicDenied:
        raise
    except TopicError as error:
        yield _unavailable(name, error)
        return
    if found is None:
        return
    if found.partitions != 1:
        yield Finding.error(
            name,
            f"the topic {topic} has {found.partitions} partitions, but a history keeps its order only with "
            "one; name another topic, or copy the records to a new one",
        )
    wrong = wrong_history_config(found.config)
    if wrong:
        now = ", ".join(f"{setting}={found.config.get(setting)}" for setting in wrong)
        repaired = ",".join(f"{setting}={value}" for setting, value in wrong.items())
        message = f"the topic {topic} has {now} and will lose records; the connector sets {repaired} when it starts"
        yield Finding.warning(name, message)


def _offsets(config: Configuration, admin: TopicAdmin) -> Iterator[Finding]:
    topic = config.delivery.offset_topic
    if topic is None:
        return
    found = admin.describe(topic)
    policy = None if found is None else found.config.get("cleanup.policy")
    if policy not in (None, "compact"):
        yield Finding.error(
            "offset.storage.topic",
            f"the topic {topic} has cleanup.policy={policy} and would lose positions; it must be compact",
        )


def _dead_letters(config: Configuration, admin: TopicAdmin) -> Iterator[Finding]:
    """Yield the settings of an existing topic of dead letters with which it would lose some."""
    letters = config.delivery.dead_letters
    found = admin.describe(letters.topic) if letters is not None and letters.used else None
    if letters is None or found is None:
        return
    name, wrong = connect.DEAD_LETTER_TOPIC.name, wrong_history_config(found.config)
    if "compact" in found.config.get("cleanup.policy", ""):
        policy = found.config["cleanup.policy"]
        yield Finding.error(
            name,
            f"the topic {letters.topic} has cleanup.policy={policy}, which removes dead letters with the same key: set "
            "it to delete",
        )
    elif wrong:
        now = ", ".join(f"{setting}={found.config.get(setting)}" for setting in wrong)
        yield Finding.warning(name, f"the topic {letters.topic} has {now}, and removes old dead letters")


def _claim_checks(config: Configuration) -> Iterator[Finding]:
    """Yield a finding if the folder of claim checks cannot be opened."""
    large = config.delivery.large_records
    if large.mode is not LargeRecordsMode.CLAIM_CHECK or large.claim_check_url is None:
        return
    try:
        open_folder(large.claim_check_url)
    except DeliveryError as error:
        yield Finding.error(connect.CLAIM_CHECK_URL.name, str(error))


def _refused(config: Configuration, admin: TopicAdmin) -> Iterator[Finding]:
    """Yield the settings of new topics that Kafka does not accept; without the check, the first record would fail."""
    creation = config.topics.creation
    kinds = [("default", creation.default), *((group.name, group.settings) for group in creation.groups)]
    for name, settings in kinds if creation.enabled else ():
        refusal = admin.rejection(f"{config.topics.prefix}.rowtide-check", settings)
        if refusal is not None:
            message = f"Kafka does not accept these settings for a topic: {refusal}"
            yield Finding.error(f"topic.creation.{name}", message)


def renames_topics(config: Configuration) -> bool:
    """Return whether a transform can send records to other topics than those of their tables."""
    return any(transform.may_rename_topics for transform in config.transforms)


def _of_tables(config: Configuration, captured: tuple[CheckedTable, ...]) -> Iterator[Finding]:
    """Yield the topics of the connector's own data that are those of tables."""
    if renames_topics(config):
        return
    history, same = config.history, "bootstrap.servers"
    own = {config.delivery.offset_topic: connect.OFFSET_TOPIC.name}
    if history.producer.get(same) == config.kafka.producer.get(same):
        own[history.topic] = _HISTORY
    for table in captured:
        if table.topic is not None and table.topic in own:
            message = f"the topic {table.topic} is that of table {table.database}.{table.name}: name another one"
            yield Finding.error(own[table.topic], message)


def _missing(config: Configuration, captured: tuple[CheckedTable, ...]) -> Iterator[Finding]:
    if config.topics.creation.enabled or renames_topics(config):
        return
    missing = sorted({str(table.topic) for table in captured if table.partitions == 0})
    if missing:
        yield Finding.warning(
            "topic.creation.enable",
            f"is false, and these topics are missing: {some_of(missing)}. Create them, or set "
            "auto.create.topics.enable on the brokers",
        )
