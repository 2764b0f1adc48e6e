"""An instance in Canal's Kafka mode: sends the messages of its entries to Kafka, with the connector's delivery.

::

    Reading ──► MessageMaker ──► event store ──► delivery ──► Kafka
                                                    └──► meta.dat, or with exactly-once delivery a topic of Kafka
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from rowtide.canal.configuration.model import InstanceSettings, KafkaSettings
from rowtide.canal.entries.sink import PassedEntry
from rowtide.canal.instance.base import BaseInstance, InstanceState
from rowtide.canal.instance.client_positions import ClientPositions, Resumption
from rowtide.canal.instance.storage import Storage
from rowtide.canal.mq.messages import MessageMaker
from rowtide.canal.mq.routing import Router
from rowtide.canal.server.stored_entry import LogPosition, log_position, resumable
from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import DeliveryError, OffsetStoreError, OffsetStoreUnavailable
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.delivery.offset_store import OffsetRecord
from rowtide.connector.delivery.sink import Sink
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.errors import TopicError
from rowtide.topics.internal import offsets_settings
from rowtide.topics.settings import BROKER_DEFAULT, TopicSettings

log = logging.getLogger(__name__)

CLIENT_ID = 1001
"""The client as which Canal's Kafka mode stores its position."""

_DRAIN_S = 8.0
"""The time limit for delivering the remaining messages when reading ends, in seconds."""
_IN_CANALS_TERMS = {
    "producer.override.": "kafka.",
    "rowtide.producer": "canal.mq.producer",
    "exclude columns with column.exclude.list": "exclude columns with canal.instance.filter.black.field",
    "topic.creation.enable=false": "the account may not create it",
}


