"""Checks the account's rights in Kafka, without producing: rights on topics, and transactions."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    NewTopic,
)

from rowtide.connector.check.broker import connection_settings
from rowtide.connector.check.findings import Finding, Severity
from rowtide.connector.check.topic_checks import CheckedTable, renames_topics
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import connect
from rowtide.connector.config.catalogue.topics import SIGNAL_GROUP
from rowtide.connector.config.kafka.producer_settings import standby_group, transactional_id
from rowtide.connector.delivery.kafka.producers import sees_transactional_id
from rowtide.connector.errors import some_of
from rowtide.topics.admin.errors import acl_command

_SHOWN = 5
_MOST_TOPICS = 1000
_SLACK_S = 5.0
"""The client's own time-out, which is an error of Kafka, comes this much before the time-out of waiting for it."""
_UNHEARD = logging.Logger("unheard")
"""Takes the log of a client, which would otherwise print fatal errors: they are findings."""
_DENIED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}


def access_findings(
    config: Configuration, captured: Iterable[CheckedTable], existing: Mapping[str, int], *, timeout: float = 10.0
) -> Iterator[Finding]:
    """Yield the findings about topics that the account may not write, read or create, and about transactions.

    Args:
        config: the configuration.
        captured: the captured tables with their topics.
        existing: the partitions of all topics that the account can see.
        timeout: seconds to wait for an answer.
    """
    tables = sorted({table.topic for table in captured if table.topic is not None})[:_MOST_TOPICS]
    data = [] if renames_topics(config) else [*_of_connector(config), *tables]
    kafka, history, offsets = config.kafka, config.history, config.delivery.offset_topic
    own = [offsets] if offsets is not None else []
    letters = [one.topic] if (one := config.delivery.dead_letters) and one.used else []
    rights = [
        (kafka.producer, AclOperation.WRITE, [*data, *own], "producer.override"),
        (kafka.consumer, AclOperation.READ, own, "offset.storage.topic"),
        (kafka.admin, AclOperation.DESCRIBE_CONFIGS, own, "offset.storage.topic"),
        (kafka.producer, AclOperation.WRITE, letters, connect.DEAD_LETTER_TOPIC.name),
        (kafka.admin, AclOperation.DESCRIBE_CONFIGS, letters, connect.DEAD_LETTER_TOPIC.name),
    ]
    if history.topic is not None:
        rights.append((history.producer, AclOperation.WRITE, [history.topic], "schema.history.internal.producer"))
        rights.append((history.consumer, AclOperation.READ, [history.topic], "schema.history.internal.consumer"))
        rights.append(
            (history.admin, AclOperation.DESCRIBE_CONFIGS, [history.topic], "schema.history.internal.producer")
        )
    signals = [config.signals.topic] if config.signals.topic is not None else []
    rights.append((config.signals.consumer, AclOperation.READ, signals, "signal.consumer"))
    for settings, operation, topics, subject in rights:
        names = [topic for topic in topics if topic in existing]
        if denied := _without(settings, operation, names, timeout):
            tool_name, verb = _RIGHTS[operation]
            command = _command(settings, (tool_name,), "topic", denied)
            message = f"the account may not {verb} {_listed(denied)}: grant it {operation.name}: {command}"
            # A connector runs even if its signals cannot be read.
            yield Finding(Severity.WARNING if topics == signals else Severity.ERROR, subject, message)
    created = data if config.topics.creation.enabled else []
    unseen = [
        (kafka.admin, created, "topic.creation.enable", ("Create", "Describe", "Write")),
        (kafka.admin, own, "offset.storage.topic", _OF_OWN_TOPICS),
        (kafka.admin, letters, connect.DEAD_LETTER_TOPIC.name, ("Create", "Describe", "Write", "DescribeConfigs")),
    ]
    if history.topic is not None:
        unseen.append((history.admin, [history.topic], "schema.history.internal.kafka.topic", _OF_OWN_TOPICS))
    for settings, topics, subject, operations in unseen:
        if denied := _not_creatable(settings, [topic for topic in topics if topic not in existing], timeout):
            message = (
                f"the account may neither see nor create {_listed(denied)}: grant it what it needs, "
                f"{_command(settings, operations, 'topic', denied)}, without Create if you create "
                f"{'it' if len(denied) == 1 else 'them'} beforehand"
            )
            yield Finding.error(subject, message)
    if config.delivery.exactly_once and config.delivery.sink == "kafka":
        yield from _transactions(config, timeout)
    if config.delivery.standby:
        group = standby_group(config.delivery.group_id, config.name)
        if (refusal := _not_in_group(config.history.consumer, group, timeout)) is not None:
            yield Finding.error(connect.STANDBY.name, refusal)
    if signals:
        group = str(config.signals.consumer["group.id"])
        if (refusal := _not_in_group(config.signals.consumer, group, timeout)) is not None:
            yield Finding.warning(SIGNAL_GROUP.name, refusal)


