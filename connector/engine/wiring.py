"""Builds the components of a run from the configuration: event store, sink, offsets, schema history."""

import logging
import os
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rowtide.connector.config import Configuration
from rowtide.connector.config.choices import Acknowledge, LargeRecordsMode, TransactionBoundary
from rowtide.connector.config.kafka.producer_settings import (
    DEFAULTS,
    idempotent_settings,
    transactional_id,
    transactional_settings,
)
from rowtide.connector.delivery.claim_check_folder import open_folder
from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.file_offset_store import FileOffsetStore
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.delivery.large_records import LargeRecords
from rowtide.connector.delivery.offset_store import InMemoryOffsetStore, OffsetStore
from rowtide.connector.delivery.sink import Sink
from rowtide.connector.delivery.sinks import FileSink, HttpSink, RecordSink, RecordSinkDelivery, StreamSink
from rowtide.connector.delivery.source_acknowledgements import SourceAcknowledgements
from rowtide.connector.delivery.tables.sink import TableSink
from rowtide.connector.engine.pipeline_settings import dead_letters
from rowtide.connector.engine.topic_guard import HangingTransactions, TopicGuard
from rowtide.connector.records.batch import Batch
from rowtide.connector.source.connection import connect
from rowtide.schema_history.compaction.kafka_summary_store import KafkaSummaries
from rowtide.schema_history.compaction.summary_store import FileSummaries, SummaryStore
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.queries.history_source import HistorySource
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_store import InMemorySchemaHistory, SchemaHistoryStore
from rowtide.schema_history.store.kafka import KafkaSchemaHistory
from rowtide.topics.admin.topic_admin import MissingTopics, TopicAdmin
from rowtide.topics.errors import TopicError
from rowtide.topics.internal import history_settings
from rowtide.topics.watch import TopicWatch

if TYPE_CHECKING:
    from rowtide.connector.delivery.tables.delta import DeltaStore
    from rowtide.connector.delivery.tables.duckdb import DuckDbStore

log = logging.getLogger(__name__)

Fitting = Callable[[Sequence[Batch]], Sequence[Batch]]
"""Returns the batches to send in place of others."""

_PATIENCE_S = 60.0
_TABLES_QUEUE_BYTES = 256 * 2**20
"""Of the changes that wait for a commit of a sink that keeps tables; half of it begins a commit."""
_AWAITED_S = 0.2
"""How often delivery waits for all acknowledgements of Kafka under continuous load if the server waits for them."""
_LOOK_S = 5.0
"""The time limit of one check of the topics."""
_QUERY_S = 15.0
"""How long a look-up of a structure waits for Kafka."""


class TopicAdmins:
    """The admins of a connector's topics, created when they are first needed. Each client of Kafka has four threads.

    Args:
        config: the configuration.
    """

    def __init__(self, config: Configuration) -> None:
        self._config = config

    @cached_property
    def records(self) -> TopicAdmin:
        """The admin of the topics of records and offsets."""
        return TopicAdmin(self._config.kafka.admin)

    @cached_property
    def history(self) -> TopicAdmin:
        """The admin client of the schema history's topic; with equal settings, it is that of the other topics."""
        settings = self._config.history.admin
        return self.records if settings == self._config.kafka.admin else TopicAdmin(settings)


@dataclass(slots=True)
class Components:
    """The components of a run of the connector.

    Attributes:
        admins: the admins of the topics.
        store: the event store, between reader and delivery.
        sink: the destination of batches; ``None`` if a consumer in this process takes them from the store.
        offsets: the store of offsets.
        history: the schema history.
        summaries: its summaries, if ``schema.history.internal.compact.interval`` is set.
        ensure_topics: creates topics before their first messages.
        policy: decides when offsets are stored.
        fitting: replaces records that are too large for Kafka.
        acknowledgements: of transactions to the server, if they follow the delivery of the records.
    """

    admins: TopicAdmins
    store: EventStore
    sink: Sink | None
    offsets: OffsetStore
    history: SchemaHistoryStore
    summaries: SummaryStore | None
    ensure_topics: Callable[[Collection[str]], None]
    policy: CommitPolicy
    fitting: Fitting
    acknowledgements: SourceAcknowledgements | None


