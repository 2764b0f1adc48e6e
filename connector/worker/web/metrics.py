"""Renders statuses as metrics in Prometheus' text format, version 0.0.4; pure.

No label has unbounded values: a GTID set becomes the last transaction number of each source, a position a number, and
after a thousand tables or topics the others are counted together.
"""

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from rowtide._version import __version__
from rowtide.connector.delivery.counters import AGES_S, Ages
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.worker.status import STATES, Status
from rowtide.schema_history.position.binlog_position import file_number
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_MAX_TABLES = 1000
_OTHER_TABLES = "(other)"
_NOT_IN_NAMES = re.compile(r"^\d|[^a-zA-Z0-9_]")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

Sample = tuple[Mapping[str, str], float]
"""Labels, and the value."""


class Metric(NamedTuple):
    """One metric with its samples.

    Attributes:
        name: the name without the prefix ``rowtide_``.
        kind: ``counter``, ``gauge`` or ``histogram``.
        help: the description, with the unit.
        samples: the samples; a metric without any is not rendered.
        ages: the values of a histogram, which has no samples.
    """

    name: str
    kind: str
    help: str
    samples: Iterable[Sample] = ()
    ages: Ages | None = None


def render(statuses: Sequence[Status]) -> str:
    """Return all metrics of some connectors."""
    return rendered("rowtide_", [(_common(status), metrics(status)) for status in statuses])


def _common(status: Status) -> dict[str, str]:
    return {_NOT_IN_NAMES.sub("_", name): text for name, text in status.tags.items()} | {"connector": status.name}


def rendered(prefix: str, sources: Iterable[tuple[Mapping[str, str], Iterable[Metric]]]) -> str:
    """Metrics in Prometheus' text format, in which all samples of a metric are adjacent.

    Args:
        prefix: the beginning of every name.
        sources: labels, and the metrics whose samples have them.
    """
    found: dict[str, list[str]] = {}
    for common, given in sources:
        for metric in given:
            name = f"{prefix}{metric.name}"
            samples = [f"{name}{_labels({**common, **labels})} {_number(value)}" for labels, value in metric.samples]
            if metric.ages is not None:
                samples = list(_histogram(name, common, metric.ages))
            if samples:
                head = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
                found.setdefault(name, head).extend(samples)
    return "".join(f"{line}\n" for lines in found.values() for line in lines)


def _histogram(name: str, common: Mapping[str, str], ages: Ages) -> Iterator[str]:
    bounds = [_number(bound) for bound in AGES_S] + ["+Inf"]
    for bound, count in zip(bounds, accumulate(ages.counts), strict=True):
        yield f"{name}_bucket{_labels({**common, 'le': bound})} {count}"
    yield f"{name}_sum{_labels(common)} {_number(ages.sum_s)}"
    yield f"{name}_count{_labels(common)} {sum(ages.counts)}"


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels.items()) + "}"


def _number(value: float) -> str:
    return repr(float(value)) if value != int(value) else str(int(value))


def one(value: float | None) -> list[Sample]:
    """Return the only sample of a metric; none if it has no value."""
    return [] if value is None else [({}, value)]


