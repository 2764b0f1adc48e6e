"""The pauses between chunks."""

from __future__ import annotations

import pytest

from rowtide.verify.pace import Pace


class Clock:
    """A clock that only waiting and reading move."""

    def __init__(self) -> None:
        self.now, self.pauses = 100.0, list[float]()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def test_reading_takes_its_part_of_the_time() -> None:
    clock = Clock()
    pace = Pace(0.2, clock, clock.sleep)
    for _ in range(10):
        with pace.chunk():
            clock.now += 3
    assert clock.now - 100 == pytest.approx(9 * 15 + 3)
    assert clock.pauses == pytest.approx([12] * 9)


def test_chunks_that_are_read_at_the_same_time_count_each() -> None:
    clock = Clock()
    pace = Pace(0.5, clock, clock.sleep)
    with pace.chunk(), pace.chunk():
        clock.now += 3
    with pace.chunk():
        assert clock.now == 112


def test_time_without_reading_is_not_saved_up() -> None:
    clock = Clock()
    pace = Pace(0.5, clock, clock.sleep)
    clock.now += 1000
    for _ in range(2):
        with pace.chunk():
            clock.now += 4
    assert clock.pauses == [4]


def test_a_whole_part_makes_no_pauses() -> None:
    clock = Clock()
    pace = Pace(1, clock, clock.sleep)
    with pace.chunk():
        clock.now += 4
    with pace.chunk():
        assert (clock.now, clock.pauses) == (104, [])
