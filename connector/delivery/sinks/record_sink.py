"""The protocol of sinks other than Kafka, and how the delivery loop uses one."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from rowtide.connector.delivery.errors import DeliveryError, SinkUnavailable
from rowtide.connector.delivery.offset_store import OffsetStore
from rowtide.connector.delivery.sink import SynchronousSink
from rowtide.connector.records.batch import Batch, Headers
from rowtide.connector.records.offset import SourceOffset


class Record(NamedTuple):
    """One record, as Kafka would get it.

    Attributes:
        topic: its topic.
        key: JSON, ``None`` without a key.
        value: JSON, ``None`` for a tombstone.
        headers: pairs of a name and a value, in order.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers


@runtime_checkable
class RecordSink(Protocol):
    """Takes records in the order of commits. All calls but ``close`` come from one thread."""

    def write(self, records: Sequence[Record]) -> None:
        """Take records; they may be buffered. Waiting here slows the connector down, and loses nothing.

        Raises:
            Exception: ends the connector; the records are written again at the next start.
        """
        ...

    def flush(self) -> None:
        """Return when everything that was written is safe: the position is stored after that.

        Raises:
            Exception: as for ``write``.
        """
        ...

    def close(self) -> None:
        """Release all resources. May be called while ``write`` waits in another thread, which should then raise."""
        ...


class RecordSinkDelivery(SynchronousSink):
    """The delivery loop's view of a :class:`RecordSink`: at least once, offsets in a store of their own.

    Args:
        sink: where records go.
        offsets: where the offset is stored.
        owned: close the sink at the end; else its owner does, who may use it for another run.
    """

    transactional = False

    def __init__(self, sink: RecordSink, offsets: OffsetStore, *, owned: bool = True) -> None:
        self._sink = sink
        self._offsets = offsets
        self._owned = owned

    @property
    def problem(self) -> str | None:
        """Why the sink retries, if it says so in an attribute ``problem``."""
        return getattr(self._sink, "problem", None)

    def open(self) -> None:
        """Nothing needs to be opened."""

    def send(self, batches: Sequence[Batch]) -> None:
        """Write the records of the batches.

        Raises:
            DeliveryError: the sink failed.
        """
        records = [
            Record(batch.topic, key, value, headers) for batch in batches for key, value, headers in batch.messages
        ]
        try:
            self._sink.write(records)
        except Exception as error:
            raise _failed(self._sink, error) from error

    def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
        """Flush the sink and store the offset.

        Raises:
            DeliveryError: the sink failed, or the offset cannot be stored.
        """
        try:
            self._sink.flush()
        except Exception as error:
            raise _failed(self._sink, error) from error
        self._offsets.save(offset)
        return True

    def rollback(self) -> None:
        """Do nothing: written records cannot be taken back."""

    def interrupt(self) -> None:
        """End a ``write`` that waits."""
        self._sink.close()

    def close(self) -> None:
        """Close the sink, if it is owned."""
        if self._owned:
            self._sink.close()


def _failed(sink: RecordSink, error: Exception) -> DeliveryError:
    if isinstance(error, DeliveryError):
        return error
    if isinstance(error, OSError):
        return SinkUnavailable(f"{type(sink).__name__} failed: {error}")
    return DeliveryError(f"{type(sink).__name__} failed: {type(error).__name__}: {error}")