def build_components(config: Configuration, sink: RecordSink | None = None) -> Components:
    """Build the components of a run; missing Kafka topics for offsets and history are created.

    Args:
        config: the configuration.
        sink: a sink to use instead of ``rowtide.sink``; it stays open at the end of the run.

    Raises:
        TopicError, DeliveryError: Kafka refuses or cannot be reached, or a file cannot be written.
    """
    delivery, admins = config.delivery, TopicAdmins(config)
    if delivery.offset_topic is not None:
        admins.records.ensure(delivery.offset_topic, delivery.offset_topic_settings)
        admins.records.verify_offsets(delivery.offset_topic)
    offsets = offset_store(config)
    store = EventStore(config.streaming.max_queue_size, _queue_bytes(config))
    made, policy, ensure_topics = _sink(config, admins, store, offsets, sink)
    acknowledgements = None
    if config.streaming.semi_sync is Acknowledge.DELIVERED:
        acknowledgements = SourceAcknowledgements()
        policy = replace(policy, interval_s=min(policy.interval_s, _AWAITED_S))
    history, summaries = _history(config, admins), _summaries(config, admins)
    fitting: Fitting = _as_they_are
    if isinstance(made, IdempotentSink | TransactionalSink):
        ensure_topics, fitting = fitting_records(config, admins, ensure_topics)
    return Components(
        admins, store, made, offsets, history, summaries, ensure_topics, policy, fitting, acknowledgements
    )


def fitting_records(
    config: Configuration, admins: TopicAdmins, ensure_topics: Callable[[Collection[str]], None]
) -> tuple[Callable[[Collection[str]], None], Fitting]:
    """Return the function that prepares topics, and the one that replaces records that are too large for them.

    Args:
        config: the configuration.
        admins: the admins of the topics.
        ensure_topics: creates topics before their first messages.

    Raises:
        DeliveryError: the folder of claim checks cannot be opened.
    """
    large, letters = config.delivery.large_records, config.delivery.dead_letters
    if letters is not None and not letters.used:
        letters = None
    if large.mode is LargeRecordsMode.FAIL and letters is None:
        return ensure_topics, _as_they_are
    records = LargeRecords(
        large.mode,
        int(config.kafka.producer.get("message.max.bytes", DEFAULTS["message.max.bytes"])),
        lambda topics: admins.records.topic_config("max.message.bytes", topics),
        folder=open_folder(large.claim_check_url or "") if large.mode is LargeRecordsMode.CLAIM_CHECK else None,
        dead_letters=dead_letters(config),
    )

    def ensure(topics: Collection[str]) -> None:
        if letters is not None:
            admins.records.ensure(letters.topic, letters.settings)
            policy = admins.records.topic_config("cleanup.policy", [letters.topic]).get(letters.topic, "")
            if "compact" in policy:
                raise TopicError(
                    f"topic {letters.topic!r} of dead letters has cleanup.policy={policy}, which removes those with "
                    "the same key: set it to delete"
                )
        ensure_topics(topics)
        records.look_up(topics if letters is None else {letters.topic, *topics})

    return ensure, records.fitting


def offset_store(config: Configuration) -> OffsetStore:
    """Return the store of the offset; its topic is not created."""
    kafka, delivery = config.kafka, config.delivery
    if delivery.offset_topic is not None:
        return KafkaOffsetStore(
            delivery.offset_topic,
            config.name,
            config.topics.prefix,
            producer=kafka.producer,
            consumer=kafka.consumer,
            admin=kafka.admin,
        )
    if delivery.tables is not None:
        return _table_store(config, Path(delivery.tables)).offsets
    if delivery.offset_file is not None:
        return FileOffsetStore(Path(delivery.offset_file), config.name, config.topics.prefix)
    return _OFFSETS_IN_MEMORY.setdefault((config.name, config.topics.prefix), InMemoryOffsetStore())


_OFFSETS_IN_MEMORY: dict[tuple[str, str], InMemoryOffsetStore] = {}
"""Of ``MemoryOffsetBackingStore``: they outlive a run, not the process."""


def history_store(config: Configuration, timeout: float | None = None) -> SchemaHistoryStore:
    """Return the store of the schema history; its topic is not created.

    Args:
        config: the configuration.
        timeout: seconds to wait for Kafka; by default those of the recovery at a start.
    """
    history = config.history
    recovery_s = history.recovery_poll_interval_ms * history.recovery_attempts / 1000
    if history.topic is not None:
        return KafkaSchemaHistory(
            history.topic,
            history.producer,
            history.consumer,
            history.admin,
            timeout=max(_PATIENCE_S, recovery_s) if timeout is None else timeout,
            query_timeout=history.query_timeout_ms / 1000,
            batch=history.buffer_batch_size,
        )
    if history.file is not None:
        return FileSchemaHistory(Path(history.file))
    return _HISTORIES_IN_MEMORY.setdefault((config.name, config.topics.prefix), InMemorySchemaHistory())


