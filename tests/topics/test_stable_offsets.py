"""Transactions of which Kafka has lost the end."""

from rowtide.topics.stable_offsets import Ends, Hanging, StableOffsets

PLACE = ("shop.t", 3)


def test_a_transaction_that_stays_open_for_too_long_is_reported_once() -> None:
    offsets = StableOffsets(90.0)
    assert list(offsets.news({PLACE: Ends(5, 9)}, 0.0)) == []
    assert list(offsets.news({PLACE: Ends(5, 9)}, 89.0)) == []
    assert list(offsets.news({PLACE: Ends(5, 12), ("shop.t", 4): Ends(1, 2)}, 91.0)) == [Hanging("shop.t", 3, 5, 91.0)]
    assert list(offsets.news({PLACE: Ends(5, 12)}, 200.0)) == []
    assert list(offsets.news({PLACE: Ends(12, 12)}, 201.0)) == []
    assert list(offsets.news({PLACE: Ends(12, 20)}, 202.0)) == []
    assert list(offsets.news({PLACE: Ends(12, 20)}, 300.0)) == [Hanging("shop.t", 3, 12, 99.0)], "another one hangs"


def test_transactions_that_end_and_partitions_at_rest_are_not_reported() -> None:
    offsets = StableOffsets(90.0)
    for second in range(0, 1000, 30):
        ends = {PLACE: Ends(second, second + 5), ("shop.t", 4): Ends(7, 7), ("shop.t", 5): Ends(9, 8)}
        assert list(offsets.news(ends, float(second))) == []


def test_a_transaction_that_begins_where_the_partition_was_at_rest() -> None:
    offsets = StableOffsets(90.0)
    for second in (0.0, 500.0):
        assert list(offsets.news({PLACE: Ends(7, 7)}, second)) == []
    assert list(offsets.news({PLACE: Ends(7, 9)}, 530.0)) == []
    assert list(offsets.news({PLACE: Ends(7, 9)}, 600.0)) == [Hanging("shop.t", 3, 7, 100.0)]


def test_the_commands_name_the_place() -> None:
    assert Hanging("shop.t", 3, 5, 91.0).remedy("kafka:9092") == (
        "kafka-transactions.sh --bootstrap-server kafka:9092 describe-producers --topic shop.t --partition 3 shows its "
        "producer id, and kafka-transactions.sh --bootstrap-server kafka:9092 abort --topic shop.t --partition 3 "
        "--start-offset 5 ends it"
    )
