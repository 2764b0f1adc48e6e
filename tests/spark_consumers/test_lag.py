"""The lag of tables, from the ends that are seen and applied."""

from hypothesis import given
from hypothesis import strategies as st

from rowtide.spark_consumers.lag import Lag, Lags


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_lag_counts_from_the_oldest_record_that_is_not_applied() -> None:
    clock = Clock()
    lags = Lags(clock)
    assert lags.of("t") == Lag()
    lags.seen("t", {0: 10, 1: 5})
    clock.now += 3
    lags.seen("t", {0: 12, 1: 5})
    clock.now += 4
    assert lags.of("t") == Lag(17, 7.0)
    lags.applied("t", {0: 10, 1: 5})
    assert lags.of("t") == Lag(2, 4.0)
    lags.applied("t", {0: 4, 1: 5})  # a job that was repeated
    assert lags.of("t") == Lag(2, 4.0)
    lags.applied("t", {0: 12, 1: 5})
    assert lags.of("t") == Lag()
    assert lags.topics() == ["t"]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=40))
def test_a_table_with_all_records_has_no_lag(steps: list[tuple[bool, int]]) -> None:
    clock = Clock()
    lags = Lags(clock)
    seen = applied = 0
    for sees, number in steps:
        clock.now += 1
        if sees:
            seen += number
            lags.seen("t", {0: seen})
        else:
            applied = min(seen, applied + number)
            lags.applied("t", {0: applied})
        found = lags.of("t")
        assert found.records == seen - applied
        assert (found.seconds == 0.0) if seen == applied else (0 <= found.seconds < clock.now - 100)


def test_many_waiting_ends_take_bounded_memory() -> None:
    clock = Clock()
    lags = Lags(clock)
    for end in range(1, 5001):
        clock.now += 1
        lags.seen("t", {0: end})
    assert lags.of("t").seconds == 4999.0
    assert sum(len(topic.waiting) for topic in lags._topics.values()) <= 1001
