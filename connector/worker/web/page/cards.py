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
    """Return what is said while the sink does not answer; it may come back, so it is not the connector's error yet."""
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
        "running": status.takes_snapshot,
        "paused": _paused(status),
        "topics": {topic: {"records": records, "bytes": size} for topic, (records, size) in topics},
    }


def _paused(status: Status) -> list[str]:
    """Return the kinds of snapshots that a signal has paused."""
    carried = None if status.stored is None else status.stored.carried
    states: dict[str, SnapshotState | BlockingState] = {
        "incremental": SnapshotState.from_carried(carried),
        "blocking": BlockingState.from_carried(carried),
    }
    return [kind for kind, state in states.items() if state.paused]
