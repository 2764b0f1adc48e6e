"""Names and directories of tables."""

import re

import pytest

from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.kafka.naming import check_directories, join, table_name, table_topics


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
def test_the_name_and_directory_of_a_table(topic: str, prefix: str | None, name: str, path: str) -> None:
    found = table_name(topic, prefix)
    assert (str(found), found.path, found.topic) == (name, path, topic)


@pytest.mark.parametrize("topic", ["p..", "p.db...", "p.db.."])
def test_a_topic_without_a_usable_name_is_an_error(topic: str) -> None:
    with pytest.raises(SettingsError, match="no usable directory name"):
        table_name(topic, "p")


def test_internal_topics_are_not_read() -> None:
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