def _of_connector(config: Configuration) -> Iterator[str]:
    """Yield the topics of records that do not belong to a table."""
    if config.delivery.sink != "kafka":
        return
    topics = config.topics
    if topics.include_schema_changes:
        yield topics.naming.schema_change
    if config.heartbeat.interval_ms:
        yield topics.naming.heartbeat
    if config.values.transaction_metadata:
        yield topics.naming.transaction
    if topics.notification_topic is not None:
        yield topics.notification_topic


_OF_OWN_TOPICS = ("Create", "Describe", "Read", "Write", "DescribeConfigs")
_RIGHTS = {
    AclOperation.WRITE: ("Write", "write to"),
    AclOperation.READ: ("Read", "read"),
    AclOperation.DESCRIBE_CONFIGS: ("DescribeConfigs", "describe the configuration of"),
}
"""The name of a right in Kafka's tool, and the verb for a message."""


def _command(settings: Mapping[str, Any], operations: tuple[str, ...], resource: str, names: list[str]) -> str:
    user = settings.get("sasl.username")
    servers = str(settings.get("bootstrap.servers", ""))
    return acl_command(servers, operations, resource, names[:_SHOWN], None if user is None else str(user))


def _listed(topics: list[str]) -> str:
    return f"the topic{'s' if len(topics) > 1 else ''} {some_of(topics)}"


def _without(settings: Mapping[str, Any], operation: AclOperation, topics: list[str], timeout: float) -> list[str]:
    """Return the topics on which an account lacks a right; brokers without access control grant all."""
    if not topics:
        return []
    client = AdminClient({**connection_settings(settings), "log_level": 0})
    futures = client.describe_topics(
        TopicCollection(topics), include_authorized_operations=True, request_timeout=timeout
    )
    denied = []
    for topic, future in futures.items():
        try:
            allowed = future.result(timeout + _SLACK_S).authorized_operations
        except KafkaException as failure:
            if failure.args[0].code() in _DENIED:
                denied.append(topic)
            continue
        except TimeoutError:
            continue
        if allowed is not None and operation not in allowed:
            denied.append(topic)
    return sorted(denied)


def _not_creatable(settings: Mapping[str, Any], topics: list[str], timeout: float) -> list[str]:
    """Return the topics whose creation is denied; nothing is created."""
    if not topics:
        return []
    client = AdminClient({**connection_settings(settings), "log_level": 0})
    new = [NewTopic(topic, -1, -1) for topic in topics]
    denied = []
    for topic, future in client.create_topics(new, validate_only=True, request_timeout=timeout).items():
        try:
            future.result(timeout + _SLACK_S)
        except KafkaException as failure:
            if failure.args[0].code() in _DENIED:
                denied.append(topic)
        except TimeoutError:
            continue
    return sorted(denied)


def _not_in_group(settings: Mapping[str, Any], group: str, timeout: float) -> str | None:
    """Return the reason why the account cannot be a member of a consumer group; ``None`` if it can."""
    client = AdminClient({**connection_settings(settings), "log_level": 0})
    future = client.describe_consumer_groups([group], include_authorized_operations=True, request_timeout=timeout)
    try:
        allowed = future[group].result(timeout + _SLACK_S).authorized_operations
    except KafkaException as failure:
        if failure.args[0].code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
            return None
        allowed = []
    except TimeoutError:
        return None
    if allowed is None or AclOperation.READ in allowed:
        return None
    command = _command(settings, ("Read",), "group", [group])
    return f"the account may not join the consumer group {group}: grant it READ: {command}"


def _transactions(config: Configuration, timeout: float) -> Iterator[Finding]:
    """Begin transactions with an id other than the connector's, which would fence a running worker."""
    own = str(config.kafka.producer.get("transactional.id") or transactional_id(config.delivery.group_id, config.name))
    settings = {**connection_settings(config.kafka.producer), "transactional.id": f"{own}-check", "log_level": 0}
    try:
        Producer(settings, logger=_UNHEARD).init_transactions(timeout)
    except KafkaException as failure:
        error = failure.args[0]
        if error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            seen = sees_transactional_id(config.kafka.producer, own)
            ids = own if seen is False else f"{own}-check, and probably not {own} either"
            message = (
                f"the account may not use the transactional id {ids}: grant it WRITE and DESCRIBE on the transactional "
                f"id {own}: " + _command(settings, ("Write", "Describe"), "transactional-id", [own])
            )
            if seen:
                message = (
                    f"the account may see the transactional id {own}. Whether it may write with it was not tested, "
                    "because that would stop a running connector"
                )
            severity = Severity.ERROR if seen is False else Severity.REMARK if seen else Severity.WARNING
            yield Finding(severity, "exactly.once.source.support", message)
            return
        message = (
            f"Kafka begins no transaction within {timeout:.0f} s: {error.str()}. Check the brokers' "
            "transaction.state.log.replication.factor and transaction.state.log.min.isr, and the account's rights"
        )
        yield Finding.error("exactly.once.source.support", message)
