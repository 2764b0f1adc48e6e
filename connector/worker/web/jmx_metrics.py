"""Metrics under the names that Prometheus' JMX exporter gives to Debezium's, for existing dashboards and alerts; pure.

The names and labels are those of the exporter's configuration in Debezium's examples:
``debezium_metrics_MilliSecondsBehindSource{context="streaming",name="shop",plugin="mysql"}``; or, in lower case, those
of an exporter with ``lowercaseOutputName: true``. Only values that the connector measures are present; times that are
not known are -1, as in Debezium.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rowtide.connector.worker.status import Status
from rowtide.connector.worker.web.metrics import Metric, Sample, one, rendered

_UNKNOWN = -1


def render(statuses: Sequence[Status], *, lowercase: bool = False) -> str:
    """Return the metrics of some connectors.

    Args:
        statuses: the statuses of the connectors. The label ``name`` is ``topic.prefix``, as in Debezium.
        lowercase: whether names are in lower case.
    """
    sources: list[tuple[Mapping[str, str], Iterable[Metric]]] = []
    for status in statuses:
        labels = {"plugin": status.flavor, "name": status.prefix}
        sources.append(({**labels, "context": "streaming"}, _streaming(status)))
        sources.append(({**labels, "context": "snapshot"}, _snapshot(status)))
    if lowercase:
        sources = [(labels, [one._replace(name=one.name.lower()) for one in found]) for labels, found in sources]
    return rendered("debezium_metrics_", sources)


def _gauge(name: str, text: str, value: float | None) -> Metric:
    return Metric(name, "gauge", text, one(value))


def _streaming(status: Status) -> Iterator[Metric]:
    reader, delivery, queue = status.reader, status.delivery, status.queue
    yield _gauge("Connected", "Whether the binlog is being read.", int(reader is not None and reader.connected))
    if reader is not None:
        lag = _UNKNOWN if status.lag_s is None else round(status.lag_s * 1000)
        since = _UNKNOWN if not reader.event_ts_ms else max(0, round(status.now * 1000) - reader.event_ts_ms)
        yield _gauge("MilliSecondsBehindSource", "Age of the oldest change that is not delivered.", lag)
        yield _gauge("MilliSecondsSinceLastEvent", "Time since the last event that was read.", since)
        yield _gauge("NumberOfCommittedTransactions", "Transactions that were read.", reader.transactions)
        yield _gauge("NumberOfDisconnects", "Connections to the binlog after the first.", reader.reconnects)
        yield _gauge("BinlogPosition", "Position in the binlog file.", reader.pos)
        gtids = reader.offset is not None and bool(reader.offset.gtids)
        yield _gauge("IsGtidModeEnabled", "Whether the position has GTIDs.", int(gtids))
    if delivery is not None:
        yield _gauge("TotalNumberOfEventsSeen", "Records given to Kafka.", delivery.messages)
    if queue is not None:
        yield _gauge("QueueTotalCapacity", "max.queue.size.", queue.max_events)
        yield _gauge("QueueRemainingCapacity", "Free capacity of the queue.", max(0, queue.max_events - queue.events))
        yield _gauge("MaxQueueSizeInBytes", "max.queue.size.in.bytes.", queue.max_bytes)
        yield _gauge("CurrentQueueSizeInBytes", "Bytes that are held until they are delivered.", queue.bytes)


def _snapshot(status: Status) -> Iterator[Metric]:
    tables = status.snapshot
    finished = sum(rows.finished for rows in tables.values())
    running = status.state == "SNAPSHOT"
    aborted = status.state == "FAILED" and finished < len(tables)
    yield _gauge("SnapshotRunning", "Whether a snapshot is taken.", int(running))
    yield _gauge("SnapshotAborted", "Whether a failure has ended the snapshot.", int(aborted))
    yield _gauge(
        "SnapshotCompleted", "Whether the snapshot is complete.", int(bool(tables) and finished == len(tables))
    )
    yield _gauge("TotalTableCount", "Tables of the snapshot.", len(tables))
    yield _gauge("RemainingTableCount", "Tables that are not read yet.", len(tables) - finished)
    rows = sum(rows.done for rows in tables.values())
    yield _gauge("TotalNumberOfEventsSeen", "Rows that the snapshot has read.", rows)
    samples: list[Sample] = [({"table": name}, rows.done) for name, rows in tables.items()]
    yield Metric("RowsScanned", "gauge", "Rows that were read.", samples)