def metrics(status: Status) -> Iterator[Metric]:
    """Yield all metrics of a connector; those without a value have no samples."""
    yield Metric(
        "info",
        "gauge",
        "Always 1; version, flavor and topic prefix are in the labels.",
        [({"version": __version__, "flavor": status.flavor, "topic_prefix": status.prefix}, 1)],
    )
    yield Metric(
        "state",
        "gauge",
        "1 for the state that the connector is in.",
        [({"state": state}, int(state == status.state)) for state in STATES],
    )
    yield Metric("healthy", "gauge", "Whether /health answers 200.", one(int(status.healthy)))
    yield Metric("start_time_seconds", "gauge", "When the worker started, since the epoch.", one(status.started_at))
    yield Metric("restarts_total", "counter", "Restarts from the stored position.", one(status.restarts))
    yield Metric(
        "lag_seconds", "gauge", "Age of the oldest change that is not delivered; 0 if all are.", one(status.lag_s)
    )
    yield Metric("lag_bytes", "gauge", "Bytes of the server's binlog that are not read yet.", one(status.lag_bytes))
    runway = (None, None) if status.runway is None else (status.runway.seconds, status.runway.retention_s)
    help_runway = "How long the server keeps the binlog file of the stored position, at least."
    yield Metric("binlog_runway_seconds", "gauge", help_runway, one(runway[0]))
    help_retention = "How long it keeps a file that it writes now, at least."
    yield Metric("binlog_retention_seconds", "gauge", help_retention, one(runway[1]))
    other = 0 if status.second_writer is None else status.second_writer.records
    help_other = "Offset records that another program stored for this connector since the last start."
    yield Metric("second_writer_records", "gauge", help_other, one(other))
    help_rejected = "Whether the configuration has changed and is not used, because it is wrong."
    yield Metric("configuration_rejected", "gauge", help_rejected, one(int(status.rejected is not None)))
    yield from _source(status)
    yield from _delivery(status)
    yield from _positions(status)
    yield from _queue(status)
    yield from _snapshot(status)


def _source(status: Status) -> Iterator[Metric]:
    reader = status.reader
    if reader is None:
        return
    seconds = reader.event_ts_ms / 1000 or None
    yield Metric("connected", "gauge", "Whether the server's binlog is being read.", one(int(reader.connected)))
    yield Metric("reconnects_total", "counter", "Connections to the binlog after the first.", one(reader.reconnects))
    yield Metric("events_read_total", "counter", "Binlog events that were read.", one(reader.events))
    yield Metric("read_bytes_total", "counter", "Bytes of the binlog that were read.", one(reader.received_bytes))
    yield Metric("transactions_total", "counter", "Transactions that were read.", one(reader.transactions))
    yield Metric("last_event_timestamp_seconds", "gauge", "When the last event read was made.", one(seconds))


def _delivery(status: Status) -> Iterator[Metric]:
    delivery = status.delivery
    if delivery is None:
        return
    topics = delivery.topics.items()
    yield Metric(
        "records_total", "counter", "Records given to Kafka.", [({"topic": name}, count) for name, (count, _) in topics]
    )
    yield Metric(
        "record_bytes_total",
        "counter",
        "Bytes of keys and values given to Kafka.",
        [({"topic": name}, size) for name, (_, size) in topics],
    )
    yield Metric("records_per_second", "gauge", "Records over the last ten seconds.", one(delivery.messages_per_second))
    yield Metric("record_bytes_per_second", "gauge", "Bytes over the last ten seconds.", one(delivery.bytes_per_second))
    yield Metric("commits_total", "counter", "Offsets stored (Kafka transactions).", one(delivery.commits))
    yield Metric("rollbacks_total", "counter", "Kafka transactions that were sent again.", one(delivery.rollbacks))
    yield Metric("commit_seconds_total", "counter", "Seconds spent on storing offsets.", one(delivery.commit_s))
    committed = delivery.committed_ts_ms / 1000 or None
    yield Metric("stored_timestamp_seconds", "gauge", "When the last stored change was made.", one(committed))
    help_ages = "Seconds from a change on the server to the acknowledgement of its record."
    yield Metric("delivery_seconds", "histogram", help_ages, ages=delivery.ages)


def _positions(status: Status) -> Iterator[Metric]:
    places: list[tuple[str, str, int]] = []
    gtids: list[Sample] = []
    if status.reader is not None:
        places.append(("read", status.reader.file, status.reader.pos))
        gtids += _gtids("read", status.flavor, status.reader.offset)
    if status.stored is not None:
        places.append(("stored", status.stored.file, status.stored.pos))
        gtids += _gtids("stored", status.flavor, status.stored)
    numbers = [(place, file_number(file)) for place, file, _ in places]
    files = [({"place": place}, number) for place, number in numbers if number is not None]
    yield Metric("binlog_file_number", "gauge", "Number of the binlog file of a position.", files)
    at = [({"place": place}, pos) for place, _, pos in places]
    yield Metric("binlog_position", "gauge", "Position in the binlog file.", at)
    yield Metric("gtid_last_number", "gauge", "Last transaction number of each source of GTIDs.", gtids)


