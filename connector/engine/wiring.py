"""The edges to Kafka that a configuration asks for: sink, offsets, schema history, topics. An edge: it opens them."""

from dataclasses import dataclass
from pathlib import Path

from rowtide.connector.config import Configuration
from rowtide.connector.config.choices import TransactionBoundary
from rowtide.connector.config.kafka.producer_settings import (
    idempotent_settings,
    transactional_id,
    transactional_settings,
)
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.producer import RecordProducer
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.delivery.loop import CommitPolicy, Delivery
from rowtide.connector.delivery.offset_store import InMemoryOffsetStore
from rowtide.connector.delivery.sink import Sink
from rowtide.schema_history.compaction.kafka_summary_store import KafkaSummaries
from rowtide.schema_history.compaction.summary_store import FileSummaries, SummaryStore
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_store import InMemorySchemaHistory, SchemaHistoryStore
from rowtide.schema_history.store.kafka import KafkaSchemaHistory
from rowtide.topics.admin import MissingTopics, TopicAdmin
from rowtide.topics.internal import history_settings

_PATIENCE_S = 60.0


@dataclass(slots=True)
class Parts:
    """What a running connector holds on to.

    Attributes:
        store: between reader and delivery.
        sink: where batches go.
        offsets: where offsets are stored.
        history: the schema history.
        summaries: its compact form, if it is wanted.
        topics: makes missing topics.
        policy: when offsets are stored.
    """

    store: EventStore
    sink: Sink
    offsets: KafkaOffsetStore
    history: SchemaHistoryStore
    summaries: SummaryStore | None
    topics: MissingTopics
    policy: CommitPolicy


def assemble(config: Configuration) -> Parts:
    """Make the parts; topics that they need are made too.

    Raises:
        TopicError, DeliveryError: Kafka refuses, or cannot be reached.
    """
    kafka, delivery = config.kafka, config.delivery
    admin = TopicAdmin(kafka.admin)
    admin.ensure(delivery.offset_topic, delivery.offset_topic_settings)
    admin.verify_offsets(delivery.offset_topic)
    offsets = offset_store(config)
    store = EventStore(config.streaming.max_queue_size, config.streaming.max_queue_bytes)
    sink, policy = _sink(config, store, offsets)
    topics = MissingTopics(admin, config.topics.creation)
    return Parts(store, sink, offsets, _history(config), _summaries(config), topics, policy)


def offset_store(config: Configuration) -> KafkaOffsetStore:
    """Where the offset is stored; its topic is not made."""
    kafka = config.kafka
    return KafkaOffsetStore(
        config.delivery.offset_topic,
        config.name,
        config.topics.prefix,
        producer=kafka.producer,
        consumer=kafka.consumer,
        admin=kafka.admin,
    )


def history_store(config: Configuration) -> SchemaHistoryStore:
    """Where the schema history is; its topic is not made."""
    history = config.history
    if history.topic is not None:
        return KafkaSchemaHistory(
            history.topic,
            history.producer,
            history.consumer,
            history.admin,
            timeout=max(_PATIENCE_S, history.recovery_poll_interval_ms * history.recovery_attempts / 1000),
            query_timeout=history.query_timeout_ms / 1000,
            batch=history.buffer_batch_size,
        )
    if history.file is not None:
        return FileSchemaHistory(Path(history.file))
    return InMemorySchemaHistory()


def replay_delivery(config: Configuration) -> tuple[EventStore, Delivery]:
    """Delivery of a replay: at least once, to the topics of the configuration, and no offset is stored anywhere."""
    kafka = config.kafka
    store = EventStore(config.streaming.max_queue_size, config.streaming.max_queue_bytes)
    producer = RecordProducer(
        idempotent_settings(kafka.producer), quiet=store.quiet, show_keys=config.failure.show_values
    )
    topics = MissingTopics(TopicAdmin(kafka.admin), config.topics.creation)
    policy = CommitPolicy(config.delivery.offset_flush_interval_ms / 1000, by_poll=False)
    return store, Delivery(store, IdempotentSink(producer, InMemoryOffsetStore()), policy, ensure_topic=topics)


def _sink(config: Configuration, store: EventStore, offsets: KafkaOffsetStore) -> tuple[Sink, CommitPolicy]:
    delivery = config.delivery
    if delivery.exactly_once:
        by_poll = delivery.boundary is TransactionBoundary.POLL
        interval_ms = delivery.offset_flush_interval_ms if by_poll else delivery.boundary_interval_ms
        settings = transactional_settings(
            config.kafka.producer, transactional_id(delivery.group_id, config.name), 0 if by_poll else interval_ms
        )
        producer = RecordProducer(settings, quiet=store.quiet, show_keys=config.failure.show_values)
        return TransactionalSink(producer, offsets), CommitPolicy(interval_ms / 1000, by_poll=by_poll)
    producer = RecordProducer(
        idempotent_settings(config.kafka.producer), quiet=store.quiet, show_keys=config.failure.show_values
    )
    policy = CommitPolicy(
        delivery.offset_flush_interval_ms / 1000, by_poll=False, timeout_s=delivery.offset_flush_timeout_ms / 1000
    )
    return IdempotentSink(producer, offsets), policy


def _history(config: Configuration) -> SchemaHistoryStore:
    history = config.history
    if history.topic is not None:
        admin = TopicAdmin(history.admin, history.create_timeout_ms / 1000)
        if not admin.ensure(history.topic, history_settings()):
            admin.verify_history(history.topic)
    return history_store(config)


def _summaries(config: Configuration) -> SummaryStore | None:
    history, prefix = config.history, config.topics.prefix
    if not history.compact_interval:
        return None
    if history.topic is not None:
        topic = f"{history.topic}.{prefix}.compact"
        TopicAdmin(history.admin, history.create_timeout_ms / 1000).ensure(topic, history_settings())
        return KafkaSummaries(topic, history.producer, history.consumer, history.admin)
    return FileSummaries(Path(f"{history.file}.{prefix}")) if history.file is not None else None
