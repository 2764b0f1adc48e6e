"""The settings of single tables, and the names that tables have in the output."""

from __future__ import annotations

from typing import Any

import pytest

from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.settings import Layout, Settings, TableRule
from rowtide.spark_consumers.state import Batch
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import fold, same_rows

ID = {"type": "int32", "optional": False, "field": "id"}
RULES = [
    TableRule("shop[.]orders", {"layout": Layout.HISTORY}),
    TableRule("(?<shop>shop_[0-9]+)[.](.*)", {"parallel": 9}, "lake.${shop}-$2"),
    TableRule(".*[.]bad", into="a/b"),
    TableRule("d[.].*", into="plain"),
]


def test_the_first_rule_that_matches_the_whole_name_counts() -> None:
    given = Settings("/o", "/s", "p", rules=RULES)
    assert given.of("shop.orders").layout is Layout.HISTORY
    assert given.of("shop.orders2") is given
    assert given.of("shop_1.orders").parallel == 9


def test_a_table_has_the_name_that_its_rule_gives_it() -> None:
    given = Settings("/o", "/s", "p", rules=RULES)
    name = given.table("p.shop_1.orders")
    assert (str(name), name.path, name.place) == ("shop_1.orders", "lake/shop_1-orders", ("lake", "shop_1-orders"))
    assert [given.table(topic).path for topic in ("p.shop.orders", "p.d.t")] == ["shop/orders", "plain"]
    with pytest.raises(SettingsError, match=r"table x\.bad: into 'a/b' is not a table name: expected"):
        given.table("p.x.bad")


def test_a_rule_that_applies_to_no_table_is_named() -> None:
    rules = [*RULES, TableRule("shop[.]orders|e[.]t"), TableRule("shop[.]o.*"), TableRule("shop[.]ordrs")]
    given = Settings("/o", "/s", "p", rules=rules)
    shadowed = "an element before it matches the same tables: move it before that"
    assert given.unused_rules(["p.shop.orders", "p.shop_1.t", "p.a.bad", "p.d.t", "p.e.t"]) == [
        f"--job: table shop[.]o.* applies to no table, because {shadowed}",
        "--job: table shop[.]ordrs matches no table of the topics: correct it, unless its tables are still to come",
    ]
    assert len(given.unused_rules(["p.a.other"])) == len(rules)
    assert Settings("/o", "/s", "p").unused_rules(["p.a.other"]) == []


def test_the_state_knows_the_name() -> None:
    for table in (None, "lake/orders"):
        batch = Batch("a", number=1, table=table)
        assert Batch.from_json(batch.to_json()).table == table
        assert f'"version": {1 if table is None else 2}' in batch.to_json()
        assert batch.next({}).table == table


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_tables_are_where_their_names_say(run, rows_of, spark, tmp_path, table_format) -> None:
    from rowtide.spark_consumers.stored_tables import stored_table

    topics = [Topic(f"p.{name}", [ID], key=["id"]) for name in ("a.t", "b.t")]
    options: dict[str, Any] = {
        "format": table_format, "prefix": "p", "rules": [TableRule("(.*)[.]t", into="lake.$1_t")]
    }  # fmt: skip

    def records() -> list[Any]:
        return [record for topic in topics for record in topic.records]

    for pos in (10, 20):
        for topic in topics:
            topic.change("c", None, {"id": pos}, pos)
        assert {outcome.error for outcome in run(records(), **options).values()} == {None}
    for topic, place in zip(topics, ("a_t", "b_t"), strict=True):
        same_rows(rows_of(str(tmp_path / "lake" / place), table_format), fold(topic.records))
    assert not (tmp_path / "a").exists()
    if table_format == "delta":
        table = stored_table(spark, str(tmp_path), str(tmp_path / "_rowtide"), "p.a.t", "p")
        assert sorted(table.rows(table.columns())) == [(10,), (20,)], "rowtide verify finds it"
    error = str(run(records(), **{**options, "rules": []})["p.a.t"].error)
    assert "table a.t was built as lake/a_t, and this run names it a.t: give it the name as before" in error
    both = {**options, "rules": [TableRule("(.*)[.]t", into="lake.t")]}
    with pytest.raises(SettingsError, match=r"topics p\.a\.t and p\.b\.t would both be table lake/t"):
        run(records(), **both)
