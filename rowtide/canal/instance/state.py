"""The current state of an instance, for metrics."""

from dataclasses import dataclass

from rowtide.canal.server.destination import Traffic
from rowtide.connector.delivery.counters import DeliveryCounters
from rowtide.connector.delivery.event_store import StoreUse
from rowtide.connector.engine.stream_attempts import ReaderStatus


@dataclass(frozen=True, slots=True)
class InstanceState:
    """The state of an instance.

    Attributes:
        destination: its name.
        reading: whether it reads the binlog.
        batch_mode: ``canal.instance.memory.batch.mode``.
        buffer_size: ``canal.instance.memory.buffer.size``.
        status: of the reader; ``None`` before the first one.
        store: the use of the event store; ``None`` before delivery to Kafka begins.
        traffic: the entries that clients have taken; ``None`` in the Kafka mode.
        delivery: the messages sent to Kafka; ``None`` for clients over TCP.
    """

    destination: str
    reading: bool
    batch_mode: str
    buffer_size: int
    status: ReaderStatus | None
    store: StoreUse | None
    traffic: Traffic | None = None
    delivery: DeliveryCounters | None = None