_HISTORIES_IN_MEMORY: dict[tuple[str, str], InMemorySchemaHistory] = {}
"""Of ``MemorySchemaHistory``: like the offsets, which cannot be resumed from without them."""


def history_source(config: Configuration) -> HistorySource:
    """Return the schema history as a source of the tables' structures, to be closed after use.

    Raises:
        SchemaHistoryError: the connector keeps its history in memory.
    """
    if config.history.topic is None and config.history.file is None:
        raise SchemaHistoryError(
            f"the connector {config.name} keeps its schema history in memory only: it is lost at the end of the run"
        )
    return HistorySource(Server(config.flavor), history_store(config, _QUERY_S))


def topic_guard(
    config: Configuration,
    admins: TopicAdmins,
    sent: Callable[[], Sequence[str]],
    on_failure: Callable[[BaseException], None],
    sink: Sink | None = None,
) -> TopicGuard:
    """Return a guard of the connector's topics.

    Args:
        config: the configuration.
        admins: the admins of the topics.
        sent: returns the topics that records were sent to.
        on_failure: see ``TopicGuard``.
        sink: the connector's sink.
    """
    transactions = None
    if isinstance(sink, TransactionalSink):
        admin = admins.records.limited(_LOOK_S)
        transactions = HangingTransactions(admin.ends, sink, admin.servers)
    offsets, history, to_kafka = config.delivery.offset_topic, config.history.topic, config.delivery.sink == "kafka"
    return TopicGuard(
        _watch(admins.records if to_kafka or offsets is not None else None),
        offsets,
        sent if to_kafka else list,
        _watch(admins.history if history is not None else None),
        history,
        on_failure,
        config.name,
        transactions,
    )


def missing_topics(config: Configuration, admins: TopicAdmins) -> MissingTopics:
    """Return a function that creates topics before their first message, according to ``topic.creation.*``."""
    rules = config.topics.creation
    if rules.enabled:
        return MissingTopics(admins.records, rules)
    # As with Java's producer, whose user needs the right to create topics then
    return MissingTopics(TopicAdmin(config.kafka.producer, auto_create=True), rules)


def _watch(admin: TopicAdmin | None) -> TopicWatch:
    return TopicWatch(admin.limited(_LOOK_S).identify if admin is not None else lambda _topics: {})


def heartbeat_action(config: Configuration) -> Callable[[], None] | None:
    """Return a function that runs ``heartbeat.action.query`` on its own connection; failures are only logged."""
    query = config.heartbeat.action_query
    if not query:
        return None

    def run() -> None:
        try:
            with connect(config.database) as connection, connection.cursor() as cursor:
                cursor.execute(query)
        except Exception as error:  # noqa: BLE001 - the next heartbeat tries again
            log.warning("heartbeat.action.query failed: %s", error)

    return run


def replay_delivery(config: Configuration) -> tuple[EventStore, Delivery]:
    """Return the delivery of a replay: at least once, to the topics of the configuration, without storing offsets."""
    kafka = config.kafka
    store = EventStore(config.streaming.max_queue_size, config.streaming.max_queue_bytes)
    producer = new_producer(
        config.delivery.producer,
        idempotent_settings(kafka.producer),
        quiet=store.quiet,
        show_keys=config.failure.show_values,
    )
    admins = TopicAdmins(config)
    topics = missing_topics(config, admins)
    policy = CommitPolicy(config.delivery.offset_flush_interval_ms / 1000, by_poll=False)
    ensure_topics, fitting = fitting_records(config, admins, topics)
    sink = IdempotentSink(producer, InMemoryOffsetStore())
    return store, Delivery(store, sink, policy, ensure_topics=ensure_topics, fitting=fitting)