class KafkaInstance(BaseInstance):
    """One source, whose messages go to Kafka.

    Args:
        settings: of the instance.
        kafka: its Kafka mode.
        storage: of its position, and of its schema history.
        flush_s: how often the position is written, in seconds.

    Attributes:
        sink: selects the entries.

    Raises:
        OffsetError: the position is damaged, or cannot be read.
    """

    def __init__(
        self, settings: InstanceSettings, kafka: KafkaSettings, storage: Storage, flush_s: float = 1.0
    ) -> None:
        # The ends of transactions are needed for positions; the messages omit them.
        super().__init__(settings, replace(settings.kinds, transactions=False), storage, flush_s)
        self._kafka = kafka
        self._router = Router(kafka.routes)
        self._maker = MessageMaker(self._router, kafka.form)
        self._stored = StoredPositions(self._positions)
        self._store: EventStore | None = None
        self._delivery: Delivery | None = None

    @property
    def state(self) -> InstanceState:
        """The current state."""
        use = None if self._store is None else self._store.use()
        return self._state(use, delivery=None if self._delivery is None else self._delivery.counters())

    # --- as the outlet of reading ------------------------------------------------------------------------------------

    def open(self, failed: Callable[[], None]) -> Resumption | None:
        """Begin to deliver, and return the position at which reading resumes.

        Args:
            failed: called when delivery has failed.

        Raises:
            DeliveryError, TopicError: Kafka refuses, or cannot be reached.
        """
        kafka, mode = self._kafka, self._settings.mode
        self._positions.subscribed(CLIENT_ID, "")
        self._maker = MessageMaker(self._router, kafka.form)
        self._stored.clear()
        size = self._settings.buffer_size
        store = self._store = EventStore(size, 0 if mode.counts_entries else size * mode.unit)
        sink, policy, resumption = self._sink(store)
        self._delivery = Delivery(
            store,
            sink,
            policy,
            ensure_topics=self._ensure_topics,
            on_failure=lambda _failure: failed(),
            name=f"canal-{self._name}",
        )
        self._delivery.start()
        return resumption

    def _sink(self, store: EventStore) -> tuple[Sink, CommitPolicy, Resumption | None]:
        kafka = self._kafka
        producer = new_producer(kafka.producer_kind, kafka.producer, quiet=store.quiet)
        found = self._positions.resumption(CLIENT_ID)
        if not kafka.exactly_once:
            policy = CommitPolicy(self._flush_s, by_poll=False)
            return IdempotentSink(producer, self._stored), policy, found
        TopicAdmin(kafka.admin).ensure(kafka.offsets_topic, offsets_settings())
        offsets = KafkaOffsetStore(
            kafka.offsets_topic,
            self._name,
            f"{self._settings.host}:{self._settings.port}",  # of destinations of the same name, each has its own
            producer=kafka.producer,
            consumer=kafka.consumer,
            admin=kafka.admin,
        )
        sink = TransactionalSink(producer, offsets)
        sink.open()  # fences an older instance: only now is the stored offset final
        if self._positions.moved(CLIENT_ID):
            log.warning("destination %s: reading resumes from meta.dat, which Canal has updated since", self._name)
        elif (stored := offsets.load()) is not None and (found is None or _is_at_or_after(stored, found.offset)):
            found = Resumption(stored) if stored.snapshot is None else None
        return sink, CommitPolicy(by_poll=True), found

    def _ensure_topics(self, topics: Collection[str]) -> None:
        """Create topics that are missing, with as many partitions as are used.

        Raises:
            TopicError: one cannot be created, or has too few partitions.
        """
        admin = TopicAdmin(self._kafka.admin)
        wanted = {topic: self._router.partitions(topic) for topic in topics}
        admin.ensure_all(
            {topic: TopicSettings(count if count > 1 else BROKER_DEFAULT) for topic, count in wanted.items()}
        )
        found = admin.identify(list(wanted))
        for topic, count in wanted.items():
            partitions = found[topic].partitions if topic in found else 0
            if partitions < count:
                raise TopicError(
                    f"topic {topic!r} has {partitions} partitions, but messages go to {count} (canal.mq.partition, "
                    "canal.mq.partitionsNum, canal.mq.dynamicTopicPartitionNum): add partitions, or lower the number"
                )

    def snapshot_begins(self, stop: threading.Event) -> bool:
        """Begin immediately."""
        return self._positions.snapshot_begins()

    def put(self, entries: Sequence[PassedEntry], resumption: Resumption | None) -> None:
        """Deliver the messages of entries, and wait for space.

        Raises:
            StoreClosed: delivery has ended.
        """
        assert self._store is not None
        self._stored.read(entries)
        for batch in self._maker.batches(entries):
            self._store.put([batch])

    def ended(self) -> None:
        """Deliver everything that was read, and end.

        Raises:
            DeliveryError: delivery had failed.
        """
        delivery = self._delivery
        if delivery is None:
            return
        failure = delivery.failure
        if not delivery.stop(_DRAIN_S):
            log.warning("destination %s: messages that Kafka has not acknowledged will be sent again later", self._name)
        self._write_positions()
        if isinstance(failure, DeliveryError):
            raise DeliveryError(_in_canals_terms(str(failure))) from failure
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Refuse further entries."""
        if self._store is not None:
            self._store.close()

    def _write_positions(self) -> None:
        """Write the position that was stored in Kafka last to ``meta.dat``, too, for Canal."""
        offset = None if self._delivery is None else self._delivery.counters().offset
        if offset is None or not self._kafka.exactly_once:
            return
        try:
            self._stored.save(offset)
        except OffsetStoreError as error:
            log.error("%s: %s", self._name, error)  # noqa: TRY400


class StoredPositions:
    """The offset store of delivery, in ``meta.dat``: Canal's position is that of the last transaction that has ended.

    Args:
        positions: of the destination's clients.
    """

    def __init__(self, positions: ClientPositions) -> None:
        self._positions = positions
        self._read: deque[tuple[SourceOffset, LogPosition | None]] = deque()  # in order; not stored yet
        self._last: LogPosition | None = None
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget the entries read so far, because reading resumes."""
        with self._lock:
            self._read.clear()
            self._last = None

    def read(self, entries: Sequence[PassedEntry]) -> None:
        """Note the positions of entries that will be delivered."""
        with self._lock:
            for entry, offset in entries:
                position = log_position(entry, offset) if resumable(entry, offset) else None
                if self._read and self._read[-1][0] is offset:
                    position = position or self._read.pop()[1]
                self._read.append((offset, position))

    def record(self, offset: SourceOffset | None) -> OffsetRecord | None:
        """``None``: the position is not stored in Kafka."""

    def load(self) -> SourceOffset | None:
        """Return the stored position."""
        found = self._positions.resumption(CLIENT_ID)
        return None if found is None else found.offset

    def save(self, offset: SourceOffset | None) -> None:
        """Store the offset of an entry that was read; an offset that is already stored is ignored.

        Raises:
            OffsetStoreError: the file cannot be written.
        """
        with self._lock:
            if not any(one is offset for one, _ in self._read):
                return
            while True:
                one, position = self._read.popleft()
                self._last = position or self._last
                if one is offset:
                    break
            if self._last is None:  # Canal has no position within the first transaction
                return
            self._positions.acknowledged(CLIENT_ID, self._last._replace(offset=one))
        try:
            self._positions.flush()
        except OSError as error:
            raise OffsetStoreUnavailable(f"the position cannot be written to meta.dat: {error}") from error


def _is_at_or_after(offset: SourceOffset, other: SourceOffset) -> bool:
    """Return whether an offset is at or after another one.

    The other one may have been stored without exactly-once delivery.
    """
    return PositionFilter(BinlogPosition.from_map(offset.to_map())).includes(BinlogPosition.from_map(other.to_map()))


def _in_canals_terms(text: str) -> str:
    """Return a message of the delivery with the names of Canal's properties."""
    for name, other in _IN_CANALS_TERMS.items():
        text = text.replace(name, other)
    return text
