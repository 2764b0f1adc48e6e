"""Which connector of a fleet moves where, so that loads become equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.fleet.balance import IDLE, LoadMeter, Move, Placed, next_move

WORKERS = {"a": {"t": [0, 1]}, "b": {"t": [2]}, "c": {"t": [3], "t.ssd": [0]}}
MB = 1_000_000.0


def placed(partition: int, load: float = 0.0, *, movable: bool = True, topic: str = "t") -> Placed:
    return Placed(f"{topic}-{partition}-{load}-{movable}", topic, partition, load, movable)


def test_equal_workers_stay_as_they_are() -> None:
    assert next_move([], WORKERS) is None
    assert next_move([], {}) is None
    assert next_move([placed(0, MB), placed(2, MB), placed(3, MB)], WORKERS) is None


def test_a_heavy_connector_alone_stays_where_it_is() -> None:
    """It would make another worker as heavy."""
    assert next_move([placed(0, 50 * MB), placed(2, MB), placed(3, MB)], WORKERS) is None


def test_the_move_that_makes_loads_most_equal() -> None:
    heavy, middle, light = placed(0, 10 * MB), placed(1, 6 * MB), placed(1, MB)
    move = next_move([heavy, middle, light, placed(2, 5 * MB)], WORKERS)
    expected = (17 * MB + 3 * IDLE, 0.0), (7 * MB + 2 * IDLE, 10 * MB + IDLE)
    assert move == Move(heavy.name, [3], *expected)


def test_idle_connectors_are_spread_by_number() -> None:
    idle = [replace(placed(0), name=str(number)) for number in range(4)]
    move = next_move(idle, WORKERS)
    assert move is not None
    assert move.after == (3 * IDLE, IDLE)


def test_a_connector_that_takes_a_snapshot_counts_and_stays() -> None:
    assert next_move([placed(0, 5 * MB, movable=False), placed(0, 6 * MB, movable=False)], WORKERS) is None
    move = next_move([placed(0, 5 * MB, movable=False), placed(0, 6 * MB)], WORKERS)
    assert move is not None
    assert move.name == placed(0, 6 * MB).name


def test_a_connector_with_a_label_moves_among_the_workers_with_the_label() -> None:
    labelled = [placed(0, 5 * MB, topic="t.ssd"), placed(0, 4 * MB, topic="t.ssd")]
    assert next_move(labelled, WORKERS) is None, "one worker has the label"
    move = next_move(labelled, {**WORKERS, "d": {"t.ssd": [1]}})
    assert move is not None
    assert move.partitions == [1]


def test_a_connector_that_no_worker_has_does_not_count() -> None:
    assert next_move([placed(9, 5 * MB), placed(9, 6 * MB)], WORKERS) is None


loads = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 100 * MB), st.booleans()), max_size=25)


@given(loads)
def test_moves_end_and_never_make_the_heaviest_worker_heavier(given_loads: Sequence[tuple[int, float, bool]]) -> None:
    connectors = [
        Placed(str(number), "t", partition, load, movable)
        for number, (partition, load, movable) in enumerate(given_loads)
    ]

    def totals() -> list[float]:
        return [
            sum(one.load + IDLE for one in connectors if one.partition in topics["t"]) for topics in WORKERS.values()
        ]

    seen = {tuple(one.partition for one in connectors)}
    heaviest = max(totals())
    while (move := next_move(connectors, WORKERS)) is not None:
        connectors = [
            replace(one, partition=next(iter(move.partitions))) if one.name == move.name else one for one in connectors
        ]
        assert max(totals()) <= heaviest * (1 + 1e-9)
        heaviest = max(totals())
        places = tuple(one.partition for one in connectors)
        assert places not in seen, "back and forth"
        seen.add(places)


def test_a_load_is_known_after_a_period() -> None:
    meter = LoadMeter(10)
    for second in range(10):
        meter.sample(second * 1000, float(second))
        assert meter.rate is None
    for second in range(10, 120):
        meter.sample(second * 1000, float(second))
    assert meter.rate == pytest.approx(1000, rel=0.01)
    meter.sample(1000, 120.0)
    assert meter.rate == pytest.approx(1000, rel=0.01), "a new run of the connector counts from 0"
    for second in range(121, 200):
        meter.sample(1000, float(second))
    assert meter.rate == pytest.approx(0, abs=1)