def _sink(
    config: Configuration, admins: TopicAdmins, store: EventStore, offsets: OffsetStore, given: RecordSink | None
) -> tuple[Sink | None, CommitPolicy, Callable[[Collection[str]], None]]:
    delivery = config.delivery
    at_least_once = CommitPolicy(
        delivery.offset_flush_interval_ms / 1000, by_poll=False, timeout_s=delivery.offset_flush_timeout_ms / 1000
    )
    if given is not None:
        return RecordSinkDelivery(given, offsets, owned=False), at_least_once, _no_topics
    if delivery.sink == "python":
        return None, at_least_once, _no_topics
    if delivery.tables is not None:
        policy = CommitPolicy(delivery.tables_interval_ms / 1000, by_poll=False)
        return TableSink(_table_store(config, Path(delivery.tables))), policy, _no_topics
    if delivery.sink != "kafka":
        return RecordSinkDelivery(record_sink(config), offsets), at_least_once, _no_topics
    topics = missing_topics(config, admins)
    show_keys = config.failure.show_values
    if not delivery.exactly_once or not isinstance(offsets, KafkaOffsetStore):
        settings = idempotent_settings(config.kafka.producer)
        producer = new_producer(delivery.producer, settings, quiet=store.quiet, show_keys=show_keys)
        return IdempotentSink(producer, offsets), at_least_once, topics
    by_poll = delivery.boundary is TransactionBoundary.POLL
    interval_ms = delivery.offset_flush_interval_ms if by_poll else delivery.boundary_interval_ms
    settings = transactional_settings(
        config.kafka.producer, transactional_id(delivery.group_id, config.name), 0 if by_poll else interval_ms
    )
    producer = new_producer(delivery.producer, settings, quiet=store.quiet, show_keys=show_keys)
    return TransactionalSink(producer, offsets), CommitPolicy(interval_ms / 1000, by_poll=by_poll), topics


def _table_store(config: Configuration, path: Path) -> "DuckDbStore | DeltaStore":
    """Return the table store of a sink. The libraries are extras."""
    history = None if config.history.file is None else Path(config.history.file)
    connector = path, config.name, config.topics.prefix, history
    if config.delivery.sink.startswith("delta:"):
        from rowtide.connector.delivery.tables.delta import DeltaOffsets, DeltaStore  # noqa: PLC0415

        return DeltaStore(DeltaOffsets(*connector))
    from rowtide.connector.delivery.tables.duckdb import DuckDbOffsets, DuckDbStore  # noqa: PLC0415

    return DuckDbStore(DuckDbOffsets(*connector))


def _queue_bytes(config: Configuration) -> int:
    """Return the capacity of the event store, which also bounds a commit of a sink that keeps tables."""
    given = config.streaming.max_queue_bytes
    return given or (_TABLES_QUEUE_BYTES if config.delivery.tables is not None else 0)


def record_sink(config: Configuration) -> RecordSink:
    """Return the sink that ``rowtide.sink`` names, except Kafka.

    Raises:
        DeliveryError: the directory cannot be used.
    """
    name = config.delivery.sink
    if name == "stdout":
        if sys.stdout is None:
            raise DeliveryError("standard output is closed: open it, or set another rowtide.sink")
        # Without a buffer: otherwise Python would flush at exit to a reader that has closed the pipe, and exit with
        # 120.
        return StreamSink(os.fdopen(sys.stdout.fileno(), "wb", buffering=0, closefd=False))
    if name.startswith("file:"):
        return FileSink(name.removeprefix("file:"))
    return HttpSink(name, {key: text.reveal() for key, text in config.delivery.http_headers.items()})


def _as_they_are(batches: Sequence[Batch]) -> Sequence[Batch]:
    """Return records unchanged."""
    return batches


def _no_topics(_topics: Collection[str]) -> None:
    """Do nothing: sinks other than Kafka have no topics to create."""


def ensure_history(config: Configuration, admins: TopicAdmins) -> None:
    """Create the topic of the schema history, if the history is in a topic, and make sure that it keeps all records.

    Raises:
        TopicError: Kafka refuses or cannot be reached, or the topic is not suitable for a history.
    """
    history = config.history
    if history.topic is not None:
        admin = admins.history.limited(history.create_timeout_ms / 1000)
        if not admin.ensure(history.topic, history_settings()):
            admin.verify_history(history.topic)


def _history(config: Configuration, admins: TopicAdmins) -> SchemaHistoryStore:
    ensure_history(config, admins)
    return history_store(config)


def _summaries(config: Configuration, admins: TopicAdmins) -> SummaryStore | None:
    history, prefix = config.history, config.topics.prefix
    if not history.compact_interval:
        return None
    if history.topic is not None:
        topic = f"{history.topic}.{prefix}.compact"
        admins.history.limited(history.create_timeout_ms / 1000).ensure(topic, history_settings())
        return KafkaSummaries(topic, history.producer, history.consumer, history.admin)
    return FileSummaries(Path(f"{history.file}.{prefix}")) if history.file is not None else None
