"""The protocol of sinks other than Kafka, and its adapter for the delivery loop."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from rowtide.connector.delivery.errors import DeliveryError, SinkUnavailable
from rowtide.connector.delivery.offset_store import OffsetStore
from rowtide.connector.delivery.sink import SynchronousSink
from rowtide.connector.records.batch import Batch, Headers
from rowtide.connector.records.offset import SourceOffset


class Record(NamedTuple):
    """One record, as it would be sent to Kafka.

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
    """Receives records in the order of commits. All methods except ``close`` are called from one thread."""

    def write(self, records: Sequence[Record]) -> None:
        """Accept records, which may be buffered. Waiting here slows down the connector without losing anything.

        Raises:
            Exception: ends the connector; the records are written again at the next start.
        """
        ...

    def flush(self) -> None:
        """Return once everything written is safe; the position is stored after that.

        Raises:
            Exception: as for ``write``.
        """
        ...

    def close(self) -> None:
        """Release all resources.

        This may be called while ``write`` waits in another thread, which should then raise.
        """
        ...


class RecordSinkDelivery(SynchronousSink):
    """Adapts a :class:`RecordSink` to the delivery loop: at least once, with a separate store for offsets.

    Args:
        sink: the destination of records.
        offsets: the store of the offset.
        owned: close the sink at the end; otherwise its owner does, who may use it for another run.
    """

    transactional = False

    def __init__(self, sink: RecordSink, offsets: OffsetStore, *, owned: bool = True) -> None:
        self._sink = sink
        self._offsets = offsets
        self._owned = owned

    @property
    def problem(self) -> str | None:
        """The reason why the sink retries, if it has an attribute ``problem``."""
        return getattr(self._sink, "problem", None)

    def open(self) -> None:
        """Do nothing: there is nothing to open."""

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
