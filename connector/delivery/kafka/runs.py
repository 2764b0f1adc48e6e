"""Joins the messages of consecutive small batches, because sending them together costs less. Pure."""

from collections.abc import Iterator, Sequence

from rowtide.connector.kafka_producer.records import Records
from rowtide.connector.records.batch import Batch

_MOST_BYTES = 512 << 10
"""Bytes of the messages that are joined. The producer reserves memory for them together, so it must be little."""


def runs(batches: Sequence[Batch]) -> Iterator[Records]:
    """Yield the messages of consecutive batches with the same topic, partition and timestamp."""
    run: list[Batch] = []
    size = 0
    for batch in batches:
        size += batch.size
        if run and (size > _MOST_BYTES or _destination(batch) != _destination(run[0])):
            yield _joined(run)
            run, size = [], batch.size
        run.append(batch)
    if run:
        yield _joined(run)


def _destination(batch: Batch) -> tuple[str, int, int]:
    return batch.topic, batch.partition, batch.timestamp


def _joined(run: list[Batch]) -> Records:
    topic, partition, timestamp = _destination(run[0])
    messages = run[0].messages if len(run) == 1 else [message for batch in run for message in batch.messages]
    return Records(topic, partition, messages, timestamp)
