"""The status of a connector as one value, for ``/health``, metrics and the log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from rowtide._version import __version__
from rowtide.connector.delivery.counters import DeliveryCounters
from rowtide.connector.delivery.event_store import StoreUse
from rowtide.connector.delivery.kafka.second_writer import SecondWriter
from rowtide.connector.engine.stream_attempts import ReaderStatus
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import ReadTables
from rowtide.connector.snapshot.status import TableProgress
from rowtide.connector.source.binlog_runway import Runway

STATES = (
    "STANDBY",
    "STARTING",
    "SNAPSHOT",
    "RECOVERING",
    "RUNNING",
    "RECONNECTING",
    "RESTARTING",
    "PAUSED",
    "STOPPING",
    "STOPPED",
    "FAILED",
)
_HEALTHY = frozenset({"STANDBY", "STARTING", "SNAPSHOT", "RECOVERING", "RUNNING"})
_ENDED = frozenset({"STANDBY", "PAUSED", "STOPPED", "FAILED"})
_MOST_TABLES = 10
"""Tables whose state ``/health`` has, at most."""
_STUCK_S = 30.0
"""Records are acknowledged within milliseconds; after this long, the sink does not answer."""


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a connector at one moment.

    Attributes:
        name: the connector's name.
        prefix: ``topic.prefix``.
        flavor: ``mysql`` or ``mariadb``.
        tags: ``custom.metric.tags``.
        state: one of ``STATES``.
        started_at: seconds since the epoch.
        run_started_at: when its counters, except for ``restarts``, began at 0; seconds since the epoch.
        now: seconds since the epoch.
        error: the last error; ``None`` if there was none, or the connector has recovered.
        restarts: restarts from the stored position.
        reader: the reader's status; ``None`` before the stream.
        delivery: the counters of delivery; ``None`` before it starts.
        sink: the destination of the records, for messages.
        stored: the stored position; ``None`` if there is none, or it is not loaded yet.
        queue: the use of the queue; ``None`` before delivery starts.
        snapshot: rows by table (``db.table``), in reading order.
        lag_bytes: bytes of the server's binlog after the last event that was read; ``None`` if not known.
        runway: the time that the server will keep the binlog file of the stored position; ``None`` if not known.
        second_writer: another program that stores offsets for this connector; ``None`` if none was seen.
        rejected: the reason why a changed configuration is not used; ``None`` if there is none.
    """

    name: str
    prefix: str
    flavor: str
    tags: Mapping[str, str]
    state: str
    started_at: float
    run_started_at: float
    now: float
    error: str | None
    restarts: int
    reader: ReaderStatus | None
    delivery: DeliveryCounters | None
    queue: StoreUse | None
    sink: str
    stored: SourceOffset | None
    snapshot: Mapping[str, TableProgress]
    lag_bytes: int | None = None
    runway: Runway | None = None
    second_writer: SecondWriter | None = None
    rejected: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether the connector starts or runs without an error."""
        return self.state in _HEALTHY and not self.stuck

    @property
    def ready(self) -> bool:
        """Whether the connector streams (reads the binlog and delivers), or stands by and can take over."""
        streams = self.state == "RUNNING" and self.reader is not None and self.reader.connected
        return self.state == "STANDBY" or (self.healthy and streams)

    @property
    def takes_snapshot(self) -> bool:
        """Whether a snapshot is being taken, before the stream or alongside it."""
        beside = self.state == "RUNNING" and not all(rows.finished for rows in self.snapshot.values())
        return self.state == "SNAPSHOT" or beside

    @property
    def stuck(self) -> bool:
        """Whether delivery has waited for the sink for too long. A connector that has ended does not wait."""
        return self.state not in _ENDED and self.delivery is not None and self.delivery.stuck_s > _STUCK_S

    @property
    def problem(self) -> str | None:
        """The reason why the connector is not healthy, or the last error."""
        if not self.stuck or self.delivery is None:
            return self.error
        reason = f": {self.delivery.problem}" if self.delivery.problem else ""
        return f"{self.sink} has not answered for {self.delivery.stuck_s:.0f} s{reason}"

    @property
    def lag_s(self) -> float | None:
        """Age of the oldest change that is not delivered, in seconds; 0 if all are, ``None`` if not known."""
        ages = []
        if self.queue is not None and self.queue.oldest_ts_ms:
            ages.append(self.now - self.queue.oldest_ts_ms / 1000)
        if self.reader is not None and not (self.reader.idle and self.reader.connected):
            if not self.reader.event_ts_ms:
                return None
            ages.append(self.now - self.reader.event_ts_ms / 1000)
        if self.reader is None and not ages:
            return None
        return max(0.0, *ages) if ages else 0.0


def status_of(task: ConnectorTask, now: float) -> Status:
    """Return the status of a task, without queries to the server.

    Args:
        task: the task, started or not.
        now: seconds since the epoch.
    """
    config, run = task.config, task.current
    reader = run.reader.status if run.reader is not None else None
    state, error = task.state, task.error
    if state == "RUNNING" and reader is not None and reader.error is not None:
        state, error = "RECONNECTING", reader.error
    elif error is not None and state in _HEALTHY:
        state = "RESTARTING"  # until the new run works: otherwise each attempt would be reported as healthy
    delivery = None if run.delivery is None else run.delivery.counters()
    return Status(
        name=config.name,
        prefix=config.topics.prefix,
        flavor=config.flavor.value,
        tags=config.metric_tags,
        state=state,
        started_at=task.started_at,
        run_started_at=run.started_at,
        now=now,
        error=error,
        restarts=task.restarts,
        reader=reader,
        delivery=delivery,
        sink="Kafka" if config.delivery.sink == "kafka" else "the sink",
        stored=run.stored if delivery is None or delivery.offset is None else delivery.offset,
        queue=run.components.store.use() if run.components is not None else None,
        snapshot=task.snapshot.by_name,
        second_writer=None if run.guards.second_writer is None else run.guards.second_writer.seen,
    )


def combined_health(statuses: Sequence[Status], *, several: bool) -> dict[str, Any]:
    """Return the response body of ``/health``: that of the only connector, or of each by its name.

    Args:
        statuses: the statuses of the connectors.
        several: whether there may be several, however many there are.
    """
    if not several and len(statuses) == 1:
        return health(statuses[0])
    return {
        "status": "UP" if all(status.healthy for status in statuses) else "DOWN",
        "version": __version__,
        "connectors": {status.name: health(status) for status in statuses},
    }


def probe(statuses: Sequence[Status], *, up: bool, several: bool) -> dict[str, Any]:
    """Return the response body of a probe.

    Args:
        statuses: the statuses of the connectors.
        up: whether the probe passes.
        several: as for :func:`combined_health`.
    """
    states = {status.name: {"state": status.state, "error": status.problem} for status in statuses}
    body = {"status": "UP" if up else "DOWN"}
    return body | {"connectors": states} if several or len(states) != 1 else body | next(iter(states.values()))


def health(status: Status) -> dict[str, Any]:
    """Return the state of a connector as a JSON object."""
    reader, stored, queue = status.reader, status.stored, status.queue
    return {
        "status": "UP" if status.healthy else "DOWN",
        "state": status.state,
        "connector": status.name,
        "version": __version__,
        "uptime_seconds": round(status.now - status.started_at, 1),
        "error": status.problem,
        "restarts": status.restarts,
        "position": {
            "read": None if reader is None else {"file": reader.file, "pos": reader.pos, "gtid": reader.gtid},
            "stored": None if stored is None else stored.to_map(),
        },
        "lag": {
            "seconds": None if status.lag_s is None else round(status.lag_s, 3),
            "bytes": status.lag_bytes,
        },
        "binlog_runway": None if status.runway is None else runway_fields(status.runway),
        "queue": None
        if queue is None
        else {
            "records": queue.events,
            "max_records": queue.max_events,
            "records_in_flight": queue.held_events,
            "bytes": queue.bytes,
            "max_bytes": queue.max_bytes,
        },
        "snapshot": None if not status.snapshot else _snapshot(status.snapshot),
        "unread_tables": _unread(stored),
        "snapshot_tables": dict(islice(_unfinished(status.snapshot), _MOST_TABLES)),
        "snapshot_problems": [rows.problem for rows in status.snapshot.values() if rows.problem],
        "second_writer": None if status.second_writer is None else asdict(status.second_writer),
        "rejected_configuration": status.rejected,
    }


def runway_fields(runway: Runway) -> dict[str, Any]:
    """Return a runway as a JSON object, in hours."""
    return {
        "file": runway.file,
        "hours": _hours(runway.seconds),
        "retention_hours": _hours(runway.retention_s),
        "reason": runway.reason,
        "warning": runway.text if runway.short else None,
    }


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / 3600, 2)


def tables_of(status: Status) -> dict[str, dict[str, Any]]:
    """Return the state of every table of the snapshot, in reading order."""
    return {
        name: {
            "state": rows.state,
            "rows": rows.done,
            "estimated_rows": rows.estimated,
            "rows_per_second": round(rows.rate, 1),
            "problem": rows.problem,
        }
        for name, rows in status.snapshot.items()
    }


def _unread(stored: SourceOffset | None) -> list[str]:
    """Return the captured tables that lack the rows from before they were captured."""
    read = None if stored is None else ReadTables.from_carried(stored.carried)
    return [] if read is None else [str(table) for table in read.unread[:_MOST_TABLES]]


def _unfinished(tables: Mapping[str, TableProgress]) -> Iterator[tuple[str, str]]:
    """Return the states of tables that are not completely read; those being read come first."""
    for state in ("READING", "WAITING"):
        yield from ((name, state) for name, rows in tables.items() if rows.state == state)


def _snapshot(tables: Mapping[str, TableProgress]) -> dict[str, int]:
    return {
        "tables": len(tables),
        "tables_finished": sum(rows.finished for rows in tables.values()),
        "rows": sum(rows.done for rows in tables.values()),
    }
