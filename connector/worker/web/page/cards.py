"""What the page shows of a connector, from its status. Pure."""

from typing import Any

from rowtide.connector.delivery.counters import OTHER_TOPICS
from rowtide.connector.snapshot.blocking.state import BlockingState
from rowtide.connector.snapshot.incremental.state import SnapshotState
from rowtide.connector.worker.status import Status, health, tables_of
from rowtide.connector.worker.web.page.activity import SLOW_ANSWER_S, Activity

_MOST_TOPICS = 1000


def card(status: Status, activity: Activity | None) -> dict[str, Any]:
    """Return what the list of connectors shows: the fields of ``/health``, rates, and what the connector is doing."""
    delivery = status.delivery
    return {
        **health(status),
        "flavor": status.flavor,
        "topic_prefix": status.prefix,
        "sink": status.sink,
        "activity": activity,
        "waits": _waits(status),
        "records_per_second": None if delivery is None else round(delivery.messages_per_second, 1),
        "bytes_per_second": None if delivery is None else round(delivery.bytes_per_second),
    }


def _waits(status: Status) -> str | None:
    """Return the message while the sink does not respond; it may recover, so this is not the connector's error yet."""
    delivery = status.delivery
    if delivery is None or (delivery.problem is None and delivery.stuck_s < SLOW_ANSWER_S):
        return None
    reason = f": {delivery.problem}" if delivery.problem else ""
    return f"{status.sink} has not answered for {delivery.stuck_s:.0f} s{reason}"


def tables(status: Status) -> dict[str, Any]:
    """Return the tables of the snapshot, and the topics with their records."""
    sent = {} if status.delivery is None else status.delivery.topics
    topics = sorted(sent.items(), key=lambda one: (one[0] == OTHER_TOPICS, one[0]))[: _MOST_TOPICS + 1]
    return {
        "tables": tables_of(status),
        "snapshots": _snapshots(status),
        "topics": {topic: {"records": records, "bytes": size} for topic, (records, size) in topics},
    }


def _snapshots(status: Status) -> dict[str, str]:
    """Return the snapshots that signals have started, by kind: whether they are running or paused."""
    carried = None if status.stored is None else status.stored.carried
    incremental, blocking = SnapshotState.from_carried(carried), BlockingState.from_carried(carried)
    found = {
        "incremental": (incremental.tables, incremental.paused),
        "blocking": (blocking.requests, blocking.paused),
    }
    return {kind: "paused" if paused else "running" for kind, (left, paused) in found.items() if left}
