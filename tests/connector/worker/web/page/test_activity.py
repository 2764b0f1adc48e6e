"""What a connector does with its time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rowtide.connector.delivery.counters import DeliveryCounters
from rowtide.connector.delivery.event_store import StoreUse
from rowtide.connector.engine.stream_attempts import ReaderStatus
from rowtide.connector.worker.status import Status
from rowtide.connector.worker.web.page.activity import PERIOD_S, History, activity, point
from tests.support.processes.made_statuses import status

USE = StoreUse(0, 100, 5, 10, 1000, 0, 0, 0.0, 0.0)
READS = ReaderStatus(connected=True, event_ts_ms=1_000_000)


def at(now: float, *, waited: float = 0.0, blocked: float = 0.0, messages: int = 0, **more: Any) -> Status:
    """A status that reads, at a time, with some counters."""
    given = {
        "reader": replace(READS, waited_s=waited),
        "queue": replace(USE, put_blocked_s=blocked),
        "delivery": DeliveryCounters(messages=messages, bytes=10 * messages),
    }
    return status(now=now, **{**given, **more})


def parts(before: Status, now: Status) -> list[float | None]:
    found = point(before, now)
    assert found is not None
    return found.to_list()[4:]


def test_rates_and_parts_of_the_time() -> None:
    found = point(at(1010.0, waited=1.0, messages=100), at(1020.0, waited=3.0, blocked=5.0, messages=300))
    assert found is not None
    assert found.to_list() == [1020.0, 20.0, 200, 20.0, 0.2, 0.3, 0.5]


def test_a_wait_that_has_not_ended_is_one_for_the_server() -> None:
    idle = replace(READS, idle=True)
    free = replace(USE, held_events=0)
    assert parts(at(1010.0), at(1020.0, reader=idle, queue=free)) == [1.0, 0.0, 0.0]


def test_after_a_restart_the_counters_begin_again() -> None:
    found = point(at(1010.0, waited=50.0, messages=1000), at(1020.0, waited=1.0, messages=30))
    assert found is not None
    assert found.to_list() == [1020.0, 3.0, 30, 20.0, None, None, None]
    assert parts(at(1010.0), at(1020.0, reader=None)) == [None, None, None]
    assert point(at(1010.0), at(1010.0)) is None


@pytest.mark.parametrize(
    ("more", "blocked_before", "expected"),
    [
        ({}, 0.0, "reading"),
        ({"reader": replace(READS, idle=True)}, 0.0, "reading"),  # until everything that was read is delivered
        ({"reader": replace(READS, idle=True), "queue": replace(USE, held_events=0)}, 0.0, "idle"),
        ({"delivery": DeliveryCounters(stuck_s=6.0)}, 0.0, "blocked"),
        ({"delivery": DeliveryCounters(stuck_s=6.0), "queue": replace(USE, held_events=0)}, 0.0, "reading"),
        ({"queue": replace(USE, put_blocked_s=6.0)}, 0.0, "blocked"),
        ({"state": "SNAPSHOT"}, 0.0, None),
        ({"state": "PAUSED"}, 0.0, None),
        ({"reader": None}, 0.0, None),
    ],
)
def test_idle_reading_and_blocked(more: dict[str, Any], blocked_before: float, expected: str | None) -> None:
    now = at(1020.0, **more)
    assert activity(now, point(at(1010.0, blocked=blocked_before), now)) == expected


def test_the_history_has_an_hour_of_the_connectors_that_are_there() -> None:
    history = History()
    for number in range(300):
        history.add([replace(at(1000 + number * PERIOD_S), name=name) for name in ("a", "b")])
    points = history.of("a")["points"]
    assert len(points) * PERIOD_S == 3600
    assert points[-1][0] == 1000 + 299 * PERIOD_S
    history.add([replace(at(9000.0), name="b")])
    assert history.of("a")["points"] == []
    assert len(history.of("b")["points"]) == 240
