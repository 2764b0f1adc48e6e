"""What is new in a topic, what is lost, and where a topic's table goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.spark_consumers.errors import OffsetsLostError, SettingsError
from rowtide.spark_consumers.kafka.naming import check_directories, join, table_name, table_topics
from rowtide.spark_consumers.kafka.offsets import (
    advanced,
    assignment,
    count,
    ends,
    new_ranges,
    require,
    starting_offsets,
)


@given(
    st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=4),
    st.one_of(st.none(), st.integers(1, 7)),
)
def test_batches_take_every_offset_once(sizes: dict[int, tuple[int, int]], limit: int | None) -> None:
    bounds = {partition: (first, first + size) for partition, (first, size) in sizes.items()}
    done: dict[int, int] = {}
    read: list[tuple[int, int]] = []
    while ranges := new_ranges("t", bounds, done, limit):
        read += [(partition, offset) for partition, found in ranges.items() for offset in range(*found)]
        assert count(ranges) == sum(end - first for first, end in ranges.values()) > 0
        require("t", bounds, ranges)
        done = advanced(done, ranges)
    assert read == sorted(set(read)) or limit is not None
    assert sorted(read) == [(partition, offset) for partition in sorted(bounds) for offset in range(*bounds[partition])]


@pytest.mark.parametrize(
    ("bounds", "done", "what"),
    [
        ({0: (10, 20)}, {0: 7}, r"topic t, partition 0: offsets 7 to 9 were deleted by Kafka .* \(--restart\)"),
        ({0: (0, 5)}, {0: 6}, r"stored offset 6 lies behind the end, 5\. .* recreated"),
        ({0: (0, 5)}, {0: 1, 3: 1}, r"topic t no longer has partition 3"),
    ],
)
def test_lost_records_are_an_error(bounds: dict[int, tuple[int, int]], done: dict[int, int], what: str) -> None:
    with pytest.raises(OffsetsLostError, match=what):
        new_ranges("t", bounds, done)


@pytest.mark.parametrize("bounds", [{0: (3, 10)}, {0: (0, 3)}, {}])
def test_planned_records_that_are_gone_are_an_error(bounds: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(OffsetsLostError, match="topic t, partition 0"):
        require("t", bounds, {0: (2, 4)})


def test_the_ends_of_a_batch() -> None:
    assert ends({0: (5, 100), 1: (0, 3)}, 10) == ({0: (5, 15), 1: (0, 3)}, {0: (90, 100), 1: (0, 3)})


def test_offsets_as_spark_wants_them() -> None:
    assert assignment("t", {1: (2, 3), 0: (0, 1)}) == '{"t": [0, 1]}'
    assert starting_offsets("t", {1: (2, 3)}) == '{"t": {"1": 2}}'


@pytest.mark.parametrize(
    ("topic", "prefix", "name", "path"),
    [
        ("shop.db.orders", "shop", "db.orders", "db/orders"),
        ("shop.db.a.b", "shop", "db.a.b", "db/a.b"),
        ("my.prefix.db.t", "my.prefix", "db.t", "db/t"),
        ("elsewhere", "shop", "elsewhere", "elsewhere"),
        ("shop.alone", "shop", "alone", "alone"),
        ("shop.db.t", None, "shop.db.t", "shop.db.t"),
    ],
)
def test_a_topic_is_a_table(topic: str, prefix: str | None, name: str, path: str) -> None:
    found = table_name(topic, prefix)
    assert (str(found), found.path, found.topic) == (name, path, topic)


@pytest.mark.parametrize("topic", ["p..", "p.db...", "p.db.."])
def test_a_topic_without_a_usable_name_is_an_error(topic: str) -> None:
    with pytest.raises(SettingsError, match="no usable directory name"):
        table_name(topic, "p")


def test_only_topics_of_tables_are_read() -> None:
    import re

    topics = ["p", "p.db.t", "p.db.t.u", "p.transaction", "__debezium-heartbeat.p", "px.db.t", "pp.db.t"]
    assert [topic for topic in topics if re.fullmatch(table_topics("p"), topic)] == ["p.db.t", "p.db.t.u"]


def test_paths_join() -> None:
    assert join("s3a://lake/", "db/t") == "s3a://lake/db/t"


@pytest.mark.parametrize(
    ("topics", "state", "what"),
    [
        (
            ["p._rowtide.t"],
            "/out/_rowtide",
            r"table _rowtide\.t of topic p\._rowtide\.t .* overlaps with /out/_rowtide",
        ),
        (["p._rowtide"], "/out/_rowtide", r"table _rowtide of .* --state"),
        (["p.d.t"], "/out/d/t/offsets", r"table d\.t of .* overlaps with /out/d/t/offsets"),
        (["p.d.t"], "/out", r"table d\.t of .* overlaps with /out"),
        (["p.d", "p.d.t"], "/state", r"table d of topic p\.d and table d\.t of topic p\.d\.t overlap"),
        (["p.d", "p.d-e.t", "p.d.t"], "/state", r"table d of topic p\.d and table d\.t of topic p\.d\.t overlap"),
        (["d.t", "p.d.t", "d"], "/state", r"table d of topic d and table d\.t of topic p\.d\.t overlap"),
    ],
)
def test_overlapping_directories_are_an_error(topics: list[str], state: str, what: str) -> None:
    with pytest.raises(SettingsError, match=what):
        check_directories([table_name(topic, "p") for topic in topics], "/out/", state)


def test_directories_of_other_tables_and_the_state_are_apart() -> None:
    names = [table_name(topic, "p") for topic in ("p.d.t", "p.d.t2", "p.d._t~new", "p.d.t.u", "p._rowtide2.t")]
    check_directories(names, "/out", "/out/_rowtide")


@pytest.mark.parametrize(
    ("topic", "ambiguous"), [("shop.eu.db.t", True), ("shop.db.t", False), ("shop.db", False), ("other.a.b.c", True)]
)
def test_a_topic_of_a_longer_prefix_is_recognized(topic: str, ambiguous: bool) -> None:
    assert table_name(topic, "shop").may_have_longer_prefix is ambiguous