def _gtids(place: str, flavor: str, offset: SourceOffset | None) -> Iterator[Sample]:
    if offset is None or not offset.gtids:
        return
    if flavor == "mariadb":
        for gtid in MariadbGtidPosition.parse(offset.gtids):
            yield {"place": place, "source": str(gtid.domain)}, gtid.sequence
        return
    for uuid, tag, ranges in GtidSet.parse(offset.gtids).items():
        yield {"place": place, "source": f"{uuid}:{tag}" if tag else uuid}, ranges[-1][1] - 1


def _queue(status: Status) -> Iterator[Metric]:
    queue = status.queue
    if queue is None:
        return
    yield Metric("queue_records", "gauge", "Records that wait to be delivered.", one(queue.events))
    yield Metric("queue_max_records", "gauge", "max.queue.size.", one(queue.max_events))
    in_flight = "Records that were read and are not delivered yet."
    yield Metric("records_in_flight", "gauge", in_flight, one(queue.held_events))
    yield Metric("queue_bytes", "gauge", "Bytes that are held until they are delivered.", one(queue.bytes))
    yield Metric("queue_max_bytes", "gauge", "max.queue.size.in.bytes.", one(queue.max_bytes))
    help_full = "Seconds that reading waited for room in the queue."
    yield Metric("queue_full_seconds_total", "counter", help_full, one(queue.put_blocked_s))
    help_empty = "Seconds that delivery waited for records."
    yield Metric("queue_empty_seconds_total", "counter", help_empty, one(queue.get_blocked_s))


def _snapshot(status: Status) -> Iterator[Metric]:
    tables = status.snapshot
    if not tables:
        return
    yield Metric("snapshot_running", "gauge", "Whether a snapshot is taken.", one(int(status.takes_snapshot)))
    yield Metric("snapshot_tables", "gauge", "Tables of the snapshot.", one(len(tables)))
    finished = sum(rows.finished for rows in tables.values())
    yield Metric("snapshot_tables_finished", "gauge", "Tables that are read.", one(finished))
    whole = {name: int(rows.finished) for name, rows in tables.items()}
    yield Metric("snapshot_table_finished", "gauge", "Whether a table is read completely.", _by_table(whole))
    stuck = {name: int(rows.problem is not None) for name, rows in tables.items()}
    yield Metric("snapshot_table_stuck", "gauge", "Whether a table makes no progress.", _by_table(stuck))
    done = {name: rows.done for name, rows in tables.items()}
    yield Metric("snapshot_rows", "gauge", "Rows that were read.", _by_table(done))
    estimated = {name: rows.estimated for name, rows in tables.items() if rows.estimated is not None}
    yield Metric("snapshot_estimated_rows", "gauge", "Rows that the server estimates.", _by_table(estimated))
    rates = {name: round(rows.rate) for name, rows in tables.items()}
    yield Metric("snapshot_rows_per_second", "gauge", "Rows that were read in a second.", _by_table(rates))


def _by_table(rows: Mapping[str, int]) -> Iterator[Sample]:
    """Return samples of the tables with the most rows, and the sum of all others."""
    shown = dict(heapq.nlargest(_MAX_TABLES, rows.items(), key=itemgetter(1))) if len(rows) > _MAX_TABLES else rows
    yield from (({"table": name}, number) for name, number in shown.items())
    if len(rows) > len(shown):
        yield {"table": _OTHER_TABLES}, sum(rows.values()) - sum(shown.values())
